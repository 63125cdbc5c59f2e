"""Results as one CSV table of numbers: a row for each condition and metric, with its comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from equipoise.model.csv_text import csv_text
from equipoise.model.result import Comparison, ResultDocument, SampleComparison

RUN_COLUMNS = ("run", "study", "condition")
METRIC_COLUMNS = (
    *("trials", "failures", "metric", "median", "median_low", "median_high", "mean", "sd"),
    *("min", "p05", "p25", "p75", "p95", "max"),
)
COMPARISON_COLUMNS = (
    *("baseline", "ratio", "ratio_low", "ratio_high", "level"),
    *("mean_ratio", "e_value", "verdict"),
)


def to_csv(documents: Sequence[ResultDocument]) -> str:
    """A header and the rows of every result: RFC 4180 quoting, empty where unknown.

    After the condition comes ``level_<factor>`` for each factor. Values are in the unit that the
    metric's name ends in; ``inf`` is that of trials that timed out.
    """
    factors = list(
        dict.fromkeys(
            factor
            for document in documents
            for condition in document.conditions
            for factor in condition.levels
        )
    )
    levels = (f"level_{factor}" for factor in factors)
    header = [*RUN_COLUMNS, *levels, *METRIC_COLUMNS, *COMPARISON_COLUMNS]
    rows = (row for document in documents for row in _rows(document, factors))
    return csv_text([header, *rows])


def _rows(document: ResultDocument, factors: Sequence[str]) -> Iterator[list[Any]]:
    imported = () if document.imported is None else document.imported.comparisons
    compared: dict[tuple[str, str], Comparison | SampleComparison] = {}
    compared.update({(one.candidate, one.metric): one for one in document.comparisons})
    compared.update({(one.candidate, one.metric): one for one in imported})
    for condition in document.conditions:
        for metric, summary in condition.metrics.items():
            yield [
                *(document.run.id, document.run.study, condition.name),
                *(condition.levels.get(factor) for factor in factors),
                *(condition.trials, condition.failures, metric),
                *(summary.median, *summary.median_ci, summary.mean, summary.sd, summary.min),
                *(summary.p05, summary.p25, summary.p75, summary.p95, summary.max),
                *_comparison(compared.get((condition.name, metric))),
            ]


def _comparison(one: Comparison | SampleComparison | None) -> list[Any]:
    if one is None:
        return [None] * len(COMPARISON_COLUMNS)
    found = [one.baseline, one.ratio, *one.ratio_ci, one.level]
    if isinstance(one, SampleComparison):
        return [*found, None, None, None]
    return [*found, one.mean_ratio, one.e_value, one.verdict]
