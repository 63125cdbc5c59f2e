"""Several bisections between the same two commits: the benchmarks of a suite.

They make one claim together: the chance that any name is wrong is at most alpha, over all
benchmarks, because k counts the own pairs of all (bisect.md §4). Each benchmark has a coin of its
own in each block, or shares the trials of its block with others; which pair runs is in both cases
a function of the blocks before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from equipoise.stats.bisection import Pair
from equipoise.stats.bisection_branches import BranchingBisection
from equipoise.stats.sequence import BASELINE_FIRST, CANDIDATE_FIRST


class SharedBlocks:
    """The bisections of the benchmarks that one command measures: they share each block.

    They take turns in choosing the pair. All that wait for the same fixed pair have one turn, so
    that those without a difference hold up no search. A block counts for each bisection to which
    its pair is of use.

    Parameters
    ----------
    bisections
        One for each benchmark, with one counter of own pairs.
    """

    def __init__(self, bisections: Sequence[BranchingBisection]) -> None:
        self.bisections = tuple(bisections)
        self._blocks = 0

    def next_pair(self, built: Collection[int], build_trials: float) -> Pair | None:
        """Return the pair that runs next; ``None`` if nothing is left to ask.

        Parameters are those of `Bisection.next_pair`.
        """
        chooser = self._chooser()
        return None if chooser is None else chooser.next_pair(built, build_trials)

    def add(self, costs: Sequence[Mapping[int, float] | None], first: int) -> tuple[bool, ...]:
        """Add one block; return for each bisection whether it counts there.

        Parameters
        ----------
        costs
            Costs of the two commits for each bisection; ``None`` where one was not measured.
        first
            The commit that ran first.
        """
        chooser = self._chooser()
        taken: list[bool] = []
        for bisection, cost in zip(self.bisections, costs, strict=True):
            counts = cost is not None and (bisection is chooser or bisection.takes(cost.keys()))
            if counts and cost is not None:
                earlier, later = bisection.in_order(cost.keys())
                order = BASELINE_FIRST if earlier == first else CANDIDATE_FIRST
                bisection.add((earlier, later), (cost[earlier], cost[later]), order)
            taken.append(counts)
        self._blocks += 1
        return tuple(taken)

    def _chooser(self) -> BranchingBisection | None:
        """Return the bisection whose turn it is; ``None`` if all have ended."""
        turns: dict[Pair | int, BranchingBisection] = {}
        for place, bisection in enumerate(self.bisections):
            if bisection.is_open:
                turns.setdefault(bisection.fixed_pair or place, bisection)
        return list(turns.values())[self._blocks % len(turns)] if turns else None


def next_pairs(
    commands: Sequence[SharedBlocks], built: Collection[int], build_trials: float
) -> dict[int, Pair]:
    """Return the pair of each command in the next block, by its place; none of those that ended.

    Commits that one command needs count as built for the next ones: the builds of a block are
    shared.
    """
    ready = set(built)
    pairs: dict[int, Pair] = {}
    for place, command in enumerate(commands):
        pair = command.next_pair(ready, build_trials)
        if pair is not None:
            pairs[place] = pair
            ready.update(pair)
    return pairs
