"""The smallest effect that a number of blocks can show agrees with simulated campaigns."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import (
    DETECTED_SHARE,
    earliest_block,
    is_precise,
    judge,
    smallest_effect,
)
from packages.equipoise.tests.stats.simulated import at_least, costs_and_orders, white

ALPHA = 0.05


def null_differences(sd: float, blocks: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng(1).normal(0.0, sd * math.sqrt(2.0), blocks)


def campaigns_with_verdict(sd: float, blocks: int, effect: float, campaigns: int) -> int:
    """Number of simulated campaigns that call a difference within this number of blocks."""
    generator = np.random.default_rng(9)
    count = 0
    for _ in range(campaigns):
        baseline, candidate, orders = costs_and_orders(white(sd), generator, blocks, effect)
        pairs = PairedBlocks(baseline, candidate, orders)
        count += pairs.engine.blocks_to_exclude(0.0, ALPHA) is not None
    return count


@pytest.mark.parametrize(("blocks", "campaigns"), [(12, 300), (100, 300), (6000, 60)])
def test_the_named_effect_is_found_as_often_as_claimed(blocks: int, campaigns: int) -> None:
    effect = smallest_effect(null_differences(0.02, 2400), blocks, alpha=ALPHA, seed=3)
    assert effect is not None
    # The effect is itself estimated from 60 campaigns: its share may be off by three errors.
    share = DETECTED_SHARE - 3 * math.sqrt(0.09 / 60)
    assert campaigns_with_verdict(0.02, blocks, effect, campaigns) >= at_least(campaigns, share)


def test_a_difference_of_three_hundredths_of_the_spread_is_found() -> None:
    # White noise of 1 / sqrt(2) gives block differences a spread of 1.
    spread = 1.0 / math.sqrt(2.0)
    assert campaigns_with_verdict(spread, 20_000, 0.03, 40) >= 20
    assert campaigns_with_verdict(spread, 40_000, 0.025, 8) >= 7


def test_a_precision_below_three_hundredths_of_the_spread_ends() -> None:
    spread, half_width = 0.01, 0.025
    generator = np.random.default_rng(5)
    rows = costs_and_orders(white(spread / math.sqrt(2.0)), generator, 40_000)
    precision = 100.0 * math.expm1(2.0 * half_width * spread)
    (judged,) = judge([PairedBlocks(*rows)], min_effect=0.0, alpha=ALPHA)
    assert is_precise(judged, precision)


def test_it_shrinks_with_the_noise_and_with_the_time() -> None:
    noisy, quiet = (
        smallest_effect(null_differences(sd, 2400), 200, alpha=ALPHA, seed=3) for sd in (0.04, 0.01)
    )
    assert noisy is not None
    assert quiet is not None
    assert 3.5 < noisy / quiet < 4.5
    longer = smallest_effect(null_differences(0.04, 2400), 20_000, alpha=ALPHA, seed=3)
    assert longer is not None
    assert longer < noisy / 5


def test_an_invisible_effect_is_not_named() -> None:
    assert smallest_effect(null_differences(0.02, 2400), 6, alpha=ALPHA, seed=3) is None
    assert smallest_effect(null_differences(5.0, 2400), 20, alpha=ALPHA, seed=3) is None
    assert smallest_effect(null_differences(0.02, 5), 100, alpha=ALPHA, seed=3) is None


def test_the_effect_of_a_campaign_as_short_as_the_earliest_verdict_is_named() -> None:
    blocks = earliest_block(ALPHA)
    assert blocks == 7
    effect = smallest_effect(null_differences(0.02, 2400), blocks, alpha=ALPHA, seed=3)
    assert effect is not None
    assert campaigns_with_verdict(0.02, blocks, effect, 300) >= at_least(
        300, DETECTED_SHARE - 3 * math.sqrt(0.09 / 60)
    )
