"""Ratios and differences of two samples: ordinary intervals for one look.

They presume independent trials that are about normal, for a ratio in the logarithm. Of samples that
were measured anyhow nothing shows that they are independent: drift and whatever else changed
between them is in the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from equipoise._native import student_quantile
from equipoise.model.interval import Interval
from equipoise.stats.arrays import FloatArray

ESTIMAND = "ratio of geometric means"
NO_SPREAD = "the values do not vary"
ONE_RUN = "one process says nothing about the next one"
ONE_BLOCK = "one block says nothing about the next one"

_LARGEST = math.log(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class SampleRatio:
    """Candidate over baseline."""

    ratio: float | None
    ratio_ci: Interval
    unknown: str | None
    """Why there is no ratio, or no interval."""


@dataclass(frozen=True, slots=True)
class SampleDifference:
    """Candidate minus baseline, in the unit of the samples."""

    difference: float
    difference_ci: Interval
    unknown: str | None
    """Why there is no interval."""


def welch_ratio(baseline: FloatArray, candidate: FloatArray, *, level: float) -> SampleRatio:
    """The ratio of geometric means of two independent samples (Welch 1947, on logarithms).

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
    """The ratio of geometric means by Student's t over the log ratios within blocks.

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
    """The difference of the means of two independent samples (Welch 1947).

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
    """The mean of the differences within blocks, by Student's t.

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
    """The standard error of a difference of means, and its degrees of freedom; 0 without spread.

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
