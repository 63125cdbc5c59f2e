"""Compute the balance of one covariate: standardized differences, tests and distributions.

``sdiff``, R's name, is the standardized difference of the means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise_matching.matching.distributions import (
    DifferenceSummary,
    KSTest,
    Sample,
    check_boot,
    checked_sample,
    ks_tests,
    qq_of_samples,
    random_generator,
)
from equipoise_matching.matching.options import Estimand
from equipoise_matching.matching.units import Floats, power_of_two
from equipoise_matching.shared.errors import UnusableInput


@dataclass(frozen=True, slots=True)
class UnivariateBalance:
    """The distribution of a covariate among treated and controls.

    Attributes
    ----------
    mean_treated, mean_control, variance_treated, variance_control
        Weighted means and variances, in the unit of the covariate and its square. A variance too
        large or too small for a double is infinite or 0.
    variance_ratio
        Variance of the treated divided by the variance of the controls; NaN if both are 0.
    sdiff, sdiff_pooled
        Difference of the means, in percent of a standard deviation: of the treated (of the controls
        for ATC), or the root of the mean of both variances.
    t_p_value
        Two-sided p-value of a paired t-test for pairs, else of Welch's t-test.
    ks
        Kolmogorov-Smirnov test; ``None`` if not requested or for a covariate with two values.
    ecdf_differences, quantile_differences
        Differences of the empirical distribution functions, and of the quantiles.
    """

    mean_treated: float
    mean_control: float
    variance_treated: float
    variance_control: float
    variance_ratio: float
    sdiff: float
    sdiff_pooled: float
    t_p_value: float
    ks: KSTest | None
    ecdf_differences: DifferenceSummary
    quantile_differences: DifferenceSummary


def balance_uv(
    treated: Any,
    control: Any,
    *,
    weights_treated: Any = None,
    weights_control: Any = None,
    matched: bool = False,
    paired: bool = True,
    estimand: Estimand = "ATT",
    boot: int = 1000,
    ks: bool = True,
    seed: int | np.random.Generator | None = None,
    r_compatible: bool = False,
) -> UnivariateBalance:
    """Return the balance of one covariate (Sekhon 2011, section 3; R's ``balanceUV``).

    Raise `UnusableInput` if a sample or its weights cannot be used, or pairs have unequal lengths.

    Examples
    --------
    >>> from equipoise_matching import balance_uv
    >>> balance = balance_uv(treated=[25, 31, 38, 46], control=[24, 30, 40, 47, 52], boot=0)
    >>> balance.mean_treated, balance.mean_control
    (35.0, 38.6)
    >>> round(balance.sdiff, 1)
    -39.8
    >>> round(balance.ks.statistic, 3)
    0.4

    Parameters
    ----------
    treated, control
        The values of the covariate; with ``matched``, rows i of both are a pair.
    weights_treated, weights_control
        Weight of each row. For pairs, give the weights of the pairs in one of the arguments.
    matched
        Whether the rows are pairs. Then the divisor of a variance is the sum of the weights.
    paired
        Whether pairs get a paired t-test, not Welch's.
    r_compatible
        Whether to return R's numbers even where R has an error (docs/evidence/r-packages.md).
    """
    check_boot(boot)
    if matched:
        weights_treated = weights_control if weights_treated is None else weights_treated
        weights_control = weights_treated if weights_control is None else weights_control
    treated = checked_sample(treated, "treated", weights_treated)
    control = checked_sample(control, "control", weights_control)
    if matched and len(treated.values) != len(control.values):
        raise UnusableInput(
            f"{len(treated.values)} treated and {len(control.values)} controls are not pairs",
            hint="give the same number of both, or leave out matched=True",
        )
    pair = (treated, control)
    balance = balance_of(
        *pair, matched=matched, paired=paired, estimand=estimand, r_compatible=r_compatible
    )
    if not ks:
        return balance
    random = random_generator(seed)
    (test,) = ks_tests_of([pair], boot=boot, random=random, r_compatible=r_compatible)
    return replace(balance, ks=test)


def balance_of(
    treated: Sample,
    control: Sample,
    *,
    matched: bool,
    paired: bool,
    estimand: Estimand,
    r_compatible: bool,
) -> UnivariateBalance:
    """Return the result of ``balance_uv`` without KS, from checked samples."""
    # The values are divided by a power of two, so that no square overflows.
    scale = power_of_two(treated.values, control.values)
    treated = Sample(treated.values / scale, treated.weights)
    control = Sample(control.values / scale, control.weights)
    treated_moments = Moments.of(treated.values, treated.weights)
    control_moments = Moments.of(control.values, control.weights)
    difference = treated_moments.mean - control_moments.mean
    standard_moments = control_moments if estimand == "ATC" else treated_moments
    sdiff = _standardized_percent(difference, standard_moments.sample_variance)
    pooled_variance = (treated_moments.sample_variance + control_moments.sample_variance) / 2.0
    sdiff_pooled = _standardized_percent(difference, pooled_variance)
    if r_compatible and matched:
        sdiff_pooled = _standardized_percent(difference, treated_moments.sample_variance)
    if matched and paired:
        t_p_value = paired_p_value(treated.values - control.values, treated.weights)
    else:
        t_p_value = two_sided_p_value(difference, *_welch(treated_moments, control_moments))
    variances = treated_moments.sample_variance, control_moments.sample_variance
    if matched:
        variances = treated_moments.population_variance, control_moments.population_variance
    if r_compatible:
        treated, control = treated.unweighted, control.unweighted
    differences = qq_of_samples(treated, control, standardize=False, r_compatible=r_compatible)
    return UnivariateBalance(
        mean_treated=treated_moments.mean * scale,
        mean_control=control_moments.mean * scale,
        variance_treated=variances[0] * scale * scale,
        variance_control=variances[1] * scale * scale,
        variance_ratio=variance_ratio(*variances),
        sdiff=sdiff,
        sdiff_pooled=sdiff_pooled,
        t_p_value=t_p_value,
        ks=None,
        ecdf_differences=qq_of_samples(treated, control, standardize=True),
        quantile_differences=DifferenceSummary(
            differences.mean * scale, differences.median * scale, differences.max * scale
        ),
    )


def ks_tests_of(
    columns: Sequence[tuple[Sample, Sample]],
    *,
    boot: int,
    random: np.random.Generator,
    r_compatible: bool,
    progress: Callable[[int], None] | None = None,
) -> list[KSTest]:
    """Make the KS tests of several covariates of the same rows."""
    if r_compatible:  # R ignores weights.
        columns = [(treated.unweighted, control.unweighted) for treated, control in columns]
    return ks_tests(columns, boot=boot, random=random, r_compatible=r_compatible, progress=progress)


def _standardized_percent(difference: float, variance: float) -> float:
    return 100.0 * quotient(difference, math.sqrt(variance)) if difference else 0.0


def variance_ratio(treated: float, control: float) -> float:
    """Return the ratio of two variances; NaN if both are 0."""
    return math.nan if treated == 0.0 == control else quotient(treated, control)


def quotient(dividend: float, divisor: float) -> float:
    """Return the quotient, which is infinite for a divisor of 0."""
    return dividend / divisor if divisor else math.copysign(math.inf, dividend)


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and variance of a sample.

    ``size`` is the sum of the weights, and the divisor of ``population_variance``. The divisor of
    ``sample_variance`` is ``size`` minus 1; the variance is NaN if this is not positive.
    """

    size: float
    mean: float
    population_variance: float

    @classmethod
    def of(cls, values: Floats, weights: Floats | None) -> Moments:
        """Return the moments, computed in two passes so that a large mean costs no digits."""
        size = float(len(values)) if weights is None else float(weights.sum())
        # Rounding may change the last digit of a constant's mean, and a ratio would show this.
        if values.min() == values.max():
            return cls(size, float(values[0]), 0.0)
        mean = float(np.average(values, weights=weights))
        return cls(size, mean, float(np.average((values - mean) ** 2, weights=weights)))

    @property
    def sample_variance(self) -> float:
        """Sum of squares divided by the sum of the weights minus 1."""
        if self.size <= 1.0:
            return math.nan
        return self.population_variance * self.size / (self.size - 1.0)


def paired_p_value(differences: Floats, weights: Floats | None) -> float:
    """Return the two-sided p-value of a mean difference of zero.

    The mean of the differences d with the weights w is ``dbar = sum w d / sum w``. The squared
    error is ``sum w (d - dbar)^2 / (sum w)^2``, with ``sum w - 1`` degrees of freedom.
    """
    moments = Moments.of(differences, weights)
    squared_error = moments.population_variance / moments.size
    return two_sided_p_value(moments.mean, squared_error, moments.size - 1.0)


def welch_interval(first: Moments, second: Moments) -> tuple[float, float] | None:
    """Return Welch's 95 % interval of the difference of the means; ``None`` without variance."""
    from scipy import special

    squared_error, degrees_of_freedom = _welch(first, second)
    if not squared_error > 0.0 or not degrees_of_freedom > 0.0:
        return None
    half_width = float(special.stdtrit(degrees_of_freedom, 0.975)) * math.sqrt(squared_error)
    difference = first.mean - second.mean
    return difference - half_width, difference + half_width


def _welch(first: Moments, second: Moments) -> tuple[float, float]:
    """Return the squared error of the difference, and its degrees of freedom (Satterthwaite)."""
    first_error = first.sample_variance / first.size
    second_error = second.sample_variance / second.size
    squared_error = first_error + second_error
    if not squared_error > 0.0:
        return squared_error, math.nan
    # The formula uses shares, because the squares of tiny variances would be 0.
    share = first_error / squared_error
    degrees_of_freedom = 1.0 / (
        share**2 / (first.size - 1.0) + (1.0 - share) ** 2 / (second.size - 1.0)
    )
    return squared_error, degrees_of_freedom


def two_sided_p_value(difference: float, squared_error: float, degrees_of_freedom: float) -> float:
    """Return P(|T| >= difference / error).

    If the error is 0, the result is 1 without a difference, else 0; NaN for a single pair.
    """
    from scipy import special

    if math.isnan(squared_error) or (squared_error > 0.0 and not degrees_of_freedom > 0.0):
        return math.nan
    if squared_error == 0.0:
        if difference == 0.0:
            return 1.0
        return math.nan if degrees_of_freedom <= 0.0 else 0.0
    standard_errors = abs(difference) / math.sqrt(squared_error)
    return float(2.0 * special.stdtr(degrees_of_freedom, -standard_errors))
