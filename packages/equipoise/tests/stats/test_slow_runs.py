"""Slow runs: when they forbid ``equivalent``, and the test of which condition has more."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from equipoise.stats.arrays import FloatArray
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.slow_runs import (
    LEVEL_SHARE,
    MIN_RUNS_FOR_EQUIVALENT,
    RARE_SHARE,
    blocks_to_show,
    blocks_until_means_allow,
    ln_bound_of_means,
    means_allow_equivalence,
    planned_blocks,
    slow_factor,
    slow_run_counts,
    slow_run_test,
    unseen_share,
)
from equipoise.stats.verdict import blocks_to_go, judge, margin_of

ALPHA = 0.05
MARGIN = margin_of(1.0)
LEVEL = LEVEL_SHARE * ALPHA


def costs(
    generator: np.random.Generator, blocks: int, share: float = 0.0, factor: float = 1.0
) -> FloatArray:
    """Return costs with little noise; a share of them is multiplied by a factor."""
    slow = np.where(generator.random(blocks) < share, factor, 1.0)
    return np.asarray(slow * np.exp(0.003 * generator.standard_normal(blocks)))


def with_slow(blocks: int, slow: dict[int, float]) -> FloatArray:
    """Return costs near 1, some of which are multiplied by a factor."""
    values = np.exp(0.003 * np.random.default_rng(5).permutation(np.linspace(-1.0, 1.0, blocks)))
    for place, factor in slow.items():
        values[place] *= factor
    return values


def test_a_slow_kind_of_run_shows_with_the_chance_that_is_claimed() -> None:
    assert blocks_to_show(RARE_SHARE, ALPHA) == MIN_RUNS_FOR_EQUIVALENT
    assert blocks_to_show(0.01, ALPHA) == 299
    for share, alpha in ((0.01, 0.05), (0.2, 0.01), (0.4, 0.1)):
        runs = blocks_to_show(share, alpha)
        assert (1.0 - share) ** runs <= alpha < (1.0 - share) ** (runs - 1)
        assert unseen_share(runs, alpha) <= share < unseen_share(runs - 1, alpha)


def test_one_run_in_ten_that_is_a_fifth_slower_is_hardly_ever_equivalent() -> None:
    campaigns, wrong = 150, 0
    for seed in range(campaigns):
        generator = np.random.default_rng([1, seed])
        baseline, candidate = costs(generator, 200), costs(generator, 200, 0.1, 1.2)
        wrong += any(
            means_allow_equivalence(baseline[:count], candidate[:count], MARGIN)
            for count in range(MIN_RUNS_FOR_EQUIVALENT, 201)
        )
    assert wrong <= binom.ppf(0.999, campaigns, ALPHA)


def test_equal_slow_runs_of_both_conditions_still_allow_equivalent() -> None:
    campaigns, allowed = 60, 0
    for seed in range(campaigns):
        generator = np.random.default_rng([2, seed])
        baseline, candidate = (costs(generator, 200, 0.05, 1.5) for _ in range(2))
        assert ln_bound_of_means([(1.0, baseline, candidate)]) > MARGIN
        allowed += any(
            means_allow_equivalence(baseline[:count], candidate[:count], MARGIN)
            for count in range(MIN_RUNS_FOR_EQUIVALENT, 201)
        )
    assert allowed >= campaigns / 2


def test_slow_runs_of_one_condition_or_of_other_sizes_do_not_allow_it() -> None:
    both = with_slow(59, {3: 1.5, 20: 1.5}), with_slow(59, {7: 1.5, 31: 1.5})
    assert means_allow_equivalence(*both, MARGIN)
    assert means_allow_equivalence(*both[::-1], MARGIN)
    # The means agree, but one condition has four slow runs and the other one much slower run.
    sizes = with_slow(59, {3: 1.5, 20: 1.5}), with_slow(59, {7: 2.0})
    assert not means_allow_equivalence(*sizes, MARGIN)
    one_side = with_slow(59, {3: 1.2}), with_slow(59, {})
    assert not means_allow_equivalence(*one_side, MARGIN)


def test_an_exchange_of_the_conditions_changes_only_the_sign() -> None:
    generator = np.random.default_rng(3)
    for _ in range(50):
        baseline, candidate = costs(generator, 80, 0.05, 1.5), costs(generator, 80, 0.05, 1.5)
        forward, exchanged = (
            slow_run_test(*pair, margin=MARGIN, alpha=ALPHA)
            for pair in ((baseline, candidate), (candidate, baseline))
        )
        assert forward.side == -exchanged.side
        assert forward.e_value == pytest.approx(exchanged.e_value)
        assert means_allow_equivalence(baseline, candidate, MARGIN) == means_allow_equivalence(
            candidate, baseline, MARGIN
        )


def test_slow_runs_of_both_are_weighed_at_planned_numbers_of_blocks() -> None:
    planned = [planned_blocks(blocks) for blocks in range(200)]
    assert sorted(set(planned)) == [0, 59, 74, 93, 118, 148, 187]
    assert all(count <= blocks for blocks, count in enumerate(planned))


@pytest.mark.parametrize(("share", "factor"), [(0.1, 2.0), (0.3, 1.2), (0.02, 100.0)])
def test_if_both_have_slow_runs_a_condition_is_named_in_at_most_the_level(
    share: float, factor: float
) -> None:
    campaigns, named = 600, 0
    for seed in range(campaigns):
        generator = np.random.default_rng([4, seed])
        baseline, candidate = (costs(generator, 300, share, factor) for _ in range(2))
        named += slow_run_test(baseline, candidate, margin=MARGIN, alpha=ALPHA).side != 0
    assert named <= binom.ppf(0.999, campaigns, LEVEL)


def test_the_coin_names_the_condition_that_has_slow_runs() -> None:
    generator = np.random.default_rng(6)
    candidate = costs(generator, 200, 0.1, 1.5)
    test = slow_run_test(costs(generator, 200), candidate, margin=MARGIN, alpha=ALPHA)
    assert (test.side, test.level, test.baseline_only) == (1, LEVEL, 0)
    assert test.e_value >= 1.0 / LEVEL


def test_a_threshold_comes_from_earlier_blocks_alone() -> None:
    generator = np.random.default_rng(7)
    baseline, candidate = costs(generator, 80, 0.1, 1.5), costs(generator, 80, 0.1, 1.5)
    before = slow_run_test(baseline, candidate, margin=MARGIN, alpha=ALPHA)
    # A slow block at the end moves no threshold, so it adds at most one block to the count.
    longer = (np.append(baseline, 1.0), np.append(candidate, 50.0))
    after = slow_run_test(*longer, margin=MARGIN, alpha=ALPHA)
    assert after.candidate_only == before.candidate_only + 1
    assert after.baseline_only == before.baseline_only


def test_slow_runs_are_counted_against_the_median_of_their_own_condition() -> None:
    baseline, candidate = with_slow(106, {}), 3.0 * with_slow(106, {4: 1.6, 70: 2.2})
    counts = slow_run_counts(baseline, candidate, MARGIN)
    assert (counts.baseline, counts.candidate, counts.runs) == (0, 2, 106)
    assert counts.factor == 1.5


def test_wide_noise_and_a_large_margin_raise_the_threshold_of_slow_runs() -> None:
    narrow = with_slow(100, {})
    assert slow_factor(narrow, 0.0) < slow_factor(narrow, margin_of(10.0))
    wide = np.exp(0.3 * np.random.default_rng(8).standard_normal(100))
    assert slow_factor(wide, 0.0) >= 3.0
    assert slow_factor(np.full(10, np.inf), 0.01) > 1.0


def test_timeouts_forbid_equivalent_and_exceed_every_threshold() -> None:
    baseline, candidate = with_slow(80, {}), with_slow(80, {60: np.inf})
    assert not means_allow_equivalence(baseline, candidate, MARGIN)
    assert slow_run_test(baseline, candidate, margin=MARGIN, alpha=ALPHA).candidate_only == 1


def test_a_forecast_waits_for_the_blocks_that_the_means_need() -> None:
    quiet = with_slow(20, {}), with_slow(20, {})[::-1]
    assert blocks_until_means_allow(*quiet, MARGIN) == MIN_RUNS_FOR_EQUIVALENT - 20
    assert blocks_until_means_allow(with_slow(80, {}), with_slow(80, {3: 3.0}), MARGIN) is None
    later = blocks_until_means_allow(with_slow(80, {}), with_slow(80, {3: 1.5}), MARGIN)
    assert later is not None
    assert later > 80
    generator = np.random.default_rng(9)
    pairs = PairedBlocks(*quiet, generator.choice([-1, 1], 20))
    judged = judge([pairs], min_effect=1.0, alpha=ALPHA)
    assert judged[0].verdict == "undecided"
    forecast = blocks_to_go([pairs], judged, min_effect=1.0, alpha=ALPHA, seed=1)
    assert forecast[0] is not None
    assert forecast[0] >= MIN_RUNS_FOR_EQUIVALENT - 20
