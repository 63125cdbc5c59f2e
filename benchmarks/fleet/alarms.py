"""Evidence that a host differs, at every look, and hosts that are otherwise than the others."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from benchmarks.fleet.fleets import ALPHA, BLOCKS, SD, Scenario, answers, blocks_of, hosts_of
from equipoise._native import BettingSequence
from equipoise.stats.sequence import PairedBlocks

FIRST_LOOK, STEP = 8, 4
"""Blocks of each host at the first look, and between looks."""
LN_THRESHOLD = math.log(1.0 / ALPHA)
BETTORS = (
    (0.015, 0.0075, 0.0075),
    (0.025, 0.03125, 0.03125),
    (0.05, 0.15, 0.15),
    (0.32, 0.425, 0.425),
    (0.34, 0.925, 0.76),
    (0.25, 2.25, 0.95),
)
"""Weight, stake and cap of each bettor of the engine (docs/explanation/verdict.md)."""


class Evidence(Struct, frozen=True):
    """What was ever said of one fleet, at looks with all hosts at the same block."""

    differs: bool
    """Whether "no asked host differs" was rejected."""
    mean_excludes_0: bool
    """Whether the fleet's interval of the mean ever left out 0."""
    wrongly_otherwise: bool
    """Whether a host was called otherwise that is like the others, or to the wrong side."""
    rightly_otherwise: int
    """Number of the hosts with an effect that were called so, to the right side."""


def evidence(hosts: int, shares: tuple[float, ...], noise: str, seed: int) -> Evidence:
    """Return what is said of one fleet whose first hosts have these log ratios, the others 0."""
    scenario = Scenario(hosts, noise=noise)
    rng = np.random.default_rng([seed, hosts, len(shares)])
    effects = np.zeros(hosts)
    effects[: len(shares)] = shares
    blocks = blocks_of(scenario, rng, effects)
    result = answers(hosts_of(blocks))
    # What a host differs by from the mean over the others; one with an effect moves that mean.
    apart = [float(effects[one] - np.delete(effects, one).mean()) for one in range(hosts)]
    called = [host.direction for host in result.hosts]
    right = [
        said is not None and one != 0.0 and (said == "slower") == (one > 0.0)
        for said, one in zip(called, apart, strict=True)
    ]
    wrong = [
        said is not None and not is_right for said, is_right in zip(called, right, strict=True)
    ]
    return Evidence(
        differs=_ever_rejected(blocks),
        mean_excludes_0=not result.mean.bounds.low <= 0.0 <= result.mean.bounds.high,
        wrongly_otherwise=any(wrong),
        rightly_otherwise=sum(right[: len(shares)]),
    )


def _ever_rejected(blocks: list[PairedBlocks]) -> bool:
    """Return whether the shipped e-value ever reached 1/alpha, all hosts at the same block."""
    columns = [(one.differences, one.orders) for one in blocks]
    ties = np.zeros(BLOCKS)
    for look in range(FIRST_LOOK, BLOCKS + 1, STEP):
        logs = [
            BettingSequence(one[:look], coins[:look], ties[:look]).ln_e_value()
            for one, coins in columns
        ]
        if np.logaddexp.reduce(logs) - math.log(len(logs)) >= LN_THRESHOLD:
            return True
    return False


class Forms(Struct, frozen=True):
    """Whether "no asked host differs" was ever rejected by each of the two forms."""

    by_mean: bool
    by_product: bool


def forms(hosts: int, shares: tuple[float, ...], seed: int) -> Forms:
    """Return what both forms say of the same fleet, at every block.

    Both have the same bets: those of the engine, with the scale known.
    """
    rng = np.random.default_rng([seed, hosts, len(shares)])
    effects = np.zeros(hosts)
    effects[: len(shares)] = shares
    scale = SD * math.sqrt(2.0)
    differences = effects[:, None] + rng.normal(0.0, scale, (hosts, BLOCKS))
    payoffs = np.clip(differences / (1.25 * scale), -1.0, 1.0)
    sides = []
    for sign in (1.0, -1.0):
        wealth = np.zeros((hosts, BLOCKS))
        for weight, stake, cap in BETTORS:
            gains = np.log1p(np.clip(sign * stake * payoffs, -cap, cap))
            wealth += weight * np.exp(np.cumsum(gains, axis=1))
        sides.append(np.log(wealth))
    both = np.array(sides)
    mean = np.logaddexp.reduce(both.reshape(-1, BLOCKS), axis=0) - math.log(2 * hosts)
    product = np.logaddexp.reduce(both.sum(axis=1), axis=0) - math.log(2.0)
    return Forms(bool((mean >= LN_THRESHOLD).any()), bool((product >= LN_THRESHOLD).any()))
