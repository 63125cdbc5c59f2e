"""Blocks and their bets, P(the candidate is slower), and a baseline that ran twice."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import betaln

from equipoise.model.errors import UnusableInput
from equipoise.stats.resolution import Resolution, tie_tolerance
from equipoise.stats.sequence import PairedBlocks, block_differences, probability_slower
from packages.equipoise.tests.stats.simulated import (
    NOISES,
    FloatArray,
    Noise,
    at_most,
    campaign,
    costs_and_orders,
    white,
)


def test_differences_are_log_ratios_of_candidate_over_baseline() -> None:
    differences = block_differences(np.array([1.0, 2.0]), np.array([2.0, 1.0]), 0.0)
    assert differences == pytest.approx([math.log(2), -math.log(2)])


def test_a_timeout_is_an_infinite_difference_and_two_are_a_tie() -> None:
    inf = math.inf
    differences = block_differences(np.array([1.0, inf, inf]), np.array([inf, 1.0, inf]), 0.0)
    assert differences[0] == inf
    assert differences[1] == -inf
    assert math.isnan(differences[2])


def test_0_against_0_is_a_tie_and_0_against_a_cost_is_infinite() -> None:
    differences = block_differences(np.array([0.0, 0.0, 3.0]), np.array([0.0, 5.0, 0.0]), 0.0)
    assert math.isnan(differences[0])
    assert differences[1] == math.inf
    assert differences[2] == -math.inf


def test_0_against_one_tick_is_a_tie() -> None:
    differences = block_differences(np.array([0.0, 0.0]), np.array([0.01, 0.02]), 0.01)
    assert math.isnan(differences[0])
    assert differences[1] == math.inf


def test_the_tolerance_is_one_and_a_half_quanta_of_the_smaller_cost() -> None:
    tolerance = tie_tolerance(np.array([10.0, 20.0, 0.0]), np.array([12.0, 15.0, 1.0]), 1.0)
    assert tolerance == pytest.approx([0.15, 0.1, 0.0])


def test_a_campaign_that_grows_is_judged_like_one_that_is_read_whole() -> None:
    generator = np.random.default_rng(1)
    baseline, candidate, orders = costs_and_orders(white(0.02), generator, 300, 0.01)
    whole = PairedBlocks(baseline, candidate, orders, resolution=Resolution(1e-3))
    growing = PairedBlocks(
        baseline[:100], candidate[:100], orders[:100], resolution=Resolution(1e-3)
    )
    for block in range(100, 300):
        growing.append(float(baseline[block]), float(candidate[block]), int(orders[block]))
    assert len(growing) == 300
    assert growing.engine.running_interval(0.05) == whole.engine.running_interval(0.05)
    assert growing.engine.ln_e_value() == whole.engine.ln_e_value()
    assert np.array_equal(growing.candidate, whole.candidate)


@pytest.mark.parametrize(
    ("baseline", "candidate", "orders", "word"),
    [
        ([-1.0], [1.0], [1], "block 1 of the baseline"),
        ([1.0, 1.0], [1.0, math.nan], [1, 1], "block 2 of the candidate"),
        ([1.0], [1.0], [0], "an order"),
        ([1.0, 2.0], [1.0], [1], "2 costs of the baseline"),
    ],
)
def test_an_invalid_campaign_is_refused_by_name(
    baseline: list[float], candidate: list[float], orders: list[int], word: str
) -> None:
    with pytest.raises(UnusableInput, match=word):
        PairedBlocks(baseline, candidate, orders)


def test_the_engine_refuses_a_level_out_of_range() -> None:
    engine = campaign(white(0.02), np.random.default_rng(1), 10).engine
    with pytest.raises(ValueError, match="between 0 and 1"):
        engine.running_interval(1.5)


def test_fifty_thousand_blocks_narrow_the_interval_around_the_truth() -> None:
    blocks = campaign(white(0.02), np.random.default_rng(2), 50_000, effect=0.002)
    low, high = blocks.engine.running_interval(0.05)
    assert low < 0.002 < high
    assert high - low < 0.002


CAMPAIGNS = 400
BLOCKS = 120
ALPHA = 0.05


def controlled(
    noise: Noise, generator: np.random.Generator, blocks: int, effect: float = 0.0
) -> PairedBlocks:
    """Blocks of baseline, candidate and control in random order."""
    by_position = np.exp(noise(generator, 3 * blocks)).reshape(blocks, 3)
    places = np.array([generator.permutation(3) for _ in range(blocks)])

    def costs_of(condition: int) -> FloatArray:
        costs: FloatArray = by_position[np.arange(blocks), places[:, condition]]
        return costs

    def before_candidate(condition: int) -> NDArray[np.int8]:
        return np.where(places[:, condition] < places[:, 1], 1, -1).astype(np.int8)

    return PairedBlocks.pooled(
        costs_of(0),
        costs_of(2),
        costs_of(1) * np.exp(effect),
        before_candidate(0),
        before_candidate(2),
    )


@pytest.mark.parametrize("name", NOISES)
def test_the_truth_is_ever_left_out_in_at_most_alpha_of_campaigns(name: str) -> None:
    generator = np.random.default_rng(20261120)
    missed = 0
    for _ in range(CAMPAIGNS):
        blocks = controlled(NOISES[name], generator, BLOCKS, effect=0.03)
        low, high = blocks.engine.running_interval(ALPHA)
        missed += not low <= 0.03 <= high
    assert missed <= at_most(CAMPAIGNS, ALPHA)


def test_it_needs_fewer_blocks_than_the_baseline_alone() -> None:
    generator = np.random.default_rng(7)
    alone, pooled = (
        np.median(
            [
                make(white(0.02), generator, 400, 0.015).engine.blocks_to_exclude(0.0, ALPHA) or 400
                for _ in range(CAMPAIGNS)
            ]
        )
        for make in (campaign, controlled)
    )
    # Fewer blocks, but of three trials instead of two: up to half as many trials more.
    assert pooled < alone
    assert 1.5 * pooled < 1.45 * alone


def signs(slower: NDArray[np.bool_]) -> PairedBlocks:
    return PairedBlocks(
        np.ones(len(slower)), np.where(slower, 2.0, 0.5), np.ones(len(slower), dtype=np.int8)
    )


def test_the_share_counts_blocks_without_a_tie() -> None:
    blocks = PairedBlocks(
        [1.0, 1.0, 1.0, 1.0, math.inf], [2.0, 0.5, 1.0, math.inf, math.inf], [1, 1, 1, -1, 1]
    )
    counted = probability_slower(blocks, level=0.05)
    assert (counted.slower, counted.decided) == (2, 3)
    assert counted.share == pytest.approx(2 / 3)


def test_readings_within_the_clock_resolution_are_ties() -> None:
    counted = probability_slower(
        PairedBlocks([10.0], [11.0], [1], resolution=Resolution(1.0)), level=0.05
    )
    assert counted.decided == 0
    assert counted.share is None
    assert counted.interval == (None, None)


def test_the_interval_has_the_values_that_the_mixture_never_excluded() -> None:
    slower = np.random.default_rng(3).random(150) < 0.7
    low, high = probability_slower(signs(slower), level=0.05).interval
    grid = np.linspace(0.001, 0.999, 999)
    wins, losses = np.cumsum(slower)[:, None], np.cumsum(~slower)[:, None]
    wealth = betaln(wins + 0.5, losses + 0.5) - betaln(0.5, 0.5)
    wealth = wealth - wins * np.log(grid) - losses * np.log(1 - grid)
    kept = grid[wealth.max(axis=0) < math.log(20)]
    assert low == pytest.approx(kept[0], abs=0.0011)
    assert high == pytest.approx(kept[-1], abs=0.0011)


@pytest.mark.parametrize("truth", [0.5, 0.9])
def test_the_probability_is_ever_left_out_in_at_most_alpha_of_campaigns(truth: float) -> None:
    generator = np.random.default_rng(4)
    missed = 0
    for _ in range(600):
        low, high = probability_slower(signs(generator.random(200) < truth), level=0.05).interval
        assert low is not None
        assert high is not None
        missed += not low <= truth <= high
    assert missed <= at_most(600, 0.05)
