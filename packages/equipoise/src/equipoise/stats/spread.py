"""Whether the times of one program spread less if a source of chance is held constant.

Each block has a trial in which the source varies and a trial in which the source is held. The
distances of log times from the median of their condition are replaced by their ranks, so that one
disturbed trial counts little (Conover 1999, §5.3). If holding the source changes nothing, the two
distances of a block may be exchanged. So a permutation test flips the signs of their differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise.model.quantities import Interval
from equipoise.model.why import CauseKind
from equipoise.stats.arrays import (
    RESAMPLES,
    FloatArray,
    circular_block_indices,
    percentile_interval,
    shared_ranks,
)

CHANCE_KIND: CauseKind = "chance"
"""Value of ``kind`` for a cause that is a source of chance (docs/reference/document.md)."""
MIN_BLOCKS = 8
"""Minimum number of blocks for a small p-value after Holm's correction for five sources."""
PERMUTATIONS = 9999
"""Number of random sets of signs in the permutation test."""
_MIN_SPREAD_AS_FACTOR = 0.25
"""A text shows a spread as a factor from this number of log units on."""
SPREAD_QUANTILES = (0.1, 0.9)
"""Quantiles whose distance is the spread: a few disturbed trials do not change it."""


class SpreadChange(Struct, frozen=True):
    """Spreads of the times in the same blocks, with the source of chance varying and held."""

    varying_spread: float
    """Spread of the log times while the source varies: 0.1 is about ±10 %."""
    held_spread: float
    """Spread of the log times with the source held."""
    share: float | None
    """Fraction of the variance that disappears with the source held: 1 - (held / varying spread)².
    It is negative if the times spread more with the source held, ``None`` if the varying spread is
    0."""
    share_ci: Interval
    """Bootstrap interval of ``share`` over blocks."""
    p_value: float
    """One-sided p-value for "holding the source does not reduce the spread"."""
    blocks: int


def spread(values: FloatArray) -> float:
    """Return half the range of the middle 80 % of the logarithms of n positive values."""
    low, high = np.quantile(np.log(values), SPREAD_QUANTILES)
    return float(high - low) / 2.0


def describe_spread(log_spread: float) -> str:
    """Return ``±3.1 %``; for large spreads ``×÷2.6``, as plus and minus would differ."""
    if log_spread < _MIN_SPREAD_AS_FACTOR:
        return f"±{100 * log_spread:.2g} %"
    return f"×÷{math.exp(log_spread):.3g}"


def spread_change(varying: FloatArray, held: FloatArray, *, seed: int) -> SpreadChange | None:
    """Compare the spreads of two conditions; return ``None`` for under ``MIN_BLOCKS`` blocks.

    ``varying`` and ``held``, shape (n,), are positive finite costs in the same n blocks.
    """
    if len(varying) < MIN_BLOCKS:
        return None
    varying_spread, held_spread = spread(varying), spread(held)
    return SpreadChange(
        varying_spread=varying_spread,
        held_spread=held_spread,
        share=None if varying_spread == 0.0 else 1.0 - (held_spread / varying_spread) ** 2,
        share_ci=_share_interval(varying, held, seed),
        p_value=_p_value(varying, held, seed),
        blocks=len(varying),
    )


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return p-values adjusted for all tests together (Holm 1979), in the order of the tests."""
    ascending_indices = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(ascending_indices):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return tuple(adjusted)


def _p_value(varying: FloatArray, held: FloatArray, seed: int) -> float:
    distances = [np.abs(np.log(costs) - np.median(np.log(costs))) for costs in (varying, held)]
    ranks = shared_ranks(np.concatenate(distances))
    differences = ranks[len(varying) :] - ranks[: len(varying)]
    generator = np.random.default_rng(seed)
    signs = generator.integers(0, 2, size=(PERMUTATIONS, len(varying)), dtype=np.int8) * 2 - 1
    sums = signs @ differences
    # The observed signs count as one more permutation, so that the p-value is never 0.
    at_most_observed = int(np.sum(sums <= differences.sum() + 1e-9))
    return (1 + at_most_observed) / (1 + PERMUTATIONS)


def _share_interval(varying: FloatArray, held: FloatArray, seed: int) -> Interval:
    generator = np.random.default_rng(seed)
    indices = circular_block_indices(len(varying), RESAMPLES, generator)
    varying_spreads, held_spreads = (
        np.subtract(*np.quantile(np.log(costs)[indices], SPREAD_QUANTILES[::-1], axis=1))
        for costs in (varying, held)
    )
    if not (varying_spreads > 0.0).all():
        return (None, None)
    low, high = percentile_interval(1.0 - (held_spreads / varying_spreads) ** 2)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)
