"""JMH's JSON: each fork is a process, its measurements are iterations of it.

A throughput (``ops/s``) is kept as it stands, as iterations of ``operations_per_s``; the cost that
is compared is its inverse, seconds for an operation. Of mode ``sample`` there is a histogram for
each iteration: pairs of a time and how often it was seen.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from equipoise.interop.reading import (
    TIME,
    Format,
    Process,
    Reading,
    SourceFile,
    mean,
    seconds_in,
)

OPERATIONS = "operations_per_s"


class _Metric(msgspec.Struct):
    score_unit: str = msgspec.field(name="scoreUnit")
    raw_data: list[list[float]] = msgspec.field(name="rawData", default_factory=list)
    histogram: list[list[list[tuple[float, int]]]] = msgspec.field(
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
    )


def _forks(file: SourceFile, benchmark: _Benchmark) -> Iterator[Process]:
    metric = benchmark.primary
    factor, inverse = _unit(file, benchmark)
    counts = [
        [
            [(seconds * factor, times) for seconds, times in iteration if times > 0]
            for iteration in fork
        ]
        for fork in metric.histogram
    ]
    levels = {"mode": benchmark.mode, **benchmark.params}
    for fork in counts:
        pairs = [pair for iteration in fork for pair in iteration]
        seen = sum(times for _, times in pairs)
        total = sum(seconds * times for seconds, times in pairs)
        if seen:
            histogram = {
                f"{TIME}_seen": [seconds for seconds, _ in pairs],
                f"{TIME}_times": [float(times) for _, times in pairs],
            }
            yield Process(benchmark.benchmark, {TIME: total / seen}, histogram, levels)
    for place, scores in enumerate(metric.raw_data):
        if not scores:
            continue
        own = [score * factor for score in scores]
        rate = mean(own)
        if inverse and rate <= 0:
            raise file.unusable(f"{benchmark.benchmark!r} has a throughput that is not above 0")
        iterations = {OPERATIONS if inverse else TIME: own}
        values = {TIME: 1.0 / rate if inverse else rate}
        for name, other in benchmark.secondary.items():
            if place < len(other.raw_data) and other.raw_data[place]:
                iterations[name] = other.raw_data[place]
        yield Process(benchmark.benchmark, values, iterations, levels)


def _unit(file: SourceFile, benchmark: _Benchmark) -> tuple[float, bool]:
    """What a score is multiplied by, and whether it is a throughput."""
    above, _, below = benchmark.primary.score_unit.partition("/")
    seconds = seconds_in(below if above == "ops" else above)
    if seconds is None:
        raise file.unusable(
            f"{benchmark.benchmark!r} has scores in {benchmark.primary.score_unit!r}, "
            "which is neither a time nor a throughput"
        )
    return (1.0 / seconds, True) if above == "ops" else (seconds, False)


FORMAT = Format("jmh", "java -jar benchmarks.jar -rf json -rff FILE", _recognises, _read)
