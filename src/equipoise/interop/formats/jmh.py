"""JMH's JSON: each fork is a process, its measurements are iterations of it.

A throughput (``ops/s``) is kept as it stands, as iterations of ``operations_per_s``; the cost that
is compared is its inverse, seconds for an operation. Of mode ``sample`` there is a histogram for
each iteration: pairs of a time and how often it was seen.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    found = file.decoded(list[_Benchmark], "JMH")
    first = found[0] if found else None
    version = None if first is None else first.version
    environment = {} if first is None else {"jdk": first.java, "virtual_machine": first.machine}
    return Reading(
        tool="JMH" if version is None else f"JMH {version}",
        metric=TIME,
        processes=tuple(process for one in found for process in _forks(file, one)),
        environment=environment,
        no_series=(SEEN, TIMES),
    )


def _forks(file: SourceFile, benchmark: _Benchmark) -> Iterator[Process]:
    metric = benchmark.primary
    factor, inverse = _unit(file, benchmark)
    levels = {"mode": benchmark.mode, **benchmark.params}
    for place, fork in enumerate(metric.histogram):
        counted = [[(score * factor, times) for score, times in one if times > 0] for one in fork]
        seen = sum(times for one in counted for _, times in one)
        if seen:
            total = sum(seconds * times for one in counted for seconds, times in one)
            iterations = {
                TIME: [_mean_of(one) for one in counted if one],
                SEEN: [seconds for one in counted for seconds, _ in one],
                TIMES: [float(times) for one in counted for _, times in one],
                **_others(benchmark, place),
            }
            yield Process(benchmark.benchmark, {TIME: total / seen}, iterations, levels)
    for place, scores in enumerate(metric.raw_data):
        if not scores:
            continue
        own = [score * factor for score in scores]
        rate = mean(own)
        if inverse and rate <= 0:
            raise file.unusable(
                f"{quoted(benchmark.benchmark)} has a throughput that is not above 0"
            )
        iterations = {OPERATIONS if inverse else TIME: own, **_others(benchmark, place)}
        values = {TIME: 1.0 / rate if inverse else rate}
        yield Process(benchmark.benchmark, values, iterations, levels)


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
