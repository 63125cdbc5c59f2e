"""The share of a gap that an intervention closes, in simulated campaigns with known shares."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from equipoise.model.errors import UnusableInput
from equipoise.stats.arrays import FloatArray
from equipoise.stats.share import ClosingBlocks, closed_share, fits, share_words

CAMPAIGNS = 200
BLOCKS = 40
LEVEL = 0.05


def gaps_of(
    generator: np.random.Generator, *, gap: float, share: float, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gaps without and with the intervention; ``noise`` of shape (4, n) in drawn order."""
    shuffled = generator.permuted(noise, axis=0)
    without = gap + shuffled[1] - shuffled[0]
    with_it = (1.0 - share) * gap + shuffled[3] - shuffled[2]
    return without, with_it


def normal(generator: np.random.Generator) -> FloatArray:
    return generator.normal(0.0, 0.03, (4, BLOCKS))


def heavy(generator: np.random.Generator) -> FloatArray:
    values: FloatArray = 0.02 * generator.standard_t(2, (4, BLOCKS))
    return values


def drifting(generator: np.random.Generator) -> FloatArray:
    """Each trial 1 % slower than the one before, and the second place of a block 5 % more."""
    trial = np.arange(4 * BLOCKS).reshape(BLOCKS, 4).T
    slot = np.array([0.0, 0.05, 0.0, 0.0])[:, None]
    values: FloatArray = 0.01 * trial + slot + generator.normal(0.0, 0.02, (4, BLOCKS))
    return values


@pytest.mark.parametrize("noise", [normal, heavy, drifting])
@pytest.mark.parametrize("share", [0.0, 0.8])
def test_the_set_after_every_block_holds_the_true_share(noise: object, share: float) -> None:
    assert callable(noise)
    generator = np.random.default_rng(7)
    missed = 0
    for _ in range(CAMPAIGNS):
        without, with_it = gaps_of(generator, gap=0.1, share=share, noise=noise(generator))
        missed += not fits(share, without, with_it, level=LEVEL)
    assert missed <= binom.ppf(0.999, CAMPAIGNS, LEVEL)


def test_most_of_a_clear_gap_is_bounded_after_forty_blocks() -> None:
    """verdict.md §7: a gap of 10 %, sd 3 %, share 0.8 gives about [0.60, 0.95]."""
    generator = np.random.default_rng(8)
    ends = []
    for _ in range(20):
        without, with_it = gaps_of(generator, gap=0.1, share=0.8, noise=normal(generator))
        found = closed_share(without, with_it, level=LEVEL)
        assert len(found.pieces) == 1
        ends.append((found.low, found.high))
    low, high = np.median(np.array(ends, dtype=float), axis=0)
    assert 0.5 < low < 0.7
    assert 0.9 < high < 1.05


def test_shares_inside_the_set_fit_and_those_outside_do_not() -> None:
    generator = np.random.default_rng(9)
    without, with_it = gaps_of(generator, gap=0.1, share=0.5, noise=normal(generator))
    found = closed_share(without, with_it, level=LEVEL)
    assert found.low is not None
    assert found.high is not None
    assert fits(found.low + 1e-4, without, with_it, level=LEVEL)
    assert fits(found.high - 1e-4, without, with_it, level=LEVEL)
    assert not fits(found.low, without, with_it, level=LEVEL)
    assert not fits(found.high, without, with_it, level=LEVEL)


def test_a_gap_that_is_lost_in_noise_bounds_no_share() -> None:
    generator = np.random.default_rng(10)
    without, with_it = gaps_of(generator, gap=0.0, share=0.5, noise=normal(generator))
    found = closed_share(without, with_it, level=LEVEL)
    assert found.low is None
    assert found.high is None


@pytest.mark.parametrize("share", [0.0, 0.9734, 1.0])
def test_a_set_far_narrower_than_the_shares_tried_is_found(share: float) -> None:
    """A gap of a hundred times, as a cache or a sync makes it, beside a noise of 1 %."""
    generator = np.random.default_rng(12)
    noise = generator.normal(0.0, 0.01, (4, BLOCKS))
    without, with_it = gaps_of(generator, gap=math.log(100.0), share=share, noise=noise)
    found = closed_share(without, with_it, level=LEVEL)
    assert found.low is not None
    assert found.high is not None
    assert found.low < share < found.high < found.low + 0.01


def test_blocks_that_come_one_by_one_say_the_same_with_ends_rounded_outwards() -> None:
    generator = np.random.default_rng(13)
    without, with_it = gaps_of(generator, gap=0.1, share=0.5, noise=normal(generator))
    blocks = ClosingBlocks(LEVEL)
    for gap, gap_with in zip(without, with_it, strict=True):
        blocks.append(float(gap), float(gap_with))
    exactly = closed_share(without, with_it, level=LEVEL)
    assert blocks.exactly() == exactly
    rounded = blocks.so_far()
    assert rounded.estimate == exactly.estimate
    assert rounded.low is not None
    assert rounded.high is not None
    assert exactly.lies_within(rounded.low, rounded.high)
    assert rounded.high - rounded.low < 0.05 + (exactly.high or 0.0) - (exactly.low or 0.0)


def test_no_block_says_nothing() -> None:
    found = closed_share(np.array([]), np.array([]), level=LEVEL)
    assert found.estimate is None
    assert found.pieces == ((None, None),)


def test_blocks_in_which_both_of_a_pair_timed_out_are_no_evidence() -> None:
    generator = np.random.default_rng(11)
    without, with_it = gaps_of(generator, gap=0.1, share=0.8, noise=normal(generator))
    nothing = np.full(5, math.nan)
    longer = closed_share(
        np.concatenate((without, nothing)), np.concatenate((with_it, nothing)), level=LEVEL
    )
    assert longer == closed_share(without, with_it, level=LEVEL)


def test_a_candidate_that_always_times_out_leaves_no_share_that_fits() -> None:
    found = closed_share(np.full(30, math.inf), np.full(30, 0.001), level=LEVEL)
    assert found.pieces == ()
    assert found.estimate is None
    assert not found.lies_within(-1.0, 2.0)


def test_gaps_of_unequal_number_and_levels_that_are_none_are_refused() -> None:
    with pytest.raises(UnusableInput, match="3 gaps without the intervention and 2 with it"):
        closed_share(np.zeros(3), np.zeros(2), level=LEVEL)
    with pytest.raises(UnusableInput, match="the level is 1"):
        closed_share(np.zeros(3), np.zeros(3), level=1.0)


def test_a_share_reads_in_percent_and_an_end_that_is_not_known_is_left_open() -> None:
    assert share_words(0.97, (0.944, 0.99)) == "97 % [94, 99]"
    assert share_words(-0.001, (-0.03, 0.02)) == "0 % [-3, 2]"
    assert share_words(0.5, (None, 0.75)) == "50 % […, 75]"
    assert share_words(0.5, (None, None)) == "about 50 %"
    assert share_words(None, (None, None)) == "unknown"
