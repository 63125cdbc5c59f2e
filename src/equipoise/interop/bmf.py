"""Results in Bencher Metric Format (https://bencher.dev/docs/reference/bencher-metric-format).

A benchmark is a condition, a measure a metric: its value is the median over the analysed trials,
its bounds those of the median's interval, left out where there is none. The primary metric, where
it is a time, is also ``latency`` in nanoseconds, Bencher's own measure.
"""

from __future__ import annotations

import math

import msgspec

from equipoise.model.fleet import check_one_host
from equipoise.model.result import MetricSummary, ResultDocument
from equipoise.model.safe_text import as_unicode

LATENCY = "latency"
MOST_NAME = 1024
"""Characters of the name of a benchmark."""
_NANOSECONDS = 1e9


class _Metric(msgspec.Struct, omit_defaults=True):
    value: float
    lower_value: float | None = None
    upper_value: float | None = None


def to_bmf(document: ResultDocument) -> bytes:
    """Write every metric of every condition whose median is finite, indented.

    Raises
    ------
    UnusableInput
        The document is a fleet's.
    """
    check_one_host(document.fleet, "Bencher Metric Format")
    benchmarks: dict[str, dict[str, _Metric]] = {}
    for condition in document.conditions:
        measures: dict[str, _Metric] = {}
        for metric, summary in condition.metrics.items():
            if not math.isfinite(summary.median):
                continue
            if metric == document.primary_metric and metric.endswith("_s"):
                measures[LATENCY] = _measure(summary, _NANOSECONDS)
            measures[as_unicode(metric)] = _measure(summary, 1.0)
        benchmarks[as_unicode(condition.name)[:MOST_NAME]] = measures
    return msgspec.json.format(msgspec.json.encode(benchmarks), indent=2) + b"\n"


def _measure(summary: MetricSummary, factor: float) -> _Metric:
    low, high = (
        None if bound is None or not math.isfinite(bound) else float(bound) * factor
        for bound in summary.median_ci
    )
    return _Metric(float(summary.median) * factor, low, high)
