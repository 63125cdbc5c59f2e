"""Bisections that make one claim together: of branches of merges, and of a suite's benchmarks.

The line of first parents is searched first. Once a merge is named and its step is measured, its
branch is searched, from the commit where it began to the merge's other parent, with a confirmation
of its own; then the search goes on where it was (bisect.md §8).

The chance that any name is wrong is at most alpha, over all branches and benchmarks, because k
counts the own pairs of all (bisect.md §4). Each benchmark has a coin of its own in each block, or
shares the trials of its block with others; which pair runs is in both cases a function of the
blocks before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from equipoise.model.plan import MergedBranch
from equipoise.stats.bisection import (
    Bisection,
    BisectionState,
    BisectionVerdict,
    NamedStep,
    Pair,
)
from equipoise.stats.resolution import Resolution
from equipoise.stats.sequence import BASELINE_FIRST, CANDIDATE_FIRST


class LineState(Struct, frozen=True):
    """How the search of one line of commits stands."""

    merge: int | None
    """The merge whose branch it is; ``None`` for the first line."""
    commits: tuple[int, ...]
    """Its commits by index in the whole bisection; all of ``state`` counts along this line."""
    missing: tuple[int, ...]
    """Ends of the branch that do not run: without both of them it cannot be searched."""
    state: BisectionState
    course: tuple[tuple[int, Pair], ...]
    """Each block that it took: its number among those of the whole bisection, from 1, and its pair
    along this line."""


class BranchingBisection:
    """The search of a line of commits, and of the branch of each merge that is named.

    A function of the blocks added, and of the commits withdrawn between them. The line is the
    search from GOOD to BAD, before its first block; the branches are those of all merges that can
    be named, on the line and on branches.
    """

    def __init__(self, line: Bisection, branches: Sequence[MergedBranch] = ()) -> None:
        self._branches = tuple(branches)
        self._withdrawn: set[int] = set()
        self._blocks = 0
        self._lines = [_Line(None, tuple(range(line.count + 1)), line)]

    def set_resolution(self, resolution: Resolution) -> None:
        """Set the resolution of the metric, while no block has a finite cost; later, do nothing."""
        if len(self._lines) == 1:
            self._lines[0].search.set_resolution(resolution)

    def next_pair(self, built: Collection[int], build_trials: float) -> Pair | None:
        """Return the pair that runs next; ``None`` if nothing is left to ask.

        Parameters are those of `Bisection.next_pair`.
        """
        line = self._current()
        if line is None:
            return None
        here = [line.places[one] for one in built if one in line.places]
        return line.whole(line.search.next_pair(here, build_trials))

    def add(self, pair: Pair, costs: tuple[float, float], order: int) -> None:
        """Add one complete block, of the pair that ``next_pair`` returned.

        Parameters, and what is raised, are those of `Bisection.add`; "earlier" is the first of the
        pair.
        """
        line = self._current()
        if line is None:
            raise ValueError("the bisection has ended: no block can be added")
        if not line.places.keys() >= {*pair}:
            raise ValueError(f"{pair} is not the pair that runs now")
        here = (line.places[pair[0]], line.places[pair[1]])
        line.search.add(here, costs, order)
        self._blocks += 1
        line.course.append((self._blocks, here))
        self._descend(line)

    def withdraw(self, commit: int) -> None:
        """Take out a commit that does not build or run.

        Raises
        ------
        UnusableInput
            The commit is GOOD or BAD.
        """
        self._withdrawn.add(commit)
        for line in list(self._lines):
            line.withdraw(commit)
            self._descend(line)

    @property
    def is_open(self) -> bool:
        """Whether anything is left to ask."""
        return self._current() is not None

    @property
    def fixed_pair(self) -> Pair | None:
        """The one pair that can run now; ``None`` while pairs are chosen, and at the end."""
        line = self._current()
        return None if line is None else line.whole(line.search.fixed_pair)

    def takes(self, pair: Collection[int]) -> bool:
        """Return whether a block of two commits, which another search chose, is of use here."""
        line = self._current()
        if line is None or not line.places.keys() >= {*pair}:
            return False
        earlier, later = sorted(line.places[one] for one in pair)
        return line.search.takes((earlier, later))

    @property
    def verdict(self) -> BisectionVerdict:
        """What is known of the first line."""
        return self._lines[0].search.verdict

    @property
    def named(self) -> tuple[NamedStep, ...]:
        """The commits of the first line that are named."""
        return self._lines[0].search.named

    def state(self) -> BisectionState:
        """Return how the search of the first line stands."""
        return self._lines[0].search.state()

    def lines(self) -> tuple[LineState, ...]:
        """Return how each search stands: the first line, then branches as they were begun."""
        return tuple(line.state() for line in self._lines)

    @property
    def searched_merge(self) -> int | None:
        """The merge whose branch is searched now; ``None`` for the first line."""
        line = self._current()
        return None if line is None else line.merge

    def in_order(self, pair: Collection[int]) -> Pair:
        """Return the two commits of the block that runs now, the earlier one first.

        Raises
        ------
        ValueError
            They are not on the line that is searched now.
        """
        line = self._current()
        if line is None or len(pair) != 2 or not line.places.keys() >= {*pair}:
            raise ValueError(f"{tuple(pair)} is not a pair that can run now")
        earlier, later = sorted(pair, key=line.places.__getitem__)
        return earlier, later

    def _current(self) -> _Line | None:
        return next((line for line in reversed(self._lines) if line.is_open), None)

    def _descend(self, line: _Line) -> None:
        """Begin to search the branches of merges that the line has named."""
        begun = {(one.merge, one.commits) for one in self._lines}
        for merge in line.merges():
            for branch in self._branches:
                if branch.merge == merge and (merge, branch.commits) not in begun:
                    search = line.search.of_branch(len(branch.commits) - 1)
                    self._lines.append(_Line(merge, branch.commits, search))
                    for commit in sorted(self._withdrawn):
                        self._lines[-1].withdraw(commit)


class _Line:
    """One line of commits, and its search."""

    def __init__(self, merge: int | None, commits: tuple[int, ...], search: Bisection) -> None:
        self.merge, self.commits, self.search = merge, commits, search
        self.places: Mapping[int, int] = {one: place for place, one in enumerate(commits)}
        self.course: list[tuple[int, Pair]] = []
        self._missing: set[int] = set()

    @property
    def is_open(self) -> bool:
        return not self._missing and self.search.is_open

    def whole(self, pair: Pair | None) -> Pair | None:
        """Return a pair along this line by the indices of the whole bisection."""
        return pair and (self.commits[pair[0]], self.commits[pair[1]])

    def withdraw(self, commit: int) -> None:
        place = self.places.get(commit)
        if place is None:
            return
        if self.merge is not None and place in (0, self.search.count):
            self._missing.add(commit)
        else:
            self.search.withdraw(place)

    def merges(self) -> Iterator[int]:
        """Yield the commits that are named alone, and measured: any of them may be a merge."""
        for before, last in self.search.measured:
            if last == before + 1:
                yield self.commits[last]

    def state(self) -> LineState:
        return LineState(
            merge=self.merge,
            commits=self.commits,
            missing=tuple(sorted(self._missing)),
            state=self.search.state(),
            course=tuple(self.course),
        )


class SharedBlocks:
    """The bisections of the benchmarks that one command measures: they share each block.

    They take turns in choosing the pair. All that wait for the same fixed pair have one turn, so
    that those without a difference hold up no search. A block counts for each bisection to which
    its pair is of use. There is one for each benchmark, with one counter of own pairs for all.
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
