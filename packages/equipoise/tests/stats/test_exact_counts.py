"""Counts that repeat exactly are judged after three blocks, and rarely wrongly."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from equipoise.stats.exact_counts import blocks_to_repeat, judge_counts_function
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import ComparisonVerdict, judge_function
from packages.equipoise.tests.stats.simulated import at_most, white

ALPHA = 0.05
MIN_EFFECT = 2.0


def judged(baseline: Sequence[float], candidate: Sequence[float]) -> ComparisonVerdict:
    orders = [1 if number % 2 else -1 for number in range(len(baseline))]
    blocks = [PairedBlocks(baseline, candidate, orders)]
    (verdict,) = judge_counts_function(blocks, judge_function(blocks, MIN_EFFECT, ALPHA))(ALPHA)
    return verdict


def test_counts_that_repeat_in_three_blocks_have_an_exact_ratio() -> None:
    assert blocks_to_repeat(ALPHA) == 3
    verdict = judged([1000.0] * 3, [1010.0] * 3)
    assert verdict.ratio_ci == verdict.equivalence_ci == pytest.approx((1.01, 1.01))
    assert verdict.level == ALPHA
    assert judged([1000.0] * 2, [1010.0] * 2).ratio_ci == (None, None)


@pytest.mark.parametrize(
    ("baseline", "candidate", "log_ratio"),
    [(0.0, 0.0, 0.0), (0.0, 3.0, math.inf), (3.0, 0.0, -math.inf)],
)
def test_a_count_may_be_zero(baseline: float, candidate: float, log_ratio: float) -> None:
    verdict = judged([baseline] * 3, [candidate] * 3)
    assert (verdict.equivalence_low, verdict.equivalence_high) == (log_ratio, log_ratio)


def test_a_single_other_count_or_a_timeout_leaves_the_decision_to_the_coin() -> None:
    assert judged([1000.0] * 5 + [1001.0], [1010.0] * 6).ratio_ci == (None, None)
    assert judged([math.inf] * 3, [1010.0] * 3).equivalence_low == -math.inf


def test_counts_that_vary_are_decided_by_the_coin() -> None:
    generator = np.random.default_rng(1)
    noise = np.exp(white(0.0001)(generator, 60))
    verdict = judged(list(1e6 * noise[:30]), list(1.01e6 * noise[30:]))
    low, high = verdict.ratio_ci
    assert low is not None and high is not None
    assert 1.005 < low < 1.01 < high < 1.015


@pytest.mark.parametrize("chance", [0.5, 0.8, 0.98])
def test_equal_revisions_with_two_counts_seldom_repeat_different_counts(chance: float) -> None:
    """The bound is 1/64 on each side, reached at a chance of 1/2."""
    generator = np.random.default_rng(7)
    campaigns = 20_000
    counts = np.where(generator.random((campaigns, 2, 3)) < chance, 1000.0, 1100.0)
    repeats = (counts == counts[:, :, :1]).all(axis=(1, 2))
    wrong = int((repeats & (counts[:, 1, 0] > counts[:, 0, 0])).sum())
    assert wrong <= at_most(campaigns, 4.0**-3)
    # The rule of the module is the rule that was counted.
    for index in range(40):
        baseline, candidate = counts[index].tolist()
        is_exact = judged(baseline, candidate).low == judged(baseline, candidate).high
        assert is_exact == repeats[index]
