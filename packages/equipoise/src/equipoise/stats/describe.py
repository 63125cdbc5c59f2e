"""The distribution of one metric over the trials of one condition, and the ratio of means.

The ratio of means has no error rate, because a rare, very slow run may still come.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import Interval
from equipoise.model.result import Drift, MetricSummary, Mode
from equipoise.stats.arrays import (
    LEVEL,
    RESAMPLES,
    FloatArray,
    circular_block_indices,
    circular_block_means,
    median_of,
    part_medians,
    percentile_interval,
    quantile_of,
    shared_ranks,
)
from equipoise.stats.modes import find_modes

MAX_CHANCE_ERRORS = 2.33
"""Standard errors that the autocorrelation of one in a hundred independent series exceeds."""
MIN_AUTOCORRELATION = 0.2
"""Rank autocorrelation above which an interval for independent values is too narrow."""
MIN_TRIALS_FOR_DRIFT, MAX_BINS_FOR_DRIFT = 6, 100
"""Minimum number of trials for a drift, and for an autocorrelation; number of medians to which each
third of a longer campaign is reduced."""


def describe(values: FloatArray, *, seed: int, resolution: float = 0.0) -> MetricSummary:
    """Describe the values of one metric.

    ``values``, shape (n,), has one finite value for each analysed trial, in the order of the
    trials. A trial that timed out has no value. ``resolution`` is the step of the measuring
    instrument, in the unit of the values.

    Quantiles have type 7 of Hyndman and Fan (1996). A value that needs more trials is ``None``. The
    fields ``mode_associations`` and ``states`` stay empty.

    Raise `UnusableInput` if there is no value, or a value that is not finite.
    """
    summary = describe_quantiles(values)
    modes = find_modes(values, resolution=resolution)
    return replace(
        summary,
        modes=tuple(
            Mode(value=at, share=share)
            for at, share in zip(modes.locations, modes.shares, strict=True)
        ),
        drift=drift(values, seed=seed),
        log_bayes_factor=modes.log_evidence,
        autocorrelation=rank_autocorrelation(values),
    )


def describe_quantiles(values: FloatArray) -> MetricSummary:
    """Describe the values of one metric without modes, drift and autocorrelation.

    These take nearly all the time of `describe`, whose errors this function raises.
    """
    if len(values) == 0:
        raise UnusableInput("there is no value to describe", hint="measure at least one trial")
    bad_indices = np.flatnonzero(~np.isfinite(values))
    if len(bad_indices):
        raise UnusableInput(
            f"value {bad_indices[0] + 1} of {len(values)} is {values[bad_indices[0]]}, not finite",
            hint="leave out the trials without a finite value",
        )
    ordered = np.sort(values)
    p05, p25, median, p75, p95 = (
        quantile_of(ordered, share) for share in (0.05, 0.25, 0.5, 0.75, 0.95)
    )
    return MetricSummary(
        median=median,
        median_ci=median_interval(ordered, LEVEL),
        mean=float(np.mean(values)),
        sd=float(np.std(values, ddof=1)) if len(values) > 1 else None,
        min=float(ordered[0]),
        p05=p05,
        p25=p25,
        p75=p75,
        p95=p95,
        max=float(ordered[-1]),
        modes=(),
        tail_ratio=(p95 - median) / (median - p05) if median > p05 else None,
    )


def median_interval(ordered: FloatArray, level: float) -> Interval:
    """Return an interval of the median: the k-th smallest and the k-th largest value.

    Each end is exact at level/2 by the binomial law (David and Nagaraja 2003, §7.1). Both ends are
    ``None`` with too few values: fewer than 6 at level 0.05.
    """
    interval = quantile_interval(ordered, 0.5, level)
    return (None, None) if None in interval else interval


def quantile_interval(ordered: FloatArray, quantile: float, level: float) -> Interval:
    """Return an interval of a quantile: two of the values, chosen by the binomial law.

    Each end is exact at level/2 for any continuous distribution (David and Nagaraja 2003, §7.1). An
    end is ``None`` if there are too few values for it. The n values are ascending; the quantile is
    between 0 and 1, both excluded.
    """
    count = len(ordered)
    low, high = _interval_ranks(count, quantile, level)
    return (
        float(ordered[low - 1]) if low else None,
        float(ordered[count - high]) if high else None,
    )


@functools.lru_cache(maxsize=1024)
def _interval_ranks(count: int, quantile: float, level: float) -> tuple[int, int]:
    """Return the rank of the lower end from below, and of the upper end from above; 0 for none."""
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count + 1)))])
    counts_below = np.arange(count + 1)
    log_chances = log_factorials[-1] - log_factorials - log_factorials[::-1]
    log_chances += counts_below * np.log(quantile) + (count - counts_below) * np.log(1.0 - quantile)
    chances = np.exp(log_chances)
    low, high = (
        int(np.searchsorted(np.cumsum(cumulated_side), level / 2.0, side="right"))
        for cumulated_side in (chances, chances[::-1])
    )
    return low, high


def median_at_any_stop(ordered: Sequence[float] | FloatArray, level: float) -> Interval:
    """Return an interval of the median that is valid after any number of values.

    Its ends are the k-th smallest and the k-th largest value. Let s of n values lie below a
    possible median. The median is excluded if e to the `ln_coin_mixture` of s and n reaches 1/level
    (Robbins 1970; Howard and Ramdas 2022). Each value must lie below the true median with
    probability ½, given all values before. Both ends are ``None`` with fewer than 7 values at level
    0.05. The values so far, shape (n,), are ascending; +inf for a trial without a value.
    """
    count = len(ordered)
    # The mixture is convex in the number below, so only small and large numbers are excluded.
    counts_below = range(count // 2 + 1)
    rank = bisect_left(counts_below, True, key=lambda s: not _is_excluded(s, count, level))
    if rank == 0:
        return (None, None)
    low, high = float(ordered[rank - 1]), float(ordered[count - rank])
    return (low if math.isfinite(low) else None, high if math.isfinite(high) else None)


def _is_excluded(below_count: int, count: int, level: float) -> bool:
    return ln_coin_mixture(below_count, count) >= -math.log(level)


def ln_coin_mixture(successes: int, count: int) -> float:
    """Return the logarithm of a beta(½, ½) mixture of likelihood ratios against a fair coin.

    For s successes in n tosses the mixture is B(s + ½, n - s + ½) 2^n / B(½, ½). It is an e-value
    after every toss (Robbins 1970).
    """
    return (
        math.lgamma(successes + 0.5)
        + math.lgamma(count - successes + 0.5)
        - math.lgamma(count + 1.0)
        - math.log(math.pi)
        + count * math.log(2.0)
    )


def drift(values: FloatArray, *, seed: int) -> Drift:
    """Return the drift: the median of the last third of the trials over the median of the first.

    The ratio has a circular block bootstrap interval. A third of more than 100 trials is first
    reduced to 100 medians of consecutive trials. The ratio is ``None`` with fewer than 6 trials,
    and if the first median is 0. ``chance`` comes from the ranks of both thirds (Mann and Whitney
    1947).
    """
    third = len(values) // 3
    if len(values) < MIN_TRIALS_FOR_DRIFT:
        return Drift(ratio=None, ratio_ci=(None, None))
    bin_count = min(third, MAX_BINS_FOR_DRIFT)
    head = part_medians(values[:third], bin_count)
    tail = part_medians(values[-third:], bin_count)
    if median_of(head) == 0:
        return Drift(ratio=None, ratio_ci=(None, None))
    generator = np.random.default_rng(seed)
    first_medians = _resampled_medians(head, generator)
    last_medians = _resampled_medians(tail, generator)
    ratio = float(median_of(tail) / median_of(head))
    if not first_medians.all():
        return Drift(ratio=ratio, ratio_ci=(None, None))
    interval = percentile_interval(last_medians / first_medians)
    return Drift(ratio, interval, _rank_sum_p_value(values[:third], values[-third:]))


def _rank_sum_p_value(head: FloatArray, tail: FloatArray) -> float:
    """Return the two-sided chance that independent trials give rank sums as unequal as these."""
    count = len(head)
    ranks = shared_ranks(np.concatenate([head, tail]))
    # The variance of the ranks themselves allows for ties.
    rank_sum_sd = count * math.sqrt(float(np.var(ranks, ddof=1)) / (2.0 * count))
    if rank_sum_sd == 0.0:
        return 1.0
    # The 0.5 is Yates's correction for whole ranks.
    distance = max(0.0, abs(float(np.sum(ranks[:count]) - count * np.mean(ranks))) - 0.5)
    return math.erfc(distance / rank_sum_sd / math.sqrt(2.0))


def rank_autocorrelation(values: FloatArray) -> float | None:
    """Return the correlation of the ranks of neighbouring values (Wald and Wolfowitz 1943).

    The result is ``None`` with fewer than 6 values, or if all values are equal.
    """
    if len(values) < MIN_TRIALS_FOR_DRIFT:
        return None
    ranks = shared_ranks(values)
    ranks -= ranks.mean()
    squared_sum = float(np.sum(ranks**2))
    return float(np.sum(ranks[1:] * ranks[:-1])) / squared_sum if squared_sum > 0 else None


def is_visible(autocorrelation: float, count: int) -> bool:
    """Return whether an autocorrelation is larger than chance makes it, and large enough to matter.

    One in a hundred independent series of ``count`` values is visible (Wald and Wolfowitz 1943).
    """
    chance_limit = -1.0 / count + MAX_CHANCE_ERRORS / math.sqrt(count)
    return autocorrelation > max(chance_limit, MIN_AUTOCORRELATION)


def _resampled_medians(values: FloatArray, generator: np.random.Generator) -> FloatArray:
    resampled = values[circular_block_indices(len(values), RESAMPLES, generator)]
    return median_of(resampled)


MIN_BLOCKS = 5
"""Minimum number of blocks for an interval of the ratio of means."""


class MeanRatio(Struct, frozen=True):
    """The mean cost of the candidate over the mean cost of the baseline."""

    ratio: float | None
    """Ratio of the means; ``None`` if a mean is not finite, or the baseline's mean is 0."""
    ratio_ci: Interval
    """Bootstrap interval that only describes: too narrow in small campaigns and at early stops."""


