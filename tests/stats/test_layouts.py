"""Over layouts the verdict is about layouts in general, and wrong in at most alpha."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from equipoise.stats.arrays import FloatArray
from equipoise.stats.layouts import judge_across_layouts, planned_analyses
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import ComparisonVerdict, judge
from tests.stats.simulated import at_least, at_most

LAYOUTS, CAMPAIGNS, ALPHA = 12, 200, 0.05
NOISE = 0.02
ROUNDS = 8
Effects = Callable[[np.random.Generator], FloatArray]


def normal(between: float) -> Effects:
    """Layouts that differ by so much, and not on average."""
    return lambda generator: generator.normal(0.0, between, LAYOUTS)


def two_kinds(generator: np.random.Generator) -> FloatArray:
    """Layouts of two kinds, 10 % apart."""
    effects: FloatArray = generator.choice(np.array([-0.05, 0.05]), LAYOUTS)
    return effects


class Campaign:
    """A campaign over layouts that goes on until its verdict."""

    def __init__(self, generator: np.random.Generator, effects: FloatArray) -> None:
        rounds = [1 + generator.permutation(LAYOUTS) for _ in range(ROUNDS)]
        self.layouts = np.concatenate(rounds)
        blocks = len(self.layouts)
        self.orders = generator.choice(np.array([-1, 1], dtype=np.int8), blocks)
        self.baseline = np.exp(generator.normal(0.0, NOISE, blocks))
        own = effects[self.layouts - 1]
        self.candidate = np.exp(own + generator.normal(0.0, NOISE, blocks))

    def pairs(self, blocks: int) -> PairedBlocks:
        """Return its first blocks."""
        return PairedBlocks(self.baseline[:blocks], self.candidate[:blocks], self.orders[:blocks])

    def across(self, blocks: int, *, min_effect: float = 1.0) -> ComparisonVerdict:
        """Return the verdict on layouts in general after so many blocks."""
        (judged,) = judge_across_layouts(
            [self.pairs(blocks)],
            [self.layouts[:blocks]],
            count=LAYOUTS,
            min_effect=min_effect,
            alpha=ALPHA,
        )
        return judged

    def stopped(self) -> ComparisonVerdict:
        """Return its first verdict, or its last analysis."""
        for blocks in (24, 36, 48, 96):
            judged = self.across(blocks)
            if judged.verdict != "undecided":
                break
        return judged


@pytest.mark.parametrize("effects", [normal(0.0), normal(0.03), normal(0.05), two_kinds])
def test_layouts_that_differ_without_a_mean_effect_get_no_verdict_for_it(effects: Effects) -> None:
    generator = np.random.default_rng(1)
    campaigns = [Campaign(generator, effects(generator)) for _ in range(CAMPAIGNS)]
    judged = [one.stopped() for one in campaigns]
    wrong = sum(one.verdict in ("slower", "faster") for one in judged)
    missed = sum(not one.low <= 0.0 <= one.high for one in judged)
    assert wrong <= missed <= at_most(CAMPAIGNS, ALPHA)


@pytest.mark.parametrize("between", [0.03, 0.05])
def test_the_claim_about_the_drawn_layouts_is_none_about_others(between: float) -> None:
    generator = np.random.default_rng(2)
    called = 0
    for _ in range(100):
        campaign = Campaign(generator, normal(between)(generator))
        (these,) = judge([campaign.pairs(ROUNDS * LAYOUTS)], min_effect=1.0, alpha=ALPHA)
        called += these.verdict in ("slower", "faster")
    # The first release made this the headline.
    assert called > at_most(100, ALPHA)


def test_an_effect_in_every_layout_is_found_at_the_first_analysis() -> None:
    generator = np.random.default_rng(3)
    found = 0
    for _ in range(100):
        campaign = Campaign(generator, np.full(LAYOUTS, 0.05))
        found += campaign.across(2 * LAYOUTS).verdict == "slower"
    assert found >= at_least(100, 0.98)


def test_layouts_that_take_the_same_time_are_equivalent_from_the_thirtieth_block_on() -> None:
    generator = np.random.default_rng(4)
    campaign = Campaign(generator, np.zeros(LAYOUTS))
    assert campaign.across(2 * LAYOUTS, min_effect=5.0).verdict == "undecided"
    assert campaign.across(36, min_effect=5.0).verdict == "equivalent"


def test_analyses_come_after_two_four_and_eight_blocks_in_each_layout() -> None:
    places = np.tile([1, 2], 9)
    differences = np.arange(18.0)
    # One block more in one layout, as after a cut: the analyses stay what they are.
    analyses = planned_analyses(np.append(differences, 1e9), np.append(places, 2), 2)
    assert [one.tolist() for one in analyses] == [[1.0, 2.0], [3.0, 4.0], [7.0, 8.0]]
    assert planned_analyses(differences[:3], places[:3], 2) == []


def test_a_timeout_leaves_the_verdict_open_from_there_on() -> None:
    places = np.tile([1, 2], 4)
    differences = np.array([0.1, 0.1, 0.1, 0.1, 0.1, math.inf, 0.1, 0.1])
    assert len(planned_analyses(differences, places, 2)) == 1


def test_several_candidates_share_alpha() -> None:
    campaign = Campaign(np.random.default_rng(5), np.zeros(LAYOUTS))
    pairs = [campaign.pairs(48)] * 4
    judged = judge_across_layouts(
        pairs, [campaign.layouts[:48]] * 4, count=LAYOUTS, min_effect=1.0, alpha=ALPHA
    )
    assert {one.level for one in judged} == {ALPHA / 4}
    alone = campaign.across(48)
    assert judged[0].high - judged[0].low > alone.high - alone.low


def test_a_coarse_clock_widens_the_interval_by_what_it_hides() -> None:
    costs, orders = np.full(8, 100.0), np.tile(np.array([-1, 1], dtype=np.int8), 4)
    pairs = PairedBlocks(costs, costs, orders, quantum=10.0)
    (judged,) = judge_across_layouts(
        [pairs], [np.tile([1, 2], 4)], count=2, min_effect=1.0, alpha=ALPHA
    )
    assert judged.high == -judged.low == pytest.approx(0.15)
