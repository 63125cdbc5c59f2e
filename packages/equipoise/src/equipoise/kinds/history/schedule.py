"""Choose the commits that the next block of a history runs.

A coarse grid of commits runs first. Then pairs with a change are refined, down to one commit and
its parent. Then the rest of the curve runs. No claim depends on this choice
(docs/methods/history.md).

Commits are indices: the baseline is 0. A pair stands for the stretch between two commits. The
current era has the campaigns with numbers that are comparable with new blocks.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from equipoise.revisions.terms import CHEAP_BUILD_TRIALS, IndexPair

COARSE_STRETCHES = 8
"""Number of stretches of the coarse grid."""
SCREENING_BLOCKS = 8
"""Number of blocks for each coarse stretch, before any stretch is refined."""
MAX_COMMITS_OF_BLOCK = 8
"""Maximum number of commits in a block, without the baseline."""
MAX_BUILDS = 3
"""Maximum builds for a block of the grid or the curve."""
FIRST_PATIENCE = 40
"""First value of the patience: the maximum number of blocks for an undecided pair.

Once all undecided pairs have this number of blocks, the patience doubles."""
SUSPECT_PATIENCE_FACTOR = 4
"""Factor on the patience for pairs within a change or a suspect."""

BASELINE = 0
"""Index of the baseline."""


class PairState(Struct, frozen=True):
    """Evidence for a change within a pair, and the number of the pair's blocks."""

    status: Literal["changed", "suspect", "equivalent", "undecided"]
    """``suspect``: looks like a change, but is not certain yet. Other values are those of
    `PairStatus`."""
    blocks: int
    """Number of blocks in the current era."""
    is_weak_suspect: bool = False
    """Whether there is weak evidence for a change. Weak suspects within a change or a suspect are
    refined."""
    is_settled: bool = False
    """Whether a certain change needs no more blocks."""
    expected_blocks: float | None = None
    """Forecast number of blocks that decide the pair; ``None`` without a forecast."""

    @property
    def is_changing(self) -> bool:
        """Whether the pair is a change or a suspect."""
        return self.status in ("changed", "suspect")

    def needs_blocks(self, patience: int) -> bool:
        """Return whether more blocks are useful; an undecided pair gets up to ``patience``."""
        if self.status == "changed":
            return not self.is_settled
        return self.status != "equivalent" and self.blocks < patience


_UNLIMITED_PATIENCE = 1 << 62
UNMEASURED = PairState("undecided", 0)
"""State of a pair that never ran."""


