"""The blocks of two conditions, as the betting engine takes them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.model.errors import UnusableInput
from equipoise.stats.sequence import PairedBlocks, block_differences, tie_tolerance
from tests.stats.simulated import campaign, costs_and_orders, white


def test_differences_are_log_ratios_of_candidate_over_baseline() -> None:
    differences = block_differences(np.array([1.0, 2.0]), np.array([2.0, 1.0]), 0.0)
    assert differences == pytest.approx([math.log(2), -math.log(2)])


def test_a_timeout_is_an_infinite_difference_and_two_are_a_tie() -> None:
    inf = math.inf
    differences = block_differences(np.array([1.0, inf, inf]), np.array([inf, 1.0, inf]), 0.0)
    assert differences[0] == inf
    assert differences[1] == -inf
    assert math.isnan(differences[2])


def test_nothing_against_nothing_is_a_tie_and_against_something_infinite() -> None:
    differences = block_differences(np.array([0.0, 0.0, 3.0]), np.array([0.0, 5.0, 0.0]), 0.0)
    assert math.isnan(differences[0])
    assert differences[1] == math.inf
    assert differences[2] == -math.inf


def test_nothing_against_one_tick_is_a_tie() -> None:
    differences = block_differences(np.array([0.0, 0.0]), np.array([0.01, 0.02]), 0.01)
    assert math.isnan(differences[0])
    assert differences[1] == math.inf


def test_the_tolerance_is_one_and_a_half_quanta_of_the_smaller_cost() -> None:
    tolerance = tie_tolerance(np.array([10.0, 20.0, 0.0]), np.array([12.0, 15.0, 1.0]), 1.0)
    assert tolerance == pytest.approx([0.15, 0.1, 0.0])


def test_a_campaign_that_grows_is_judged_like_one_that_is_read_whole() -> None:
    generator = np.random.default_rng(1)
    baseline, candidate, orders = costs_and_orders(white(0.02), generator, 300, 0.01)
    whole = PairedBlocks(baseline, candidate, orders, quantum=1e-3)
    growing = PairedBlocks(baseline[:100], candidate[:100], orders[:100], quantum=1e-3)
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
def test_what_is_no_campaign_is_refused_by_name(
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
