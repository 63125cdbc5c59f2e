"""The claims of docs/methods/interval.md, in simulations with known truth and fixed seeds.

A campaign of 200 blocks is analysed after every block: the running interval at its end is the
intersection of all intervals, so it leaves the truth out if any of them did.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.stats.resolution import Resolution
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import judge
from packages.equipoise.tests.stats.simulated import (
    NOISES,
    FloatArray,
    at_least,
    at_most,
    campaign,
    costs_and_orders,
    order_effect,
    watched,
    white,
)

ALPHA = 0.05
CAMPAIGNS = 1000
BLOCKS = 200


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("effect", [0.0, math.log(1.03)], ids=["no effect", "3 %"])
def test_the_truth_is_ever_left_out_in_at_most_alpha_of_campaigns(
    noise: str, effect: float
) -> None:
    generator = np.random.default_rng([7, *noise.encode()])
    missed = 0
    for _ in range(CAMPAIGNS):
        blocks = campaign(NOISES[noise], generator, BLOCKS, effect)
        missed += blocks.engine.blocks_to_exclude(effect, ALPHA) is not None
    assert missed <= at_most(CAMPAIGNS, ALPHA)


def counted(costs: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Readings of a clock that counts whole ticks and starts at a random phase."""
    return np.floor(costs + generator.random(len(costs)))


def rounded(costs: FloatArray, _: np.random.Generator) -> FloatArray:
    """Readings of a clock that rounds."""
    return np.round(costs)


@pytest.mark.parametrize("reading", [counted, rounded])
@pytest.mark.parametrize("ticks", [10.0, 10.4, 30.0])
@pytest.mark.parametrize("sd", [0.005, 0.02, 0.05, 0.1])
def test_the_truth_is_kept_when_times_are_a_few_ticks_long(
    reading: Callable[[FloatArray, np.random.Generator], FloatArray], ticks: float, sd: float
) -> None:
    generator = np.random.default_rng(11)
    truth = math.log(1.03)
    missed = 0
    for _ in range(300):
        baseline, candidate, orders = costs_and_orders(white(sd), generator, BLOCKS, truth)
        blocks = PairedBlocks(
            reading(ticks * baseline, generator),
            reading(ticks * candidate, generator),
            orders,
            resolution=Resolution(1.0),
        )
        missed += blocks.engine.blocks_to_exclude(truth, ALPHA) is not None
    assert missed <= at_most(300, ALPHA)


def test_without_a_tolerance_ticks_would_hide_the_truth() -> None:
    generator = np.random.default_rng(11)
    truth = math.log(1.03)
    missed = 0
    for _ in range(300):
        baseline, candidate, orders = costs_and_orders(white(0.02), generator, BLOCKS, truth)
        blocks = PairedBlocks(
            rounded(10 * baseline, generator), rounded(10 * candidate, generator), orders
        )
        missed += blocks.engine.blocks_to_exclude(truth, ALPHA) is not None
    assert missed > 150


def test_a_large_effect_is_found_in_times_of_ten_ticks() -> None:
    generator = np.random.default_rng(20)
    found = 0
    for _ in range(100):
        baseline, candidate, orders = costs_and_orders(white(0.02), generator, BLOCKS, 0.2)
        readings = counted(10 * baseline, generator), counted(10 * candidate, generator)
        (judged,) = judge(
            [PairedBlocks(*readings, orders, resolution=Resolution(1.0))],
            min_effect=1.0,
            alpha=ALPHA,
        )
        found += judged.verdict == "slower"
    assert found >= at_least(100, 0.98)


def test_timeouts_in_both_conditions_raise_no_false_alarm() -> None:
    generator = np.random.default_rng(12)
    alarms = 0
    for _ in range(CAMPAIGNS):
        baseline, candidate, orders = costs_and_orders(white(0.02), generator, BLOCKS)
        baseline[generator.random(BLOCKS) < 0.2] = math.inf
        candidate[generator.random(BLOCKS) < 0.2] = math.inf
        blocks = PairedBlocks(baseline, candidate, orders)
        alarms += blocks.engine.blocks_to_exclude(0.0, ALPHA) is not None
    assert alarms <= at_most(CAMPAIGNS, ALPHA)


def test_a_candidate_that_sometimes_times_out_is_called_slower() -> None:
    generator = np.random.default_rng(13)
    slower = slower_if_dropped = 0
    for _ in range(100):
        baseline, candidate, orders = costs_and_orders(white(0.02), generator, BLOCKS)
        candidate[generator.random(BLOCKS) < 0.4] = math.inf
        finished = np.isfinite(candidate)
        kept, dropped = (
            judge(
                [PairedBlocks(baseline[rows], candidate[rows], orders[rows])],
                min_effect=1.0,
                alpha=ALPHA,
            )[0]
            for rows in (np.ones(BLOCKS, dtype=bool), finished)
        )
        slower += kept.verdict == "slower"
        slower_if_dropped += dropped.verdict == "slower"
    assert slower >= at_least(100, 0.9)
    assert slower_if_dropped <= at_most(100, ALPHA)


