"""Adjusting by covariates that were read before the trials: valid, and fewer blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise._native import BettingSequence
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import judge
from tests.stats.simulated import at_most

FloatArray = NDArray[np.float64]
SD = 0.02
BLOCKS = 300


class Simulated:
    """A campaign in which a covariate explains a part of the variance within blocks."""

    def __init__(self, seed: int, *, explained: float, effect: float, memory: float = 0.0) -> None:
        generator = np.random.default_rng(seed)
        steps = generator.normal(size=2 * BLOCKS)
        covariate = np.empty(2 * BLOCKS)
        covariate[0] = steps[0]
        for trial in range(1, 2 * BLOCKS):
            fresh = math.sqrt(1 - memory**2) * steps[trial]
            covariate[trial] = memory * covariate[trial - 1] + fresh
        by_place = covariate.reshape(BLOCKS, 2)
        self.orders = generator.choice(np.array([-1, 1], dtype=np.int8), BLOCKS)
        slope = SD * math.sqrt(2 * explained) / float(np.std(by_place[:, 1] - by_place[:, 0]))
        noise = generator.normal(0, SD * math.sqrt(1 - explained), (BLOCKS, 2))
        times = slope * by_place + noise
        self.differences = self.orders * (times[:, 1] - times[:, 0]) + effect
        self.covariates = self.orders * (by_place[:, 1] - by_place[:, 0])

    def blocks(self, *, adjusted: bool, engine: int = 2) -> BettingSequence:
        """The blocks, with the covariate or without it."""
        empty = np.empty(0)
        sequence = BettingSequence(empty, np.empty(0, dtype=np.int8), empty, engine)
        rows = zip(self.differences, self.orders, self.covariates, strict=True)
        for difference, order, covariate in rows:
            sequence.push(float(difference), int(order), 0.0, [float(covariate)] * adjusted)
        return sequence


def mean_blocks(explained: float, *, adjusted: bool, engine: int = 2) -> float:
    """Mean blocks until "no difference" is excluded, at an effect of 1 %."""
    lengths = []
    for seed in range(150):
        simulated = Simulated(seed, explained=explained, effect=0.01)
        sequence = simulated.blocks(adjusted=adjusted, engine=engine)
        lengths.append(sequence.blocks_to_exclude(0.0, 0.05) or BLOCKS)
    return float(np.mean(lengths))


@pytest.mark.parametrize("explained", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("effect", [0.0, 0.03])
def test_an_autocorrelated_covariate_leaves_false_alarms_and_coverage_at_alpha(
    explained: float, effect: float
) -> None:
    campaigns, missed = 150, 0
    for seed in range(campaigns):
        simulated = Simulated(seed, explained=explained, effect=effect, memory=0.9)
        sequence = simulated.blocks(adjusted=True)
        low, high = sequence.running_interval(0.05)
        missed += not low <= effect <= high
    assert missed <= at_most(campaigns, 0.05)


def test_a_covariate_that_explains_half_saves_a_third_of_the_blocks() -> None:
    adjusted = mean_blocks(0.5, adjusted=True)
    assert adjusted <= 0.67 * mean_blocks(0.5, adjusted=False)
    assert adjusted <= 0.65 * mean_blocks(0.5, adjusted=False, engine=1)
    assert mean_blocks(0.5, adjusted=True, engine=1) > adjusted


def test_a_useless_covariate_costs_at_most_few_blocks() -> None:
    # 1.9 % in 400 campaigns.
    assert mean_blocks(0.0, adjusted=True) <= 1.035 * mean_blocks(0.0, adjusted=False)


def test_the_summary_says_how_many_blocks_were_adjusted_and_what_it_did() -> None:
    adjustment = Simulated(4, explained=0.8, effect=0.0).blocks(adjusted=True).adjustment()
    assert adjustment is not None
    covariate, blocks, spread_ratio = adjustment
    assert covariate == 0
    assert blocks > 0.25 * BLOCKS
    assert spread_ratio < 0.95


def test_a_covariate_that_one_condition_always_finds_higher_is_not_used() -> None:
    simulated = Simulated(1, explained=0.8, effect=0.0)
    pairs = PairedBlocks()
    rows = zip(simulated.differences, simulated.orders, simulated.covariates, strict=True)
    for difference, order, covariate in rows:
        pairs.append(1.0, math.exp(difference), int(order), [float(covariate) + 3.0])
    adjustment = pairs.engine.adjustment()
    assert adjustment is None or adjustment[1] < 10


def test_unknown_covariates_leave_the_verdict_as_it_is_without() -> None:
    simulated = Simulated(2, explained=0.5, effect=0.01)
    plain, unknown = PairedBlocks(), PairedBlocks()
    for difference, order in zip(simulated.differences, simulated.orders, strict=True):
        plain.append(1.0, math.exp(difference), int(order))
        unknown.append(1.0, math.exp(difference), int(order), [math.nan])
    assert judge([plain], min_effect=1, alpha=0.05) == judge([unknown], min_effect=1, alpha=0.05)
    assert unknown.engine.adjustment() is None
