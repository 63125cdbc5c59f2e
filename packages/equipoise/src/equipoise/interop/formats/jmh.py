"""JMH's JSON: each fork is a process, its measurements are iterations of it.

A throughput (``ops/s``) is kept as it stands, as iterations of ``operations_per_s``; the cost that
is compared is its inverse, seconds for an operation. Of mode ``sample`` there is a histogram for
each iteration: pairs of a time and how often it was seen.
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
    quoted,
    seconds_in,
    with_version,
)

OPERATIONS = "operations_per_s"
SEEN, TIMES = f"{TIME}_seen", f"{TIME}_times"
"""A histogram: the times, and how often each was seen."""
_Times = Annotated[int, msgspec.Meta(lt=2**53)]


class _Metric(msgspec.Struct):
    score_unit: str = msgspec.field(name="scoreUnit")
    raw_data: list[list[float]] = msgspec.field(name="rawData", default_factory=list)
    histogram: list[list[list[tuple[float, _Times]]]] = msgspec.field(
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
    return file.begins().lstrip().startswith("[") and '"primaryMetric"' in file.begins(65536)


def _read(file: SourceFile) -> Reading:
    benchmarks = file.decoded(list[_Benchmark], "JMH")
    first = benchmarks[0] if benchmarks else None
    return Reading(
        tool=with_version("JMH", first.version if first else None),
        metric=TIME,
        processes=tuple(process for benchmark in benchmarks for process in _forks(file, benchmark)),
        environment={"jdk": first.java, "virtual_machine": first.machine} if first else {},
        no_series=(SEEN, TIMES),
    )


def _forks(file: SourceFile, benchmark: _Benchmark) -> Iterator[Process]:
    name, metric = benchmark.benchmark, benchmark.primary
    factor, is_rate = _unit(file, benchmark)
    levels = {"mode": benchmark.mode, **benchmark.params}
    for place, fork in enumerate(metric.histogram):
        counted = [[(score * factor, times) for score, times in one if times > 0] for one in fork]
        whole = list(chain.from_iterable(counted))
        if whole:
            iterations = {
                TIME: [_mean_of(one) for one in counted if one],
                SEEN: [seconds for seconds, _ in whole],
                TIMES: [float(times) for _, times in whole],
                **_others(benchmark, place),
            }
            yield Process(name, {TIME: _mean_of(whole)}, iterations, levels)
    for place, scores in enumerate(metric.raw_data):
        if not scores:
            continue
        series = [score * factor for score in scores]
        typical = mean(series)
        if is_rate and typical <= 0:
            raise file.unusable(f"{quoted(name)} has a throughput that is not above 0")
        iterations = {OPERATIONS if is_rate else TIME: series, **_others(benchmark, place)}
        yield Process(name, {TIME: 1.0 / typical if is_rate else typical}, iterations, levels)


def _mean_of(counted: list[tuple[float, int]]) -> float:
    return sum(seconds * times for seconds, times in counted) / sum(times for _, times in counted)


def _others(benchmark: _Benchmark, place: int) -> dict[str, list[float]]:
    """Return the metrics that profilers reported of one fork, in their own units."""
    return {
        name: other.raw_data[place]
        for name, other in benchmark.secondary.items()
        if place < len(other.raw_data) and other.raw_data[place]
    }


def _unit(file: SourceFile, benchmark: _Benchmark) -> tuple[float, bool]:
    """Return the factor of a score's unit, and whether the score is a throughput."""
    above, _, below = benchmark.primary.score_unit.partition("/")
    seconds = seconds_in(below if above == "ops" else above)
    if seconds is None:
        raise file.unusable(
            f"{quoted(benchmark.benchmark)} has scores in {quoted(benchmark.primary.score_unit)}, "
            "which is neither a time nor a throughput"
        )
    return (1.0 / seconds, True) if above == "ops" else (seconds, False)


FORMAT = Format("jmh", "java -jar benchmarks.jar -rf json -rff FILE", _recognises, _read)
