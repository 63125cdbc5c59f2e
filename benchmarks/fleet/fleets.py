"""Simulated fleets: a campaign with a coin of its own on each host."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise.stats.hosts import FleetClaims, HostBlocks, claims_of_fleet
from equipoise.stats.sequence import PairedBlocks
from packages.equipoise.tests.stats.simulated import NOISES, FloatArray, Noise, campaign, white

ALPHA = 0.05
MIN_EFFECT = 1.0
"""Percent."""
SD = 0.02
"""Log standard deviation of a trial."""
BLOCKS = 80
FEWEST, MOST = 20, 140
"""Blocks of hosts that run unequal numbers: any number between, equally likely."""
KINDS: dict[str, Noise] = {**NOISES, "normal": white(SD)}
EFFECT_FREEDOM = 3.0


class Scenario(Struct, frozen=True):
    """How the hosts of a fleet are."""

    hosts: int
    spread: float = 0.0
    """Standard deviation of the log ratios between hosts."""
    effects: str = "normal"
    """Law of the log ratios of hosts: ``normal`` or ``t3``."""
    unequal: bool = False
    """Whether each host runs a number of blocks of its own."""
    noise: str = "normal"
    """Noise of the trials, by its name in ``KINDS``."""

    def generator(self, seed: int) -> np.random.Generator:
        """Return the source of all that is random in one fleet."""
        return np.random.default_rng([seed, zlib.crc32(repr(self).encode())])


def effects_of(scenario: Scenario, rng: np.random.Generator, count: int) -> FloatArray:
    """Return log ratios of so many hosts; their median and mean in all hosts are 0."""
    if scenario.effects == "t3":
        scale = scenario.spread / math.sqrt(EFFECT_FREEDOM / (EFFECT_FREEDOM - 2.0))
        heavy: FloatArray = scale * rng.standard_t(EFFECT_FREEDOM, count)
        return heavy
    return rng.normal(0.0, scenario.spread, count)


def blocks_of(
    scenario: Scenario, rng: np.random.Generator, effects: FloatArray
) -> list[PairedBlocks]:
    """Return the blocks of each host at its end."""
    counts = (
        rng.integers(FEWEST, MOST + 1, len(effects)).tolist()
        if scenario.unequal
        else [BLOCKS] * len(effects)
    )
    noise = KINDS[scenario.noise]
    return [
        campaign(noise, rng, count, float(effect))
        for count, effect in zip(counts, effects, strict=True)
    ]


def hosts_of(blocks: Sequence[PairedBlocks]) -> list[HostBlocks]:
    """Return hosts with equal weights that have finished."""
    return [
        HostBlocks(f"{place}", f"{place}", one, 1.0 / len(blocks), "finished")
        for place, one in enumerate(blocks)
    ]


def first_blocks(whole: PairedBlocks, count: int) -> PairedBlocks:
    """Return the first blocks of a host."""
    return PairedBlocks(whole.baseline[:count], whole.candidate[:count], whole.orders[:count])


def answers(hosts: Sequence[HostBlocks]) -> FleetClaims:
    """Return what the shipped statistics say of planned hosts."""
    return claims_of_fleet(hosts, min_effect=MIN_EFFECT, alpha=ALPHA, planned_count=len(hosts))
