"""A verdict over layouts is about layouts in general, and is wrong in at most alpha."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from equipoise.stats.arrays import FloatArray
from equipoise.stats.layouts import judge_across_layouts, planned_analyses
from equipoise.stats.resolution import Resolution
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import ComparisonVerdict, judge
from packages.equipoise.tests.stats.simulated import at_least, at_most

LAYOUTS, CAMPAIGNS, ALPHA = 12, 200, 0.05
NOISE = 0.02
ROUNDS = 8
Effects = Callable[[np.random.Generator], FloatArray]


def normal(between: float) -> Effects:
    """Layouts with normal effects of this sd and mean 0."""
    return lambda generator: generator.normal(0.0, between, LAYOUTS)


def exponential(between: float, layouts: int) -> Effects:
    """Layouts with skewed effects of mean 0: most a little faster, a few much slower."""
    return lambda generator: between * (generator.exponential(1.0, layouts) - 1.0)


def two_kinds(generator: np.random.Generator) -> FloatArray:
    """Layouts of two kinds that differ by 10 %."""
    effects: FloatArray = generator.choice(np.array([-0.05, 0.05]), LAYOUTS)
    return effects


class Campaign:
    """A campaign over layouts that continues until its verdict."""

    def __init__(self, generator: np.random.Generator, effects: FloatArray) -> None:
        self.count = len(effects)
        rounds = [1 + generator.permutation(self.count) for _ in range(ROUNDS)]
        self.layouts = np.concatenate(rounds)
        blocks = len(self.layouts)
        self.orders = generator.choice(np.array([-1, 1], dtype=np.int8), blocks)
        self.baseline = np.exp(generator.normal(0.0, NOISE, blocks))
        own = effects[self.layouts - 1]
        self.candidate = np.exp(own + generator.normal(0.0, NOISE, blocks))
        self.log_ratios = np.log(self.candidate / self.baseline)

    def pairs(self, blocks: int) -> PairedBlocks:
        """Return its first blocks."""
        return PairedBlocks(self.baseline[:blocks], self.candidate[:blocks], self.orders[:blocks])

    def across(self, blocks: int, *, min_effect: float = 1.0) -> ComparisonVerdict:
        """Return the verdict on layouts in general after so many blocks."""
        (judged,) = judge_across_layouts(
            [self.pairs(blocks)],
            [self.layouts[:blocks]],
            layout_count=self.count,
            min_effect=min_effect,
            alpha=ALPHA,
        )
        return judged

    def stopped(self) -> ComparisonVerdict:
        """Return its first verdict, or its last analysis."""
        rounds = (2, 3, 4, ROUNDS)
        for blocks in (self.count * number for number in rounds):
            judged = self.across(blocks)
            if judged.verdict != "undecided":
                break
        return judged


@pytest.mark.parametrize("effects", [normal(0.0), normal(0.03), normal(0.05), two_kinds])
def test_layouts_that_differ_without_a_mean_effect_get_no_verdict_for_it(effects: Effects) -> None:
    generator = np.random.default_rng(1)
    campaigns = [Campaign(generator, effects(generator)) for _ in range(CAMPAIGNS)]
    judged = [campaign.stopped() for campaign in campaigns]
    wrong = sum(judgement.verdict in ("slower", "faster") for judgement in judged)
    missed = sum(not judgement.low <= 0.0 <= judgement.high for judgement in judged)
    assert wrong <= missed <= at_most(CAMPAIGNS, ALPHA)


@pytest.mark.parametrize("between", [0.03, 0.05])
def test_a_claim_about_the_drawn_layouts_is_not_one_about_others(between: float) -> None:
    generator = np.random.default_rng(2)
    called = 0
    for _ in range(100):
        campaign = Campaign(generator, normal(between)(generator))
        (these,) = judge([campaign.pairs(ROUNDS * LAYOUTS)], min_effect=1.0, alpha=ALPHA)
        called += these.verdict in ("slower", "faster")
    assert called > at_most(100, ALPHA)


def test_an_effect_in_every_layout_is_found_at_the_first_analysis() -> None:
    generator = np.random.default_rng(3)
    found = 0
    for _ in range(100):
        campaign = Campaign(generator, np.full(LAYOUTS, 0.05))
        found += campaign.across(2 * LAYOUTS).verdict == "slower"
    assert found >= at_least(100, 0.98)


def test_layouts_that_take_the_same_time_are_equivalent_from_the_fifty_ninth_block_on() -> None:
    generator = np.random.default_rng(4)
    campaign = Campaign(generator, np.zeros(LAYOUTS))
    assert campaign.across(2 * LAYOUTS, min_effect=5.0).verdict == "undecided"
    assert campaign.across(48, min_effect=5.0).verdict == "undecided"
    assert campaign.across(60, min_effect=5.0).verdict == "equivalent"


@pytest.mark.parametrize("layouts", [4, 6])
def test_few_layouts_with_skewed_effects_fool_it_in_at_most_alpha(layouts: int) -> None:
    generator = np.random.default_rng(6)
    count, wrong, wrong_by_student = 600, 0, 0
    for _ in range(count):
        campaign = Campaign(generator, exponential(0.05, layouts)(generator))
        wrong += campaign.across(2 * layouts).verdict in ("slower", "faster")
        by_layout = np.argsort(campaign.layouts[: 2 * layouts]).reshape(layouts, 2)
        means = campaign.log_ratios[by_layout].mean(axis=1)
        # The first analysis has half of alpha.
        wrong_by_student += stats.ttest_1samp(means, 0.0).pvalue < ALPHA / 2
    assert wrong <= at_most(count, ALPHA)
    assert wrong < 0.9 * wrong_by_student


def test_layouts_without_skewness_have_students_interval() -> None:
    places = np.tile([1, 2, 3, 4, 5, 6, 7], 2)
    differences = 0.01 * (places - 4.0)
    pairs = PairedBlocks(np.ones(14), np.exp(differences), np.tile([1, -1], 7))
    (judged,) = judge_across_layouts([pairs], [places], layout_count=7, min_effect=1.0, alpha=ALPHA)
    student = stats.t.interval(1 - ALPHA / 2, 6, scale=stats.sem(differences[:7]))
    assert (judged.low, judged.high) == pytest.approx(student)


def test_a_long_tail_on_one_side_moves_only_the_bound_on_that_side() -> None:
    places = np.tile(np.arange(1, 9), 2)
    differences = np.array([0.0, 0.0, 0.0, 0.01, 0.01, 0.02, 0.03, 0.15])[places - 1]
    pairs = PairedBlocks(np.ones(16), np.exp(differences), np.tile([1, -1], 8))
    (judged,) = judge_across_layouts([pairs], [places], layout_count=8, min_effect=1.0, alpha=ALPHA)
    low, high = stats.t.interval(
        1 - ALPHA / 2, 7, loc=differences[:8].mean(), scale=stats.sem(differences[:8])
    )
    assert judged.low == pytest.approx(low)
    assert judged.high > high + 0.01


def test_analyses_come_after_two_four_and_eight_blocks_in_each_layout() -> None:
    places = np.tile([1, 2], 9)
    differences, tolerances = np.arange(18.0), np.arange(100.0, 119.0)
    # One more block in one layout, as after an interruption, does not change the analyses.
    analyses = planned_analyses(np.append(differences, 1e9), np.append(places, 2), 2, tolerances)
    assert [analysis.log_ratios.tolist() for analysis in analyses] == [
        [1.0, 2.0],
        [3.0, 4.0],
        [7.0, 8.0],
    ]
    # Each analysis has the tolerance of its own last block.
    assert [analysis.tolerance for analysis in analyses] == [103.0, 107.0, 115.0]
    assert planned_analyses(differences[:3], places[:3], 2, tolerances) == []


def test_a_timeout_leaves_later_analyses_possible() -> None:
    places = np.tile([1, 2], 4)
    differences = np.array([0.1, math.inf, 0.1, 0.1, 0.1, 0.3, 0.1, 0.2])
    lost, possible = planned_analyses(differences, places, 2, np.zeros(8))
    assert not lost.is_possible
    assert possible.log_ratios.tolist() == pytest.approx([0.1, 0.25])


def test_a_block_with_two_timeouts_counts_for_nothing() -> None:
    places = np.tile([1, 2], 2)
    (analysis,) = planned_analyses(np.array([math.nan, 0.1, 0.3, 0.1]), places, 2, np.zeros(4))
    assert analysis.log_ratios.tolist() == pytest.approx([0.3, 0.1])


def test_a_campaign_with_one_timeout_has_a_verdict_and_names_the_lost_blocks() -> None:
    campaign = Campaign(np.random.default_rng(7), np.full(LAYOUTS, 0.05))
    campaign.candidate[3] = math.inf
    first = campaign.across(2 * LAYOUTS)
    assert (first.verdict, first.lost_analyses) == ("undecided", 1)
    second = campaign.across(4 * LAYOUTS)
    assert (second.verdict, second.lost_analyses) == ("slower", 1)


def test_an_analysis_is_unchanged_when_later_costs_change_the_tolerance() -> None:
    orders = np.tile(np.array([-1, 1], dtype=np.int8), 4)
    pairs = PairedBlocks(np.full(8, 100.0), np.full(8, 100.0), orders, resolution=Resolution(10.0))
    layouts = np.tile([1, 2], 4)

    def interval() -> tuple[float, float]:
        (judged,) = judge_across_layouts(
            [pairs], [layouts[: len(pairs)]], layout_count=2, min_effect=1.0, alpha=ALPHA
        )
        return judged.low, judged.high

    before = interval()
    layouts = np.append(layouts, np.tile([1, 2], 2))
    for _ in range(4):
        pairs.append(10.0, 10.0, 1)
    assert interval() == before


def test_several_candidates_share_alpha() -> None:
    campaign = Campaign(np.random.default_rng(5), np.zeros(LAYOUTS))
    pairs = [campaign.pairs(48)] * 4
    judged = judge_across_layouts(
        pairs, [campaign.layouts[:48]] * 4, layout_count=LAYOUTS, min_effect=1.0, alpha=ALPHA
    )
    assert {judgement.level for judgement in judged} == {ALPHA / 4}
    one_candidate = campaign.across(48)
    assert judged[0].high - judged[0].low > one_candidate.high - one_candidate.low


def test_a_coarse_clock_widens_the_interval_by_its_resolution() -> None:
    costs, orders = np.full(8, 100.0), np.tile(np.array([-1, 1], dtype=np.int8), 4)
    pairs = PairedBlocks(costs, costs, orders, resolution=Resolution(10.0))
    (judged,) = judge_across_layouts(
        [pairs], [np.tile([1, 2], 4)], layout_count=2, min_effect=1.0, alpha=ALPHA
    )
    assert judged.high == -judged.low == pytest.approx(0.15)
