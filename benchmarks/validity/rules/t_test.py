"""Two-sample t-tests, two-sided, after each pair of runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from benchmarks.validity.machine import FloatArray


@dataclass(frozen=True, slots=True)
class Running:
    """The first n values, for every n; shapes (N,)."""

    counts: FloatArray
    means: FloatArray
    variances: FloatArray
    """With n - 1 in the denominator; 0 for n = 1."""


def running(values: FloatArray) -> Running:
    """Means and variances of the first n values for every n."""
    counts = np.arange(1.0, len(values) + 1.0)
    # Centred first, so that the squares do not cancel.
    centre = float(np.median(values))
    centred = values - centre
    means = np.cumsum(centred) / counts
    squares = np.cumsum(centred**2) - counts * means**2
    variances = np.maximum(squares, 0.0) / np.maximum(counts - 1.0, 1.0)
    return Running(counts, means + centre, variances)


def welch_p(first: Running, second: Running) -> FloatArray:
    """P-values of Welch's (1947) test after each pair; 1 where nothing can be said."""
    share, other = first.variances / first.counts, second.variances / second.counts
    error = share + other
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = error**2 / (share**2 / (first.counts - 1.0) + other**2 / (second.counts - 1.0))
    return _p(second.means - first.means, error, freedom)


def student_p(first: Running, second: Running) -> FloatArray:
    """P-values of Student's (1908) test with the pooled variance after each pair."""
    freedom = first.counts + second.counts - 2.0
    squares = first.variances * (first.counts - 1.0) + second.variances * (second.counts - 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = squares / freedom
    error = pooled * (1.0 / first.counts + 1.0 / second.counts)
    return _p(second.means - first.means, error, freedom)


def _p(difference: FloatArray, error: FloatArray, freedom: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.abs(difference) / np.sqrt(error)
        p = 2.0 * stdtr(freedom, -statistic)
    unknown = np.where(difference == 0, 1.0, 0.0)
    return np.where(error > 0, p, np.where(freedom > 0, unknown, 1.0))
