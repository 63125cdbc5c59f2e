"""Bencher: the values of ``bencher perf``, or a file in its metric format, which is written, too.

``bencher perf`` answers with a series for each branch, testbed, benchmark and measure, and in each
the values with the version that they belong to (Bencher's API documentation, ``JsonPerf``). A file
in Bencher Metric Format (https://bencher.dev/docs/reference/bencher-metric-format) knows no commit
and is named after its revision: ``v1.2.json``.

Writing: a benchmark is a condition, a measure a metric: its value is the median over the analysed
trials, its bounds those of the median's interval, left out where there is none. The primary metric,
where it is a time, is also ``latency`` in nanoseconds, Bencher's own measure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from equipoise.interop.reading import Format, SourceFile
from equipoise.interop.series.reading import SeriesReading, SeriesValue, revision_of_file
from equipoise.model.quantities import counted
from equipoise.model.result import MetricSummary, ResultDocument
from equipoise.shared.safe_text import as_unicode

LATENCY = "latency"
MAX_NAME_LETTERS = 1024
"""Characters of the name of a benchmark."""
_NANOSECONDS = 1e9
_NO_BENCHMARKS = frozenset({"results", "project", "benchmarks", "version", "schema", "data"})
"""Keys of other files, which are no name of a benchmark."""


class _Named(Struct):
    name: str
    units: str | None = None


class _Variant(Struct):
    parameters: dict[str, str | float | bool] = {}


class _Version(Struct):
    number: int = 0
    hash: str | None = None


class _Metric(Struct):
    value: float


class _WrittenMetric(_Metric, omit_defaults=True):
    lower_value: float | None = None
    upper_value: float | None = None


class _Value(Struct):
    version: _Version
    metric: _Metric | None = None
    metrics: dict[str, _Metric] = {}


class _Series(Struct):
    branch: _Named
    testbed: _Named
    benchmark: _Named
    measure: _Named
    metrics: list[_Value]
    variant: _Variant | None = None


class _Perf(Struct):
    results: list[_Series]


_Measures = Mapping[str, Mapping[str, _Metric]]


def _recognises(file: SourceFile) -> bool:
    if {"project", "results"} <= file.keys:
        return True
    if not file.keys or file.keys & _NO_BENCHMARKS:
        return False
    return '"value"' in file.begins(65536)


def _read(file: SourceFile) -> SeriesReading:
    if "results" not in file.keys:
        return SeriesReading("Bencher", tuple(_of_metric_format(file)))
    series = file.decoded(_Perf, "`bencher perf`").results
    values = tuple(value for one in series for value in _of_series(one))
    unnamed = sum(len(one.metrics) for one in series) - len(values)
    note = f"{counted(unnamed, 'value')} without the hash of a commit left out."
    return SeriesReading("Bencher", values, (note,) if unnamed else ())


def _of_series(series: _Series) -> Iterator[SeriesValue]:
    """Yield the values that have a commit, by the number of their version."""
    parameters = {} if series.variant is None else series.variant.parameters
    levels = ", ".join(f"{name}={level}" for name, level in sorted(parameters.items()))
    name = series.benchmark.name
    for one in sorted(series.metrics, key=lambda one: one.version.number):
        metric = one.metric or one.metrics.get("value")
        if one.version.hash is None or metric is None:
            continue
        yield SeriesValue(
            benchmark=f"{name}({levels})" if levels else name,
            metric=series.measure.name,
            unit=series.measure.units,
            setting=f"{series.testbed.name}, {series.branch.name}",
            commit=one.version.hash,
            # The time of the report, which says nothing of the order of the commits.
            date=None,
            value=metric.value,
        )


def _of_metric_format(file: SourceFile) -> Iterator[SeriesValue]:
    benchmarks = file.decoded(dict[str, dict[str, _Metric]], "Bencher")
    for benchmark, measures in benchmarks.items():
        for measure, metric in measures.items():
            yield SeriesValue(
                benchmark=benchmark,
                metric=measure,
                unit="nanoseconds" if measure == LATENCY else None,
                setting="",
                commit=revision_of_file(file.path),
                date=None,
                value=metric.value,
            )


FORMAT = Format(
    "bencher",
    "what `bencher perf` prints, or a file of Bencher Metric Format for each commit",
    _recognises,
    _read,
)


def to_bmf(document: ResultDocument) -> bytes:
    """Write every metric of every condition whose median is finite, indented.

    Raise `UnusableInput` if the document is a fleet's.
    """
    document.check_one_host("Bencher Metric Format")
    benchmarks: dict[str, dict[str, _WrittenMetric]] = {}
    for condition in document.conditions:
        measures: dict[str, _WrittenMetric] = {}
        for metric, summary in condition.metrics.items():
            if not math.isfinite(summary.median):
                continue
            if metric == document.primary_metric and metric.endswith("_s"):
                measures[LATENCY] = _measure(summary, _NANOSECONDS)
            measures[as_unicode(metric)] = _measure(summary, 1.0)
        benchmarks[as_unicode(condition.name)[:MAX_NAME_LETTERS]] = measures
    return msgspec.json.format(msgspec.json.encode(benchmarks), indent=2) + b"\n"


def _measure(summary: MetricSummary, factor: float) -> _WrittenMetric:
    low, high = (
        None if bound is None or not math.isfinite(bound) else float(bound) * factor
        for bound in summary.median_ci
    )
    return _WrittenMetric(float(summary.median) * factor, low, high)
