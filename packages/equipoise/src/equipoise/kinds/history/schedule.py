"""Choose the commits that the next block of a history runs.

A coarse grid of commits runs first. Then stretches with a change are refined, down to one commit
and its parent. Then the rest of the curve runs. No guarantee depends on this choice
(docs/methods/history.md). A commit is given by its index: the baseline is 0.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from equipoise.revisions.terms import CHEAP_BUILD_TRIALS, Pair

COARSE_STRETCHES = 8
"""Number of stretches of the coarse grid."""
SCREENING_BLOCKS = 8
"""Number of blocks of each coarse stretch before any stretch is refined."""
MAX_COMMITS_OF_BLOCK = 8
"""Maximum number of commits in a block, without the baseline."""
MAX_BUILDS = 3
"""Maximum builds for a block outside suspect stretches; the first block must start soon."""
FIRST_PATIENCE = 40
"""Blocks that each undecided pair gets before any pair gets more: the patience, which doubles."""
SUSPECT_PATIENCE_FACTOR = 4
"""Factor on the patience for pairs that look like a change, and for pairs within them."""

BASELINE = 0
"""Index of the baseline."""


class PairState(Struct, frozen=True):
    """Evidence for a change between two commits, and the number of their blocks."""

    status: Literal["named", "suspect", "equivalent", "open"]
    """``named``: a certain change. ``suspect``: looks like a change, but is not certain yet."""
    blocks: int
    """Number of blocks in the present era."""
    is_weak_suspect: bool = False
    """Whether weak evidence suggests a change; it is enough for a pair within a changing one."""
    is_narrow: bool = False
    """Whether the interval of a named change is narrow enough."""
    expected_blocks: float | None = None
    """Forecast number of blocks that decide the pair; ``None`` without a forecast."""

    @property
    def is_changing(self) -> bool:
        """Whether the pair is a change, or looks like a change."""
        return self.status in ("named", "suspect")

    def needs_blocks(self, patience: int) -> bool:
        """Return whether more blocks are useful, and fewer than ``patience`` ran so far."""
        if self.status == "named":
            return not self.is_narrow
        return self.status != "equivalent" and self.blocks < patience


_UNLIMITED_PATIENCE = 1 << 62
UNMEASURED = PairState("open", 0)
"""State of a pair that never ran."""


class Schedule(Struct, frozen=True):
    """The commits that a history has measured and must still measure, by index."""

    runnable: tuple[int, ...]
    """Commits that are not known to fail, in order; the first is the baseline."""
    curve_commits: tuple[int, ...]
    """Runnable commits of the curve, in order, with the baseline and the last commit."""
    measured: tuple[int, ...]
    """Runnable commits that ran, in order."""
    states: Mapping[Pair, PairState]
    """States of the pairs that ran."""
    undersampled: tuple[int, ...] = ()
    """Commits of the curve that ran in too few blocks with the baseline."""
    start: int = BASELINE
    """Commit after which the campaign measures; earlier stretches get no blocks."""

    def next_block(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        """Return the commits of the next block in order; empty if nothing is left to measure.

        Parameters are those of `History.next_block`.
        """
        if len(self.curve_commits) == 1:
            return ()
        built_set = frozenset(built)
        preferred = built_set if build_trials >= CHEAP_BUILD_TRIALS else frozenset()
        stretches = self._stretches()
        changes = [pair for pair, state in self.states.items() if state.is_changing]
        unrefined_pairs = [
            pair for pair in stretches if not any(_contains(stretch, pair) for stretch in changes)
        ]
        screening_block = self._side_by_side_block(unrefined_pairs, SCREENING_BLOCKS, built_set)
        if screening_block:
            return screening_block
        patience = FIRST_PATIENCE
        max_blocks = max((state.blocks for state in self.states.values()), default=0)
        while True:
            block = (
                self._refining_block(patience, preferred)
                or self._side_by_side_block(stretches, patience, built_set)
                or self._side_by_side_block(self._halved(stretches, preferred), patience, built_set)
                or self._undersampled_block()
            )
            if block or patience > max_blocks:
                return block
            patience *= 2

    def blocks_to_go(self) -> int:
        """Forecast the number of remaining blocks from the widths of the intervals so far."""
        if not self.next_block((), 0.0):
            return 0
        needed_commits = {*self.measured, *self.curve_commits}
        pairs = _pairs_along(sorted(commit for commit in needed_commits if commit >= self.start))
        all_expected = (state.expected_blocks for state in self.states.values())
        forecasts = [expected for expected in all_expected if expected is not None]
        median = statistics.median(forecasts) if forecasts else FIRST_PATIENCE
        remaining_blocks = 0.0
        for state in map(self._state, pairs):
            if state.needs_blocks(_UNLIMITED_PATIENCE):
                expected = median if state.expected_blocks is None else state.expected_blocks
                remaining_blocks += max(1.0, expected - state.blocks)
        return max(1, math.ceil(remaining_blocks / MAX_COMMITS_OF_BLOCK))

    def _stretches(self) -> list[Pair]:
        """Return the stretches between measured commits and commits of the coarse grid."""
        last = self.curve_commits[-1]
        grid = {
            self.curve_commits[round(step * (len(self.curve_commits) - 1) / COARSE_STRETCHES)]
            for step in range(COARSE_STRETCHES + 1)
        }
        ends = {BASELINE, *self.measured, last}
        measured_pairs = [pair for pair in _pairs_along(sorted(ends)) if pair in self.states]
        new = {commit for commit in grid if not any(u < commit < v for u, v in measured_pairs)}
        return [pair for pair in _pairs_along(sorted(ends | new)) if pair[0] >= self.start]

    def _halved(self, stretches: Sequence[Pair], preferred: frozenset[int]) -> list[Pair]:
        """Return the stretches, the widest of them halved at an unmeasured commit of the curve."""
        missing_commits = [
            [commit for commit in self.curve_commits if u < commit < v] for u, v in stretches
        ]
        max_missing = max(map(len, missing_commits), default=0)
        halves = {
            _middle_commit(commits, preferred)
            for commits in missing_commits
            if commits and 2 * len(commits) > max_missing
        }
        return _pairs_along(sorted(halves.union(*stretches)))

    def _refining_block(self, patience: int, preferred: frozenset[int]) -> tuple[int, ...]:
        """Return a block that narrows the shortest changing stretch; empty if nothing changes."""
        changes = [pair for pair, state in self.states.items() if state.is_changing]
        weak_suspects = [
            pair
            for pair, state in self.states.items()
            if state.is_weak_suspect and not state.is_changing
        ]
        changes += [
            pair for pair in weak_suspects if any(_contains(stretch, pair) for stretch in changes)
        ]
        innermost = [
            pair
            for pair in changes
            if not any(inner != pair and _contains(pair, inner) for inner in changes)
        ]
        # Named changes come first; among equals, short stretches come first.
        innermost.sort(key=lambda pair: (self._state(pair).status != "named", pair[1] - pair[0]))
        for pair in innermost:
            block = self._inner_block(pair, patience * SUSPECT_PATIENCE_FACTOR, preferred)
            if block:
                return block
        return ()

    def _inner_block(self, pair: Pair, patience: int, preferred: frozenset[int]) -> tuple[int, ...]:
        first, last = pair
        measured_inside = [commit for commit in self.measured if first <= commit <= last]
        if len(measured_inside) > 2:
            least_run = self._least_run_pair(_pairs_along(measured_inside), patience)
            return () if least_run is None else _with_next_commit(least_run, measured_inside)
        untried = [commit for commit in self.runnable if first < commit < last]
        if untried:
            return (first, _middle_commit(untried, preferred), last)
        return pair if self._state(pair).needs_blocks(patience) else ()

    def _side_by_side_block(
        self, pairs: Sequence[Pair], patience: int, built: frozenset[int]
    ) -> tuple[int, ...]:
        """Return the baseline and successive commits, around the pair with the fewest blocks.

        ``pairs`` are in order; commits in ``built`` need no build.
        """
        least_run = self._least_run_pair(pairs, patience)
        if least_run is None:
            return ()
        commits = list(least_run)
        while True:
            neighbours = [pair for pair in pairs if pair[0] == commits[-1] or pair[1] == commits[0]]
            neighbours = [pair for pair in neighbours if self._state(pair).needs_blocks(patience)]
            added_pair = min(neighbours, key=lambda pair: self._state(pair).blocks, default=None)
            if added_pair is None:
                break
            extended_commits = sorted({*commits, *added_pair})
            is_too_long = len({BASELINE, *extended_commits}) > 1 + MAX_COMMITS_OF_BLOCK
            if is_too_long or len({BASELINE, *extended_commits} - built) > MAX_BUILDS:
                break
            commits = extended_commits
        return tuple(sorted({BASELINE, *commits}))

    def _undersampled_block(self) -> tuple[int, ...]:
        """Return the baseline and commits that ran in too few blocks with the baseline."""
        undersampled = [commit for commit in self.undersampled if commit >= self.start]
        return (BASELINE, *undersampled[:MAX_COMMITS_OF_BLOCK]) if undersampled else ()

    def _least_run_pair(self, pairs: Sequence[Pair], patience: int) -> Pair | None:
        """Return the pair with the fewest blocks among the pairs that need more.

        Among equal pairs it is the latest whose earlier commit has run, so that no pair spans later
        commits.
        """
        measured = {BASELINE, *self.measured}
        return min(
            (pair for pair in pairs if self._state(pair).needs_blocks(patience)),
            key=lambda pair: (self._state(pair).blocks, pair[0] not in measured, -pair[1]),
            default=None,
        )

    def _state(self, pair: Pair) -> PairState:
        return self.states.get(pair, UNMEASURED)


def _pairs_along(commits: Sequence[int]) -> list[Pair]:
    return list(itertools.pairwise(commits))


def _contains(pair: Pair, inner: Pair) -> bool:
    return pair[0] <= inner[0] and inner[1] <= pair[1]


def _with_next_commit(pair: Pair, commits: Sequence[int]) -> tuple[int, ...]:
    """Return a pair with the commit next to it, so that one block measures two stretches."""
    index = commits.index(pair[1])
    if index + 1 < len(commits):
        return (*pair, commits[index + 1])
    return (commits[index - 2], *pair)


def _middle_commit(commits: Sequence[int], preferred: frozenset[int]) -> int:
    """Return the middle commit, or a preferred commit of the middle half."""
    middle = (len(commits) - 1) / 2
    near_indices = [
        index
        for index, commit in enumerate(commits)
        if commit in preferred and abs(index - middle) <= len(commits) / 4
    ]
    return commits[min(near_indices or [math.floor(middle)], key=lambda index: abs(index - middle))]
