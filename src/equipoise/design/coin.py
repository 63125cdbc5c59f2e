"""The coin: the seeded random source of every order.

Each draw is a function of the seed, the phase and the block alone. So a campaign that was
killed goes on with the very orders that it would have had, and a draw can be checked
afterwards by anyone who has the ledger.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterator

from equipoise.model.plan import Plan
from equipoise.model.trial import Draw, Phase

LARGEST_PADDING_BYTES = 4096
"""One page: the stack's start moves through all its alignments (Mytkowicz et al. 2009, §4)."""

LARGEST_SEED = 2**63 - 1


def fresh_seed() -> int:
    """A seed that nobody chose, from the operating system."""
    return secrets.randbelow(LARGEST_SEED + 1)


def draw_block(plan: Plan, phase: Phase, block: int, among: Collection[int] | None = None) -> Draw:
    """Draw the order and the environment size of one block.

    Every order of the conditions is equally likely, so any two conditions of a block stand
    in either order with probability one half, whatever happened before (rule 1).

    Parameters
    ----------
    among
        The conditions that run in it, chosen by what happened before; by default all. They
        stand in the order that they have among all.
    """
    bits = _random_bits(plan.seed, phase, block)
    order = list(range(len(plan.conditions)))
    # Fisher and Yates, from the last place down (Knuth, TAOCP 3.4.2, algorithm P).
    for last in range(len(order) - 1, 0, -1):
        other = _below(last + 1, bits)
        order[last], order[other] = order[other], order[last]
    padding = _below(LARGEST_PADDING_BYTES + 1, bits) if plan.measure.vary_environment_size else 0
    kept = order if among is None else [condition for condition in order if condition in among]
    return Draw(phase=phase, block=block, order=tuple(kept), padding_bytes=padding)


def _random_bits(seed: int, phase: Phase, block: int) -> Iterator[int]:
    """64-bit words of SHA-256 in counter mode: the same on every architecture."""
    counter = 0
    while True:
        label = f"equipoise coin 1|{seed}|{phase}|{block}|{counter}"
        digest = hashlib.sha256(label.encode("ascii")).digest()
        for start in range(0, len(digest), 8):
            yield int.from_bytes(digest[start : start + 8], "big")
        counter += 1


def _below(bound: int, bits: Iterator[int]) -> int:
    """A uniform integer in ``[0, bound)``; words that would favour small values are refused."""
    unbiased = 2**64 - 2**64 % bound
    while True:
        word = next(bits)
        if word < unbiased:
            return word % bound
