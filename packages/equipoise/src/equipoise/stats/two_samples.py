"""Intervals for a single analysis: of two samples, or of the effects of several campaigns.

`sample_ratio` and `sample_difference` compare two samples. They assume independent trials that are
about normal (for a ratio, with normal logarithms). Samples of unknown origin may not be
independent. Drift between the samples is part of the result.

`pool` averages the effects of several campaigns; several campaigns of one boot count as one. A
campaign stops when its effect looks large, so the mean of these effects would be too large. Give
`pool` only the blocks up to the first block at which a campaign could have stopped.

`common_ratio` assumes that all campaigns have one ratio in common. Its interval holds whenever each
campaign stopped, and for any number of campaigns (crates/verdict, ``common``).
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
from equipoise.stats.verdict import finite_ratio, typical_log_ratio

ESTIMAND = "ratio of geometric means"
"""The quantity that `sample_ratio` estimates."""
NO_SPREAD = "the values do not vary"
ONE_PROCESS = "one process does not show how much processes differ"
ONE_BLOCK = "one block does not show how much blocks differ"
"""This constant and the two above are reasons why an interval is unknown."""
_MAX_LOG_RATIO = math.log(np.finfo(np.float64).max)
"""Logarithm of the largest number, which a ratio must not exceed."""


class SampleRatio(Struct, frozen=True):
    """Ratio of the candidate to the baseline, for two samples."""

    ratio: float | None
    ratio_ci: Interval
    unknown: str | None
    """Reason why the ratio or its interval is unknown."""


class SampleDifference(Struct, frozen=True):
    """Candidate minus baseline, for two samples, in their unit."""

    difference: float
    difference_ci: Interval
    unknown: str | None
    """Reason why the interval is unknown."""


def sample_ratio(
    baseline: FloatArray, candidate: FloatArray, *, paired: bool, level: float
) -> SampleRatio:
    """Return the ratio of geometric means: e to the `sample_difference` of the logarithms."""
    if not len(baseline) or not len(candidate):
        return SampleRatio(None, (None, None), "no value is known")
    all_values = np.concatenate([baseline, candidate])
    if not np.isfinite(all_values).all() or (all_values <= 0).any():
        return SampleRatio(None, (None, None), "a value that is not above 0 has no ratio")
    log_result = sample_difference(np.log(baseline), np.log(candidate), paired=paired, level=level)
    if abs(log_result.difference) > _MAX_LOG_RATIO:
        return SampleRatio(None, (None, None), "the ratio is too large for a number")
    ratio = math.exp(log_result.difference)
    low, high = log_result.difference_ci
    if low is None or high is None:
        return SampleRatio(ratio, (None, None), log_result.unknown)
    if max(-low, high) > _MAX_LOG_RATIO:
        return SampleRatio(ratio, (None, None), "too few trials for an interval")
    return SampleRatio(ratio, (math.exp(low), math.exp(high)), None)


def sample_difference(
    baseline: FloatArray, candidate: FloatArray, *, paired: bool, level: float
) -> SampleDifference:
    """Return the difference of the means of two samples.

    Independent samples are compared by Welch's (1947) interval. ``paired`` samples, from the same
    blocks, are compared by Student's t over the differences within blocks. Degrees of freedom are
    rounded down. The samples have at least one value each, all finite. ``level`` is 1 minus the
    nominal coverage.
    """
    difference, error, degrees = (_paired_difference if paired else _welch_difference)(
        baseline, candidate
    )
    if degrees == 0 or error == 0.0:
        too_few_reason = ONE_BLOCK if paired else ONE_PROCESS
        return SampleDifference(difference, (None, None), NO_SPREAD if degrees else too_few_reason)
    half_width = student_quantile(1.0 - level / 2.0, degrees) * error
    return SampleDifference(difference, (difference - half_width, difference + half_width), None)


def _welch_difference(baseline: FloatArray, candidate: FloatArray) -> tuple[float, float, int]:
    """Return the difference, its standard error and degrees of freedom; 0 for a single value."""
    difference = float(np.mean(candidate) - np.mean(baseline))
    if min(len(baseline), len(candidate)) < 2:
        return difference, 0.0, 0
    # Equal values have an error of exactly 0, which rounding in the mean would hide.
    errors_and_degrees = [
        (float(np.var(sample, ddof=1)) / len(sample), len(sample) - 1)
        for sample in (baseline, candidate)
        if (sample != sample[0]).any()
    ]
    if not errors_and_degrees:
        return difference, 0.0, 1
    variance = sum(squared_error for squared_error, _ in errors_and_degrees)
    squares = sum(squared_error**2 / degrees for squared_error, degrees in errors_and_degrees)
    return difference, math.sqrt(variance), max(1, math.floor(variance**2 / squares))


def _paired_difference(baseline: FloatArray, candidate: FloatArray) -> tuple[float, float, int]:
    """Return the mean difference within blocks, its standard error and its degrees of freedom."""
    differences = candidate - baseline
    error = 0.0
    if (differences != differences[0]).any():
        error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    return float(np.mean(differences)), error, len(differences) - 1


def pool(effects: FloatArray, errors: FloatArray, boots: Sequence[str]) -> PooledEffect:
    """Pool the effects of several campaigns.

    ``effects`` are the log ratios of the campaigns. ``errors`` are their standard errors within the
    campaign. ``boots`` names the boot and kernel of each campaign.

    The replicates are the boots or, with a single boot, the campaigns. Their mean has Student's
    interval.
    The variance between campaigns is the variance of the effects minus the mean squared error,
    never below 0 (Hedges 1983).

    Raise `UnusableInput` if there is no campaign.
    """
    if len(effects) == 0:
        raise UnusableInput("there is no campaign to pool", hint="run the study first")
    by_boot: dict[str, list[float]] = defaultdict(list)
    for effect, boot in zip(effects, boots, strict=True):
        by_boot[boot].append(effect)
    boot_means = np.array([np.mean(effects_of_boot) for effects_of_boot in by_boot.values()])
    replicates = boot_means if len(by_boot) > 1 else effects
    replicate_count = len(replicates)
    mean = float(np.mean(replicates))
    interval: Interval = (None, None)
    if replicate_count > 1:
        error = float(np.std(replicates, ddof=1)) / math.sqrt(replicate_count)
        half_width = student_quantile(1.0 - LEVEL / 2.0, replicate_count - 1) * error
        interval = (math.exp(mean - half_width), math.exp(mean + half_width))
    effect_variance = float(np.var(effects, ddof=1)) if len(effects) > 1 else 0.0
    between_variance = max(0.0, effect_variance - float(np.mean(errors**2)))
    return PooledEffect(
        math.exp(mean), interval, math.sqrt(between_variance), len(effects), replicate_count
    )


NO_COMMON_RATIO = "no common ratio fits all campaigns: they differ"


def common_ratio(campaigns: Sequence[PairedBlocks], *, level: float = 0.05) -> CommonRatio:
    """Return the ratio that campaigns have in common, with an interval of coverage 1 - ``level``.

    ``campaigns`` has each campaign's blocks of the same comparison, in the order in which they ran.
    """
    blocks = sum(len(campaign) for campaign in campaigns)
    low, high = common_interval([campaign.engine for campaign in campaigns], level)
    if low > high:
        return CommonRatio(None, (None, None), blocks, NO_COMMON_RATIO)
    centres = [(typical_log_ratio(campaign), len(campaign)) for campaign in campaigns]
    known_centres = [(centre, count) for centre, count in centres if centre is not None]
    ratio = None
    if known_centres and all(math.isfinite(centre) for centre, _ in known_centres):
        weighted_sum = sum(centre * count for centre, count in known_centres)
        mean_centre = weighted_sum / sum(count for _, count in known_centres)
        ratio = finite_ratio(min(max(mean_centre, low), high))
    return CommonRatio(ratio, (finite_ratio(low), finite_ratio(high)), blocks)
