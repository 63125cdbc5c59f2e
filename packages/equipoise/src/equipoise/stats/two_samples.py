"""Ordinary intervals for one analysis: two samples, or one effect over several campaigns.

They assume independent trials that are about normal; for a ratio, their logarithms are. Samples of
unknown origin may not be independent: drift, and any other change between them, is in the result.
Campaigns are levels of their own (days, boots, kernels): the spread between campaigns predicts the
next campaign, and several campaigns of one boot count as one.

Each campaign stops when the effect looks large, so the mean of their ratios is too far from 1. An
unbiased mean is possible only from the blocks that each campaign would have measured in any case:
those up to the first at which it could have stopped. If all campaigns have one ratio in common, a
bettor's wealth is a test martingale in each of them, whenever it stops, and also over all campaigns
in sequence. So the ratios that it does not exclude are a confidence set (crates/verdict,
``common``), whatever stopped each campaign and however many there are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise._native import common_interval, student_quantile
from equipoise.model.errors import UnusableInput
from equipoise.model.pooled import CommonRatio, PooledEffect
from equipoise.model.quantities import Interval
from equipoise.stats.arrays import LEVEL, FloatArray
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import finite_ratio

ESTIMAND = "ratio of geometric means"
NO_SPREAD = "the values do not vary"
ONE_RUN = "one process does not show how much processes differ"
ONE_BLOCK = "one block does not show how much blocks differ"

_LARGEST = math.log(np.finfo(np.float64).max)


class SampleRatio(Struct, frozen=True):
    """Ratio of the candidate to the baseline."""

    ratio: float | None
    ratio_ci: Interval
    unknown: str | None
    """Why there is no ratio, or no interval."""


class SampleDifference(Struct, frozen=True):
    """Difference of the candidate from the baseline, in the unit of the samples."""

    difference: float
    difference_ci: Interval
    unknown: str | None
    """Why there is no interval."""


def sample_ratio(
    baseline: FloatArray, candidate: FloatArray, *, paired: bool, level: float
) -> SampleRatio:
    """Return the ratio of geometric means of costs: `sample_difference` of their logarithms."""
    if not len(baseline) or not len(candidate):
        return SampleRatio(None, (None, None), "no value is known")
    both = np.concatenate([baseline, candidate])
    if not np.isfinite(both).all() or (both <= 0).any():
        return SampleRatio(None, (None, None), "a value that is not above 0 has no ratio")
    logs = sample_difference(np.log(baseline), np.log(candidate), paired=paired, level=level)
    if abs(logs.difference) > _LARGEST:
        return SampleRatio(None, (None, None), "the ratio is beyond every number")
    ratio = math.exp(logs.difference)
    low, high = logs.difference_ci
    if low is None or high is None:
        return SampleRatio(ratio, (None, None), logs.unknown)
    if max(-low, high) > _LARGEST:
        return SampleRatio(ratio, (None, None), "too few trials for an interval")
    return SampleRatio(ratio, (math.exp(low), math.exp(high)), None)


def sample_difference(
    baseline: FloatArray, candidate: FloatArray, *, paired: bool, level: float
) -> SampleDifference:
    """Return the difference of the means of two samples.

    Independent samples are compared by Welch's (1947) interval. Paired samples, of the same blocks,
    are compared by Student's t over the differences within blocks. Degrees of freedom are rounded
    down. Values are finite, shapes (n,) and (m,), each at least 1. The level is 1 minus the nominal
    coverage.
    """
    difference, error, freedom = (_paired if paired else _welch)(baseline, candidate)
    if freedom == 0 or error == 0.0:
        too_few = ONE_BLOCK if paired else ONE_RUN
        return SampleDifference(difference, (None, None), NO_SPREAD if freedom else too_few)
    reach = student_quantile(1.0 - level / 2.0, freedom) * error
    return SampleDifference(difference, (difference - reach, difference + reach), None)


def _welch(below: FloatArray, above: FloatArray) -> tuple[float, float, int]:
    """Return a difference, its standard error and its degrees of freedom; 0 for too few values."""
    difference = float(np.mean(above) - np.mean(below))
    if min(len(below), len(above)) < 2:
        return difference, 0.0, 0
    # Rounding in the mean would hide that equal values have an error of exactly 0.
    parts = [
        (float(np.var(sample, ddof=1)) / len(sample), len(sample) - 1)
        for sample in (below, above)
        if (sample != sample[0]).any()
    ]
    if not parts:
        return difference, 0.0, 1
    total = sum(part for part, _ in parts)
    squares = sum(part**2 / freedom for part, freedom in parts)
    return difference, math.sqrt(total), max(1, math.floor(total**2 / squares))


def _paired(below: FloatArray, above: FloatArray) -> tuple[float, float, int]:
    """Return the mean difference within blocks, its standard error and its degrees of freedom."""
    differences = above - below
    error = 0.0
    if (differences != differences[0]).any():
        error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    return float(np.mean(differences)), error, len(differences) - 1


def pool(effects: FloatArray, errors: FloatArray, boots: Sequence[str]) -> PooledEffect:
    """Pool the effects of several campaigns.

    ``effects`` are the log ratios of the campaigns, ``errors`` their standard errors within the
    campaign, and ``boots`` the boot and kernel that each ran on.

    The mean of the replicates has Student's interval from their own spread, which includes the
    variation within and between them. The variance between campaigns is that of the effects minus
    the mean of the squared errors (the estimate of Hedges, 1983), never below 0.

    Raise `UnusableInput` if there is no campaign.
    """
    if len(effects) == 0:
        raise UnusableInput("there is no campaign to pool", hint="run the study first")
    by_boot: dict[str, list[float]] = defaultdict(list)
    for effect, boot in zip(effects, boots, strict=True):
        by_boot[boot].append(effect)
    boot_means = np.array([np.mean(together) for together in by_boot.values()])
    replicates = boot_means if len(by_boot) > 1 else effects
    count = len(replicates)
    mean = float(np.mean(replicates))
    interval: Interval = (None, None)
    if count > 1:
        error = float(np.std(replicates, ddof=1)) / math.sqrt(count)
        reach = student_quantile(1.0 - LEVEL / 2.0, count - 1) * error
        interval = (math.exp(mean - reach), math.exp(mean + reach))
    spread = float(np.var(effects, ddof=1)) if len(effects) > 1 else 0.0
    between = max(0.0, spread - float(np.mean(errors**2)))
    return PooledEffect(math.exp(mean), interval, math.sqrt(between), len(effects), count)


NO_COMMON_RATIO = "no common ratio fits all campaigns: they differ"


def common_ratio(campaigns: Sequence[PairedBlocks], *, level: float = 0.05) -> CommonRatio:
    """Return the ratio that campaigns have in common, at coverage 1 - ``level``.

    Each campaign is given as its blocks of the same comparison, in the order in which they ran.
    """
    blocks = sum(len(campaign) for campaign in campaigns)
    low, high = common_interval([campaign.engine for campaign in campaigns], level)
    if low > high:
        return CommonRatio(None, (None, None), blocks, NO_COMMON_RATIO)
    centres = [(campaign.engine.centre(), len(campaign)) for campaign in campaigns]
    known = [(centre[0], count) for centre, count in centres if centre is not None]
    ratio = None
    if known and all(math.isfinite(centre) for centre, _ in known):
        weighted = sum(centre * count for centre, count in known)
        middle = weighted / sum(count for _, count in known)
        ratio = finite_ratio(min(max(middle, low), high))
    return CommonRatio(ratio, (finite_ratio(low), finite_ratio(high)), blocks)