class Schedule(Struct, frozen=True):
    """The commits that a history has measured and must still measure."""

    runnable: tuple[int, ...]
    """Commits that are not known to fail, in order; the first is the baseline."""
    curve_commits: tuple[int, ...]
    """Runnable commits of the curve, in order. The first and last commit belong to the curve."""
    measured: tuple[int, ...]
    """Runnable commits that ran, in order."""
    states: Mapping[IndexPair, PairState]
    """States of the pairs that ran."""
    undersampled: tuple[int, ...] = ()
    """Commits of the curve that ran in too few blocks with the baseline."""
    start: int = BASELINE
    """First commit to measure; pairs with an earlier commit get no blocks."""

    def next_block(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        """Return the commits of the next block in order, as `History.next_block`."""
        if len(self.curve_commits) == 1:
            return ()
        built_set = frozenset(built)
        preferred = built_set if build_trials >= CHEAP_BUILD_TRIALS else frozenset()
        grid_pairs = self._grid_pairs()
        changing_pairs = [pair for pair, state in self.states.items() if state.is_changing]
        quiet_pairs = [pair for pair in grid_pairs if not _is_within_any(pair, changing_pairs)]
        screening_block = self._side_by_side_block(quiet_pairs, SCREENING_BLOCKS, built_set)
        if screening_block:
            return screening_block
        patience = FIRST_PATIENCE
        max_blocks = max((state.blocks for state in self.states.values()), default=0)
        while True:
            block = (
                self._refining_block(patience, preferred)
                or self._side_by_side_block(grid_pairs, patience, built_set)
                or self._side_by_side_block(
                    self._with_widest_halved(grid_pairs, preferred), patience, built_set
                )
                or self._undersampled_block()
            )
            if block or patience > max_blocks:
                return block
            patience *= 2

    def blocks_to_go(self) -> int:
        """Forecast the number of remaining blocks."""
        if not self.next_block((), 0.0):
            return 0
        needed_commits = {*self.measured, *self.curve_commits}
        pairs = _pairs_along(sorted(commit for commit in needed_commits if commit >= self.start))
        all_forecasts = (state.expected_blocks for state in self.states.values())
        forecasts = [forecast for forecast in all_forecasts if forecast is not None]
        median = statistics.median(forecasts) if forecasts else FIRST_PATIENCE
        remaining_blocks = 0.0
        for state in map(self._state, pairs):
            if state.needs_blocks(_UNLIMITED_PATIENCE):
                forecast = median if state.expected_blocks is None else state.expected_blocks
                remaining_blocks += max(1.0, forecast - state.blocks)
        return max(1, math.ceil(remaining_blocks / MAX_COMMITS_OF_BLOCK))

    def _grid_pairs(self) -> list[IndexPair]:
        """Return the pairs of neighbours among the measured commits and the coarse grid."""
        last = self.curve_commits[-1]
        grid = {
            self.curve_commits[round(step * (len(self.curve_commits) - 1) / COARSE_STRETCHES)]
            for step in range(COARSE_STRETCHES + 1)
        }
        fixed_commits = {BASELINE, *self.measured, last}
        pairs = _pairs_along(sorted(fixed_commits))
        measured_pairs = [pair for pair in pairs if pair in self.states]
        new_commits = {
            commit
            for commit in grid
            if not any(earlier < commit < later for earlier, later in measured_pairs)
        }
        grid_pairs = _pairs_along(sorted(fixed_commits | new_commits))
        return [pair for pair in grid_pairs if pair[0] >= self.start]

    def _with_widest_halved(
        self, pairs: Sequence[IndexPair], preferred: frozenset[int]
    ) -> list[IndexPair]:
        """Return the pairs after halving the pairs with many unmeasured commits of the curve.

        A pair is halved if it has more than half of the largest number of unmeasured commits.
        """
        unmeasured_by_pair = [
            [commit for commit in self.curve_commits if earlier < commit < later]
            for earlier, later in pairs
        ]
        max_unmeasured = max(map(len, unmeasured_by_pair), default=0)
        middle_commits = {
            _middle_commit(unmeasured, preferred)
            for unmeasured in unmeasured_by_pair
            if unmeasured and 2 * len(unmeasured) > max_unmeasured
        }
        return _pairs_along(sorted(middle_commits.union(*pairs)))

    def _refining_block(self, patience: int, preferred: frozenset[int]) -> tuple[int, ...]:
        """Return a block that refines the shortest changing pair; empty if nothing changes."""
        changing_pairs = [pair for pair, state in self.states.items() if state.is_changing]
        weak_suspects = [
            pair
            for pair, state in self.states.items()
            if state.is_weak_suspect and not state.is_changing
        ]
        changing_pairs += [pair for pair in weak_suspects if _is_within_any(pair, changing_pairs)]
        innermost_pairs = [
            pair
            for pair in changing_pairs
            if not any(inner != pair and _contains(pair, inner) for inner in changing_pairs)
        ]
        # Certain changes come first, and then short pairs.
        innermost_pairs.sort(
            key=lambda pair: (self._state(pair).status != "changed", pair[1] - pair[0])
        )
        for pair in innermost_pairs:
            block = self._inner_block(pair, patience * SUSPECT_PATIENCE_FACTOR, preferred)
            if block:
                return block
        return ()

    def _inner_block(
        self, pair: IndexPair, patience: int, preferred: frozenset[int]
    ) -> tuple[int, ...]:
        """Return a block of commits within a pair; empty if no more blocks are needed."""
        first, last = pair
        measured_inside = [commit for commit in self.measured if first <= commit <= last]
        if len(measured_inside) > 2:
            least_run_pair = self._least_run_pair(_pairs_along(measured_inside), patience)
            return (
                () if least_run_pair is None else _with_next_commit(least_run_pair, measured_inside)
            )
        unmeasured = [commit for commit in self.runnable if first < commit < last]
        if unmeasured:
            return (first, _middle_commit(unmeasured, preferred), last)
        return pair if self._state(pair).needs_blocks(patience) else ()

    def _side_by_side_block(
        self, pairs: Sequence[IndexPair], patience: int, built: frozenset[int]
    ) -> tuple[int, ...]:
        """Return the baseline, and successive commits around the pair with the fewest blocks.

        ``pairs`` are in the order of the commits. Commits in ``built`` need no build.
        """
        least_run_pair = self._least_run_pair(pairs, patience)
        if least_run_pair is None:
            return ()
        commits = list(least_run_pair)
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

    def _least_run_pair(self, pairs: Sequence[IndexPair], patience: int) -> IndexPair | None:
        """Return the pair with the fewest blocks among the pairs that need more.

        At equal numbers of blocks, pairs with a measured earlier commit come first, and then the
        latest pair. So no pair is opened around commits that run later.
        """
        measured = {BASELINE, *self.measured}
        return min(
            (pair for pair in pairs if self._state(pair).needs_blocks(patience)),
            key=lambda pair: (self._state(pair).blocks, pair[0] not in measured, -pair[1]),
            default=None,
        )

    def _state(self, pair: IndexPair) -> PairState:
        return self.states.get(pair, UNMEASURED)


def _pairs_along(commits: Sequence[int]) -> list[IndexPair]:
    return list(itertools.pairwise(commits))


def _contains(outer: IndexPair, inner: IndexPair) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _is_within_any(pair: IndexPair, outer_pairs: Sequence[IndexPair]) -> bool:
    return any(_contains(outer, pair) for outer in outer_pairs)


def _with_next_commit(pair: IndexPair, commits: Sequence[int]) -> tuple[int, ...]:
    """Return a pair and a neighbouring commit, so that one block measures two pairs."""
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
