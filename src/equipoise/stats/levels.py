"""Variance by level: iterations in trials in layouts in boots in hosts.

Unweighted mean squares (Burdick and Graybill 1992, §6.2), so that unequal numbers of units do no
harm: a unit's value is the mean of the values of its parts. Their expectations are exact linear
functions of the variance components, which are solved for from the lowest level up. The intervals
are generalized confidence intervals (Weerahandi 1993; Krishnamoorthy and Mathew 2009, §5.3): each
mean square is a multiple of a chi-squared variable. They presume effects that are about normal.
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


class Levels(Struct, frozen=True):
    """The variance by level, the highest first, and the mean of all."""

    mean: float
    """Mean of the values of the highest units."""
    components: tuple[Component, ...]
    within_ci: tuple[float, float]
    """The mean for these very units of the highest level: its scope is this campaign."""
    across_ci: tuple[float, float]
    """The mean over such units in general: its scope is across the highest level."""
    scope: str
    """The highest level, which ``across_ci`` generalises to."""


class _MeanSquare(Struct, frozen=True):
    """Mean square of one level: value, degrees of freedom, and expectation by the components."""

    value: float
    freedom: int
    weights: FloatArray


def variance_by_level(
    values: FloatArray,
    units: Sequence[IntArray],
    names: Sequence[str],
    *,
    seed: int,
    level: float = 0.05,
) -> Levels:
    """Split the variance of a nested design into its levels.

    Parameters
    ----------
    values
        Shape (n,): one for each lowest unit; finite.
    units
        For each level above the lowest, the highest first, shape (n,): to which unit a value
        belongs. A unit is told from others by its number within the unit above it.
    names
        Of all levels, the highest first: one more than ``units``.
    seed
        Of the draws that the intervals are from.
    level
        1 minus the coverage of each interval.

    Raises
    ------
    UnusableInput
        A level has no two units within one unit above it: nothing is replicated there.
    """
    _check(values, units, names)
    means, weights, squares = _climb(values, units, names)
    expectations = np.array([one.weights for one in squares])
    solved = np.linalg.solve(expectations, np.array([one.value for one in squares]))
    generator = np.random.default_rng(seed)
    pivots = np.array(
        [one.value * one.freedom / generator.chisquare(one.freedom, DRAWS) for one in squares]
    )
    drawn = np.maximum(np.linalg.solve(expectations, pivots), 0.0)
    bounds = np.quantile(drawn, [level / 2.0, 1.0 - level / 2.0], axis=1)
    positive = np.maximum(solved, 0.0)
    total = float(positive.sum())
    keys = np.column_stack(units)
    counts = [len(np.unique(keys[:, : place + 1], axis=0)) for place in range(len(units))]
    counts.append(len(values))
    components = tuple(
        Component(
            level=name,
            units=counts[place],
            variance=float(solved[place]),
            variance_ci=(float(bounds[0, place]), float(bounds[1, place])),
            share=float(positive[place] / total) if total > 0 else 0.0,
        )
        for place, name in enumerate(names)
    )
    mean = float(np.mean(means))
    # The variance of the mean with the highest units fixed, and with them drawn.
    fixed = weights.mean(axis=0) / len(means)
    lower = float(np.sqrt(np.maximum(fixed[1:] @ positive[1:], 0.0)))
    higher = math.sqrt(max(squares[0].value, 0.0) / len(means))
    quantile_across = student_quantile(1.0 - level / 2.0, squares[0].freedom)
    quantile_within = student_quantile(1.0 - level / 2.0, squares[1].freedom)
    return Levels(
        mean=mean,
        components=components,
        within_ci=(mean - quantile_within * lower, mean + quantile_within * lower),
        across_ci=(mean - quantile_across * higher, mean + quantile_across * higher),
        scope=f"across {plural_of(names[0])}",
    )


def plural_of(level: str) -> str:
    """Return the plural of a level: ``processes``, ``layouts``."""
    return f"{level}es" if level.endswith("s") else f"{level}s"


def _climb(
    values: FloatArray, units: Sequence[IntArray], names: Sequence[str]
) -> tuple[FloatArray, FloatArray, list[_MeanSquare]]:
    """Return means and variances of the highest units, and the mean squares of all levels.

    Shapes (m,) and (m, levels): the variance is in terms of the components. The mean squares of the
    highest level come first.
    """
    count = len(names)
    keys = np.column_stack(units)
    means, weights = values, np.zeros((len(values), count))
    weights[:, -1] = 1.0
    squares: list[_MeanSquare] = []
    for place in range(count - 1, -1, -1):
        parents, group = keys[:1, :0], np.zeros(len(means), dtype=np.int64)
        if place:
            parents, group = np.unique(keys[:, :place], axis=0, return_inverse=True)
            group = group.reshape(-1)
        sizes = np.bincount(group).astype(np.float64)
        averages = np.bincount(group, means) / sizes
        freedom = len(means) - len(sizes)
        if freedom < 1:
            raise UnusableInput(
                f"no two {plural_of(names[place])} stand in one unit above: their variance is "
                "unknown",
                hint=f"measure at least two {plural_of(names[place])} in each unit above",
            )
        spread = float(np.sum((means - averages[group]) ** 2)) / freedom
        # E of the pooled square: unit j of a group of m adds (1 - 1/m) of its own variance.
        shares = (1.0 - 1.0 / sizes[group]) / freedom
        squares.insert(0, _MeanSquare(spread, freedom, shares @ weights))
        if place == 0:
            break
        summed = np.stack(
            [np.bincount(group, weights[:, one]) / sizes**2 for one in range(count)], axis=1
        )
        means, weights = averages, summed
        weights[:, place - 1] = 1.0
        keys = parents
    return means, weights, squares


def _check(values: FloatArray, units: Sequence[IntArray], names: Sequence[str]) -> None:
    if len(names) != len(units) + 1 or not units:
        raise UnusableInput(
            f"{len(names)} levels need {len(names) - 1} columns of units, but there are "
            f"{len(units)}",
            hint="name every level, the highest first, the lowest without a column",
        )
    if not np.isfinite(values).all() or any(len(one) != len(values) for one in units):
        raise UnusableInput(
            "variance by level needs finite values, each with its unit at every level",
            hint="leave out the trials that have none",
        )


A_MINUTE_S = 60.0


def advice(
    levels: Levels, unit_s: Sequence[float], *, more_s: float = A_MINUTE_S
) -> tuple[Advice, ...]:
    """Return where more measuring time narrows the interval most, the best first.

    The variance of the mean is the sum over levels of the component over its number of units
    (Kalibera and Jones 2013, eq. 5, of a balanced design). New units come with parts of their
    own, as many as now; more of the lowest level are spread over the units that there would be.

    Parameters
    ----------
    levels
        What was measured (``variance_by_level``).
    unit_s
        For each level, the highest first: seconds that one more unit takes by itself, without its
        parts (a reboot, a relink, the start of a process, an iteration).
    more_s
        Seconds to spend.

    Raises
    ------
    UnusableInput
        There is not one cost above 0 for each level.
    """
    components = levels.components
    if len(unit_s) != len(components) or min(unit_s) < 0 or unit_s[-1] <= 0:
        raise UnusableInput(
            f"{len(components)} levels need as many costs in seconds, but there are {len(unit_s)}",
            hint="give what one more unit of each level takes by itself, the highest first",
        )
    whole_s = list(unit_s)
    for place in range(len(components) - 2, -1, -1):
        parts = components[place + 1].units / components[place].units
        whole_s[place] += parts * whole_s[place + 1]
    now = _variance_of_mean(levels, len(components), 1.0)
    found = []
    for place, one in enumerate(components):
        more = more_s / whole_s[place]
        then = _variance_of_mean(levels, place, (one.units + more) / one.units)
        narrower = 1.0 - math.sqrt(then / now) if now > 0 else 0.0
        found.append(Advice(one.level, more, narrower))
    return tuple(sorted(found, key=lambda one: -one.narrower))


def describe_advice(found: Sequence[Advice], *, more_s: float = A_MINUTE_S) -> str:
    """Return a sentence: on what to spend one more minute."""
    time = "minute" if more_s == A_MINUTE_S else f"{more_s:g} s"
    first, *others = found
    sentence = f"one more {time} on {_more_of(first)} narrows the interval by {_percent(first)}"
    return ", ".join([sentence, *(f"on {_more_of(one)} by {_percent(one)}" for one in others)])


def _variance_of_mean(levels: Levels, place: int, times: float) -> float:
    """Return it with ``times`` as many units of the level at ``place`` and of all below it."""
    return sum(
        max(0.0, one.variance) / (one.units * (times if at >= place else 1.0))
        for at, one in enumerate(levels.components)
    )


def _more_of(one: Advice) -> str:
    plural = plural_of(one.level)
    return f"more {plural}" if one.level == "iteration" else f"new {plural}"


def _percent(one: Advice) -> str:
    return f"{100.0 * one.narrower:.0f} %"
