"""The bisections of the benchmarks of one command, and of several commands, share blocks.

Which pair runs is a function of the blocks before, as in a single bisection.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from equipoise.kinds.bisect.search import BranchingBisection
from equipoise.revisions.terms import Pair
from equipoise.stats.sequence import BASELINE_FIRST, CANDIDATE_FIRST


class SharedBlocks:
    """The bisections of the benchmarks that one command measures; they share each block.

    They take turns in choosing the pair. Bisections that wait for the same fixed pair share a turn,
    so benchmarks without a difference do not delay the others. A block counts for each bisection
    that can use its pair. Each benchmark has a bisection; all share one counter of own pairs.
    """

    def __init__(self, bisections: Sequence[BranchingBisection]) -> None:
        self.bisections = tuple(bisections)
        self._blocks = 0

    def next_pair(self, built: Collection[int], build_trials: float) -> Pair | None:
        """Return the pair that runs next; ``None`` if all bisections have ended.

        Parameters are those of `Bisection.next_pair`.
        """
        chooser = self._chooser()
        return None if chooser is None else chooser.next_pair(built, build_trials)

    def add(self, costs: Sequence[Mapping[int, float] | None], first: int) -> tuple[bool, ...]:
        """Add one block; return for each bisection whether it counts for it.

        Parameters
        ----------
        costs
            Costs of the two commits for each bisection; ``None`` if one was not measured.
        first
            The commit that ran first.
        """
        chooser = self._chooser()
        is_counted: list[bool] = []
        for bisection, cost in zip(self.bisections, costs, strict=True):
            counts = cost is not None and (bisection is chooser or bisection.takes(cost.keys()))
            if counts and cost is not None:
                earlier, later = bisection.in_order(cost.keys())
                order = BASELINE_FIRST if earlier == first else CANDIDATE_FIRST
                bisection.add((earlier, later), (cost[earlier], cost[later]), order)
            is_counted.append(counts)
        self._blocks += 1
        return tuple(is_counted)

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
    """Return the pair in the next block of each command that has not ended, by its place.

    The builds of a block are shared, so a command counts the commits of earlier ones as built.
    """
    ready = set(built)
    pairs: dict[int, Pair] = {}
    for place, command in enumerate(commands):
        pair = command.next_pair(ready, build_trials)
        if pair is not None:
            pairs[place] = pair
            ready.update(pair)
    return pairs
