"""Go: the benchmarks of ``go test``.

A gate of ``allocations`` or ``allocated_bytes`` adds ``-benchmem``, and compares those of an
operation.

``go test`` links again on every run. If linking takes long, link once: ``--build 'go test -c -o
bench.test' -- ./bench.test -test.run '^$' -test.bench . -test.benchtime 0.1s``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from equipoise.interop.formats import go_bench
from equipoise.interop.reading import Process, read_within_bounds
from equipoise.suites.running import run, times_of
from equipoise.suites.searching import first_file_with
from equipoise.suites.tool import BenchmarkTool, Command, FoundSuite, Measurement, ToolCounts

_COMMAND = ("go", "test", "-run", "^$", "-bench", ".", "-count", "1", "./...")
_COUNTS = {"allocs/op": ("allocations", None), "B/op": ("allocated_bytes", "B")}
"""Metrics and units of an operation, by the unit in Go's output."""
_BUILD = "go test -run '^$' ./..."


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    output = folder / "output"
    run(command, output)
    processes = list(_processes(output))
    yield from times_of(processes)
    for process in processes:
        for unit, (metric, metric_unit) in _COUNTS.items():
            if unit in process.values:
                name = f"{process.benchmark} {metric}"
                yield Measurement(name, process.values[unit], metric_unit)


def _with_counts(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that reports allocations; a program of tests has another option."""
    is_go_command = command[0] == "go" or command[0].endswith("/go")
    return (*command, "-benchmem" if is_go_command else "-test.benchmem")


def _processes(output: Path) -> Iterator[Process]:
    if not output.stat().st_size:
        return
    for process in go_bench.FORMAT.read(read_within_bounds("the output of go", output)).processes:
        package = process.levels.get(go_bench.PACKAGE)
        name = process.benchmark if package is None else f"{package}.{process.benchmark}"
        yield Process(name, process.values)


def _find(folder: Path) -> FoundSuite | None:
    if not (folder / "go.mod").is_file():
        return None
    file = first_file_with(folder, r".*_test\.go", r"^func Benchmark\w*\(")
    if file is None:
        return None
    return FoundSuite(f"go.mod, and {file} has a benchmark", _COMMAND, _BUILD)


TOOL = BenchmarkTool(
    "go",
    measure=_measure,
    find=_find,
    tried_with="Go 1.26",
    command=_COMMAND,
    build=_BUILD,
    counts=ToolCounts(
        "go test -benchmem", tuple(metric for metric, _ in _COUNTS.values()), _with_counts
    ),
)
