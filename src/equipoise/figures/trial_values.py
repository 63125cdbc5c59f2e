"""Values of one metric, from the trials of a result document."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from equipoise.model.primitives import LATENCY
from equipoise.model.result import Comparison, ResultDocument, TrialRow

EVERY_TRIAL = 5000
"""Largest number of trials that are drawn one by one; more are binned, and the figure says so."""
TIMED_OUT = math.inf
_ACCOUNTED = frozenset(TrialRow.__struct_fields__) | {"cpu_s"}


class Pairs(Struct, frozen=True):
    """Costs of two conditions in the same blocks; shape ``(blocks,)`` each."""

    baseline: NDArray[np.float64]
    candidate: NDArray[np.float64]


def primary_metric(document: ResultDocument) -> str:
    """Return the metric of the first comparison; without one, the metric that probes report."""
    of_probes = any(LATENCY in condition.metrics for condition in document.conditions)
    compared = bool(document.comparisons) or document.imported is not None
    return LATENCY if of_probes and not compared else document.primary_metric


def value_of(row: TrialRow, metric: str) -> float | None:
    """Return a trial's value: ``inf`` if it timed out, ``None`` if it is not known."""
    if row.failure is not None and row.failure.startswith("timed out"):
        return TIMED_OUT
    if metric in row.metrics:
        return row.metrics[metric]
    value = getattr(row, metric) if metric in _ACCOUNTED else None
    return float(value) if isinstance(value, int | float) else None


def known_values(document: ResultDocument, metric: str) -> Iterator[tuple[int, TrialRow, float]]:
    """Return position in time (from 1), row and value of each trial that has a value."""
    for number, row in enumerate(document.trials, start=1):
        value = value_of(row, metric)
        if value is not None:
            yield number, row, value


def analysed_values(document: ResultDocument, metric: str) -> dict[str, list[float]]:
    """Return the finite analysed values of each condition, in the order in which they ran."""
    values: dict[str, list[float]] = {condition.name: [] for condition in document.conditions}
    for _, row, value in known_values(document, metric):
        # The control's trials belong to no condition of the plan (design.md §4).
        if row.analysed and math.isfinite(value) and row.condition in values:
            values[row.condition].append(value)
    return values


def pairs_of(document: ResultDocument, comparison: Comparison) -> Pairs:
    """Return the values of both conditions in the analysed blocks that have both."""
    by_block: dict[int, dict[str, float]] = {}
    for _, row, value in known_values(document, comparison.metric):
        if row.analysed and row.phase == "measured":
            by_block.setdefault(row.block, {})[row.condition] = value
    names = (comparison.baseline, comparison.candidate)
    both = [
        [block[name] for name in names]
        for block in by_block.values()
        if all(name in block for name in names)
    ]
    array = np.asarray(both, dtype=np.float64).reshape(-1, 2)
    return Pairs(array[:, 0], array[:, 1])
