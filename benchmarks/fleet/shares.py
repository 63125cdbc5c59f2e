"""How many rounds a verdict on the mean takes by the shipped shares of alpha, and by others."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from msgspec import Struct

from benchmarks.fleet.fleets import KINDS, answers, first_blocks, hosts_of
from equipoise.stats import hosts
from equipoise.stats.sequence import PairedBlocks
from packages.equipoise.tests.stats.simulated import campaign

MAX_ROUNDS = 400


class Shares(Struct, frozen=True):
    """Parts of alpha of the hosts' sequences and of the first roster's rounds."""

    hosts: float
    first_roster: float


SHIPPED = Shares(hosts.SHARE_OF_HOSTS, hosts.SHARE_OF_FIRST_ROSTER)
EVEN = Shares(0.5, 0.25)
"""Half for the hosts' sequences, and half of the rest for the first roster."""


class Rounds(Struct, frozen=True):
    """Rounds of one fleet until the mean's interval leaves out "no difference"."""

    shipped: int
    even: int


def rounds_to_difference(hosts: int, effect: float, seed: int) -> Rounds:
    """Return the rounds of a fleet whose hosts all have one log ratio."""
    rng = np.random.default_rng([seed, hosts])
    blocks = [campaign(KINDS["normal"], rng, MAX_ROUNDS, effect) for _ in range(hosts)]
    return Rounds(_rounds(blocks, SHIPPED), _rounds(blocks, EVEN))


def _rounds(blocks: list[PairedBlocks], shares: Shares) -> int:
    """Return the first round at which 0 is left out, ``MAX_ROUNDS`` if there is none.

    Sequences only shrink, so the round is found by halving.
    """
    low, high = 0, MAX_ROUNDS
    with (
        patch.object(hosts, "SHARE_OF_HOSTS", shares.hosts),
        patch.object(hosts, "SHARE_OF_FIRST_ROSTER", shares.first_roster),
    ):
        while high - low > 1:
            middle = (low + high) // 2
            bounds = answers(hosts_of([first_blocks(one, middle) for one in blocks])).mean.bounds
            if bounds.low <= 0.0 <= bounds.high:
                low = middle
            else:
                high = middle
    return high
