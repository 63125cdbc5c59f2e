"""Reads vitest's JSON of benchmarks: each benchmark is a trial, and its samples are iterations.

vitest 1.5 to 4 writes it for ``--outputJson``. vitest 5 has the benchmarks in its JSON report of
tests. One process ran all benchmarks of a file, but each benchmark becomes a separate `Process`.
Times are in milliseconds. A name has the file, the groups and the benchmark, as vitest prints them.
Samples are only in the file if the user asked for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from equipoise.interop.reading import (
    MEDIAN_TIME,
    TIME,
    Format,
    Process,
    Reading,
    SourceFile,
    number_equal_names,
    quote,
)

_SECONDS_PER_MILLISECOND = 1e-3
_BENCHMARK_KEY = b'"benchmarks"'
NAME_SEPARATOR = " > "
"""Text between the file, the groups and the benchmark in a name."""


class _Latency(msgspec.Struct):
    mean: float | None = None
    """Milliseconds; ``None`` if the benchmark failed."""
    median: float | None = None
    p50: float | None = None
    """The median, in a file of vitest 5."""
    samples: list[float] | None = None


class _Benchmark(_Latency):
    """A benchmark of vitest 1.5 to 4."""

    name: str = ""


class _Group(msgspec.Struct):
    name: str = msgspec.field(name="fullName")
    """File and groups."""
    benchmarks: list[_Benchmark]


class _BenchmarkFile(msgspec.Struct):
    groups: list[_Group]


class _BenchmarkReport(msgspec.Struct):
    """Content of the file of vitest 1.5 to 4."""

    files: list[_BenchmarkFile]


class _Task(msgspec.Struct):
    """A benchmark of vitest 5."""

    name: str
    latency: _Latency
    is_from_file: bool = msgspec.field(name="fromStore", default=False)
    """Whether the test read the result from an earlier run."""


class _Comparison(msgspec.Struct):
    tasks: list[_Task]


class _Test(msgspec.Struct):
    title: str
    groups: list[str] = msgspec.field(name="ancestorTitles", default_factory=list)
    benchmarks: list[_Comparison] = []


class _TestFile(msgspec.Struct):
    path: str = msgspec.field(name="name")
    tests: list[_Test] = msgspec.field(name="assertionResults")


class _TestReport(msgspec.Struct):
    """Content of the file of vitest 5."""

    files: list[_TestFile] = msgspec.field(name="testResults")


def _recognises(file: SourceFile) -> bool:
    is_report = file.keys == {"files"} or {"testResults", "numTotalTests"} <= file.keys
    return is_report and _BENCHMARK_KEY in file.content


def reading_of(file: SourceFile, root: Path | None = None) -> Reading:
    """Return the measurements of a file of vitest.

    ``root`` is the folder that names of files are relative to in a file of vitest 5. By default, it
    is the common folder of the files.
    """
    benchmarks = [*(_newer(file, root) if "testResults" in file.keys else _older(file))]
    names = number_equal_names(name for name, _ in benchmarks)
    failures: list[tuple[str, str]] = []
    processes: list[Process] = []
    for name, (_, latency) in zip(names, benchmarks, strict=True):
        if latency.mean is None:
            failures.append((name, "it has no time"))
        else:
            processes.append(_process(name, latency, latency.mean))
    return Reading(
        tool="vitest",
        metric=TIME,
        processes=tuple(processes),
        notes=tuple(f"{quote(name)} has no time" for name, _ in failures),
        failures=tuple(failures),
    )


def _process(name: str, latency: _Latency, mean_ms: float) -> Process:
    iterations = [sample * _SECONDS_PER_MILLISECOND for sample in latency.samples or ()]
    values = {TIME: mean_ms * _SECONDS_PER_MILLISECOND}
    median_ms = latency.p50 if latency.median is None else latency.median
    if median_ms is not None:
        values[MEDIAN_TIME] = median_ms * _SECONDS_PER_MILLISECOND
    return Process(name, values, {TIME: iterations} if iterations else {})


def _older(file: SourceFile) -> Iterator[tuple[str, _Latency]]:
    for measured_file in file.decode(_BenchmarkReport, "vitest").files:
        for group in measured_file.groups:
            for benchmark in group.benchmarks:
                yield _full_name(group.name, benchmark.name), benchmark


def _newer(file: SourceFile, root: Path | None) -> Iterator[tuple[str, _Latency]]:
    measured_files = file.decode(_TestReport, "vitest").files
    folder = root or _common_folder([measured_file.path for measured_file in measured_files])
    for measured_file in measured_files:
        path = measured_file.path
        if folder is not None and os.path.isabs(path):
            path = os.path.relpath(path, folder)
        for test in measured_file.tests:
            for comparison in test.benchmarks:
                # The tasks are in the order of their times.
                for task in sorted(comparison.tasks, key=lambda task: task.name):
                    if not task.is_from_file:
                        groups = (*test.groups, test.title)
                        yield _full_name(path, *groups, task.name), task.latency


def _full_name(*parts: str) -> str:
    return NAME_SEPARATOR.join(filter(None, parts))


def _common_folder(paths: list[str]) -> Path | None:
    """Return the deepest folder with all files; ``None`` without files or absolute paths."""
    if not paths or not all(os.path.isabs(path) for path in paths):
        return None
    return Path(os.path.commonpath([os.path.dirname(path) for path in paths]))


FORMAT = Format("vitest", "npx vitest bench --run --outputJson FILE", _recognises, reading_of)
