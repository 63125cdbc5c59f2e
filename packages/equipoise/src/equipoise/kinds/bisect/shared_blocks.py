"""Let the bisections of several benchmarks share blocks.

A fixed pair is the only pair of commits that a bisection can use now. As in a single bisection, the
next pair depends only on earlier blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from equipoise.kinds.bisect.search import BranchingBisection
from equipoise.revisions.terms import IndexPair
from equipoise.stats.sequence import BASELINE_FIRST, CANDIDATE_FIRST


class SharedBlocks:
    """The bisections of the benchmarks that one command measures; they share each block.

    The bisections take turns in choosing the pair of the next block. Bisections that need the same
    fixed pair share a turn. A block counts for each bisection that can use the pair of the block.
    """

    def __init__(self, bisections: Sequence[BranchingBisection]) -> None:
        self.bisections = tuple(bisections)
        self._block_count = 0

    def next_pair(self, built: Collection[int], build_trials: float) -> IndexPair | None:
        """Return the pair that runs next, as `Bisection.next_pair`; ``None`` if all have ended."""
        chooser = self._chooser()
        return None if chooser is None else chooser.next_pair(built, build_trials)

    def add(
        self, costs: Sequence[Mapping[int, float] | None], first_commit: int
    ) -> tuple[bool, ...]:
        """Add one block; return for each bisection whether the block counts.

        ``costs`` has the costs of both commits for each bisection, or ``None`` if one is missing.
        ``first_commit`` is the commit that ran first.
        """
        chooser = self._chooser()
        counted_flags: list[bool] = []
        for bisection, costs_by_commit in zip(self.bisections, costs, strict=True):
            if costs_by_commit is None or not (
                bisection is chooser or bisection.can_use(costs_by_commit.keys())
            ):
                counted_flags.append(False)
                continue
            earlier, later = bisection.ordered_pair(costs_by_commit.keys())
            order = BASELINE_FIRST if earlier == first_commit else CANDIDATE_FIRST
            pair_costs = (costs_by_commit[earlier], costs_by_commit[later])
            bisection.add((earlier, later), pair_costs, order)
            counted_flags.append(True)
        self._block_count += 1
        return tuple(counted_flags)

    def _chooser(self) -> BranchingBisection | None:
        """Return the bisection whose turn it is; ``None`` if all have ended."""
        choosers: dict[IndexPair | int, BranchingBisection] = {}
        """Bisection that chooses in each turn, by its fixed pair, or else by its index."""
        for index, bisection in enumerate(self.bisections):
            if bisection.is_open:
                choosers.setdefault(bisection.fixed_pair or index, bisection)
        return list(choosers.values())[self._block_count % len(choosers)] if choosers else None


def next_pairs(
    commands: Sequence[SharedBlocks], built: Collection[int], build_trials: float
) -> dict[int, IndexPair]:
    """Return the next pair of each command that has not ended, by the index of the command.

    A commit that an earlier command chose counts as built for the later commands.
    """
    built_commits = set(built)
    pairs: dict[int, IndexPair] = {}
    for index, command in enumerate(commands):
        pair = command.next_pair(built_commits, build_trials)
        if pair is not None:
            pairs[index] = pair
            built_commits.update(pair)
    return pairs
