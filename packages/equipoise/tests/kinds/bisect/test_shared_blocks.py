"""Bisections of several benchmarks between the same two commits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.kinds.bisect.search import Bisection, BranchingBisection
from equipoise.kinds.bisect.shared_blocks import SharedBlocks, next_pairs
from equipoise.kinds.bisect.stretch import OwnPairs
from equipoise.revisions.terms import IndexPair
from packages.equipoise.tests.kinds.bisect.bisected import one_step
from packages.equipoise.tests.stats.simulated import FloatArray

COUNT = 16
BUILT = range(COUNT + 1)
NOISE = 0.005


def searches(number: int) -> list[BranchingBisection]:
    """Return bisections that share their counter of own pairs."""
    own_pairs = OwnPairs()
    return [
        BranchingBisection(Bisection(COUNT, alpha=0.05, min_effect=1.0, own_pairs=own_pairs))
        for _ in range(number)
    ]


def run(command: SharedBlocks, levels: list[FloatArray], seed: int, blocks: int) -> list[IndexPair]:
    """Run blocks of a command; return their pairs."""
    rng, ran = np.random.default_rng(seed), list[IndexPair]()
    for _ in range(blocks):
        pair = command.next_pair(BUILT, 0.0)
        if pair is None:
            break
        costs = [
            {commit: math.exp(costs[commit] + rng.normal(0.0, NOISE)) for commit in pair}
            for costs in levels
        ]
        command.add(costs, int(rng.choice(pair)))
        ran.append(pair)
    return ran


def test_benchmarks_of_one_command_have_a_culprit_each() -> None:
    command = SharedBlocks(searches(4))
    levels = [one_step(COUNT, 0.05, at) for at in (4, 11, 11, COUNT + 1)]
    run(command, levels, seed=1, blocks=3000)
    assert command.next_pair(BUILT, 0.0) is None
    assert [[step.last for step in of.named_steps] for of in command.bisections] == [
        [4],
        [11],
        [11],
        [],
    ]
    ranks = [step.pair_number for of in command.bisections for step in of.named_steps]
    assert len(set(ranks)) == len(ranks)


def test_searches_that_wait_for_the_same_pair_share_a_turn() -> None:
    command = SharedBlocks(searches(5))
    # Four have no difference, so they stay at both ends for at least thirty blocks.
    levels = [one_step(COUNT, 0.05, 6)] + [one_step(COUNT, 0.05, COUNT + 1)] * 4
    at_ends = [pair == (0, COUNT) for pair in run(command, levels, seed=2, blocks=24)]
    first = at_ends.index(False)
    # From its first pair on the search has every second block.
    assert at_ends[first:] == [bool(at % 2) for at in range(24 - first)]
    assert first < 16


def test_a_block_counts_only_for_searches_that_can_use_its_pair() -> None:
    waiting, other = searches(2)
    command = SharedBlocks([waiting, other])
    assert command.next_pair(BUILT, 0.0) == (0, COUNT)
    assert command.add([{0: 1.0, COUNT: 1.1}, None], 0) == (True, False)
    # Both still confirm their gap, so neither can use another pair.
    assert not waiting.can_use((3, 9))
    assert not other.can_use((3, 9))
    assert waiting.can_use((0, COUNT))


def test_a_new_own_pair_is_left_to_the_search_that_chooses_it() -> None:
    (search,) = searches(1)
    command = SharedBlocks([search])
    run(command, [one_step(COUNT, 0.05, 6)], seed=3, blocks=8)
    while search.fixed_pair is not None:
        run(command, [one_step(COUNT, 0.05, 6)], seed=4, blocks=1)
    assert search.can_use((2, 9))
    assert not search.can_use((2, 3))
    assert not search.can_use((0, COUNT))
    search.withdraw(3)
    assert not search.can_use((2, 4))


def test_commands_of_a_block_share_its_builds() -> None:
    commands = [SharedBlocks([search]) for search in searches(2)]
    for seed, command in enumerate(commands):
        run(command, [one_step(COUNT, 0.02, 6)], seed=seed, blocks=30)
    pairs = next_pairs(commands, {0, COUNT}, 1000.0)
    assert [*pairs] == [0, 1]
    # Builds are expensive, so the second command uses the builds of the first.
    assert set(pairs[1]) <= {0, COUNT, *pairs[0]}
    run(commands[0], [one_step(COUNT, 0.02, 6)], seed=9, blocks=4000)
    assert [*next_pairs(commands, {0, COUNT}, 1000.0)] == [1]


@pytest.mark.parametrize("number", [2, 6])
def test_the_record_of_a_command_is_read_back_into_the_same_searches(number: int) -> None:
    levels = [one_step(COUNT, 0.03, 3 + 2 * at) for at in range(number)]
    first, rng = SharedBlocks(searches(number)), np.random.default_rng(5)
    blocks: list[tuple[list[dict[int, float]], int]] = []
    for _ in range(120):
        # The builds change the choice of pairs, but not the searches that are read back.
        pair = first.next_pair([0, COUNT, *rng.choice(COUNT, 3).tolist()], 5.0)
        assert pair is not None
        costs = [
            {commit: math.exp(costs[commit] + rng.normal(0.0, NOISE)) for commit in pair}
            for costs in levels
        ]
        blocks.append((costs, int(rng.choice(pair))))
        first.add(*blocks[-1])
    second = SharedBlocks(searches(number))
    for block in blocks:
        second.add(*block)
    assert [bisection.state() for bisection in second.bisections] == [
        bisection.state() for bisection in first.bisections
    ]
