"""The shift function, and minima that contradict the distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from equipoise.model.errors import UnusableInput
from equipoise.model.result import StatisticAnswer, Verdict
from equipoise.stats.shift import (
    DECILES,
    is_mostly_waiting,
    minimum_misleads,
    shift_function,
    statistic_answers,
)


def test_a_constant_ratio_is_the_same_at_every_decile() -> None:
    baseline = np.random.default_rng(1).lognormal(0.0, 0.3, 80)
    found = shift_function(baseline, 1.1 * baseline, seed=3)
    np.testing.assert_allclose(found.ratio, 1.1)
    np.testing.assert_allclose(found.low, 1.1)
    np.testing.assert_allclose(found.high, 1.1)
    assert found.blocks == 80


def test_a_tail_that_grows_shows_at_the_slow_runs_only() -> None:
    baseline = np.arange(1.0, 1001.0)
    candidate = np.where(baseline > 700, 2 * baseline, baseline)
    found = shift_function(baseline, candidate, seed=3)
    np.testing.assert_allclose(found.ratio[:6], 1.0)
    np.testing.assert_allclose(found.ratio[7:], 2.0)


def test_quantiles_are_those_of_numpy_type_8() -> None:
    generator = np.random.default_rng(5)
    baseline, candidate = generator.lognormal(size=(2, 37))
    found = shift_function(baseline, candidate, seed=3)
    expected = np.quantile(candidate, DECILES, method="median_unbiased") / np.quantile(
        baseline, DECILES, method="median_unbiased"
    )
    np.testing.assert_allclose(found.ratio, expected)


def test_each_interval_covers_the_truth_about_as_often_as_it_claims() -> None:
    # 300 campaigns of 60 blocks with a true ratio of 1.05; the Monte Carlo error is 1.3 points.
    generator = np.random.default_rng(11)
    covered = np.zeros(len(DECILES))
    for campaign in range(300):
        shared = generator.normal(0.0, 0.02, 60)
        baseline = np.exp(shared + generator.normal(0.0, 0.03, 60))
        candidate = 1.05 * np.exp(shared + generator.normal(0.0, 0.03, 60))
        found = shift_function(baseline, candidate, seed=campaign, resamples=400)
        covered += (found.low <= 1.05) & (found.high >= 1.05)
    shares = covered / 300
    assert (shares >= 0.90).all(), shares
    assert (shares <= 0.995).all(), shares


def test_noise_common_to_the_trials_of_a_block_narrows_the_band() -> None:
    generator = np.random.default_rng(2)
    shared = np.exp(generator.normal(0.0, 0.2, 200))
    baseline = shared * np.exp(generator.normal(0.0, 0.01, 200))
    candidate = shared * np.exp(generator.normal(0.0, 0.01, 200))
    paired = shift_function(baseline, candidate, seed=3)
    unpaired = shift_function(baseline, generator.permutation(candidate), seed=3)
    middle = DECILES.index(0.5)
    assert paired.high[middle] - paired.low[middle] < 0.5 * (
        unpaired.high[middle] - unpaired.low[middle]
    )


def test_the_same_seed_gives_the_same_band_and_another_gives_another() -> None:
    baseline, candidate = np.random.default_rng(4).lognormal(size=(2, 30))
    first = shift_function(baseline, candidate, seed=1)
    again = shift_function(baseline, candidate, seed=1)
    other = shift_function(baseline, candidate, seed=2)
    np.testing.assert_array_equal(first.low, again.low)
    np.testing.assert_array_equal(first.high, again.high)
    assert (first.low != other.low).any()


def test_timeouts_make_the_slow_runs_infinitely_slower_and_leave_the_fast_ones() -> None:
    baseline = np.linspace(1.0, 2.0, 100)
    candidate = np.where(np.arange(100) < 60, baseline, math.inf)
    found = shift_function(baseline, candidate, seed=3)
    assert found.ratio[0] == 1.0
    assert found.ratio[-1] == math.inf
    assert found.high[-1] == math.inf
    assert not np.isnan(found.low).any()


def test_two_timeouts_have_no_ratio_and_exclude_nothing() -> None:
    costs = np.where(np.arange(100) < 50, np.linspace(1.0, 2.0, 100), math.inf)
    found = shift_function(costs, costs, seed=3)
    assert math.isnan(found.ratio[-1]) or found.ratio[-1] == 1.0
    assert found.low[-1] <= 1.0 <= found.high[-1]


@pytest.mark.parametrize(
    ("baseline", "candidate", "words"),
    [
        (np.ones(9), np.ones(9), "9 blocks are too few"),
        (np.ones(12), np.ones(11), "candidate.s the shape"),
        (np.full(12, math.nan), np.ones(12), "block 1 of the baseline has the cost nan"),
        (np.ones(12), -np.ones(12), "block 1 of the candidate has the cost -1.0"),
    ],
)
def test_unusable_values_are_refused_with_a_hint(
    baseline: np.ndarray[tuple[int], np.dtype[np.float64]],
    candidate: np.ndarray[tuple[int], np.dtype[np.float64]],
    words: str,
) -> None:
    with pytest.raises(UnusableInput, match=words) as refusal:
        shift_function(baseline, candidate, seed=1)
    assert refusal.value.hint


@pytest.mark.parametrize(
    ("minima", "ratio", "verdict", "misleads"),
    [
        ((1.0, 0.9), 1.1, "slower", True),
        ((1.0, 1.1), 0.9, "faster", True),
        ((1.0, 0.9), 1.1, "undecided", True),
        ((1.0, 1.1), 1.1, "slower", False),
        ((1.0, 0.995), 1.1, "slower", False),
        ((1.0, 0.9), 1.005, "undecided", False),
        ((1.0, 0.9), 1.0, "equivalent", True),
        ((1.0, 0.995), 1.0, "equivalent", False),
        ((0.0, 0.0), 1.1, "slower", False),
        ((1.0, 0.0), 1.1, "slower", True),
    ],
)
def test_the_minimum_misleads_if_it_names_another_winner(
    minima: tuple[float, float], ratio: float, verdict: Verdict, misleads: bool
) -> None:
    answer = minimum_misleads(*minima, typical=math.log(ratio), verdict=verdict, min_effect=1.0)
    assert answer is misleads


def test_without_a_typical_ratio_there_is_no_contradiction() -> None:
    assert not minimum_misleads(1.0, 0.5, typical=None, verdict="undecided", min_effect=1.0)


def test_every_statistic_has_its_answer() -> None:
    generator = np.random.default_rng(1)
    baseline = generator.uniform(1.00, 1.02, 400)
    candidate = np.where(generator.random(400) < 0.3, 0.9, 1.1) * generator.uniform(1.0, 1.01, 400)
    by_statistic = {
        answer.statistic: answer
        for answer in statistic_answers(baseline, candidate, min_effect=1.0)
    }
    deciles = [f"p{10 * tenth}" for tenth in range(1, 10)]
    assert list(by_statistic) == ["minimum", *deciles, "p99", "maximum", "mean"]
    few = statistic_answers(baseline[:99], candidate[:99], min_effect=1.0)
    assert [answer.statistic for answer in few] == ["minimum", *deciles, "mean"]
    assert by_statistic["maximum"].ratio == pytest.approx(candidate.max() / baseline.max())
    assert [by_statistic[statistic].verdict for statistic in ("minimum", "p20")] == [
        "faster",
        "faster",
    ]
    assert {by_statistic[statistic].verdict for statistic in ("p40", "p50", "p90", "mean")} == {
        "slower"
    }
    ratio = by_statistic["minimum"].ratio
    assert ratio == pytest.approx(candidate.min() / baseline.min())
    assert by_statistic["mean"].ratio == pytest.approx(candidate.mean() / baseline.mean())


def test_a_statistic_is_certain_if_its_interval_leaves_out_no_difference() -> None:
    generator = np.random.default_rng(6)
    baseline = generator.uniform(1.00, 1.02, 400)
    candidate = np.where(generator.random(400) < 0.3, 0.9, 1.1) * generator.uniform(1.0, 1.01, 400)
    certain = {
        answer.statistic
        for answer in statistic_answers(baseline, candidate, min_effect=1.0)
        if answer.certain
    }
    assert {"p10", "p20", "p40", "p50", "p90"} <= certain
    assert not certain & {"minimum", "mean"}
    of_many = statistic_answers(baseline[:60], candidate[:60], min_effect=1.0, level=0.05 / 100)
    of_one = statistic_answers(baseline[:60], candidate[:60], min_effect=1.0, level=0.05)
    assert sum(answer.certain for answer in of_many) < sum(answer.certain for answer in of_one)


def test_the_mean_is_never_certain_since_its_interval_has_no_error_rate() -> None:
    costs = np.random.default_rng(8).uniform(1.0, 1.01, 200)
    *_, mean = statistic_answers(costs, 3.0 * costs, min_effect=1.0)
    assert (mean.statistic, mean.verdict, mean.certain) == ("mean", "slower", False)


@pytest.mark.parametrize("tail", [2.0, 5.0, 0.0])
def test_equal_conditions_have_hardly_ever_a_certain_statistic(tail: float) -> None:
    generator = np.random.default_rng(7)
    wrong = 0
    for _ in range(400):
        if tail:
            baseline, candidate = 1.0 + 0.1 * np.abs(generator.standard_t(tail, (2, 100)))
        else:  # A bootstrap interval of the mean does not cover rare slow runs.
            slow = np.where(generator.random((2, 100)) < 0.02, 10.0, 1.0)
            baseline, candidate = slow * generator.uniform(1.0, 1.02, (2, 100))
        statistics = statistic_answers(baseline, candidate, min_effect=1.0)
        wrong += any(answer.certain for answer in statistics)
    assert wrong <= 0.05 * 400 + 3.0 * math.sqrt(0.05 * 400)


def test_a_ratio_within_the_smallest_effect_is_equivalent() -> None:
    costs = np.linspace(1.0, 2.0, 50)
    assert {
        answer.verdict for answer in statistic_answers(costs, 1.005 * costs, min_effect=1.0)
    } == {"equivalent"}


def test_a_timeout_is_slower_than_everything_and_has_no_ratio() -> None:
    by_statistic = statistic_answers(np.ones(10), np.array([1.0] * 9 + [math.inf]), min_effect=1.0)
    assert by_statistic[-1] == StatisticAnswer("mean", None, "slower")
    assert by_statistic[0] == StatisticAnswer("minimum", 1.0, "equivalent")
    both = statistic_answers(np.full(3, math.inf), np.full(3, math.inf), min_effect=1.0)
    assert {answer.verdict for answer in both} == {"equivalent"}


CAMPAIGNS, BLOCKS = 2000, 40


def waiting_verdicts(waited_part: float) -> int:
    """Return the number of campaigns that report waiting, if it is this part of a gap of 10 ms."""
    generator = np.random.default_rng(5)
    count = 0
    for _ in range(CAMPAIGNS):
        # Noise in the work and noise in the waiting, each half as large as the gap.
        work, queue = generator.normal(0.0, 0.005, (2, BLOCKS))
        waiting = 0.01 * waited_part + queue
        count += is_mostly_waiting(0.01 * (1.0 - waited_part) + work + waiting, waiting)
    return count


def test_half_of_the_gap_is_rarely_called_most_of_it() -> None:
    assert waiting_verdicts(0.5) <= binom.ppf(0.999, CAMPAIGNS, 0.05)


def test_a_gap_of_waiting_is_found_and_a_gap_of_work_never() -> None:
    assert waiting_verdicts(1.0) > 0.9 * CAMPAIGNS
    assert waiting_verdicts(0.0) <= binom.ppf(0.999, CAMPAIGNS, 0.001)


def test_few_blocks_have_no_answer() -> None:
    gap = np.full(4, 0.01)
    assert not is_mostly_waiting(gap, gap)
    assert is_mostly_waiting(np.full(5, 0.01), np.full(5, 0.01))
    assert not is_mostly_waiting(np.zeros(0), np.zeros(0))


def test_many_small_waits_are_not_most_of_a_few_long_stretches_of_work() -> None:
    # 70 blocks wait for 1 ms, 30 work for 100 ms: 2.3 % of the extra time is waiting.
    extra = np.repeat([0.001, 0.1], [70, 30])
    waiting = np.repeat([0.001, 0.0], [70, 30])
    assert not is_mostly_waiting(extra, waiting)
    assert is_mostly_waiting(extra, extra)
