"""How two quantities rise and fall together over a few points, and what chance alone would show."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from equipoise.model.quantities import Interval
from equipoise.stats.arrays import FloatArray, shared_ranks

MIN_POINTS = 5
"""Fewer points give no useful interval."""
PERMUTATIONS = 20_000
_Z_95 = 1.959963984540054


class RankCorrelation(Struct, frozen=True):
    """How two quantities rise and fall together."""

    value: float
    """From -1 to 1; equal values share their mean rank."""
    interval: Interval
    """95 % interval, by Fisher's transformation with the standard error of Bonett and Wright."""
    points: int


def rank_correlation(first: FloatArray, second: FloatArray) -> RankCorrelation | None:
    """Correlate two quantities over the same n points, by Spearman; shape (n,) each, finite.

    ``None`` for fewer than ``MIN_POINTS`` points, or where a quantity never changes. Bonett and
    Wright (2000), Sample size requirements for estimating Pearson, Kendall and Spearman
    correlations, Psychometrika 65, eq. 4: the variance of atanh(r) is (1 + r²/2) / (n - 3).
    """
    count = len(first)
    if count < MIN_POINTS or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    value = float(np.corrcoef(shared_ranks(first), shared_ranks(second))[0, 1])
    if abs(value) >= 1.0 - 1e-12:
        # The transformation has no width at its ends.
        return RankCorrelation(math.copysign(1.0, value), (None, None), count)
    middle = math.atanh(value)
    half = _Z_95 * math.sqrt((1.0 + value**2 / 2.0) / (count - 3))
    return RankCorrelation(value, (math.tanh(middle - half), math.tanh(middle + half)), count)


def chance_level(points: int, tried: int, *, alpha: float = 0.05, seed: int = 1) -> float:
    """Return the size that the largest of several correlations exceeds with probability alpha.

    It is simulated by random orders of the points, at least ``MIN_POINTS``, for independent
    quantities of which ``tried`` are correlated with one.
    """
    generator = np.random.default_rng(seed)
    ranks = np.arange(points, dtype=np.float64)
    centred = ranks - ranks.mean()
    orders = generator.permuted(np.tile(centred, (PERMUTATIONS, 1)), axis=1)
    sizes = np.abs(orders @ centred) / float(centred @ centred)
    # The largest of k independent ones stays below x with the k-th power of the probability of one.
    return float(np.quantile(sizes, (1.0 - alpha) ** (1.0 / tried), method="higher"))
