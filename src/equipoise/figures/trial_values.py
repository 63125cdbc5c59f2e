"""The values of one metric, out of the rows of a result document."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from equipoise.model.primitives import LATENCY
from equipoise.model.result import Comparison, ResultDocument, TrialRow

TIMED_OUT = math.inf
_ACCOUNTED = frozenset(field.name for field in fields(TrialRow)) | {"cpu_s"}


@dataclass(frozen=True, slots=True)
class Pairs:
    """The costs of two conditions in the same blocks; shape ``(blocks,)`` each."""

    baseline: NDArray[np.float64]
    candidate: NDArray[np.float64]


def primary_metric(document: ResultDocument) -> str:
    """What the first comparison compares; where nothing is compared, what probes report."""
    of_probes = any(LATENCY in condition.metrics for condition in document.conditions)
    compared = bool(document.comparisons) or document.imported is not None
    return LATENCY if of_probes and not compared else document.primary_metric


def value_of(row: TrialRow, metric: str) -> float | None:
    """One trial's value: ``inf`` if it timed out, ``None`` if it is not known."""
    if row.failure is not None and row.failure.startswith("timed out"):
        return TIMED_OUT
    if metric in row.metrics:
        return row.metrics[metric]
    value = getattr(row, metric) if metric in _ACCOUNTED else None
    return float(value) if isinstance(value, int | float) else None


def known_values(document: ResultDocument, metric: str) -> Iterator[tuple[int, TrialRow, float]]:
    """The place in the order of running (from 1), row and value of each trial that has one."""
    for number, row in enumerate(document.trials, start=1):
        value = value_of(row, metric)
        if value is not None:
            yield number, row, value


def analysed_values(document: ResultDocument, metric: str) -> dict[str, list[float]]:
    """For each condition in the order of the plan: its finite analysed values, as they ran."""
    found: dict[str, list[float]] = {condition.name: [] for condition in document.conditions}
    for _, row, value in known_values(document, metric):
        # The control's trials belong to no condition of the plan (design.md §4).
        if row.analysed and math.isfinite(value) and row.condition in found:
            found[row.condition].append(value)
    return found


def pairs_of(document: ResultDocument, comparison: Comparison) -> Pairs:
    """The analysed blocks in which both conditions have a value."""
    by_block: dict[int, dict[str, float]] = {}
    for _, row, value in known_values(document, comparison.metric):
        if row.analysed and row.phase == "measured":
            by_block.setdefault(row.block, {})[row.condition] = value
    wanted = (comparison.baseline, comparison.candidate)
    both = [
        [block[name] for name in wanted]
        for block in by_block.values()
        if all(name in block for name in wanted)
    ]
    array = np.asarray(both, dtype=np.float64).reshape(-1, 2)
    return Pairs(array[:, 0], array[:, 1])
