"""Variance by level: iterations within trials within layouts within boots within hosts.

It uses unweighted mean squares (Burdick and Graybill 1992, §6.2), so that unequal numbers of units
do no harm: a unit's value is the mean of the values of its parts. Their expectations are exact
linear functions of the variance components, which are solved for from the lowest level up. The
intervals are generalized confidence intervals (Weerahandi 1993; Krishnamoorthy and Mathew 2009,
§5.3): each mean square is a multiple of a chi-squared variable. They assume effects that are about
normal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise._native import student_quantile
from equipoise.model.errors import UnusableInput
from equipoise.model.result import Advice, Component
from equipoise.stats.arrays import FloatArray, IntArray

DRAWS = 4000
MINUTE_S = 60.0


class Levels(Struct, frozen=True):
    """Variance by level, the highest first, and the mean of all values."""

    mean: float
    """Mean of the values of the highest units."""
    components: tuple[Component, ...]
    within_ci: tuple[float, float]
    """Interval of the mean for these units of the highest level: its scope is this campaign."""
    across_ci: tuple[float, float]
    """Interval of the mean over such units in general: its scope is across the highest level."""


class _MeanSquare(Struct, frozen=True):
    """Mean square of one level, with the weights of the components in its expectation."""

    value: float
    freedom: int
    weights: FloatArray
    units: int


def variance_by_level(
    values: FloatArray,
    units: Sequence[IntArray],
    names: Sequence[str],
    *,
    seed: int,
    level: float = 0.05,
) -> Levels:
    """Split the variance of a nested design into its levels.

    Raise `UnusableInput` if a level is not replicated: no unit above it contains two of its units.

    Parameters
    ----------
    values
        Shape (n,): a finite value for each lowest unit.
    units
        For each level above the lowest, the highest first, shape (n,): the unit of each value.
        Units are distinguished by their numbers within the unit above.
    names
        Names of all levels, the highest first: one more than ``units``.
    seed
        Seed of the draws for the intervals.
    level
        1 minus the coverage of each interval.
    """
    _check(values, units, names)
    means, weights, squares = _climb(values, units, names)
    expectations = np.array([square.weights for square in squares])
    observed = np.array([square.value for square in squares])
    freedoms = np.array([square.freedom for square in squares])
    solved = np.linalg.solve(expectations, observed)
    chances = np.random.default_rng(seed).chisquare(freedoms[:, None], (len(names), DRAWS))
    pivots = (observed * freedoms)[:, None] / chances
    resampled = np.maximum(np.linalg.solve(expectations, pivots), 0.0)
    bounds = np.quantile(resampled, [level / 2.0, 1.0 - level / 2.0], axis=1)
    positive = np.maximum(solved, 0.0)
    total = float(positive.sum())
    shares = positive / total if total > 0 else positive
    mean = float(np.mean(means))
    # The variance of the mean, first with the highest units fixed, then with them drawn.
    fixed = weights.mean(axis=0) / len(means)
    within = float(np.sqrt(np.maximum(fixed[1:] @ positive[1:], 0.0)))
    across = math.sqrt(max(squares[0].value, 0.0) / len(means))
    reach_across = across * student_quantile(1.0 - level / 2.0, squares[0].freedom)
    reach_within = within * student_quantile(1.0 - level / 2.0, squares[1].freedom)
    columns = (names, squares, solved.tolist(), bounds.T.tolist(), shares.tolist())
    return Levels(
        mean=mean,
        components=tuple(
            Component(name, square.units, variance, (low, high), share)
            for name, square, variance, (low, high), share in zip(*columns, strict=True)
        ),
        within_ci=(mean - reach_within, mean + reach_within),
        across_ci=(mean - reach_across, mean + reach_across),
    )


def plural_of(level: str) -> str:
    """Return the plural of a level: ``processes``, ``layouts``."""
    return f"{level}es" if level.endswith("s") else f"{level}s"


def _climb(
    values: FloatArray, units: Sequence[IntArray], names: Sequence[str]
) -> tuple[FloatArray, FloatArray, list[_MeanSquare]]:
    """Return means and variances of the highest units, and the mean squares of all levels.

    The means have shape (m,); the variances, (m, levels), are weights of the components. The mean
    squares of the highest level come first.
    """
    # A single top unit holds all units, so that the highest level has a unit above it, too.
    keys = np.column_stack([np.zeros(len(values), dtype=np.int64), *units])
    means, weights = values, np.zeros((len(values), len(names)))
    squares: list[_MeanSquare] = []
    for place in reversed(range(len(names))):
        weights[:, place] = 1.0
        parents, group = np.unique(keys[:, : place + 1], axis=0, return_inverse=True)
        group = group.reshape(-1)
        sizes = np.bincount(group).astype(np.float64)
        averages = np.bincount(group, means) / sizes
        freedom = len(means) - len(sizes)
        if freedom < 1:
            plural = plural_of(names[place])
            reason, where = f"there is only one {names[0]}", ""
            if place:
                parent = names[place - 1]
                reason, where = f"no {parent} has two {plural}", f" in each {parent}"
            raise UnusableInput(
                f"the variance of {plural} is unknown: {reason}",
                hint=f"measure at least two {plural}{where}",
            )
        square = float(np.sum((means - averages[group]) ** 2)) / freedom
        # E of the pooled square: unit j of a group of m adds (1 - 1/m) of its own variance.
        shares = (1.0 - 1.0 / sizes[group]) / freedom
        squares.insert(0, _MeanSquare(square, freedom, shares @ weights, len(means)))
        if place:
            sums = [np.bincount(group, column) for column in weights.T]
            means, weights, keys = averages, np.stack(sums, axis=1) / sizes[:, None] ** 2, parents
    return means, weights, squares


def _check(values: FloatArray, units: Sequence[IntArray], names: Sequence[str]) -> None:
    if len(names) != len(units) + 1 or not units:
        raise UnusableInput(
            f"names has length {len(names)} and units has length {len(units)}",
            hint="give at least two names, the highest level first, and a column of units for "
            "each level except the lowest",
        )
    if not np.isfinite(values).all() or any(len(column) != len(values) for column in units):
        raise UnusableInput(
            "variance by level needs finite values, each with its unit at every level",
            hint="leave out the trials without a value",
        )


def advice(levels: Levels, unit_s: Sequence[float]) -> tuple[Advice, ...]:
    """Return how much one more minute of measuring on each level narrows the interval, best first.

    The variance of the mean is the sum over levels of the component over its number of units
    (Kalibera and Jones 2013, eq. 5, for a balanced design). New units have as many parts as the
    present ones; new units of the lowest level are spread over the present units.

    Raise `UnusableInput` unless there is a cost from 0 up for each level, above 0 for the lowest.

    Parameters
    ----------
    levels
        Measured variance by level (``variance_by_level``).
    unit_s
        For each level, the highest first: seconds that one more unit takes without its parts (a
        reboot, a relink, the start of a process, an iteration).
    """
    components = levels.components
    if len(unit_s) != len(components) or min(unit_s) < 0 or unit_s[-1] <= 0:
        raise UnusableInput(
            f"{len(components)} levels need as many costs in seconds, but there are {len(unit_s)}",
            hint="give the seconds of one unit of each level without its parts, the highest first",
        )

    def variance_of_mean(place: int, times: float) -> float:
        """Return the variance with ``times`` as many units of the level at ``place`` and below."""
        return sum(
            max(0.0, component.variance) / (component.units * (times if at >= place else 1.0))
            for at, component in enumerate(components)
        )

    advised: list[Advice] = []
    now, below, whole_s = variance_of_mean(0, 1.0), components[-1], 0.0
    for place, component in reversed(tuple(enumerate(components))):
        whole_s = unit_s[place] + below.units / component.units * whole_s
        more = MINUTE_S / whole_s
        then = variance_of_mean(place, (component.units + more) / component.units)
        advised.insert(
            0, Advice(component.level, more, 1.0 - math.sqrt(then / now) if now > 0 else 0.0)
        )
        below = component
    return tuple(sorted(advised, key=lambda advice: -advice.narrower))


def describe_advice(advised: Sequence[Advice]) -> str:
    """Return a sentence on where to spend one more minute of measuring."""
    names = [
        f"more {plural_of(advice.level)}"
        if advice.level == "iteration"
        else f"new {plural_of(advice.level)}"
        for advice in advised
    ]
    percents = [f"{100.0 * advice.narrower:.0f} %" for advice in advised]
    first, *others = zip(names, percents, strict=True)
    sentence = f"one more minute on {first[0]} narrows the interval by {first[1]}"
    return ", ".join([sentence, *(f"on {name} by {percent}" for name, percent in others)])
