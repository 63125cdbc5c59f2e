"""Reads pyperf's JSON: each run is a process, and its values are iterations.

Warm-up values become iterations of ``warmup_<metric>``. Runs without values only calibrate, and are
left out. Metadata of the file or a benchmark also hold for its runs (pyperf, "JSON file format").
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
    mean,
    quote,
    with_version,
)

_METRICS = {"second": TIME, "byte": "memory_bytes", "integer": "count"}
"""Metric of a benchmark, by the unit of its values."""


class _Run(msgspec.Struct):
    values: list[float] = []
    warmups: list[tuple[int, float]] = []
    metadata: dict[str, Any] = {}


class _Benchmark(msgspec.Struct):
    runs: list[_Run]
    metadata: dict[str, Any] = {}


class Suite(msgspec.Struct):
    """The content of a file."""

    benchmarks: list[_Benchmark]
    metadata: dict[str, Any] = {}


def _recognises(file: SourceFile) -> bool:
    return {"benchmarks", "version"} <= file.keys and "machine_info" not in file.keys


def _read(file: SourceFile) -> Reading:
    suite = file.decode(Suite, "pyperf")
    processes: list[Process] = []
    for benchmark in suite.benchmarks:
        metadata = {**suite.metadata, **benchmark.metadata}
        name = str(metadata.get("name") or file.path.stem)
        metric = _METRICS.get(str(metadata.get("unit", "second")))
        if metric is None:
            raise file.error(
                f"{quote(name)} has values in the unknown unit {quote(metadata['unit'])}"
            )
        for run in benchmark.runs:
            if run.values:
                iterations = {metric: run.values}
                if run.warmups:
                    iterations[f"warmup_{metric}"] = [value for _, value in run.warmups]
                host = _optional_text(run.metadata.get("hostname", metadata.get("hostname")))
                processes.append(Process(name, {metric: mean(run.values)}, iterations, host=host))
    runs = (run for benchmark in suite.benchmarks for run in benchmark.runs)
    calibrations = sum(not run.values for run in runs)
    return Reading(
        tool=with_version("pyperf", _version(suite)),
        metric=next(iter(processes[0].values)) if processes else TIME,
        processes=tuple(processes),
        environment=suite.metadata,
        notes=(f"{calibrations} runs that only calibrated have no value",) if calibrations else (),
    )


def _version(suite: Suite) -> str | None:
    """Return pyperf's version from the metadata of the file, a benchmark or a run."""
    metadata_levels = [suite.metadata]
    for benchmark in suite.benchmarks[:1]:
        metadata_levels += [benchmark.metadata, *(run.metadata for run in benchmark.runs[:1])]
    known = (metadata for metadata in metadata_levels if "perf_version" in metadata)
    return next((_optional_text(metadata["perf_version"]) for metadata in known), None)


def _optional_text(value: Any) -> str | None:
    return None if value is None else str(value)


FORMAT = Format("pyperf", "python -m pyperf … -o FILE", _recognises, _read)
