"""Costs by size in a result document, and the scaling laws that they follow."""

from __future__ import annotations

import math

import numpy as np

from equipoise.figures.trial_values import known_values
from equipoise.model.errors import UnusableInput
from equipoise.model.result import ConditionResult, MetricSummary, ResultDocument
from equipoise.stats.scaling import Exponent, ScalingLaw, describe_law, scaling_law

MIN_SIZES = 2
Measurement = tuple[float, ConditionResult, MetricSummary]
"""A size, the condition that has it, and its cost."""


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
        parts.append(f"beside log N, N^{exponent_text(law.exponents[1])}")
    return f"{'; '.join(parts)}; {_simple_laws(law)}"


def exponent_text(exponent: Exponent) -> str:
    """Return an exponent with its interval: ``2.13 (2.10 to 2.16)``."""
    low, high = exponent.power_ci
    interval = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    return f"{exponent.power:.2f}{interval}"


def _simple_laws(law: ScalingLaw) -> str:
    """Return the simple laws that fit."""
    if not law.can_tell:
        return "too few blocks to exclude a law"
    fitting = ", ".join(describe_law(*powers) for powers in law.simple)
    return f"simple laws that fit every size: {fitting or 'none'}"


def _size(condition: ConditionResult, factor: str) -> float | None:
    try:
        size = float(condition.levels.get(factor, ""))
    except ValueError:
        return None
    return size if 0 < size < math.inf else None
