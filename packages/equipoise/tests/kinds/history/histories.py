"""Simulated histories with known truth, for the tests and for ``benchmarks.history``."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

import numpy as np
from msgspec import Struct

from equipoise.kinds.history.schedule import MAX_COMMITS_OF_BLOCK
from equipoise.kinds.history.statistics import History
from packages.equipoise.tests.stats.simulated import FloatArray, Noise

NO_COMMITS: frozenset[int] = frozenset()


class Night(Struct, frozen=True):
    """The blocks of one campaign of a history."""

    blocks: tuple[tuple[int, ...], ...]
    """Conditions of each block in the order in which they ran."""
    is_over: bool
    """Whether nothing was left to measure."""

    @property
    def trials(self) -> int:
        """Number of trials."""
        return sum(len(block) for block in self.blocks)


def name_of(commit: int, branch: str = "") -> str:
    """Whole name of a commit."""
    return hashlib.sha1(f"{branch}{commit}".encode()).hexdigest()


def names_of(count: int) -> tuple[str, ...]:
    """Return the names of the baseline and of ``count`` commits after it."""
    return tuple(name_of(commit) for commit in range(count + 1))


def run_night(
    history: History,
    levels: Sequence[float] | FloatArray,
    noise: Noise,
    generator: np.random.Generator,
    *,
    blocks: int,
    build_trials: float = 10.0,
    broken: Collection[int] = NO_COMMITS,
    built: Collection[int] = NO_COMMITS,
) -> Night:
    """Run one campaign of a history that has begun, with a limit of blocks.

    Parameters
    ----------
    levels
        Log costs of the campaign's commits.
    noise
        Log time of each trial without the commit's own.
    broken
        Commits that fail at their first build.
    built
        Commits that are built already.
    """
    by_trial = iter(noise(generator, (1 + MAX_COMMITS_OF_BLOCK) * blocks).tolist())
    ready = {0, *built}
    ran: list[tuple[int, ...]] = []
    while len(ran) < blocks:
        conditions = history.next_block(ready, build_trials)
        if not conditions:
            return Night(tuple(ran), is_over=True)
        failed = set(conditions) & set(broken)
        for commit in sorted(failed):
            history.withdraw(commit)
        if failed:
            continue
        ready.update(conditions)
        order = [conditions[place] for place in generator.permutation(len(conditions))]
        costs = {commit: float(np.exp(levels[commit] + next(by_trial))) for commit in order}
        history.add(costs, order)
        ran.append(tuple(order))
    return Night(tuple(ran), is_over=False)
