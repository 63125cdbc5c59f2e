"""Reads pytest-benchmark's JSON: each benchmark is a trial, and its rounds are iterations.

One process of pytest ran all benchmarks of a file, but each benchmark becomes a separate `Process`.
``stats.data`` has the seconds of a call in each round; ``--benchmark-save`` writes only the mean.
"""

from __future__ import annotations

from typing import Any

import msgspec

from equipoise.interop.reading import (
    TIME,
    Format,
    Process,
    Reading,
    SourceFile,
    process_of,
    with_version,
)


class _Stats(msgspec.Struct):
    mean: float
    data: list[float] = []


class _Benchmark(msgspec.Struct):
    stats: _Stats
    name: str
    fullname: str | None = None


class _File(msgspec.Struct):
    benchmarks: list[_Benchmark]
    machine_info: dict[str, Any] = {}
    commit_info: dict[str, Any] = {}
    version: str | None = None


def _recognises(file: SourceFile) -> bool:
    return {"machine_info", "benchmarks"} <= file.keys


def _read(file: SourceFile) -> Reading:
    export = file.decode(_File, "pytest-benchmark")
    means_count = sum(not benchmark.stats.data for benchmark in export.benchmarks)
    return Reading(
        tool=with_version("pytest-benchmark", export.version),
        metric=TIME,
        processes=tuple(map(_process, export.benchmarks)),
        environment={"machine": export.machine_info, "commit": export.commit_info},
        notes=(f"{means_count} benchmarks have a mean but no rounds",) if means_count else (),
    )


def _process(benchmark: _Benchmark) -> Process:
    name, rounds = benchmark.fullname or benchmark.name, benchmark.stats.data
    if not rounds:
        return Process(name, {TIME: benchmark.stats.mean})
    return process_of(name, {TIME: rounds})


FORMAT = Format("pytest-benchmark", "pytest --benchmark-json=FILE", _recognises, _read)