def ln_ratio_of_means(baseline: FloatArray, candidate: FloatArray) -> float:
    """Return ln of the ratio of means; ±inf if one mean is infinite or 0, NaN if unknown."""
    if len(baseline) == 0:
        return math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.log(np.mean(candidate)) - np.log(np.mean(baseline)))


def ln_ratios_without_one_block(baseline: FloatArray, candidate: FloatArray) -> FloatArray:
    """Return ln of the ratio of means without block 1, without block 2, …; NaN if unknown.

    A block with a timeout is not left out: a timeout is not a slow run that occurred by chance.
    """

    def sums_without(costs: FloatArray) -> FloatArray:
        cost_sum = np.sum(costs)
        return cost_sum - costs if math.isfinite(cost_sum) else np.full_like(costs, cost_sum)

    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms: FloatArray = np.log(sums_without(candidate)) - np.log(sums_without(baseline))
    return logarithms


def ratio_of_means(baseline: FloatArray, candidate: FloatArray, *, seed: int) -> MeanRatio:
    """Return the ratio of means with a circular block bootstrap interval over the blocks.

    ``baseline`` and ``candidate``, shape (n,), are costs in the same n blocks, in order.
    """
    logarithm = ln_ratio_of_means(baseline, candidate)
    if not math.isfinite(logarithm):
        return MeanRatio(ratio=None, ratio_ci=(None, None))
    ratio = float(np.mean(candidate) / np.mean(baseline))
    if len(baseline) < MIN_BLOCKS:
        return MeanRatio(ratio=ratio, ratio_ci=(None, None))
    # Scaled, so that the sums of very large or very small costs stay exact.
    scaled = np.column_stack([baseline / np.mean(baseline), candidate / np.mean(candidate)])
    means = circular_block_means(scaled, RESAMPLES, seed)
    means = means[means[:, 0] > 0]
    low, high = percentile_interval(means[:, 1] / means[:, 0])
    return MeanRatio(ratio=ratio, ratio_ci=(ratio * low, ratio * high))
