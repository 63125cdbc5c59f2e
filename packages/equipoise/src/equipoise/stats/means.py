"""The ratio of means: what many runs cost in total. Description only (docs/statistics.md).

No sequential guarantee is possible for it without a bound on the costs: a rare, very slow run
may always be still to come.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from equipoise.model.quantities import Interval
from equipoise.stats.arrays import RESAMPLES, FloatArray, circular_block_sums, percentile_interval

LEAST_BLOCKS = 5
"""Fewer say nothing about the spread of a mean."""


class MeanRatio(Struct, frozen=True):
    """The mean cost of the candidate over that of the baseline."""

    ratio: float | None
    """``None`` where a mean is not finite, or that of the baseline is 0."""
    ratio_ci: Interval
    """A bootstrap interval: description, valid neither sequentially nor in small campaigns."""


def ln_ratio_of_means(baseline: FloatArray, candidate: FloatArray) -> float:
    """Return ln of the ratio of means; ±inf if one is infinite or 0, NaN if nothing is known."""
    if len(baseline) == 0:
        return math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.log(np.mean(candidate)) - np.log(np.mean(baseline)))


def ln_ratios_without_one_block(baseline: FloatArray, candidate: FloatArray) -> FloatArray:
    """Return ln of the ratio of means without each block in turn, shape (n,); NaN if unknown.

    A timeout stays: it is no single slow run that happened to be measured.
    """

    def sums_without(costs: FloatArray) -> FloatArray:
        whole = np.sum(costs)
        return whole - costs if math.isfinite(whole) else np.full_like(costs, whole)

    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms: FloatArray = np.log(sums_without(candidate)) - np.log(sums_without(baseline))
    return logarithms


def ratio_of_means(baseline: FloatArray, candidate: FloatArray, *, seed: int) -> MeanRatio:
    """Return the ratio of means with a circular block bootstrap interval over the blocks.

    The costs, shape (n,) each, are of the same n blocks, in the order in which they ran.
    """
    logarithm = ln_ratio_of_means(baseline, candidate)
    if not math.isfinite(logarithm):
        return MeanRatio(ratio=None, ratio_ci=(None, None))
    ratio = float(np.mean(candidate) / np.mean(baseline))
    if len(baseline) < LEAST_BLOCKS:
        return MeanRatio(ratio=ratio, ratio_ci=(None, None))
    # Scaled, so that the sums of very large or very small costs stay exact.
    scaled = np.column_stack([baseline / np.mean(baseline), candidate / np.mean(candidate)])
    means = circular_block_sums(scaled, RESAMPLES, seed)
    means = means[means[:, 0] > 0]
    low, high = percentile_interval(means[:, 1] / means[:, 0])
    return MeanRatio(ratio=ratio, ratio_ci=(ratio * low, ratio * high))
