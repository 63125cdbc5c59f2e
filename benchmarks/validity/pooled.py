"""Rows on `show --pool`: campaigns that stopped at their verdict, pooled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from benchmarks.validity.campaign import (
    ALPHA,
    BLOCKS,
    WARMUP,
    Blocks,
    draw_orders,
    first_verdict,
    run,
)
from benchmarks.validity.pieces import source
from benchmarks.validity.scenarios import NOT_CONSTANT, white
from benchmarks.validity.shares import Share
from equipoise.analysis.reference import effect_of
from equipoise.model.quantities import Interval
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.two_samples import common_ratio, pool
from equipoise.stats.verdict import earliest_block

EFFECT = math.log1p(0.01)
"""The true ratio, on average over campaigns."""
MIN_EFFECT = 1.0
"""Percent; a campaign ends when its effect looks large, so its ratio at the stop is too large."""
_NOISE = white(0.02)
_RUNS = 2 * (WARMUP + BLOCKS)


@dataclass(frozen=True, slots=True)
class PooledScenario:
    """Campaigns of the same commands, each of which stopped at its verdict."""

    name: str
    words: str
    campaigns: int
    """Campaigns in a pool."""
    between: float
    """Standard deviation of their true log ratios."""
    why_not: str = ""
    """Why no common ratio is claimed."""

    @property
    def cost(self) -> int:
        """Campaigns of another scenario that cost as much as one pool."""
        return self.campaigns

    @property
    def claims_common_ratio(self) -> bool:
        """Whether the campaigns have a ratio in common."""
        return self.between == 0.0


@dataclass(frozen=True, slots=True)
class PooledOutcome:
    """Whether intervals at level alpha left out the truth."""

    common_missed: bool
    """The interval of the ratio that all campaigns have in common, or no ratio fitted."""
    none_fits: bool
    mean_missed: bool
    """The interval of the mean over campaigns."""
    naive_missed: bool
    """Student's interval of the mean of the ratios at the stop, which is biased."""


POOLED = (
    PooledScenario("5 stopped campaigns", "sd 2 %, a true 1 % in each", 5, 0.0),
    PooledScenario("10 stopped campaigns", "sd 2 %, a true 1 % in each", 10, 0.0),
    PooledScenario("20 stopped campaigns", "sd 2 %, a true 1 % in each", 20, 0.0),
    PooledScenario(
        "10 that differ",
        "sd 2 %, true ratios with mean 1 % and sd 1 % between campaigns",
        10,
        0.01,
        why_not=NOT_CONSTANT,
    ),
)


def simulate_pools(name: str, start: int, stop: int, seed: int) -> list[PooledOutcome]:
    """Pools ``start`` up to ``stop`` of one scenario."""
    scenario = next(one for one in POOLED if one.name == name)
    return [
        simulate_pool(scenario, np.random.default_rng(source(seed, name, number)))
        for number in range(start, stop)
    ]


def simulate_pool(scenario: PooledScenario, random: Generator) -> PooledOutcome:
    """Run the campaigns of one pool, each to its verdict, and pool them."""
    effects = EFFECT + scenario.between * random.standard_normal(scenario.campaigns)
    campaigns = [_Stopped.run(random, float(effect)) for effect in effects]
    stopped = [one.blocks.paired(one.count) for one in campaigns]
    common = common_ratio(stopped, level=ALPHA)
    none_fits = common.unknown_because is not None
    # Each would have run these blocks whatever they showed.
    first = [one.blocks.paired(min(one.count, earliest_block(ALPHA))) for one in campaigns]
    return PooledOutcome(
        common_missed=none_fits or _misses(common.ratio_ci),
        none_fits=none_fits,
        mean_missed=_mean_misses(first),
        naive_missed=_mean_misses(stopped),
    )


@dataclass(frozen=True, slots=True)
class _Stopped:
    """A campaign, and the block at which it had its verdict."""

    blocks: Blocks
    count: int

    @classmethod
    def run(cls, random: Generator, effect: float) -> _Stopped:
        orders = draw_orders(int(random.integers(2**63)))
        blocks = run(_NOISE(random, _RUNS), orders, effect)
        return cls(blocks, first_verdict(blocks, blocks.paired(), MIN_EFFECT).blocks)


def _mean_misses(campaigns: Sequence[PairedBlocks]) -> bool:
    effects = [effect_of(one) for one in campaigns]
    logs, errors = np.array([one for one in effects if one is not None]).T
    boots = [str(boot) for boot in range(len(logs))]
    return _misses(pool(logs, errors, boots).ratio_ci)


def _misses(interval: Interval) -> bool:
    low, high = interval
    truth = math.exp(EFFECT)
    return (low is not None and truth < low) or (high is not None and truth > high)


@dataclass(frozen=True, slots=True)
class PooledSummary:
    """What the pools of one scenario add up to."""

    scenario: PooledScenario
    common_missed: Share
    none_fits: Share
    mean_missed: Share
    naive_missed: Share

    def broken_claims(self) -> list[str]:
        """Return what Equipoise claims and this shows to be wrong."""
        claims = [
            (self.scenario.claims_common_ratio, self.common_missed, "the common ratio"),
            (True, self.mean_missed, "the mean over campaigns"),
        ]
        return [
            f"{self.scenario.name}: {share.beyond(ALPHA, f'intervals of {what} miss it')}"
            for claimed, share, what in claims
            if claimed and share.exceeds(ALPHA)
        ]


def summarise_pools(scenario: PooledScenario, outcomes: Sequence[PooledOutcome]) -> PooledSummary:
    """Add up the pools of one scenario."""
    return PooledSummary(
        scenario,
        Share.of(one.common_missed for one in outcomes),
        Share.of(one.none_fits for one in outcomes),
        Share.of(one.mean_missed for one in outcomes),
        Share.of(one.naive_missed for one in outcomes),
    )
