"""Intervals of two samples agree with scipy, and pooled intervals cover as often as claimed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from equipoise._native import student_quantile
from equipoise.model.errors import UnusableInput
from equipoise.stats.arrays import FloatArray
from equipoise.stats.two_samples import NO_SPREAD, pool, sample_difference, sample_ratio

REPLICATIONS = 2000
RATIO = 1.05


def array(*values: float) -> FloatArray:
    """Values as an array."""
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize(("few", "many"), [(5, 5), (4, 30), (60, 12)])
def test_welch_agrees_with_scipy_up_to_the_rounded_degrees_of_freedom(few: int, many: int) -> None:
    generator = np.random.default_rng(few)
    below = np.exp(generator.normal(0.0, 0.1, few))
    above = np.exp(generator.normal(0.05, 0.3, many))
    result = sample_ratio(below, above, paired=False, level=0.05)
    test = stats.ttest_ind(np.log(above), np.log(below), equal_var=False)
    reach = stats.t.ppf(0.975, math.floor(test.df))
    center = np.mean(np.log(above)) - np.mean(np.log(below))
    error = center / test.statistic
    assert result.ratio == pytest.approx(math.exp(center))
    assert result.ratio_ci == pytest.approx(
        (math.exp(center - reach * error), math.exp(center + reach * error)), rel=2e-3
    )


def test_paired_agrees_with_scipy() -> None:
    generator = np.random.default_rng(3)
    below = np.exp(generator.normal(0.0, 0.5, 12))
    above = below * np.exp(generator.normal(0.05, 0.01, 12))
    result = sample_ratio(below, above, paired=True, level=0.05)
    reference = stats.ttest_rel(np.log(above), np.log(below)).confidence_interval(0.95)
    assert result.ratio_ci == pytest.approx(
        (math.exp(reference.low), math.exp(reference.high)), rel=1e-4
    )


@pytest.mark.parametrize("paired", [False, True])
def test_one_interval_in_twenty_of_independent_log_normal_trials_misses(paired: bool) -> None:
    generator = np.random.default_rng(11)
    missed = 0
    for _ in range(REPLICATIONS):
        below = np.exp(generator.normal(0.0, 0.1, 8))
        above = RATIO * np.exp(generator.normal(0.0, 0.1, 8))
        sample = sample_ratio(below, above, paired=paired, level=0.05)
        low, high = sample.ratio_ci
        assert low is not None and high is not None
        missed += not low <= RATIO <= high
    # Four standard errors of a share of 0.05 in 2,000.
    assert abs(missed / REPLICATIONS - 0.05) < 4 * math.sqrt(0.05 * 0.95 / REPLICATIONS)


def test_one_process_has_a_ratio_and_no_interval() -> None:
    sample = sample_ratio(array(2.0), array(3.0, 3.0), paired=False, level=0.05)
    assert sample.ratio == pytest.approx(1.5)
    assert sample.ratio_ci == (None, None)
    assert sample.unknown == "one process does not show how much processes differ"
    sample = sample_ratio(array(2.0), array(3.0), paired=True, level=0.05)
    assert sample.unknown == "one block does not show how much blocks differ"


@pytest.mark.parametrize("values", [(0.0, 1.0), (-1.0, 1.0), (math.inf, 1.0), (math.nan, 1.0)])
def test_values_without_a_logarithm_have_no_ratio(values: tuple[float, ...]) -> None:
    for sample in (
        sample_ratio(array(*values), array(1.0, 1.0), paired=False, level=0.05),
        sample_ratio(array(*values), array(1.0, 1.0), paired=True, level=0.05),
    ):
        assert sample.ratio is None
        assert sample.unknown == "a value that is not above 0 has no ratio"


def test_without_values_there_is_no_interval() -> None:
    assert (
        sample_ratio(array(), array(1.0), paired=False, level=0.05).unknown == "no value is known"
    )


def test_values_that_do_not_vary_have_no_interval() -> None:
    sample = sample_ratio(array(1.0, 1.0), array(2.0, 2.0), paired=False, level=0.05)
    assert sample.ratio == pytest.approx(2.0)
    assert sample.ratio_ci == (None, None)
    assert sample.unknown == "the values do not vary"
    assert sample_ratio(
        array(1.0, 1.0), array(2.0, 2.0), paired=True, level=0.05
    ).ratio == pytest.approx(2.0)


def test_ratios_beyond_every_number_are_unknown() -> None:
    sample = sample_ratio(array(1e-300, 2e-300), array(1e300, 2e300), paired=False, level=0.05)
    assert sample.ratio_ci == (None, None)
    sample = sample_ratio(array(1e-300), array(1e300), paired=False, level=0.05)
    assert (sample.ratio, sample.unknown) == (None, "the ratio is too large for a number")
    sample = sample_ratio(array(1.0, 1e200), array(1.0, 1e200), paired=False, level=0.05)
    assert sample.ratio == pytest.approx(1.0)
    assert sample.unknown == "too few trials for an interval"


@pytest.mark.parametrize(("few", "many"), [(5, 5), (4, 30), (60, 12)])
def test_the_difference_of_means_agrees_with_scipy(few: int, many: int) -> None:
    generator = np.random.default_rng(few)
    below, above = generator.normal(5.0, 1.0, few), generator.normal(-2.0, 3.0, many)
    result = sample_difference(below, above, paired=False, level=0.05)
    test = stats.ttest_ind(above, below, equal_var=False)
    center = float(np.mean(above) - np.mean(below))
    reach = stats.t.ppf(0.975, math.floor(test.df)) * center / test.statistic
    assert result.difference == pytest.approx(center)
    assert result.difference_ci == pytest.approx((center - reach, center + reach), rel=2e-3)


def test_the_paired_difference_agrees_with_scipy() -> None:
    generator = np.random.default_rng(3)
    below = generator.normal(0.0, 5.0, 12)
    above = below + generator.normal(0.5, 0.1, 12)
    reference = stats.ttest_rel(above, below).confidence_interval(0.95)
    result = sample_difference(below, above, paired=True, level=0.05)
    assert result.difference_ci == pytest.approx((reference.low, reference.high), rel=1e-4)


@pytest.mark.parametrize("paired", [False, True])
def test_one_interval_in_twenty_of_differences_of_normal_trials_misses(paired: bool) -> None:
    generator = np.random.default_rng(12)
    missed = 0
    for _ in range(REPLICATIONS):
        below, above = generator.normal(0.0, 1.0, 8), generator.normal(-3.0, 1.0, 8)
        sample = sample_difference(below, above, paired=paired, level=0.05)
        low, high = sample.difference_ci
        assert low is not None and high is not None
        missed += not low <= -3.0 <= high
    assert abs(missed / REPLICATIONS - 0.05) < 4 * math.sqrt(0.05 * 0.95 / REPLICATIONS)


@pytest.mark.parametrize("paired", [False, True])
def test_a_difference_without_spread_or_of_one_value_has_no_interval(paired: bool) -> None:
    # 0.1 + 0.1 + 0.1 is not 0.3: rounding must not give equal values a spread.
    sample = sample_difference(array(*[0.1] * 3), array(*[0.7] * 3), paired=paired, level=0.05)
    assert sample.difference == pytest.approx(0.6)
    assert (sample.difference_ci, sample.unknown) == ((None, None), NO_SPREAD)
    sample = sample_difference(array(1.0), array(3.0), paired=paired, level=0.05)
    assert (sample.difference, sample.difference_ci) == (2.0, (None, None))
    assert sample.unknown is not None and "does not show how much" in sample.unknown


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 10, 31, 100, 400])
@pytest.mark.parametrize("probability", [0.6, 0.95, 0.975, 0.995])
def test_the_quantile_is_that_of_students_t(probability: float, freedom: int) -> None:
    expected = stats.t.ppf(probability, freedom)
    assert student_quantile(probability, freedom) == pytest.approx(expected, rel=1e-12)


def test_the_mean_over_campaigns_is_covered_as_often_as_said() -> None:
    generator = np.random.default_rng(5)
    covered, repeats, count = 0, 2000, 5
    for _ in range(repeats):
        errors = np.full(count, 0.01)
        effects = 0.3 + generator.normal(0, 0.05, count) + generator.normal(0, errors)
        low, high = pool(effects, errors, [str(i) for i in range(count)]).ratio_ci
        assert low is not None and high is not None
        covered += low <= math.exp(0.3) <= high
    assert covered / repeats == pytest.approx(0.95, abs=3 * math.sqrt(0.05 * 0.95 / repeats))


def test_different_boots_are_the_replicates_with_any_number_of_campaigns() -> None:
    generator = np.random.default_rng(6)
    covered, repeats = 0, 1000
    boots = [str(boot) for boot in range(4) for _ in range(10)]
    for _ in range(repeats):
        of_boot = generator.normal(0, 0.05, 4)
        effects = np.repeat(of_boot, 10) + generator.normal(0, 0.01, 40)
        low, high = pool(effects, np.full(40, 0.01), boots).ratio_ci
        assert low is not None and high is not None
        covered += low <= 1.0 <= high
    assert covered / repeats == pytest.approx(0.95, abs=3 * math.sqrt(0.05 * 0.95 / repeats))


def test_the_variance_between_campaigns_excludes_the_variance_within() -> None:
    generator = np.random.default_rng(7)
    count = 4000
    for true in (0.0, 0.03, 0.1):
        effects = generator.normal(0, true, count) + generator.normal(0, 0.05, count)
        sample = pool(effects, np.full(count, 0.05), ["one"] * count).between_sd
        # Three errors of the variance of 4000 values, each 2.2 %.
        assert sample**2 == pytest.approx(true**2, abs=3 * 0.0224 * (true**2 + 0.05**2))


def test_one_campaign_has_no_interval_over_campaigns() -> None:
    sample = pool(np.array([0.7]), np.array([0.1]), ["boot"])
    assert sample.ratio == pytest.approx(math.exp(0.7))
    assert sample.ratio_ci == (None, None)
    assert sample.between_sd == 0.0


def test_no_campaign_is_refused() -> None:
    with pytest.raises(UnusableInput, match="no campaign"):
        pool(np.array([]), np.array([]), [])
