"""P(the candidate is slower in a block)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import betaln

from equipoise.stats.sequence import PairedBlocks, probability_slower
from tests.stats.simulated import at_most


def signs(slower: NDArray[np.bool_]) -> PairedBlocks:
    return PairedBlocks(
        np.ones(len(slower)), np.where(slower, 2.0, 0.5), np.ones(len(slower), dtype=np.int8)
    )


def test_the_share_counts_blocks_that_are_no_tie() -> None:
    blocks = PairedBlocks(
        [1.0, 1.0, 1.0, 1.0, math.inf], [2.0, 0.5, 1.0, math.inf, math.inf], [1, 1, 1, -1, 1]
    )
    counted = probability_slower(blocks, level=0.05)
    assert (counted.slower, counted.decided) == (2, 3)
    assert counted.share == pytest.approx(2 / 3)


def test_readings_within_the_clock_resolution_are_ties() -> None:
    counted = probability_slower(PairedBlocks([10.0], [11.0], [1], quantum=1.0), level=0.05)
    assert counted.decided == 0
    assert counted.share is None
    assert counted.interval == (None, None)


def test_the_interval_is_what_the_mixture_has_never_excluded() -> None:
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
def test_the_truth_is_ever_left_out_in_at_most_alpha_of_campaigns(truth: float) -> None:
    generator = np.random.default_rng(4)
    missed = 0
    for _ in range(600):
        low, high = probability_slower(signs(generator.random(200) < truth), level=0.05).interval
        assert low is not None
        assert high is not None
        missed += not low <= truth <= high
    assert missed <= at_most(600, 0.05)
