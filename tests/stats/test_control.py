"""A baseline that ran twice in each block is pooled at no cost to the error rate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.stats.sequence import PairedBlocks
from tests.stats.simulated import NOISES, FloatArray, Noise, at_most, campaign, white

CAMPAIGNS = 400
BLOCKS = 120
ALPHA = 0.05


def controlled(
    noise: Noise, generator: np.random.Generator, blocks: int, effect: float = 0.0
) -> PairedBlocks:
    """Blocks of baseline, candidate and control in random order."""
    by_position = np.exp(noise(generator, 3 * blocks)).reshape(blocks, 3)
    places = np.array([generator.permutation(3) for _ in range(blocks)])

    def ran(condition: int) -> FloatArray:
        costs: FloatArray = by_position[np.arange(blocks), places[:, condition]]
        return costs

    def before_candidate(condition: int) -> NDArray[np.int8]:
        return np.where(places[:, condition] < places[:, 1], 1, -1).astype(np.int8)

    return PairedBlocks.pooled(
        ran(0), ran(2), ran(1) * np.exp(effect), before_candidate(0), before_candidate(2)
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
    # Fewer blocks, of three trials instead of two: between 0 and half as much again in trials.
    assert pooled < alone
    assert 1.5 * pooled < 1.45 * alone
