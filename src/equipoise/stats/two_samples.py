"""Ordinary intervals for one look: of two samples, and of one effect over several campaigns.

They presume independent trials that are about normal, for a ratio in the logarithm. Nothing shows
that samples from anywhere are independent: drift and whatever else changed between them is in the
result. Campaigns are levels of their own (days, boots, kernels): the spread between campaigns tells
what the next one would show, and several campaigns of one boot count as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise._native import student_quantile
from equipoise.model.errors import UnusableInput
from equipoise.model.interval import Interval
from equipoise.model.result import PooledEffect
from equipoise.stats.arrays import FloatArray

ESTIMAND = "ratio of geometric means"
NO_SPREAD = "the values do not vary"
ONE_RUN = "one process says nothing about the next one"
ONE_BLOCK = "one block says nothing about the next one"

_LARGEST = math.log(np.finfo(np.float64).max)


class SampleRatio(Struct, frozen=True):
    """Candidate over baseline."""

    ratio: float | None
    ratio_ci: Interval
    unknown: str | None
    """Why there is no ratio, or no interval."""


class SampleDifference(Struct, frozen=True):
    """Candidate minus baseline, in the unit of the samples."""

    difference: float
    difference_ci: Interval
    unknown: str | None
    """Why there is no interval."""


def welch_ratio(baseline: FloatArray, candidate: FloatArray, *, level: float) -> SampleRatio:
    """Return the ratio of geometric means of two independent samples (Welch 1947, on logarithms).

    Parameters
    ----------
    baseline, candidate
        Shapes (n,) and (m,): costs.
    level
        1 minus the nominal coverage. The degrees of freedom are rounded down.
    """
    refusal = _refusal(baseline, candidate)
    if refusal is not None:
        return SampleRatio(None, (None, None), refusal)
    below, above = np.log(baseline), np.log(candidate)
    difference = float(np.mean(above) - np.mean(below))
    if min(len(below), len(above)) < 2:
        return _without_interval(difference, ONE_RUN)
    error, freedom = _welch(below, above)
    if error == 0.0:
        return _without_interval(difference, NO_SPREAD)
    return _interval(difference, error, freedom, level)


def paired_ratio(baseline: FloatArray, candidate: FloatArray, *, level: float) -> SampleRatio:
    """Return the ratio of geometric means by Student's t over the log ratios within blocks.

    Parameters
    ----------
    baseline, candidate
        Shape (n,): costs in the same n blocks.
    level
        1 minus the nominal coverage.
    """
    refusal = _refusal(baseline, candidate)
    if refusal is not None:
        return SampleRatio(None, (None, None), refusal)
    differences = np.log(candidate) - np.log(baseline)
    mean = float(np.mean(differences))
    if len(differences) < 2:
        return _without_interval(mean, ONE_BLOCK)
    error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    if error == 0.0:
        return _without_interval(mean, NO_SPREAD)
    return _interval(mean, error, len(differences) - 1, level)


def welch_difference(
    baseline: FloatArray, candidate: FloatArray, *, level: float
) -> SampleDifference:
    """Return the difference of the means of two independent samples (Welch 1947).

    Parameters
    ----------
    baseline, candidate
        Shapes (n,) and (m,), each at least 1: finite values.
    level
        1 minus the nominal coverage. The degrees of freedom are rounded down.
    """
    difference = float(np.mean(candidate) - np.mean(baseline))
    if min(len(baseline), len(candidate)) < 2:
        return SampleDifference(difference, (None, None), ONE_RUN)
    error, freedom = _welch(baseline, candidate)
    return _difference(difference, error, freedom, level)


def paired_difference(
    baseline: FloatArray, candidate: FloatArray, *, level: float
) -> SampleDifference:
    """Return the mean of the differences within blocks, by Student's t.

    Parameters
    ----------
    baseline, candidate
        Shape (n,), n at least 1: finite values in the same n blocks.
    level
        1 minus the nominal coverage.
    """
    differences = candidate - baseline
    mean = float(np.mean(differences))
    if len(differences) < 2:
        return SampleDifference(mean, (None, None), ONE_BLOCK)
    # The same difference in every block would differ by rounding.
    same = bool((differences == differences[0]).all())
    error = 0.0 if same else float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    return _difference(mean, error, len(differences) - 1, level)


def _difference(difference: float, error: float, freedom: int, level: float) -> SampleDifference:
    if error == 0.0:
        return SampleDifference(difference, (None, None), NO_SPREAD)
    reach = student_quantile(1.0 - level / 2.0, freedom) * error
    return SampleDifference(difference, (difference - reach, difference + reach), None)


def _welch(below: FloatArray, above: FloatArray) -> tuple[float, int]:
    """Return the standard error of a difference of means and its degrees of freedom.

    Of equal values the spread is exactly 0, which rounding in their mean would hide.
    """
    parts = [
        float(np.var(one, ddof=1)) / len(one) if (one != one[0]).any() else 0.0
        for one in (below, above)
    ]
    if not any(parts):
        return 0.0, 1
    squares = (part**2 / (len(one) - 1) for part, one in zip(parts, (below, above), strict=True))
    return math.sqrt(sum(parts)), max(1, math.floor(sum(parts) ** 2 / sum(squares)))


def _refusal(baseline: FloatArray, candidate: FloatArray) -> str | None:
    if not len(baseline) or not len(candidate):
        return "no value is known"
    both = np.concatenate([baseline, candidate])
    if not np.isfinite(both).all() or (both <= 0).any():
        return "a value that is not above 0 has no ratio"
    return None


def _interval(difference: float, error: float, freedom: int, level: float) -> SampleRatio:
    reach = student_quantile(1.0 - level / 2.0, max(1, freedom)) * error
    if abs(difference) + reach > _LARGEST:
        return _without_interval(difference, "too few trials for an interval")
    bounds = (math.exp(difference - reach), math.exp(difference + reach))
    return SampleRatio(math.exp(difference), bounds, None)


def _without_interval(difference: float, why: str) -> SampleRatio:
    if abs(difference) > _LARGEST:
        return SampleRatio(None, (None, None), "the ratio is beyond every number")
    return SampleRatio(math.exp(difference), (None, None), why)


def pool(
    effects: FloatArray, errors: FloatArray, boots: Sequence[str], *, level: float = 0.05
) -> PooledEffect:
    """Pool the effects of several campaigns.

    Parameters
    ----------
    effects, errors
        Shape (k,): the log ratio of each campaign and its standard error within the campaign.
    boots
        What each campaign ran on: boot and kernel.
    level
        1 minus the coverage.

    Returns
    -------
    The mean of the replicates with Student's interval from their own spread, which holds what
    varies within and between them alike; the variance between campaigns is that of the effects
    less the mean of the squared errors (the estimate of Hedges, 1983), never below 0.

    Raises
    ------
    UnusableInput
        There is no campaign.
    """
    if len(effects) == 0:
        raise UnusableInput("there is no campaign to pool", hint="run the study first")
    by_boot: dict[str, list[float]] = {}
    for effect, boot in zip(effects, boots, strict=True):
        by_boot.setdefault(boot, []).append(effect)
    of_boot = np.array([np.mean(together) for together in by_boot.values()])
    replicates = of_boot if len(by_boot) > 1 else effects
    count = len(replicates)
    mean = float(np.mean(replicates))
    interval: Interval = (None, None)
    if count > 1:
        error = float(np.std(replicates, ddof=1)) / math.sqrt(count)
        reach = student_quantile(1.0 - level / 2.0, count - 1) * error
        interval = (math.exp(mean - reach), math.exp(mean + reach))
    spread = float(np.var(effects, ddof=1)) if len(effects) > 1 else 0.0
    between = max(0.0, spread - float(np.mean(errors**2)))
    return PooledEffect(math.exp(mean), interval, math.sqrt(between), len(effects), count)
