"""Reads Google Benchmark's JSON: each benchmark is a trial, and repetitions are its iterations.

One process ran all benchmarks of a file, but each benchmark becomes a separate `Process`. Times are
for one loop of the benchmark, in ``time_unit``. Further numbers of a benchmark are counters of the
user. Aggregates (mean, median, stddev, cv) are left out.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from equipoise.interop.reading import (
    TIME,
    Format,
    Reading,
    SourceFile,
    process_of,
    quote,
    seconds_per,
    with_version,
)

_KEYS_WITHOUT_METRIC = frozenset(
    "family_index per_family_instance_index repetitions repetition_index threads "
    "error_occurred".split()
)
"""Keys of numbers that are not measured values."""


class _GoogleFile(msgspec.Struct):
    benchmarks: list[dict[str, Any]]
    context: dict[str, Any] = {}


def _recognises(file: SourceFile) -> bool:
    return {"context", "benchmarks"} <= file.keys


def _read(file: SourceFile) -> Reading:
    export = file.decode(_GoogleFile, "Google Benchmark")
    repetitions: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    failures: dict[str, str] = {}
    aggregate_count = 0
    for entry in export.benchmarks:
        name = str(entry.get("run_name") or entry.get("name") or "benchmark")
        if entry.get("run_type") == "aggregate":
            aggregate_count += 1
        elif entry.get("error_occurred"):
            failures[name] = f"reported an error: {entry.get('error_message', 'no message')}"
        elif entry.get("skipped"):
            failures[name] = f"was skipped: {entry.get('skip_message', 'no message')}"
        else:
            for metric, value in _metric_values(file, name, entry).items():
                repetitions[name][metric].append(value)
    if aggregate_count and not repetitions:
        raise file.error(
            "the file has only aggregates",
            "run the benchmark without --benchmark_report_aggregates_only",
        )
    return Reading(
        tool=with_version("Google Benchmark", export.context.get("library_version")),
        metric=TIME,
        processes=tuple(
            process_of(name, iterations, failure=failures.get(name))
            for name, iterations in repetitions.items()
        ),
        environment=export.context,
        metrics_without_time_order=("iterations",),
        notes=tuple(
            f"{name} {message}" for name, message in failures.items() if name not in repetitions
        ),
    )


def _metric_values(file: SourceFile, name: str, entry: dict[str, Any]) -> dict[str, float]:
    unit = entry.get("time_unit", "ns")
    factor = seconds_per(str(unit))
    time_metrics = {"real_time": TIME, "cpu_time": "cpu_s"}
    if factor is None or not isinstance(entry.get("real_time"), int | float):
        raise file.error(
            f"{quote(name)} has no real_time in a known unit (time_unit {quote(unit)})"
        )
    try:
        return {
            time_metrics.get(key, key): float(value) * (factor if key in time_metrics else 1.0)
            for key, value in entry.items()
            if isinstance(value, int | float)
            and not isinstance(value, bool)
            and key not in _KEYS_WITHOUT_METRIC
        }
    except OverflowError as error:
        raise file.error(f"{quote(name)} has a number that is too large") from error


FORMAT = Format(
    "google-benchmark",
    "./bench --benchmark_out=FILE --benchmark_out_format=json",
    _recognises,
    _read,
)
