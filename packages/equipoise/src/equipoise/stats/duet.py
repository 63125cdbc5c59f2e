"""The pilot of trials that run at once: whether they disturb each other, and the gain.

A pilot runs two conditions in turns and at once, alternately, n times each. Its trials decide no
verdict. The first question is whether a trial takes longer while the other condition runs. The
lower bound of this slowdown is an order statistic, as in a sign test, so one disturbed trial counts
little. The second question is whether trials at once are sharper: whether they need fewer seconds
for an interval of the same width (docs/methods/duet.md).
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from equipoise._native import student_quantile
from equipoise.model.quantities import Interval
from equipoise.stats.arrays import FloatArray, IntArray

MIN_PAIRS = 5
"""Minimum number of pilot pairs: 5 of 5 slower pairs have a chance of 1 in 32 without slowdown."""
_MIN_PAIRS_WITH_EXCEPTION = 8
"""Number of pairs from which on one pair may contradict a slowdown: 7 of 8 have 1 in 28."""
_LEVEL = 0.05
"""1 minus the coverage of the interval of the gain."""


class Slowdown(Struct, frozen=True):
    """Time of a trial while the other condition runs, over its time alone."""

    factor: float
    """Median over the pairs."""
    low: float
    """Lower bound, wrong with a chance of at most 1 in 28."""


def slowdown(alone: FloatArray, at_once: FloatArray) -> Slowdown | None:
    """Return the slowdown of n pairs of times, each of shape (n,) or (n, conditions).

    With several conditions, each pair counts with the mean of their logarithms, in which the speeds
    of the CPUs cancel. ``None`` if fewer than `MIN_PAIRS` pairs have finite times.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratios = np.log(at_once / alone)
    if log_ratios.ndim > 1:
        log_ratios = log_ratios.mean(axis=1)
    log_ratios = np.sort(log_ratios[np.isfinite(log_ratios)])
    count = len(log_ratios)
    if count < MIN_PAIRS:
        return None
    low = log_ratios[allowed_exceptions(count)]
    return Slowdown(math.exp(np.median(log_ratios)), math.exp(low))


def allowed_exceptions(pairs: int) -> int:
    """Return how many pairs may contradict a claim that is wrong with a chance of 1 in 28."""
    return int(pairs >= _MIN_PAIRS_WITH_EXCEPTION)


class Gain(Struct, frozen=True):
    """Seconds in turns over seconds at once, for intervals of the same width."""

    factor: float
    interval: Interval
    spread_in_turns: float
    """Mean distance of the log ratios of blocks from their median."""
    spread_at_once: float


def gain(
    log_ratios_in_turns: FloatArray,
    log_ratios_at_once: FloatArray,
    seconds_in_turns: float,
    seconds_at_once: float,
) -> Gain | None:
    """Return the gain of n pairs of blocks, whose log ratios have the shape (n,).

    The two ``seconds`` are the means of a block. The interval is by the jackknife of the logarithm,
    which holds without normal noise (Miller 1968). ``None`` if fewer than `MIN_PAIRS` pairs have
    finite log ratios, or if a spread is 0.
    """
    is_finite = np.isfinite(log_ratios_in_turns) & np.isfinite(log_ratios_at_once)
    turns, both = log_ratios_in_turns[is_finite], log_ratios_at_once[is_finite]
    count = len(turns)
    if count < MIN_PAIRS:
        return None

    def log_gain(kept: IntArray) -> float:
        spreads = _spread(turns[kept]), _spread(both[kept])
        if min(spreads) == 0.0:
            return math.nan
        return 2.0 * math.log(spreads[0] / spreads[1]) + math.log(
            seconds_in_turns / seconds_at_once
        )

    indices = np.arange(count)
    whole = log_gain(indices)
    parts = np.array([log_gain(np.delete(indices, index)) for index in indices])
    if not (math.isfinite(whole) and np.isfinite(parts).all()):
        return None
    pseudo_values = count * whole - (count - 1) * parts
    error = float(np.std(pseudo_values, ddof=1)) / math.sqrt(count)
    half_width = error * student_quantile(1.0 - _LEVEL / 2.0, count - 1)
    centre = float(np.mean(pseudo_values))
    return Gain(
        factor=math.exp(whole),
        interval=(_bounded_exp(centre - half_width), _bounded_exp(centre + half_width)),
        spread_in_turns=_spread(turns),
        spread_at_once=_spread(both),
    )


def _spread(values: FloatArray) -> float:
    """Return the mean distance of values from their median."""
    return float(np.abs(values - np.median(values)).mean())


def _bounded_exp(value: float) -> float:
    """Return e to a value, at most 1e300 so that the result is finite."""
    return math.exp(min(value, 690.0))
