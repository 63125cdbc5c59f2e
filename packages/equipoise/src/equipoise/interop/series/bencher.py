"""Reads the values of ``bencher perf`` or Bencher Metric Format; writes Bencher Metric Format.

``bencher perf`` prints a series for each branch, testbed, benchmark and measure (Bencher's API
documentation, ``JsonPerf``). A file in Bencher Metric Format
(https://bencher.dev/docs/reference/bencher-metric-format) has no commit; the file name contains the
revision: ``v1.2.json``.

Writing: a condition becomes a benchmark, and a metric becomes a measure. The value is the median
over the analysed trials. If the primary metric is a time, it is also written in nanoseconds, as
Bencher's measure ``latency``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from equipoise.interop.reading import Format, SourceFile
from equipoise.interop.series.reading import SeriesReading, SeriesValue, revision_of_file
from equipoise.model.quantities import counted
from equipoise.model.result import MetricSummary, ResultDocument
from equipoise.shared.safe_text import as_unicode

LATENCY = "latency"
"""Bencher's measure of a time, in nanoseconds."""
MAX_NAME_LETTERS = 1024
"""Maximum length of the name of a benchmark."""
_NANOSECONDS_PER_SECOND = 1e9
_FOREIGN_KEYS = frozenset({"results", "project", "benchmarks", "version", "schema", "data"})
"""Keys with which the JSON of other formats begins."""


class _NamedObject(Struct):
    name: str
    units: str | None = None


class _Variant(Struct):
    parameters: dict[str, str | float | bool] = {}


class _Version(Struct):
    number: int = 0
    hash: str | None = None


class _Metric(Struct):
    value: float


class _MetricWithBounds(_Metric, omit_defaults=True):
    lower_value: float | None = None
    upper_value: float | None = None


class _SeriesEntry(Struct):
    version: _Version
    metric: _Metric | None = None
    metrics: dict[str, _Metric] = {}


class _Series(Struct):
    branch: _NamedObject
    testbed: _NamedObject
    benchmark: _NamedObject
    measure: _NamedObject
    metrics: list[_SeriesEntry]
    variant: _Variant | None = None


class _Perf(Struct):
    results: list[_Series]


def _recognises(file: SourceFile) -> bool:
    if {"project", "results"} <= file.keys:
        return True
    if not file.keys or file.keys & _FOREIGN_KEYS:
        return False
    return '"value"' in file.beginning(65536)


def _read(file: SourceFile) -> SeriesReading:
    if "results" not in file.keys:
        return SeriesReading("Bencher", tuple(_metric_format_values(file)))
    all_series = file.decode(_Perf, "`bencher perf`").results
    values = tuple(value for series in all_series for value in _series_values(series))
    unnamed_count = sum(len(series.metrics) for series in all_series) - len(values)
    note = f"Left out: {counted(unnamed_count, 'value')} without the hash of a commit."
    return SeriesReading("Bencher", values, (note,) if unnamed_count else ())


def _series_values(series: _Series) -> Iterator[SeriesValue]:
    """Yield the values that have a commit, in the order of their version numbers."""
    parameters = {} if series.variant is None else series.variant.parameters
    levels = ", ".join(f"{name}={level}" for name, level in sorted(parameters.items()))
    name = series.benchmark.name
    for entry in sorted(series.metrics, key=lambda entry: entry.version.number):
        metric = entry.metric or entry.metrics.get("value")
        if entry.version.hash is None or metric is None:
            continue
        yield SeriesValue(
            benchmark=f"{name}({levels})" if levels else name,
            metric=series.measure.name,
            unit=series.measure.units,
            setting=f"{series.testbed.name}, {series.branch.name}",
            commit=entry.version.hash,
            # Bencher has no dates of commits, only of reports.
            date=None,
            value=metric.value,
        )


def _metric_format_values(file: SourceFile) -> Iterator[SeriesValue]:
    benchmarks = file.decode(dict[str, dict[str, _Metric]], "Bencher")
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
    "the output of `bencher perf`, or a file of Bencher Metric Format for each commit",
    _recognises,
    _read,
)


def to_metric_format(document: ResultDocument) -> bytes:
    """Return the metrics of all conditions with a finite median in Bencher Metric Format, indented.

    Raise `UnusableInput` if the document is about several hosts.
    """
    document.check_one_host("Bencher Metric Format")
    benchmarks: dict[str, dict[str, _MetricWithBounds]] = {}
    for condition in document.conditions:
        measures: dict[str, _MetricWithBounds] = {}
        for metric, summary in condition.metrics.items():
            if not math.isfinite(summary.median):
                continue
            if metric == document.primary_metric and metric.endswith("_s"):
                measures[LATENCY] = _written_metric(summary, factor=_NANOSECONDS_PER_SECOND)
            measures[as_unicode(metric)] = _written_metric(summary, factor=1.0)
        benchmarks[as_unicode(condition.name)[:MAX_NAME_LETTERS]] = measures
    return msgspec.json.format(msgspec.json.encode(benchmarks), indent=2) + b"\n"


def _written_metric(summary: MetricSummary, factor: float) -> _MetricWithBounds:
    low, high = (
        None if bound is None or not math.isfinite(bound) else float(bound) * factor
        for bound in summary.median_ci
    )
    return _MetricWithBounds(float(summary.median) * factor, low, high)
