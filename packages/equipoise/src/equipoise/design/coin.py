"""The coin: the seeded random source of every order.

Each draw depends only on the seed, the phase and the block. So a killed campaign resumes with the
same orders that it would have had, and anyone with the ledger can check a draw.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from equipoise.model.plan import Layout, Plan
from equipoise.model.record import Draw, Phase

MAX_PADDING_BYTES = 4096
"""Maximum padding, one page: the stack starts at all alignments (Mytkowicz et al. 2009, §4)."""

MAX_ARGUMENT_BYTES = 255

MAX_SEED = 2**63 - 1

Addresses = Literal["drawn", "on", "off"]
"""Whether the kernel draws new addresses in each trial (ASLR): by a coin for each layout, in all
layouts, or in none."""


def fresh_seed() -> int:
    """Return a random seed from the operating system."""
    return secrets.randbelow(MAX_SEED + 1)


def seed_of_campaign(seed: int, earlier: int) -> int:
    """Return the seed of a campaign after ``earlier`` campaigns with the same seed.

    Their orders differ, so that each order is a fair coin given all blocks before.
    """
    return seed if earlier == 0 else next(_random_integers(seed, "campaigns", earlier)) >> 1


def draw_block(
    plan: Plan,
    phase: Phase,
    block: int,
    among: Collection[int] | None = None,
    *,
    washouts: bool = False,
) -> Draw:
    """Draw the order of one block, and its environment size or its layout.

    Every order of the conditions is equally likely. So any two conditions of a block run in either
    order with probability one half, whatever happened before (rule 1). With K layouts, each K
    consecutive blocks have every layout once; all conditions of a block have the same layout.

    ``among`` are the conditions that run in the block, chosen by earlier blocks; by default all.
    They keep their order among all conditions. If several commands run in commits, the trials of
    each command are adjacent, and the commands run in random order.

    With washouts, the condition that runs before each trial is one of the block's own, with equal
    chances: exchanging two conditions then exchanges equally likely draws.
    """
    bits = _random_integers(plan.seed, phase, block)
    order = _shuffle(len(plan.conditions), bits)
    if among is not None:
        chosen = frozenset(among)
        order = [condition for condition in order if condition in chosen]
    order = plan.rules.execution_order(order)
    layout, padding_bytes = None, 0
    if plan.layouts:
        layout = layout_of_block(plan, phase, block)
        padding_bytes = plan.layouts[layout - 1].environment_bytes
    elif plan.measure.vary_environment_size:
        padding_bytes = _below(MAX_PADDING_BYTES + 1, bits)
    washout = None
    if washouts and order:
        bits = _random_integers(plan.seed, "washouts", block)
        washout = order[_below(len(order), bits)]
    return Draw(phase, block, tuple(order), padding_bytes, layout, washout)


def draw_intervention(seed: int, block: int, weights: Sequence[float]) -> int:
    """Draw the index of the intervention of a block, with probabilities by weight.

    The draw depends only on the seed, the block and the weights, which are above 0. So a killed
    campaign resumes with the same intervention that it would have tried next.
    """
    word = next(_random_integers(seed, "interventions", block))
    # The upper bits give a float below 1 that is the same on every architecture.
    remainder = (word >> 11) / 2**53 * sum(weights)
    for place, weight in enumerate(weights):
        remainder -= weight
        if remainder < 0.0:
            return place
    return len(weights) - 1


def draw_order(seed: int, purpose: str, number: int, count: int) -> tuple[int, ...]:
    """Draw an order of ``count`` items; each order is equally likely."""
    return tuple(_shuffle(count, _random_integers(seed, purpose, number)))


def draw_layouts(seed: int, count: int, addresses: Addresses) -> tuple[Layout, ...]:
    """Draw the layouts of a campaign, with the chosen addresses."""
    bits = _random_integers(seed, "layouts", 0)
    layouts: list[Layout] = []
    for _ in range(count):
        environment_bytes = _below(MAX_PADDING_BYTES + 1, bits)
        argument_bytes = _below(MAX_ARGUMENT_BYTES + 1, bits)
        # Always drawn, so that the choice of addresses does not change other draws.
        coin = _below(2, bits) == 1
        random_addresses = coin if addresses == "drawn" else addresses == "on"
        layouts.append(Layout(environment_bytes, argument_bytes, random_addresses))
    return tuple(layouts)


def layout_of_block(plan: Plan, phase: Phase, block: int) -> int:
    """Return the layout of a block, from 1: each round of K blocks has all K, in its own order."""
    count = len(plan.layouts)
    round_, place = divmod(block - 1, count)
    return 1 + _shuffle(count, _random_integers(plan.seed, f"layouts of {phase}", round_))[place]


def _shuffle(count: int, bits: Iterator[int]) -> list[int]:
    """Shuffle by Fisher and Yates, from the last place down (Knuth, TAOCP 3.4.2, algorithm P)."""
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        other = _below(last + 1, bits)
        order[last], order[other] = order[other], order[last]
    return order


def _random_integers(seed: int, purpose: str, number: int) -> Iterator[int]:
    """Yield 64-bit words of SHA-256 in counter mode: the same on every architecture."""
    counter = 0
    while True:
        label = f"equipoise coin 1|{seed}|{purpose}|{number}|{counter}"
        digest = hashlib.sha256(label.encode("ascii")).digest()
        for start in range(0, len(digest), 8):
            yield int.from_bytes(digest[start : start + 8], "big")
        counter += 1


def _below(bound: int, bits: Iterator[int]) -> int:
    """Return a uniform integer below ``bound``; words that would favour small ones are skipped."""
    unbiased = 2**64 - 2**64 % bound
    while True:
        word = next(bits)
        if word < unbiased:
            return word % bound
