"""The costs by size of a result document, and the laws that they follow."""

from __future__ import annotations

import math

import numpy as np

from equipoise.figures.trial_values import known_values
from equipoise.model.errors import UnusableInput
from equipoise.model.result import ConditionResult, MetricSummary, ResultDocument
from equipoise.stats.scaling import Exponent, ScalingLaw, law_words, scaling_law

LEAST_SIZES = 2


def numeric_factors(document: ResultDocument, metric: str) -> tuple[str, ...]:
    """Factors with at least two different positive numbers as measured levels, as planned."""
    factors = dict.fromkeys(name for one in document.conditions for name in one.levels)
    return tuple(
        name
        for name in factors
        if len({size for size, _, _ in measured_sizes(document, name, metric)}) >= LEAST_SIZES
    )


def measured_sizes(
    document: ResultDocument, factor: str, metric: str
) -> list[tuple[float, ConditionResult, MetricSummary]]:
    """The conditions that two logarithmic axes can hold, each with its size."""
    return [
        (size, condition, condition.metrics[metric])
        for condition in document.conditions
        if (size := _size(condition, factor)) is not None
        and metric in condition.metrics
        and 0 < condition.metrics[metric].median < math.inf
    ]


def other_levels(condition: ConditionResult, factor: str) -> str:
    """The levels of the other factors, in words."""
    others = [f"{name} {level}" for name, level in condition.levels.items() if name != factor]
    return ", ".join(others) or "all"


def scaling_laws(document: ResultDocument, factor: str, metric: str) -> dict[str, ScalingLaw]:
    """For each combination of the other factors' levels, in words, the law over this one.

    What gives no law (a single size, a median that is not positive) is left out.
    """
    groups: dict[str, dict[float, str]] = {}
    for size, condition, _ in measured_sizes(document, factor, metric):
        groups.setdefault(other_levels(condition, factor), {})[size] = condition.name
    blocks: dict[int, dict[str, float]] = {}
    for _, row, value in known_values(document, metric):
        if row.analysed:
            blocks.setdefault(row.block, {})[row.condition] = value
    laws: dict[str, ScalingLaw] = {}
    for words, names in groups.items():
        costs = np.array(
            [[block.get(name, math.nan) for name in names.values()] for block in blocks.values()]
        ).reshape(-1, len(names))
        try:
            laws[words] = scaling_law(tuple(names), costs, seed=document.run.seed)
        except UnusableInput:
            # Two sizes above 1 are needed; the line itself is drawn all the same.
            continue
    return laws


def law_sentence(law: ScalingLaw) -> str:
    """The fitted exponents in a line: ``N^2.13 (2.10 to 2.16); simple laws that fit: …``."""
    parts = [f"N^{exponent_words(law.power_law)}"]
    if len(law.sizes) > LEAST_SIZES:
        parts.append(f"beside log N, N^{exponent_words(law.exponents[1])}")
    return f"{'; '.join(parts)}; {simple_words(law)}"


def exponent_words(exponent: Exponent) -> str:
    """An exponent with its interval: ``2.13 (2.10 to 2.16)``."""
    low, high = exponent.power_ci
    interval = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    return f"{exponent.power:.2f}{interval}"


def simple_words(law: ScalingLaw) -> str:
    """Which of the simple laws fit."""
    if not law.can_tell:
        return "too few blocks to exclude a law"
    found = ", ".join(law_words(*one) for one in law.simple)
    return f"simple laws that fit every size: {found or 'none'}"


def _size(condition: ConditionResult, factor: str) -> float | None:
    try:
        size = float(condition.levels.get(factor, ""))
    except ValueError:
        return None
    return size if 0 < size < math.inf else None
