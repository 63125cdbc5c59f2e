"""Variance by level: iterations within trials within layouts within boots within hosts.

A *unit* is one trial, one layout, one boot and so on. The *parts* of a unit are the units of the
next lower level in it. The value of a unit is the mean over its parts. The *component* of a level
is the variance that the level adds. `variance_by_level` computes an unweighted mean square for each
level (Burdick and Graybill 1992, §6.2). The expectations of the mean squares are linear functions
of the components, so linear equations give the components. The intervals are generalized confidence
intervals (Weerahandi 1993; Krishnamoorthy and Mathew 2009, §5.3) for effects that are about normal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise._native import student_quantile
from equipoise.model.errors import UnusableInput
from equipoise.model.result import Advice, VarianceComponent
from equipoise.stats.arrays import FloatArray, IntArray

DRAWS = 4000
"""Number of draws of the chi-squared variables for the intervals."""
MINUTE_S = 60.0


class Levels(Struct, frozen=True):
    """Variance of each level, the highest level first, and the mean of all values."""

    mean: float
    """Mean of the values of the highest units."""
    components: tuple[VarianceComponent, ...]
    within_ci: tuple[float, float]
    """Interval of the mean over the measured units of the highest level (this campaign)."""
    across_ci: tuple[float, float]
    """Interval of the mean over units of the highest level in general."""


class _MeanSquare(Struct, frozen=True):
    """Mean square of one level: the variance of the parts within their units."""

    value: float
    degrees_of_freedom: int
    weights: FloatArray
    """Shape (levels,): weight of each component in the expectation of the mean square."""
    units: int
    """Total number of units of the level."""


def variance_by_level(
    values: FloatArray,
    units: Sequence[IntArray],
    names: Sequence[str],
    *,
    seed: int,
    alpha: float = 0.05,
) -> Levels:
    """Split the variance of a nested design into its levels.

    ``values``, shape (n,), has a finite value for each unit of the lowest level. ``names`` has the
    names of all levels, the highest first. ``units`` has an array of shape (n,) for each level
    except the lowest. The array has the number of each value's unit, within the unit above.
    ``seed`` is for the draws of the intervals. ``alpha`` is 1 minus the coverage of the intervals.

    Raise `UnusableInput` if no unit of some level has two parts.
    """
    _check_design(values, units, names)
    means, weights, mean_squares = _mean_squares(values, units, names)
    expectations = np.array([mean_square.weights for mean_square in mean_squares])
    mean_square_values = np.array([mean_square.value for mean_square in mean_squares])
    degrees = np.array([mean_square.degrees_of_freedom for mean_square in mean_squares])
    variances = np.linalg.solve(expectations, mean_square_values)
    chi_squares = np.random.default_rng(seed).chisquare(degrees[:, None], (len(names), DRAWS))
    pivots = (mean_square_values * degrees)[:, None] / chi_squares
    drawn_variances = np.maximum(np.linalg.solve(expectations, pivots), 0.0)
    bounds = np.quantile(drawn_variances, [alpha / 2.0, 1.0 - alpha / 2.0], axis=1)
    nonnegative = np.maximum(variances, 0.0)
    variance_sum = float(nonnegative.sum())
    shares = nonnegative / variance_sum if variance_sum > 0 else nonnegative
    mean = float(np.mean(means))
    # Variance of the mean: first for these highest units, then for highest units in general.
    mean_weights = weights.mean(axis=0) / len(means)
    within_error = float(np.sqrt(np.maximum(mean_weights[1:] @ nonnegative[1:], 0.0)))
    across_error = math.sqrt(max(mean_squares[0].value, 0.0) / len(means))
    across_half_width = across_error * student_quantile(1.0 - alpha / 2.0, int(degrees[0]))
    within_half_width = within_error * student_quantile(1.0 - alpha / 2.0, int(degrees[1]))
    components = tuple(
        VarianceComponent(name, mean_square.units, variance, (low, high), share)
        for name, mean_square, variance, (low, high), share in zip(
            names, mean_squares, variances.tolist(), bounds.T.tolist(), shares.tolist(), strict=True
        )
    )
    return Levels(
        mean=mean,
        components=components,
        within_ci=(mean - within_half_width, mean + within_half_width),
        across_ci=(mean - across_half_width, mean + across_half_width),
    )


def plural_of(level: str) -> str:
    """Return the plural of the name of a level: ``processes``, ``layouts``."""
    return f"{level}es" if level.endswith("s") else f"{level}s"


def _mean_squares(
    values: FloatArray, units: Sequence[IntArray], names: Sequence[str]
) -> tuple[FloatArray, FloatArray, list[_MeanSquare]]:
    """Return the means of the m highest units, weights for their variances, and the mean squares.

    The means have shape (m,), the weights shape (m, levels). The variance of a unit's mean is the
    sum of weight times component over the levels. The mean square of the highest level comes first.
    """
    # A single top unit contains all units, so that the highest level has a unit above it, too.
    keys = np.column_stack([np.zeros(len(values), dtype=np.int64), *units])
    means, weights = values, np.zeros((len(values), len(names)))
    mean_squares: list[_MeanSquare] = []
    for level in reversed(range(len(names))):
        weights[:, level] = 1.0
        parents, parent_indices = np.unique(keys[:, : level + 1], axis=0, return_inverse=True)
        parent_indices = parent_indices.reshape(-1)
        sizes = np.bincount(parent_indices).astype(np.float64)
        averages = np.bincount(parent_indices, means) / sizes
        degrees = len(means) - len(sizes)
        if degrees < 1:
            plural = plural_of(names[level])
            reason, place = f"there is only one {names[0]}", ""
            if level:
                parent = names[level - 1]
                reason, place = f"no {parent} has two {plural}", f" in each {parent}"
            raise UnusableInput(
                f"the variance of {plural} is unknown: {reason}",
                hint=f"measure at least two {plural}{place}",
            )
        mean_square = float(np.sum((means - averages[parent_indices]) ** 2)) / degrees
        # In the expectation, each of m units with one parent adds (1 - 1/m) of its own variance.
        shares = (1.0 - 1.0 / sizes[parent_indices]) / degrees
        mean_squares.insert(0, _MeanSquare(mean_square, degrees, shares @ weights, len(means)))
        if level:
            sums = [np.bincount(parent_indices, column) for column in weights.T]
            means, weights, keys = (averages, np.stack(sums, axis=1) / sizes[:, None] ** 2, parents)
    return means, weights, mean_squares


def _check_design(values: FloatArray, units: Sequence[IntArray], names: Sequence[str]) -> None:
    if len(names) != len(units) + 1 or not units:
        raise UnusableInput(
            f"{len(units)} columns of units do not fit {len(names)} level names: each level except "
            "the lowest needs a column",
            hint="give at least two names, and one column of units fewer than names",
        )
    for name, column in zip(names, units, strict=False):
        if len(column) != len(values):
            what = f"there are {len(values)} values, but {len(column)} units of the level {name}"
            raise UnusableInput(what, hint="give the unit of each value")
    if len(unknown := np.flatnonzero(~np.isfinite(values))):
        raise UnusableInput(
            f"value {unknown[0] + 1} of {len(values)} is not finite",
            hint="leave out the trials without a finite value, in the values and in the units",
        )


def advice(levels: Levels, unit_s: Sequence[float]) -> tuple[Advice, ...]:
    """Return how much one more minute of measuring on each level narrows the interval, best first.

    The variance of the mean is the sum, over the levels, of component / number of units (Kalibera
    and Jones 2013, eq. 5). New units have as many parts as the present units. New units of the
    lowest level are spread over the present units.

    ``unit_s`` has the seconds of one more unit of each level without its parts, the highest level
    first. Examples are a reboot, a relink, the start of a process, an iteration. Raise
    `UnusableInput` if a time is missing or negative, or if the time of the lowest level is 0.
    """
    components = levels.components
    if len(unit_s) != len(components) or min(unit_s) < 0 or unit_s[-1] <= 0:
        raise UnusableInput(
            f"the seconds {', '.join(f'{seconds:g}' for seconds in unit_s)} do not fit "
            f"{len(components)} levels",
            hint="give one time in seconds for each level, the highest first; the last is above 0",
        )

    def variance_of_mean(highest: int, factor: float) -> float:
        """Return the variance with ``factor`` times the units on level ``highest`` and below."""
        return sum(
            max(0.0, component.variance) / (component.units * (factor if level >= highest else 1.0))
            for level, component in enumerate(components)
        )

    advised: list[Advice] = []
    present_variance, lower, unit_with_parts_s = variance_of_mean(0, 1.0), components[-1], 0.0
    for level, component in reversed(tuple(enumerate(components))):
        unit_with_parts_s = unit_s[level] + lower.units / component.units * unit_with_parts_s
        new_units = MINUTE_S / unit_with_parts_s
        variance = variance_of_mean(level, (component.units + new_units) / component.units)
        narrower = 1.0 - math.sqrt(variance / present_variance) if present_variance > 0 else 0.0
        advised.insert(0, Advice(component.level, new_units, narrower))
        lower = component
    return tuple(sorted(advised, key=lambda level_advice: -level_advice.narrowed_fraction))


def describe_advice(advised: Sequence[Advice]) -> str:
    """Return a sentence that says what to measure in one more minute."""
    phrases: list[str] = []
    for level_advice in advised:
        adjective = "more" if level_advice.level == "iteration" else "new"
        verb = "" if phrases else " narrows the interval"
        units, percent = plural_of(level_advice.level), 100.0 * level_advice.narrowed_fraction
        phrases.append(f"on {adjective} {units}{verb} by {percent:.0f} %")
    return f"one more minute {', '.join(phrases)}"
