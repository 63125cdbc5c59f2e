"""Campaigns that stopped at their verdict are pooled without the bias of such a stop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec import Struct

from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.two_samples import NO_COMMON_RATIO, common_ratio, pool
from equipoise.stats.verdict import earliest_block, typical_ratio
from packages.equipoise.tests.stats.simulated import at_least, campaign, costs_and_orders, white

TRUE, NOISE, ALPHA = 0.01, 0.02, 0.05
MOST = 200
CAMPAIGNS = 600


class Stopped(Struct, frozen=True):
    """A campaign that stopped when its candidate was called slower or faster."""

    blocks: PairedBlocks
    log_ratio: float
    first_log_ratio: float
    """Over the blocks before which it could not stop."""


def stopped(generator: np.random.Generator, effect: float) -> Stopped:
    """The rule of the verdict: the interval leaves out 1, and the estimate is at least 1 %."""
    costs = costs_and_orders(white(NOISE), generator, MOST, effect)

    def first(blocks: int) -> PairedBlocks:
        baseline, candidate, orders = costs
        return PairedBlocks(baseline[:blocks], candidate[:blocks], orders[:blocks])

    whole = first(MOST)
    blocks = whole.engine.blocks_to_exclude(0.0, ALPHA) or MOST
    ended = first(blocks)
    while blocks < MOST and abs(log_ratio(ended)) < math.log1p(0.01):
        ended.append(*(values[blocks] for values in costs))
        blocks += 1
    return Stopped(ended, log_ratio(ended), log_ratio(first(earliest_block(ALPHA))))


def log_ratio(blocks: PairedBlocks) -> float:
    ratio = typical_ratio(blocks)
    assert ratio is not None
    return math.log(ratio)


def covers(interval: tuple[float | None, float | None]) -> bool:
    low, high = interval
    return (low or 0.0) <= math.exp(TRUE) <= (high or math.inf)


def students(campaigns: list[Stopped], log_ratios: list[float]) -> bool:
    errors = np.full(len(campaigns), NOISE)
    boots = [str(place) for place in range(len(campaigns))]
    return covers(pool(np.array(log_ratios), errors, boots).ratio_ci)


@pytest.fixture(scope="module")
def alike() -> list[Stopped]:
    """Campaigns with the same true ratio."""
    generator = np.random.default_rng(1)
    return [stopped(generator, TRUE) for _ in range(CAMPAIGNS)]


@pytest.fixture(scope="module")
def different() -> list[Stopped]:
    """Campaigns whose true ratios vary with an sd of 1 %."""
    generator = np.random.default_rng(2)
    return [stopped(generator, TRUE + 0.01 * generator.normal()) for _ in range(CAMPAIGNS)]


def groups(campaigns: list[Stopped], size: int) -> list[list[Stopped]]:
    return [campaigns[begin : begin + size] for begin in range(0, len(campaigns), size)]


@pytest.mark.parametrize("size", [5, 10, 20])
def test_the_common_ratio_of_campaigns_stopped_at_their_verdict_is_covered(
    alike: list[Stopped], size: int
) -> None:
    pooled = [
        common_ratio([campaign.blocks for campaign in group]) for group in groups(alike, size)
    ]
    assert sum(covers(pool.ratio_ci) for pool in pooled) >= at_least(len(pooled), 0.95)
    # The estimate is not too large either, since blocks have weights, not campaigns.
    logs = [math.log(pool.ratio) for pool in pooled if pool.ratio is not None]
    assert np.mean(logs) == pytest.approx(TRUE, abs=0.001)


@pytest.mark.parametrize("size", [5, 10, 20])
def test_the_mean_over_campaigns_that_differ_is_covered_by_their_first_blocks(
    alike: list[Stopped], different: list[Stopped], size: int
) -> None:
    for campaigns in (alike, different):
        pooled = groups(campaigns, size)
        covered = sum(students(group, [each.first_log_ratio for each in group]) for group in pooled)
        assert covered >= at_least(len(pooled), 0.95)


def test_the_mean_of_the_ratios_at_the_stop_is_too_large(alike: list[Stopped]) -> None:
    """Each campaign stopped because its estimate was large."""
    pooled = groups(alike, 20)
    covered = sum(students(group, [each.log_ratio for each in group]) for group in pooled)
    assert covered < 0.8 * len(pooled)
    assert np.mean([campaign.log_ratio for campaign in alike]) > 1.1 * TRUE


def test_twenty_campaigns_know_the_common_ratio_better_than_five(alike: list[Stopped]) -> None:
    def width(size: int) -> float:
        pools = [
            common_ratio([campaign.blocks for campaign in group])
            for group in groups(alike, size)[:20]
        ]
        # In at most alpha of the pools no ratio fits, by chance.
        fitting = [pool.ratio_ci for pool in pools if pool.unknown_because is None]
        assert len(fitting) >= at_least(len(pools), 1.0 - ALPHA)
        widths: list[float] = []
        for low, high in fitting:
            assert low is not None and high is not None
            widths.append(math.log(high / low))
        return float(np.mean(widths))

    assert width(20) < 0.65 * width(5)


def test_campaigns_that_contradict_each_other_have_no_common_ratio() -> None:
    generator = np.random.default_rng(3)
    pair = [campaign(white(0.005), generator, 60, effect) for effect in (0.0, 0.1)]
    common = common_ratio(pair)
    assert (common.ratio, common.ratio_ci, common.blocks) == (None, (None, None), 120)
    assert common.unknown_because == NO_COMMON_RATIO


def test_few_blocks_exclude_nothing() -> None:
    pairs = [campaign(white(NOISE), np.random.default_rng(5), 2)] * 2
    assert common_ratio(pairs).ratio_ci == (None, None)
