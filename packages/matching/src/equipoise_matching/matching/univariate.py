"""Balance of one covariate: standardized differences, variance ratio, tests, QQ differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise_matching.matching.distributions import (
    QQ,
    KSTest,
    Sample,
    check_boot,
    generator,
    ks_tests,
    qq_of,
    sample,
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
        In the unit of the covariate and its square; weighted. A variance beyond what a double
        holds is infinite or 0; all else is right even then.
    variance_ratio
        Treated over control; not a number if both are constant.
    sdiff, sdiff_pooled
        The difference of the means in percent of the standard deviation of the treated (of
        the controls for ATC), and of the root of the mean of both variances.
    t_p_value
        Two-sided, of a paired t-test where pairs are given, else of Welch's.
    ks
        ``None`` without a test: none was requested, or there are only two values.
    qq, qq_raw
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
    qq: QQ
    qq_raw: QQ


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
        The covariate; with ``matched``, row i of both is a pair.
    weights_treated, weights_control
        Weight of each row. For pairs give the weights of the pairs as either of the two.
    matched
        The rows are pairs: variances are then divided by the sum of the weights, though the
        one in ``sdiff`` still by one less.
    paired
        Test pairs by a paired t-test.
    r_compatible
        R's quirks: QQ and KS ignore weights, and ``sdiff_pooled`` of pairs is in
        standard deviations of the treated.
    """
    check_boot(boot)
    if matched:
        weights_treated = weights_control if weights_treated is None else weights_treated
        weights_control = weights_treated if weights_control is None else weights_control
    first = sample(treated, "treated", weights_treated)
    second = sample(control, "control", weights_control)
    if matched and len(first.values) != len(second.values):
        raise UnusableInput(
            f"{len(first.values)} treated and {len(second.values)} controls are not pairs",
            hint="give equally many, or leave out matched=True",
        )
    balance = balance_of(
        first, second, matched=matched, paired=paired, estimand=estimand, r_compatible=r_compatible
    )
    if not ks:
        return balance
    (test,) = ks_of([(first, second)], boot=boot, random=generator(seed), r_compatible=r_compatible)
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
    unit = power_of_two(treated.values, control.values)
    treated = Sample(treated.values / unit, treated.weights)
    control = Sample(control.values / unit, control.weights)
    first = Moments.of(treated.values, treated.weights)
    second = Moments.of(control.values, control.weights)
    difference = first.mean - second.mean
    reference = second if estimand == "ATC" else first
    sdiff = _percent(difference, reference.sample_variance)
    pooled = _percent(difference, (first.sample_variance + second.sample_variance) / 2.0)
    if r_compatible and matched:
        pooled = _percent(difference, first.sample_variance)
    if matched and paired:
        t_p_value = paired_t(treated.values - control.values, treated.weights)
    else:
        t_p_value = two_sided(difference, *_welch(first, second))
    variances = first.sample_variance, second.sample_variance
    if matched:
        variances = first.population_variance, second.population_variance
    if r_compatible:
        treated, control = treated.unweighted, control.unweighted
    raw = qq_of(treated, control, standardize=False, r_compatible=r_compatible)
    return UnivariateBalance(
        first.mean * unit,
        second.mean * unit,
        variances[0] * unit * unit,
        variances[1] * unit * unit,
        _ratio(*variances),
        sdiff,
        pooled,
        t_p_value,
        None,
        qq_of(treated, control, standardize=True),
        QQ(raw.mean * unit, raw.median * unit, raw.max * unit),
    )


def ks_of(
    columns: Sequence[tuple[Sample, Sample]],
    *,
    boot: int,
    random: np.random.Generator,
    r_compatible: bool,
    progress: Callable[[int], None] | None = None,
) -> list[KSTest]:
    """Test several covariates of the same rows by KS; R ignores weights."""
    if r_compatible:
        columns = [(first.unweighted, second.unweighted) for first, second in columns]
    return ks_tests(columns, boot=boot, random=random, r_compatible=r_compatible, progress=progress)


def _percent(difference: float, variance: float) -> float:
    return 100.0 * _divided(difference, math.sqrt(variance)) if difference else 0.0


def _ratio(treated: float, control: float) -> float:
    return math.nan if treated == 0.0 == control else _divided(treated, control)


def _divided(above: float, below: float) -> float:
    return above / below if below else math.copysign(math.inf, above)


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and variance of a sample.

    ``size`` is the sum of the weights. ``population_variance`` is divided by it,
    ``sample_variance`` by one less; not a number where that is not positive.
    """

    size: float
    mean: float
    population_variance: float

    @classmethod
    def of(cls, values: Floats, weights: Floats | None) -> Moments:
        """Compute in two passes: around the mean, so that no digits are lost to a large one."""
        size = float(len(values)) if weights is None else float(weights.sum())
        # A constant's mean may differ from it in the last digit, and a ratio would show it.
        if values.min() == values.max():
            return cls(size, float(values[0]), 0.0)
        mean = float(np.average(values, weights=weights))
        return cls(size, mean, float(np.average((values - mean) ** 2, weights=weights)))

    @property
    def sample_variance(self) -> float:
        """Sum of squares over the sum of the weights less one."""
        if self.size <= 1.0:
            return math.nan
        return self.population_variance * self.size / (self.size - 1.0)


def paired_t(differences: Floats, weights: Floats | None) -> float:
    """Return the two-sided p-value of a mean difference of zero.

    ``dbar = sum w d / sum w``, ``s2 = sum w (d - dbar)^2 / (sum w)^2`` and ``sum w - 1``
    degrees of freedom, with or without weights, as in R's Matching.
    """
    moments = Moments.of(differences, weights)
    squared_error = moments.population_variance / moments.size
    return two_sided(moments.mean, squared_error, moments.size - 1.0)


def welch_interval(first: Moments, second: Moments) -> tuple[float, float] | None:
    """Return Welch's 95 % interval of the difference of the means; ``None`` without a spread."""
    from scipy.stats import t

    squared_error, freedom = _welch(first, second)
    if not squared_error > 0.0 or not freedom > 0.0:
        return None
    reach = float(t.ppf(0.975, freedom)) * math.sqrt(squared_error)
    difference = first.mean - second.mean
    return difference - reach, difference + reach


def _welch(first: Moments, second: Moments) -> tuple[float, float]:
    """Return the squared error of the difference, and its degrees of freedom (Satterthwaite)."""
    part_first = first.sample_variance / first.size
    part_second = second.sample_variance / second.size
    squared_error = part_first + part_second
    if not squared_error > 0.0:
        return squared_error, math.nan
    # In shares: the squares of tiny variances would vanish.
    share = part_first / squared_error
    freedom = 1.0 / (share**2 / (first.size - 1.0) + (1.0 - share) ** 2 / (second.size - 1.0))
    return squared_error, freedom


def two_sided(difference: float, squared_error: float, freedom: float) -> float:
    """Return P(|T| >= difference / error); without spread 1 if there is no difference, else 0.

    A single pair has no degrees of freedom: the result is NaN.
    """
    from scipy.stats import t

    if math.isnan(squared_error) or (squared_error > 0.0 and not freedom > 0.0):
        return math.nan
    if squared_error == 0.0:
        if difference == 0.0:
            return 1.0
        return math.nan if freedom <= 0.0 else 0.0
    return float(2.0 * t.sf(abs(difference) / math.sqrt(squared_error), freedom))
