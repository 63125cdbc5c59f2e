"""Reads JMH's JSON: each fork is a process, and its measurements are iterations.

A fork is a process of JMH. A throughput (``ops/s``) becomes the metric ``operations_per_s``; the
compared cost is the inverse, the seconds of an operation. In the mode ``sample``, each iteration
has a histogram: pairs of a time and a count.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Annotated

import msgspec

from equipoise.interop.reading import (
    TIME,
    Format,
    Process,
    Reading,
    SourceFile,
    mean,
    quote,
    seconds_per,
    with_version,
)

OPERATIONS = "operations_per_s"
HISTOGRAM_TIMES, HISTOGRAM_COUNTS = f"{TIME}_seen", f"{TIME}_times"
"""Metrics of a histogram: the times, and the number of calls with each time."""
_Count = Annotated[int, msgspec.Meta(lt=2**53)]


class _Metric(msgspec.Struct):
    score_unit: str = msgspec.field(name="scoreUnit")
    raw_data: list[list[float]] = msgspec.field(name="rawData", default_factory=list)
    histogram: list[list[list[tuple[float, _Count]]]] = msgspec.field(
        name="rawDataHistogram", default_factory=list
    )


class _Benchmark(msgspec.Struct):
    benchmark: str
    mode: str
    primary: _Metric = msgspec.field(name="primaryMetric")
    secondary: dict[str, _Metric] = msgspec.field(name="secondaryMetrics", default_factory=dict)
    params: dict[str, str] = {}
    version: str | None = msgspec.field(name="jmhVersion", default=None)
    java: str | None = msgspec.field(name="jdkVersion", default=None)
    machine: str | None = msgspec.field(name="vmName", default=None)


def _recognises(file: SourceFile) -> bool:
    return file.beginning().lstrip().startswith("[") and '"primaryMetric"' in file.beginning(65536)


def _read(file: SourceFile) -> Reading:
    benchmarks = file.decode(list[_Benchmark], "JMH")
    first = benchmarks[0] if benchmarks else None
    environment = {"jdk": first.java, "virtual_machine": first.machine} if first else {}
    return Reading(
        tool=with_version("JMH", first.version if first else None),
        metric=TIME,
        processes=tuple(process for benchmark in benchmarks for process in _forks(file, benchmark)),
        environment=environment,
        metrics_without_time_order=(HISTOGRAM_TIMES, HISTOGRAM_COUNTS),
    )


def _forks(file: SourceFile, benchmark: _Benchmark) -> Iterator[Process]:
    """Yield a process for each fork, from histograms in the mode ``sample``, else from scores."""
    name, metric = benchmark.benchmark, benchmark.primary
    factor, is_rate = _unit_factor(file, benchmark)
    levels = {"mode": benchmark.mode, **benchmark.params}
    for fork_index, fork in enumerate(metric.histogram):
        histograms = [
            [(score * factor, count) for score, count in histogram if count > 0]
            for histogram in fork
        ]
        merged_histogram = list(chain.from_iterable(histograms))
        if merged_histogram:
            iterations = {
                TIME: [_histogram_mean(histogram) for histogram in histograms if histogram],
                HISTOGRAM_TIMES: [seconds for seconds, _ in merged_histogram],
                HISTOGRAM_COUNTS: [float(count) for _, count in merged_histogram],
                **_profiler_metrics(benchmark, fork_index),
            }
            yield Process(name, {TIME: _histogram_mean(merged_histogram)}, iterations, levels)
    for fork_index, scores in enumerate(metric.raw_data):
        if not scores:
            continue
        series = [score * factor for score in scores]
        mean_score = mean(series)
        if is_rate and mean_score <= 0:
            raise file.error(f"{quote(name)} has a throughput that is not above 0")
        metric_name = OPERATIONS if is_rate else TIME
        iterations = {metric_name: series, **_profiler_metrics(benchmark, fork_index)}
        cost = 1.0 / mean_score if is_rate else mean_score
        yield Process(name, {TIME: cost}, iterations, levels)


def _histogram_mean(histogram: list[tuple[float, int]]) -> float:
    total_s = sum(seconds * count for seconds, count in histogram)
    return total_s / sum(count for _, count in histogram)


def _profiler_metrics(benchmark: _Benchmark, fork_index: int) -> dict[str, list[float]]:
    return {
        name: metric.raw_data[fork_index]
        for name, metric in benchmark.secondary.items()
        if fork_index < len(metric.raw_data) and metric.raw_data[fork_index]
    }


def _unit_factor(file: SourceFile, benchmark: _Benchmark) -> tuple[float, bool]:
    """Return the factor to seconds or operations per second, and whether scores are rates."""
    numerator, _, denominator = benchmark.primary.score_unit.partition("/")
    is_rate = numerator == "ops"
    seconds = seconds_per(denominator if is_rate else numerator)
    if seconds is None:
        raise file.error(
            f"{quote(benchmark.benchmark)} has scores in {quote(benchmark.primary.score_unit)}, "
            "which is neither a time nor a throughput"
        )
    return (1.0 / seconds if is_rate else seconds), is_rate


FORMAT = Format("jmh", "java -jar benchmarks.jar -rf json -rff FILE", _recognises, _read)