def test_a_true_one_percent_is_found_under_a_order_effect_of_five() -> None:
    generator = np.random.default_rng(14)
    needed = []
    for _ in range(301):
        blocks = campaign(order_effect, generator, 400, effect=math.log(1.01))
        needed.append(blocks.engine.blocks_to_exclude(0.0, ALPHA) or 401)
    assert np.median(needed) <= 120


@pytest.mark.parametrize(
    ("sd", "effect", "median"),
    [(0.005, 0.01, 9), (0.02, 0.01, 79), (0.02, 0.03, 14), (0.05, 0.03, 57)],
)
def test_an_effect_is_found_after_as_many_blocks_as_the_table_says(
    sd: float, effect: float, median: int
) -> None:
    """docs/evidence/validity.md; the median of 401 campaigns has a standard error of about 4 %."""
    generator = np.random.default_rng(15)
    needed = []
    for _ in range(401):
        blocks = campaign(white(sd), generator, 600, effect)
        needed.append(blocks.engine.blocks_to_exclude(0.0, ALPHA) or 601)
    assert np.median(needed) == pytest.approx(median, rel=0.15, abs=1)


def test_equal_conditions_are_called_equivalent_after_as_many_blocks_as_the_table_says() -> None:
    generator = np.random.default_rng(16)
    judged = [watched(*costs_and_orders(white(0.02), generator, 400)) for _ in range(61)]
    wrong = sum(judgement.verdict in ("faster", "slower", "mixed") for judgement in judged)
    assert wrong <= at_most(61, ALPHA)
    # The median is 94 (docs/evidence/validity.md); that of 61 campaigns has an error of about 8 %.
    assert np.median([judgement.blocks for judgement in judged]) == pytest.approx(94, rel=0.25)
    assert sum(judgement.verdict == "equivalent" for judgement in judged) >= 55


def usually_faster_rarely_much_slower(
    generator: np.random.Generator, blocks: int
) -> tuple[FloatArray, FloatArray, NDArray[np.int8]]:
    """Baseline 1; candidate 0.9 in 90 % and 5 in 10 % of blocks."""
    baseline, candidate, orders = costs_and_orders(white(0.02), generator, blocks)
    candidate *= np.where(generator.random(blocks) < 0.1, 5.0, 0.9)
    return baseline, candidate, orders


def test_usually_faster_but_dearer_in_all_is_mixed() -> None:
    generator = np.random.default_rng(17)
    mixed = 0
    for _ in range(200):
        blocks = PairedBlocks(*usually_faster_rarely_much_slower(generator, BLOCKS))
        (judged,) = judge([blocks], min_effect=1.0, alpha=ALPHA)
        mixed += judged.verdict == "mixed"
        assert judged.ratio == pytest.approx(0.9, rel=0.03)
    assert mixed >= at_least(200, 0.98)


def test_usually_faster_but_dearer_in_all_is_mixed_or_faster_at_the_first_verdict() -> None:
    # `mixed` needs two slow runs. A verdict before these is "faster", but never "slower".
    generator = np.random.default_rng(18)
    verdicts = [
        watched(*usually_faster_rarely_much_slower(generator, BLOCKS)).verdict for _ in range(200)
    ]
    assert verdicts.count("mixed") > 50
    assert set(verdicts) <= {"mixed", "faster"}


def test_none_of_ten_equal_candidates_is_called_different_in_most_campaigns() -> None:
    generator = np.random.default_rng(19)
    campaigns, called = 200, 0
    for _ in range(campaigns):
        orders = np.array([generator.permutation(11) for _ in range(60)])
        places = np.argsort(orders, axis=1)
        costs = np.exp(generator.normal(0.0, 0.02, (60, 11)))
        for blocks in (20, 40, 60):
            comparisons = [
                PairedBlocks(
                    costs[:blocks, 0],
                    costs[:blocks, candidate],
                    np.where(places[:blocks, 0] < places[:blocks, candidate], 1, -1),
                )
                for candidate in range(1, 11)
            ]
            judged = judge(comparisons, min_effect=0.0, alpha=ALPHA)
            if any(judgement.verdict != "undecided" for judgement in judged):
                called += 1
                break
    assert called <= at_most(campaigns, ALPHA)
