"""Values of one metric, from the trials of a result document, and the laws that costs follow."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from equipoise.model.errors import UnusableInput
from equipoise.model.result import (
    Comparison,
    ConditionResult,
    MetricSummary,
    ResultDocument,
    TrialRow,
)
from equipoise.stats.scaling import Exponent, ScalingLaw, describe_law, scaling_law

MIN_SIZES = 2
Measurement = tuple[float, ConditionResult, MetricSummary]
"""A size, the condition that has it, and its cost."""
EVERY_TRIAL = 5000
"""Largest number of trials that are drawn one by one; more are binned, with a note."""
TIMED_OUT = math.inf
LATENCY = "latency_s"
"""Metric of programs that time their own operations. Where nothing is compared it is drawn, for the
time of such a process depends on how many operations it repeats."""


class Pairs(Struct, frozen=True):
    """Costs of two conditions in the same blocks; shape ``(blocks,)`` each."""

    baseline: NDArray[np.float64]
    candidate: NDArray[np.float64]


def primary_metric(document: ResultDocument) -> str:
    """Return the metric of the first comparison; without one, the latency if one is reported."""
    reports_latency = any(LATENCY in condition.metrics for condition in document.conditions)
    compared = bool(document.comparisons) or not document.has_random_order
    return LATENCY if reports_latency and not compared else document.primary_metric


def known_values(document: ResultDocument, metric: str) -> Iterator[tuple[int, TrialRow, float]]:
    """Return position in time (from 1), row and value of each trial: ``inf`` if it timed out.

    Trials of which the value is not known are left out.
    """
    for number, row in enumerate(document.trials, start=1):
        value = TIMED_OUT if row.timed_out else row.value_of(metric)
        if value is not None:
            yield number, row, value


def analysed_values(document: ResultDocument, metric: str) -> dict[str, list[float]]:
    """Return the finite analysed values of each condition, in the order in which they ran."""
    values: dict[str, list[float]] = {condition.name: [] for condition in document.conditions}
    for _, row, value in known_values(document, metric):
        # The control's trials belong to no condition of the plan (docs/reference/document.md).
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


def numeric_factors(document: ResultDocument, metric: str) -> tuple[str, ...]:
    """Return the factors with at least two positive numbers among their measured levels."""
    factors = dict.fromkeys(name for condition in document.conditions for name in condition.levels)
    return tuple(
        name
        for name in factors
        if len({size for size, _, _ in measured_sizes(document, name, metric)}) >= MIN_SIZES
    )


def measured_sizes(document: ResultDocument, factor: str, metric: str) -> list[Measurement]:
    """Return the conditions with a positive size and cost, each with its size."""
    return [
        (size, condition, condition.metrics[metric])
        for condition in document.conditions
        if (size := _size(condition, factor)) is not None
        and metric in condition.metrics
        and 0 < condition.metrics[metric].median < math.inf
    ]


def other_levels(condition: ConditionResult, factor: str) -> str:
    """Return the levels of the other factors as text."""
    others = [f"{name} {level}" for name, level in condition.levels.items() if name != factor]
    return ", ".join(others) or "all"


def scaling_laws(document: ResultDocument, factor: str, metric: str) -> dict[str, ScalingLaw]:
    """Fit a law over one factor for each combination of the other factors' levels.

    Combinations without a law (a single size, a median that is not positive) are left out.
    """
    groups: dict[str, dict[float, str]] = {}
    for size, condition, _ in measured_sizes(document, factor, metric):
        groups.setdefault(other_levels(condition, factor), {})[size] = condition.name
    blocks: dict[int, dict[str, float]] = {}
    for _, row, value in known_values(document, metric):
        if row.analysed:
            blocks.setdefault(row.block, {})[row.condition] = value
    laws: dict[str, ScalingLaw] = {}
    for line, names in groups.items():
        costs = np.array(
            [[block.get(name, math.nan) for name in names.values()] for block in blocks.values()]
        ).reshape(-1, len(names))
        try:
            laws[line] = scaling_law(tuple(names), costs, seed=document.run.seed)
        except UnusableInput:
            # A law needs two sizes above 1; the line itself is still drawn.
            continue
    return laws


def law_sentence(law: ScalingLaw) -> str:
    """Return the fitted exponents: ``N^2.13 (2.10 to 2.16); simple laws that fit: …``."""
    parts = [f"N^{exponent_text(law.power_law)}"]
    if len(law.sizes) > MIN_SIZES:
        parts.append(f"with log N, N^{exponent_text(law.exponents[1])}")
    return f"{'; '.join(parts)}; {_simple_laws(law)}"


def exponent_text(exponent: Exponent) -> str:
    """Return an exponent with its interval: ``2.13 (2.10 to 2.16)``."""
    low, high = exponent.exponent_ci
    interval = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    return f"{exponent.exponent:.2f}{interval}"


def _simple_laws(law: ScalingLaw) -> str:
    """Return the simple laws that fit."""
    if not law.has_intervals:
        return "too few blocks to exclude a law"
    fitting = ", ".join(describe_law(*powers) for powers in law.simple)
    return f"simple laws that fit every size: {fitting or 'none'}"


def _size(condition: ConditionResult, factor: str) -> float | None:
    try:
        size = float(condition.levels.get(factor, ""))
    except ValueError:
        return None
    return size if 0 < size < math.inf else None
