"""Weighted means and variances, and the t-tests on them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from equipoise.matching.empirical import Values


def power_of_two(*samples: Values) -> float:
    """Near the largest value: divided by it, which rounds nothing, squares do not overflow."""
    _, exponent = math.frexp(max(float(np.abs(values).max()) for values in samples))
    return math.ldexp(1.0, max(-1000, min(1000, exponent)))


@dataclass(frozen=True, slots=True)
class Moments:
    """The mean and the variance of a sample.

    ``size`` is the sum of the weights. ``population_variance`` is divided by it,
    ``sample_variance`` by one less; not a number where that is not positive.
    """

    size: float
    mean: float
    population_variance: float

    @classmethod
    def of(cls, values: Values, weights: Values | None) -> Moments:
        """In two passes: around the mean, so that no digits are lost to a large one."""
        size = float(len(values)) if weights is None else float(weights.sum())
        # A constant's mean may differ from it in the last digit, and a ratio would show it.
        if values.min() == values.max():
            return cls(size, float(values[0]), 0.0)
        mean = float(np.average(values, weights=weights))
        return cls(size, mean, float(np.average((values - mean) ** 2, weights=weights)))

    @property
    def sample_variance(self) -> float:
        """The sum of squares over the sum of the weights less one."""
        if self.size <= 1.0:
            return math.nan
        return self.population_variance * self.size / (self.size - 1.0)


def paired_t(differences: Values, weights: Values | None) -> float:
    """The two-sided p-value of a mean difference of zero.

    ``dbar = sum w d / sum w``, ``s2 = sum w (d - dbar)^2 / (sum w)^2`` and ``sum w - 1``
    degrees of freedom, with or without weights, as R's Matching has it.
    """
    moments = Moments.of(differences, weights)
    squared_error = moments.population_variance / moments.size
    return two_sided(moments.mean, squared_error, moments.size - 1.0)


def welch_t(first: Moments, second: Moments) -> float:
    """The two-sided p-value of Welch's test, degrees of freedom after Satterthwaite."""
    return two_sided(first.mean - second.mean, *_welch(first, second))


def welch_interval(first: Moments, second: Moments) -> tuple[float, float] | None:
    """Welch's 95 % interval of the difference of the means; ``None`` without a spread."""
    from scipy.stats import t

    squared_error, freedom = _welch(first, second)
    if not squared_error > 0.0 or not freedom > 0.0:
        return None
    reach = float(t.ppf(0.975, freedom)) * math.sqrt(squared_error)
    difference = first.mean - second.mean
    return difference - reach, difference + reach


def _welch(first: Moments, second: Moments) -> tuple[float, float]:
    """The squared error of the difference, and its degrees of freedom."""
    part_first = first.sample_variance / first.size
    part_second = second.sample_variance / second.size
    squared_error = part_first + part_second
    freedom = math.nan
    if squared_error > 0.0:
        # In shares: the squares of tiny variances would vanish.
        share = part_first / squared_error
        freedom = 1.0 / (share**2 / (first.size - 1.0) + (1.0 - share) ** 2 / (second.size - 1.0))
    return squared_error, freedom


def two_sided(difference: float, squared_error: float, freedom: float) -> float:
    """P(|T| >= difference / error); without any spread 1 if there is no difference, else 0.

    A single pair (no degrees of freedom) shows no spread, whatever there is: NaN.
    """
    from scipy.stats import t

    if math.isnan(squared_error) or (squared_error > 0.0 and not freedom > 0.0):
        return math.nan
    if squared_error == 0.0:
        if difference == 0.0:
            return 1.0
        return math.nan if freedom <= 0.0 else 0.0
    return float(2.0 * t.sf(abs(difference) / math.sqrt(squared_error), freedom))
