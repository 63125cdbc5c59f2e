"""Scaling laws: how a cost grows with the size N, as c N^a (log N)^b, with intervals.

Over the sizes of one study, log log N is almost a linear function of log N. Many pairs of a and b
fit equally well, so the *exponent* a is estimated separately for each *log power* b. A *simple law*
has an exponent such as 1 or 1.5. It fits if it agrees with the growth of the cost from each size to
the next.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import Interval
from equipoise.shared.spelling import option
from equipoise.stats.arrays import (
    LEVEL,
    RESAMPLES,
    FloatArray,
    circular_block_indices,
    percentile_interval,
)
from equipoise.stats.describe import median_interval

MIN_BLOCKS = 5
"""Minimum number of blocks for the interval of an exponent."""
LOG_POWERS = (0, 1, 2)
"""Powers b of log N for which the exponent a of N is estimated."""
SIMPLE_EXPONENTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
"""Exponents a of the simple laws; each is combined with each power b."""
_ROUNDING = 1e-9
"""Relative error by which an interval of the growth may be missed, because of rounding."""


class Exponent(Struct, frozen=True):
    """Estimate of the exponent of N for a given power of log N."""

    log_power: int
    """Power b of log N."""
    exponent: float
    """Exponent a of N."""
    exponent_ci: Interval
    """Interval of the exponent a; its ends are ``None`` with fewer than five blocks."""
    largest_deviation: float
    """Largest deviation of the law from the cost at a size, as a fraction of that cost."""


class Growth(Struct, frozen=True):
    """Growth of the cost from one size to the next larger size."""

    smaller: float
    larger: float
    ratio: float
    """Cost at the larger size over the cost at the smaller size."""
    ratio_ci: Interval
    """Interval of the ratio, simultaneous over all sizes. An end is ``None`` for too few blocks."""
    blocks: int
    """Number of blocks in which both sizes ran."""


class ScalingLaw(Struct, frozen=True):
    """Law by which a cost grows with size."""

    sizes: tuple[float, ...]
    """Sizes, ascending."""
    medians: tuple[float, ...]
    """Median cost at each size."""
    exponents: tuple[Exponent, ...]
    """Exponent for each power of log N; the first one belongs to the plain power law. With only
    two sizes, each law fits exactly."""
    growth: tuple[Growth, ...]
    simple_laws: tuple[tuple[float, int], ...]
    """Pairs (a, b) of the simple laws that agree with the interval of each growth."""
    has_intervals: bool
    """Whether every growth has an interval; without intervals, no law can be excluded."""

    @property
    def power_law(self) -> Exponent:
        """Exponent of the law without a logarithm."""
        return self.exponents[0]


def scaling_law(sizes: Sequence[float], costs: FloatArray, *, seed: int) -> ScalingLaw:
    """Fit scaling laws c N^a (log N)^b to the costs at several sizes (docs/methods/growth.md).

    ``sizes`` are k different sizes. ``costs``, shape (n, k), has the cost at each size in each of n
    blocks, in the order of the blocks. A cost is NaN if the block left the size out, and +inf if
    the trial timed out. ``seed`` is for the resampling of blocks.

    Raise `UnusableInput` for fewer than two sizes, a size of 1 or less, or a size without a
    positive finite median.

    - The growth from one size to the next is the median of the log ratios within blocks. It has an
      exact binomial interval (David and Nagaraja 2003, §7.1). The growths share the level 0.05
      (Bonferroni).
    - For each power b, the exponent a is the slope of a least-squares line. Its interval is the
      percentile interval of circular block resamples (Politis and Romano 1992).
    - A simple law fits if it lies within the intervals of all growths.
    """
    size_order = np.argsort(np.asarray(sizes, dtype=np.float64))
    ordered = np.asarray(sizes, dtype=np.float64)[size_order]
    if len(ordered) < 2 or not (ordered > 1).all() or not (np.diff(ordered) > 0).all():
        raise UnusableInput(
            f"no scaling law can be fitted to the sizes {', '.join(f'{size:g}' for size in sizes)}",
            hint="give at least two different sizes above 1",
        )
    with np.errstate(divide="ignore"):
        log_costs = np.log(costs[:, size_order])
    medians = _medians(log_costs[None])[0]
    if not np.isfinite(medians).all():
        unusable_size = ordered[np.flatnonzero(~np.isfinite(medians))[0]]
        raise UnusableInput(
            f"the size {unusable_size:g} has no positive, finite median cost: many trials timed "
            "out, cost 0 or were left out",
            hint=f"leave out the size {unusable_size:g}, or give a longer {option('timeout')}",
        )
    growth = tuple(_growth_of_each_step(ordered, log_costs))
    profile, resampled = _profiles(log_costs[None])[0], _resampled_profiles(log_costs, seed)
    return ScalingLaw(
        sizes=tuple(ordered.tolist()),
        medians=tuple(np.exp(medians).tolist()),
        exponents=tuple(
            _fit_exponent(np.log(ordered), profile, resampled, log_power)
            for log_power in LOG_POWERS
        ),
        growth=growth,
        simple_laws=tuple(
            (exponent, log_power)
            for log_power in LOG_POWERS
            for exponent in SIMPLE_EXPONENTS
            if all(_law_agrees(step, exponent, log_power) for step in growth)
        ),
        has_intervals=all(step.ratio_ci != (None, None) for step in growth),
    )


def describe_law(exponent: float, log_power: int) -> str:
    """Return a law in the usual notation, such as ``N^2 log N``."""
    size = {0.0: "", 1.0: "N"}.get(exponent, f"N^{exponent:g}")
    logarithm = {0: "", 1: "log N"}.get(log_power, f"(log N)^{log_power}")
    return f"{size} {logarithm}".strip() or "constant"


def _medians(log_costs: FloatArray) -> FloatArray:
    """Return medians over blocks, shape (r, k), of r samples of shape (n, k); NaN if unknown."""
    is_unknown = np.asarray(np.isnan(log_costs).all(axis=1))
    # NumPy would warn about a column without any known value.
    medians = np.nanmedian(np.where(is_unknown[:, None], 0.0, log_costs), axis=1)
    return np.asarray(np.where(is_unknown, np.nan, medians), dtype=np.float64)


def _profiles(log_costs: FloatArray) -> FloatArray:
    """Return the profiles of r samples of shape (n, k), shape (r, k).

    A profile has the log cost at each of the k sizes, minus the log cost at the smallest size. Each
    step to the next size is the median of the differences within blocks, without the drift of the
    host. If no block has both sizes, the two medians give the step.
    """
    with np.errstate(invalid="ignore"):
        within_blocks = _medians(np.diff(log_costs, axis=2))
        between_medians = np.diff(_medians(log_costs), axis=1)
    log_steps = np.where(np.isfinite(within_blocks), within_blocks, between_medians)
    zeros = np.zeros((len(log_costs), 1))
    return np.concatenate([zeros, np.cumsum(log_steps, axis=1)], axis=1)


def _resampled_profiles(log_costs: FloatArray, seed: int) -> FloatArray | None:
    if len(log_costs) < MIN_BLOCKS:
        return None
    indices = circular_block_indices(len(log_costs), RESAMPLES, np.random.default_rng(seed))
    profiles = _profiles(log_costs[indices])
    return profiles[np.isfinite(profiles).all(axis=1)]


def _fit_exponent(
    log_sizes: FloatArray, profile: FloatArray, resampled: FloatArray | None, log_power: int
) -> Exponent:
    of_log_power = log_power * np.log(log_sizes)
    centred = log_sizes - log_sizes.mean()
    weights = centred / (centred**2).sum()
    exponent = float((profile - of_log_power) @ weights)
    residuals = profile - of_log_power - exponent * log_sizes
    residuals -= residuals.mean()
    interval: Interval = (None, None)
    if resampled is not None and len(resampled):
        interval = percentile_interval((resampled - of_log_power) @ weights)
    return Exponent(log_power, exponent, interval, float(np.expm1(np.abs(residuals).max())))


def _growth_of_each_step(sizes: FloatArray, log_costs: FloatArray) -> Iterator[Growth]:
    pairs = list(itertools.pairwise(sizes.tolist()))
    for index, (smaller, larger) in enumerate(pairs):
        has_both = np.isfinite(log_costs[:, index : index + 2]).all(axis=1)
        differences = np.sort(log_costs[has_both, index + 1] - log_costs[has_both, index])
        median, low, high = math.nan, None, None
        if len(differences):
            median = float(np.median(differences))
            low, high = median_interval(differences, LEVEL / len(pairs))
        yield Growth(
            smaller=smaller,
            larger=larger,
            ratio=math.exp(median),
            ratio_ci=(
                None if low is None else math.exp(low),
                None if high is None else math.exp(high),
            ),
            blocks=len(differences),
        )


def _law_agrees(growth: Growth, exponent: float, log_power: int) -> bool:
    low, high = growth.ratio_ci
    ratio_of_logs = math.log(growth.larger) / math.log(growth.smaller)
    predicted_ratio = float((growth.larger / growth.smaller) ** exponent * ratio_of_logs**log_power)
    is_above_low = low is None or low <= predicted_ratio * (1.0 + _ROUNDING)
    return is_above_low and (high is None or predicted_ratio <= high * (1.0 + _ROUNDING))
