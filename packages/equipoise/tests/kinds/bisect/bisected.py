"""Simulated bisections with known truth, for the tests and for ``benchmarks.bisect``."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import TypeVar

import numpy as np
from msgspec import Struct

from equipoise.kinds.bisect.search import Bisection, BranchingBisection
from packages.equipoise.tests.stats.simulated import FloatArray, Noise

NO_COMMITS: frozenset[int] = frozenset()


class EndedSearch(Struct, frozen=True):
    """A bisection at its end, or at its limit of blocks."""

    bisection: Bisection | BranchingBisection
    trials: int
    builds: int


def one_step(count: int, effect: float, at: int) -> FloatArray:
    """Log costs of commits 0 to ``count``: those from ``at`` on take e^effect times as long."""
    return effect * (np.arange(count + 1) >= at).astype(np.float64)


def steps(count: int, effects: dict[int, float]) -> FloatArray:
    """Log costs of commits 0 to ``count``, with a step at each of some commits."""
    jumps = np.zeros(count + 1)
    jumps[list(effects)] = list(effects.values())
    return np.cumsum(jumps)


AnyBisection = TypeVar("AnyBisection", Bisection, BranchingBisection)


def search(
    levels: FloatArray,
    noise: Noise,
    generator: np.random.Generator,
    bisection: AnyBisection,
    *,
    blocks: int,
    build_trials: float = 10.0,
    broken: Collection[int] = NO_COMMITS,
    until: Callable[[AnyBisection], bool] = lambda _: False,
    ends: tuple[int, int] | None = None,
) -> EndedSearch:
    """Run a bisection; ``broken`` commits fail at their first build, and no block waits for them.

    ``levels`` are those of all blocks, shape (n + 1,), or of each, shape (m, n + 1); the last goes
    on.
    """
    by_trial = noise(generator, 2 * blocks).tolist()
    coins = generator.choice((-1, 1), blocks).tolist()
    costs_by_block = np.exp(np.atleast_2d(levels)).tolist()
    built = set(ends or (0, levels.shape[-1] - 1))
    for block in range(blocks):
        pair = bisection.next_pair(built, build_trials)
        while pair is not None and not set(broken).isdisjoint(pair):
            for commit in sorted(set(pair) & set(broken)):
                bisection.withdraw(commit)
            pair = bisection.next_pair(built, build_trials)
        if pair is None or until(bisection):
            return EndedSearch(bisection, 2 * block, len(built))
        built.update(pair)
        order = coins[block]
        first, second = by_trial[2 * block], by_trial[2 * block + 1]
        before, after = (first, second) if order == 1 else (second, first)
        costs = costs_by_block[min(block, len(costs_by_block) - 1)]
        cost = (costs[pair[0]] * math.exp(before), costs[pair[1]] * math.exp(after))
        bisection.add(pair, cost, order)
    return EndedSearch(bisection, 2 * blocks, len(built))
