"""The description of a condition, and the ratio of means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from equipoise.model.errors import UnusableInput
from equipoise.model.result import Drift, Mode
from equipoise.stats.describe import (
    describe,
    drift,
    ln_ratio_of_means,
    median_at_any_stop,
    median_interval,
    quantile_interval,
    ratio_of_means,
)
from equipoise.stats.modes import half_sample_mode
from packages.equipoise.tests.stats.simulated import at_least, costs_and_orders, white


def test_the_numbers_are_those_of_the_sample() -> None:
    values = np.array([4.0, 1.0, 3.0, 2.0, 10.0])
    summary = describe(values, seed=1)
    assert (summary.median, summary.mean, summary.min, summary.max) == (3.0, 4.0, 1.0, 10.0)
    assert summary.sd == pytest.approx(float(np.std(values, ddof=1)))
    assert (summary.p25, summary.p75) == (2.0, 4.0)
    assert (summary.p05, summary.p95) == pytest.approx((1.2, 8.8))


def test_one_trial_has_no_spread_and_no_bounds() -> None:
    summary = describe(np.array([2.0]), seed=1)
    assert (summary.median, summary.mean, summary.min, summary.max) == (2.0, 2.0, 2.0, 2.0)
    assert summary.sd is None
    assert summary.median_ci == (None, None)
    assert summary.modes == (Mode(value=2.0, share=1.0),)
    assert summary.drift == Drift(ratio=None, ratio_ci=(None, None))


def test_two_trials_have_a_spread_but_no_bounds() -> None:
    summary = describe(np.array([1.0, 3.0]), seed=1)
    assert summary.sd == pytest.approx(math.sqrt(2))
    assert summary.median_ci == (None, None)


def test_five_trials_have_no_interval_for_the_median_and_six_have_their_range() -> None:
    assert median_interval(np.arange(5.0), 0.05) == (None, None)
    assert median_interval(np.arange(6.0), 0.05) == (0.0, 5.0)


@pytest.mark.parametrize("count", [6, 9, 30, 200, 1001])
def test_the_interval_of_the_median_is_the_shortest_that_the_binomial_law_allows(
    count: int,
) -> None:
    low, high = median_interval(np.arange(float(count)), 0.05)
    assert low is not None
    assert high == count - 1 - low
    assert 2 * binom.cdf(low, count, 0.5) <= 0.05
    assert 2 * binom.cdf(low + 1, count, 0.5) > 0.05


def excludes(low: float | None, high: float | None) -> bool:
    return (low is not None and low > 1.0) or (high is not None and high < 1.0)


def test_only_the_interval_of_the_median_for_any_stop_is_valid_at_every_stop() -> None:
    """A stop at the first interval without the true median is rare only for the former."""
    campaigns, values = 400, 300
    generator = np.random.default_rng(22)
    samples = np.exp(generator.standard_t(3.0, (campaigns, values)) * 0.1)
    wrong = {median_at_any_stop: 0, median_interval: 0}
    for sample in samples:
        looks = [np.sort(sample[:count]) for count in range(5, values + 1, 5)]
        for interval in wrong:
            wrong[interval] += any(excludes(*interval(look, 0.05)) for look in looks)
    assert wrong[median_at_any_stop] <= binom.ppf(0.999, campaigns, 0.05)
    assert wrong[median_interval] > binom.ppf(0.999, campaigns, 0.05)


def test_the_interval_of_the_median_at_any_stop_needs_seven_values_and_narrows() -> None:
    ordered = np.arange(1.0, 1001.0)
    assert median_at_any_stop(ordered[:6], 0.05) == (None, None)
    assert median_at_any_stop(ordered[:7], 0.05) == (1.0, 7.0)
    low, high = median_at_any_stop(ordered, 0.05)
    assert low is not None and high is not None
    assert 430.0 < low < 450.0
    assert low + high == 1001.0
    one_look = median_interval(ordered, 0.05)
    assert one_look[0] is not None and low < one_look[0]


def test_values_without_end_leave_the_interval_of_the_median_open() -> None:
    assert median_at_any_stop([1.0] * 5 + [math.inf] * 5, 0.05) == (1.0, None)


def test_the_mode_is_at_the_highest_density_of_values() -> None:
    generator = np.random.default_rng(7)
    values = np.concatenate([generator.normal(1.0, 0.01, 300), generator.normal(2.0, 0.2, 200)])
    assert half_sample_mode(np.sort(values)) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(
    ("ordered", "mode"),
    [([1.0], 1.0), ([1.0, 2.0], 1.5), ([1.0, 2.0, 4.0], 1.5), ([0.0, 2.0, 3.0], 2.5)],
)
def test_the_mode_of_a_few_values_is_the_middle_of_the_closest(
    ordered: list[float], mode: float
) -> None:
    assert half_sample_mode(np.array(ordered)) == mode


def test_a_drift_is_measured_from_the_first_to_the_last_third() -> None:
    generator = np.random.default_rng(8)
    slowing = np.exp(0.001 * np.arange(300) + generator.normal(0, 0.01, 300))
    measured = drift(slowing, seed=1)
    low, high = measured.ratio_ci
    assert measured.ratio == pytest.approx(math.exp(0.2), rel=0.01)
    assert low is not None
    assert high is not None
    assert 1.15 < low < high < 1.3


def test_the_interval_of_the_drift_covers_0_about_as_often_as_claimed() -> None:
    generator = np.random.default_rng(9)
    covered = 0
    for _ in range(100):
        low, high = drift(np.exp(generator.normal(0, 0.02, 90)), seed=1).ratio_ci
        assert low is not None
        assert high is not None
        covered += low <= 1 <= high
    assert covered >= at_least(100, 0.9)


def test_a_hundred_thousand_trials_are_described() -> None:
    generator = np.random.default_rng(10)
    summary = describe(np.exp(generator.normal(0, 0.1, 100_000)), seed=1)
    low, high = summary.median_ci
    assert low is not None
    assert high is not None
    assert 0.995 < low < 1.0 < high < 1.005


def test_costs_of_0_are_described_without_a_drift() -> None:
    summary = describe(np.zeros(30), seed=1)
    assert (summary.median, summary.sd) == (0.0, 0.0)
    assert summary.drift == Drift(ratio=None, ratio_ci=(None, None))


@pytest.mark.parametrize("values", [[], [1.0, math.inf], [math.nan]])
def test_values_that_cannot_be_described_are_refused(values: list[float]) -> None:
    with pytest.raises(UnusableInput):
        describe(np.array(values), seed=1)


def test_the_ratio_is_that_of_the_total_costs_of_many_runs() -> None:
    baseline, candidate = np.ones(10), np.array([0.9] * 9 + [5.0])
    assert ratio_of_means(baseline, candidate, seed=1).ratio == pytest.approx(1.31)


def test_the_interval_covers_the_truth_about_as_often_as_claimed() -> None:
    generator = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        baseline, candidate, _ = costs_and_orders(white(0.05), generator, 80, math.log(1.1))
        low, high = ratio_of_means(baseline, candidate, seed=1).ratio_ci
        assert low is not None
        assert high is not None
        covered += low < 1.1 < high
    assert covered >= at_least(200, 0.90)


def test_the_same_seed_gives_the_same_interval_and_another_one_another() -> None:
    baseline, candidate, _ = costs_and_orders(white(0.05), np.random.default_rng(6), 50)
    first = ratio_of_means(baseline, candidate, seed=1)
    assert first == ratio_of_means(baseline, candidate, seed=1)
    assert first != ratio_of_means(baseline, candidate, seed=2)


@pytest.mark.parametrize(
    ("baseline", "candidate", "logarithm"),
    [
        ([1.0, 1.0], [1.0, math.inf], math.inf),
        ([math.inf], [1.0], -math.inf),
        ([0.0], [1.0], math.inf),
    ],
)
def test_a_mean_without_bound_has_a_direction_but_no_ratio(
    baseline: list[float], candidate: list[float], logarithm: float
) -> None:
    costs = np.array(baseline), np.array(candidate)
    assert ln_ratio_of_means(*costs) == logarithm
    assert ratio_of_means(*costs, seed=1).ratio is None
    assert ratio_of_means(*costs, seed=1).ratio_ci == (None, None)


def test_two_unbounded_means_have_no_ratio() -> None:
    assert math.isnan(ln_ratio_of_means(np.array([math.inf]), np.array([math.inf])))
    assert math.isnan(ln_ratio_of_means(np.array([]), np.array([])))


def test_four_blocks_have_a_ratio_but_no_interval() -> None:
    described = ratio_of_means(np.ones(4), np.full(4, 2.0), seed=1)
    assert described.ratio == 2.0
    assert described.ratio_ci == (None, None)


def test_a_drift_has_the_chance_of_its_ranks_among_independent_trials() -> None:
    generator = np.random.default_rng(31)
    chances = [drift(generator.normal(1.0, 0.02, 18), seed=1).p_value for _ in range(2000)]
    # 18 trials give 6 + 6 ranks, which are coarse; the error rate is kept all the same.
    for level in (0.01, 0.05):
        share = float(np.mean([chance is not None and chance <= level for chance in chances]))
        assert share <= level + 3.0 * math.sqrt(level / 2000)
    slowing = np.linspace(1.0, 1.2, 60) * np.exp(generator.normal(0.0, 0.01, 60))
    chance = drift(slowing, seed=1).p_value
    assert chance is not None and chance < 1e-6
    assert drift(np.ones(30), seed=1).p_value == 1.0


def test_the_interval_of_a_quantile_covers_it_as_often_as_claimed() -> None:
    generator = np.random.default_rng(32)
    missed = 0
    for _ in range(1000):
        low, high = quantile_interval(np.sort(generator.exponential(1.0, 80)), 0.8, 0.05)
        assert low is not None and high is not None
        missed += not low <= math.log(5.0) <= high
    assert 10 <= missed <= 50 + 3 * math.sqrt(50)
    assert quantile_interval(np.arange(5.0), 0.9, 0.05)[1] is None
