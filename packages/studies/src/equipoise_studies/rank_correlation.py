"""Spearman's correlation of two quantities over a few points, and its size by chance."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from equipoise.model.quantities import Interval
from equipoise.stats.arrays import FloatArray, shared_ranks

MIN_POINTS = 5
"""Minimum number of points for a useful interval."""
PERMUTATIONS = 20_000
"""Number of random orders that simulate chance."""
_Z_95 = 1.959963984540054
"""Number of standard errors on each side of a 95 % interval."""


class RankCorrelation(Struct, frozen=True):
    """Spearman's correlation of two quantities."""

    value: float
    """Correlation from -1 to 1; equal values share their mean rank."""
    interval: Interval
    """95 % interval, by Fisher's transformation with the standard error of Bonett and Wright."""
    points: int
    """Number of points."""


def rank_correlation(first: FloatArray, second: FloatArray) -> RankCorrelation | None:
    """Return Spearman's correlation of two finite quantities, shape (n,) each, at the same points.

    ``None`` for fewer than ``MIN_POINTS`` points, or if a quantity never changes. The variance of
    atanh(r) is (1 + r²/2) / (n - 3), where r is the correlation (Bonett and Wright, 2000, Sample
    size requirements for estimating Pearson, Kendall and Spearman correlations, Psychometrika 65,
    eq. 4).
    """
    count = len(first)
    if count < MIN_POINTS or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    value = float(np.corrcoef(shared_ranks(first), shared_ranks(second))[0, 1])
    if abs(value) >= 1.0 - 1e-12:
        # The transformation has no interval at -1 and 1.
        return RankCorrelation(math.copysign(1.0, value), (None, None), count)
    transformed = math.atanh(value)
    half_width = _Z_95 * math.sqrt((1.0 + value**2 / 2.0) / (count - 3))
    bounds = (math.tanh(transformed - half_width), math.tanh(transformed + half_width))
    return RankCorrelation(value, bounds, count)


def chance_level(points: int, correlations: int, *, alpha: float = 0.05, seed: int = 1) -> float:
    """Return the size that the largest of several correlations exceeds by chance alone.

    One quantity is correlated with ``correlations`` independent quantities, at the same ``points``
    (at least ``MIN_POINTS``). The largest of these correlations exceeds the result with the
    probability ``alpha``. Random orders of the points simulate chance.
    """
    generator = np.random.default_rng(seed)
    ranks = np.arange(points, dtype=np.float64)
    centred = ranks - ranks.mean()
    orders = generator.permuted(np.tile(centred, (PERMUTATIONS, 1)), axis=1)
    sizes = np.abs(orders @ centred) / float(centred @ centred)
    # P(all of k independent sizes are below x) = P(one size is below x)ᵏ.
    return float(np.quantile(sizes, (1.0 - alpha) ** (1.0 / correlations), method="higher"))
