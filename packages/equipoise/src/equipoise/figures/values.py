"""Reads the values of a metric from a result, and fits laws of cost by size."""

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
"""Number of sizes that a scaling law needs."""
SizeCost = tuple[float, ConditionResult, MetricSummary]
"""Size (the level of a factor, as a number), condition with this size, and summary of its cost."""
MAX_DOTS = 5000
"""Maximum number of trials that are drawn one by one; more trials are binned."""
TIMED_OUT = math.inf
"""Value of a trial that timed out."""
LATENCY_METRIC = "latency_s"
"""Metric of programs that time their own operations. Charts without comparisons draw this metric,
because the time of such a process depends on the number of operations."""


class PairedValues(Struct, frozen=True):
    """Values of both conditions of a comparison: one value of each for each of n blocks."""

    baseline: NDArray[np.float64]
    candidate: NDArray[np.float64]


def primary_metric(result: ResultDocument) -> str:
    """Return the primary metric or, if nothing is compared, the latency that programs reported."""
    reports_latency = any(LATENCY_METRIC in condition.metrics for condition in result.conditions)
    has_comparison = bool(result.comparisons) or not result.has_random_order
    return LATENCY_METRIC if reports_latency and not has_comparison else result.primary_metric


def trials_with_values(
    result: ResultDocument, metric: str
) -> Iterator[tuple[int, TrialRow, float]]:
    """Yield the trial number (from 1), the row and the value of each trial with a known value.

    The value of a trial that timed out is infinite.
    """
    for number, row in enumerate(result.trials, start=1):
        value = TIMED_OUT if row.timed_out else row.value_of(metric)
        if value is not None:
            yield number, row, value


def analysed_values(result: ResultDocument, metric: str) -> dict[str, list[float]]:
    """Return the finite values of the analysed trials, by condition, in the order of trials."""
    values: dict[str, list[float]] = {condition.name: [] for condition in result.conditions}
    for _, row, value in trials_with_values(result, metric):
        # Trials of the control are left out: it is not a condition (docs/reference/document.md).
        if row.analysed and math.isfinite(value) and row.condition in values:
            values[row.condition].append(value)
    return values


def paired_values(result: ResultDocument, comparison: Comparison) -> PairedValues:
    """Return the values of both conditions, from the analysed blocks in which both ran."""
    by_block: dict[int, dict[str, float]] = {}
    for _, row, value in trials_with_values(result, comparison.metric):
        if row.analysed and row.phase == "measured":
            by_block.setdefault(row.block, {})[row.condition] = value
    names = (comparison.baseline, comparison.candidate)
    value_pairs = [
        [block[name] for name in names]
        for block in by_block.values()
        if all(name in block for name in names)
    ]
    values = np.asarray(value_pairs, dtype=np.float64).reshape(-1, 2)
    return PairedValues(values[:, 0], values[:, 1])


def numeric_factors(result: ResultDocument, metric: str) -> tuple[str, ...]:
    """Return the factors with at least two measured levels that are positive numbers."""
    factors = dict.fromkeys(name for condition in result.conditions for name in condition.levels)
    return tuple(
        name
        for name in factors
        if len({size for size, _, _ in costs_by_size(result, name, metric)}) >= MIN_SIZES
    )


def costs_by_size(result: ResultDocument, factor: str, metric: str) -> list[SizeCost]:
    """Return the size and the cost of each condition for which both are positive numbers."""
    return [
        (size, condition, condition.metrics[metric])
        for condition in result.conditions
        if (size := _size(condition, factor)) is not None
        and metric in condition.metrics
        and 0 < condition.metrics[metric].median < math.inf
    ]


def other_levels(condition: ConditionResult, factor: str) -> str:
    """Return the levels of all factors except ``factor`` as text."""
    level_texts = [f"{name} {level}" for name, level in condition.levels.items() if name != factor]
    return ", ".join(level_texts) or "all"


def scaling_laws(result: ResultDocument, factor: str, metric: str) -> dict[str, ScalingLaw]:
    """Fit a law over one factor for each combination of the levels of the other factors.

    The key of a law is the text of `other_levels`. A combination with a single size has no law.
    """
    sizes_by_levels: dict[str, dict[float, str]] = {}
    for size, condition, _ in costs_by_size(result, factor, metric):
        sizes_by_levels.setdefault(other_levels(condition, factor), {})[size] = condition.name
    blocks: dict[int, dict[str, float]] = {}
    for _, row, value in trials_with_values(result, metric):
        if row.analysed:
            blocks.setdefault(row.block, {})[row.condition] = value
    laws: dict[str, ScalingLaw] = {}
    for levels, name_by_size in sizes_by_levels.items():
        costs = np.array(
            [
                [block.get(name, math.nan) for name in name_by_size.values()]
                for block in blocks.values()
            ]
        ).reshape(-1, len(name_by_size))
        try:
            laws[levels] = scaling_law(tuple(name_by_size), costs, seed=result.run.seed)
        except UnusableInput:
            # Fewer than two sizes are above 1.
            continue
    return laws


def law_sentence(law: ScalingLaw) -> str:
    """Return the fitted exponents: ``N^2.13 (2.10 to 2.16); simple laws that fit …``."""
    exponent_texts = [f"N^{exponent_text(law.power_law)}"]
    if len(law.sizes) > MIN_SIZES:
        _, exponent_with_log, *_ = law.exponents
        exponent_texts.append(f"with log N, N^{exponent_text(exponent_with_log)}")
    return f"{'; '.join(exponent_texts)}; {_simple_laws(law)}"


def exponent_text(exponent: Exponent) -> str:
    """Return an exponent with its interval: ``2.13 (2.10 to 2.16)``."""
    low, high = exponent.exponent_ci
    interval = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    return f"{exponent.exponent:.2f}{interval}"


def _simple_laws(law: ScalingLaw) -> str:
    if not law.has_intervals:
        return "too few blocks to exclude a law"
    fitting_laws = ", ".join(describe_law(*powers) for powers in law.simple_laws)
    return f"simple laws that fit every size: {fitting_laws or 'none'}"


def _size(condition: ConditionResult, factor: str) -> float | None:
    try:
        size = float(condition.levels.get(factor, ""))
    except ValueError:
        return None
    return size if 0 < size < math.inf else None
