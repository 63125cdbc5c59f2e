"""The coin: the seeded random source of every order.

Each draw depends only on the seed, the phase and the block. So a resumed campaign has the same
orders as a campaign without interruption, and anyone with the ledger can check a draw.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from equipoise.model.plan import Contrast, Layout, Plan
from equipoise.model.record import Draw, Phase

MAX_PADDING_BYTES = 4096
"""Maximum size of an added environment variable: a page of memory (Mytkowicz et al. 2009, §4)."""
MAX_ARGUMENT_BYTES = 255
"""Maximum number of bytes that a layout adds to the path of the program."""
MAX_SEED = 2**63 - 1
MAX_SEED_IN_BLOCK = 2**31 - 1
"""Largest seed of `seed_in_block`: other programs read 32-bit seeds, and some of them 0 and -1 as
other requests."""

Addresses = Literal["drawn", "on", "off"]
"""Whether memory addresses are random (ASLR): in layouts that the coin draws, in all, in none."""


def fresh_seed() -> int:
    """Return a random seed from the operating system."""
    return secrets.randbelow(MAX_SEED + 1)


def seed_of_campaign(seed: int, campaigns: int) -> int:
    """Return the seed of the next campaign of a series, so that each campaign has other orders.

    ``campaigns`` is the number of earlier campaigns of the series, which begins with ``seed``.
    """
    return seed if campaigns == 0 else next(_random_integers(seed, "campaigns", campaigns)) >> 1


def seed_in_block(seed: int, purpose: str, phase: str, block: int) -> int:
    """Return the seed of something random in a block that other programs draw, such as its links.

    ``purpose`` names it. ``seed`` is that of the plan. The result is from 1 to `MAX_SEED_IN_BLOCK`.
    """
    return 1 + next(_random_integers(seed, f"{purpose} {phase}", block)) % MAX_SEED_IN_BLOCK


def draw_block(
    plan: Plan,
    phase: Phase,
    block: int,
    conditions: Collection[int] | None = None,
    *,
    washouts: bool = False,
) -> Draw:
    """Draw the order of one block, and its environment size or its layout.

    Every order is equally likely. So any two conditions of a block run in either order with
    probability one half, whatever happened before (rule 1). All conditions of a block have the same
    layout. With K layouts, each K consecutive blocks have every layout once. If trials run at once,
    the two conditions of a contrast are adjacent, in random order.

    ``conditions`` run in the block, by default all conditions of the plan. If several commands run
    in several commits, the trials of a command are adjacent.

    With ``washouts``, the coin also draws the condition that runs before each trial.
    """
    integers = _random_integers(plan.seed, phase, block)
    order = _shuffle(len(plan.conditions), integers)
    if conditions is not None:
        kept_conditions = frozenset(conditions)
        order = [condition for condition in order if condition in kept_conditions]
    order = plan.rules.execution_order(order)
    if plan.measure.cpu_sets:
        order = _pairs_adjacent(order, plan.contrasts)
    layout, padding_bytes = None, 0
    if plan.layouts:
        layout = layout_of_block(plan, phase, block)
        padding_bytes = plan.layouts[layout - 1].environment_bytes
    elif plan.measure.vary_environment_size:
        padding_bytes = _uniform_below(MAX_PADDING_BYTES + 1, integers)
    washout = None
    if washouts and order:
        integers = _random_integers(plan.seed, "washouts", block)
        washout = order[_uniform_below(len(order), integers)]
    return Draw(phase, block, tuple(order), padding_bytes, layout, washout)


def _pairs_adjacent(order: Sequence[int], contrasts: Sequence[Contrast]) -> list[int]:
    """Return an order in which the conditions of each contrast are next to each other."""
    pair_of = {index: contrast.pair for contrast in contrasts for index in contrast.pair}
    pairs: dict[tuple[int, ...], list[int]] = {}
    for condition in order:
        pairs.setdefault(pair_of.get(condition, (condition,)), []).append(condition)
    return [condition for pair in pairs.values() for condition in pair]


def draw_intervention(seed: int, block: int, weights: Sequence[float]) -> int:
    """Draw the index of the intervention of a block, with probabilities in proportion to weights.

    The weights are above 0. The draw depends only on the three parameters.
    """
    integer = next(_random_integers(seed, "interventions", block))
    # The upper 53 bits give a float below 1 that is the same on every architecture.
    remainder = (integer >> 11) / 2**53 * sum(weights)
    for index, weight in enumerate(weights):
        remainder -= weight
        if remainder < 0.0:
            return index
    return len(weights) - 1


def draw_order(seed: int, purpose: str, number: int, count: int) -> tuple[int, ...]:
    """Draw an order of ``count`` items; ``purpose`` and ``number`` identify the draw."""
    return tuple(_shuffle(count, _random_integers(seed, purpose, number)))


def draw_layouts(seed: int, count: int, addresses: Addresses) -> tuple[Layout, ...]:
    """Draw the layouts of a campaign."""
    integers = _random_integers(seed, "layouts", 0)
    layouts: list[Layout] = []
    for _ in range(count):
        environment_bytes = _uniform_below(MAX_PADDING_BYTES + 1, integers)
        argument_bytes = _uniform_below(MAX_ARGUMENT_BYTES + 1, integers)
        # Draw in any case, so that ``addresses`` does not change the other draws.
        is_random = _uniform_below(2, integers) == 1
        random_addresses = is_random if addresses == "drawn" else addresses == "on"
        layouts.append(Layout(environment_bytes, argument_bytes, random_addresses))
    return tuple(layouts)


def layout_of_block(plan: Plan, phase: Phase, block: int) -> int:
    """Return the number of a block's layout, from 1; K consecutive blocks have all K layouts."""
    count = len(plan.layouts)
    cycle, position = divmod(block - 1, count)
    return 1 + _shuffle(count, _random_integers(plan.seed, f"layouts of {phase}", cycle))[position]


def _shuffle(count: int, integers: Iterator[int]) -> list[int]:
    """Return a random order of 0 to ``count`` - 1 (Knuth, TAOCP 3.4.2, algorithm P)."""
    order = list(range(count))
    for position in range(count - 1, 0, -1):
        other_position = _uniform_below(position + 1, integers)
        order[position], order[other_position] = order[other_position], order[position]
    return order


def _random_integers(seed: int, purpose: str, number: int) -> Iterator[int]:
    """Yield 64-bit integers from SHA-256 in counter mode: the same on every architecture."""
    counter = 0
    while True:
        hashed_text = f"equipoise coin 1|{seed}|{purpose}|{number}|{counter}"
        digest = hashlib.sha256(hashed_text.encode("ascii")).digest()
        for start in range(0, len(digest), 8):
            yield int.from_bytes(digest[start : start + 8], "big")
        counter += 1


def _uniform_below(bound: int, integers: Iterator[int]) -> int:
    """Return a uniform integer below ``bound``; large integers are skipped, to avoid a bias."""
    limit = 2**64 - 2**64 % bound
    while True:
        integer = next(integers)
        if integer < limit:
            return integer % bound
