"""The order of work of a history: which commits the next block runs.

A coarse grid of commits runs first. Then stretches with a change are refined, down to one commit
and its parent. Then the rest of the curve runs. No guarantee depends on this choice
(docs/methods/history.md).
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
"""Most commits of a block, without the baseline."""
MAX_BUILDS = 3
"""Most commits that a block without a suspect builds; the first block must not wait for all."""
FIRST_PATIENCE = 40
"""Blocks that an undecided pair gets before other pairs have their turn; doubled in each round."""
SUSPECT_PATIENCE_FACTOR = 4
"""Factor on the patience for pairs that look like a change, and for pairs within them."""

BASELINE = 0

LinkStatus = Literal["named", "suspect", "equivalent", "open"]
"""``suspect``: the pair looks like a change, but is not certain yet."""


class Link(Struct, frozen=True):
    """The state of a pair of commits."""

    status: LinkStatus
    blocks: int
    """Blocks of the present era."""
    is_weak_suspect: bool = False
    """Whether weak evidence suggests a change; it is enough for a pair within a changing one."""
    is_narrow: bool = False
    """Whether the interval of a named change is narrow enough."""
    expected: float | None = None
    """Forecast of the blocks that decide whether the pair changes; ``None`` without a forecast."""

    @property
    def changes(self) -> bool:
        """Whether the pair is a change, or looks like one."""
        return self.status in ("named", "suspect")

    def needs_blocks(self, patience: int) -> bool:
        """Return whether more blocks are useful, and fewer than ``patience`` ran so far."""
        if self.status == "named":
            return not self.is_narrow
        return self.status != "equivalent" and self.blocks < patience


_UNLIMITED_PATIENCE = 1 << 62
UNOPENED_LINK = Link("open", 0)


class Course(Struct, frozen=True):
    """The measured and the wanted commits of a history, by their places."""

    runnable: tuple[int, ...]
    """Commits that are not known to fail; the baseline, 0, is the first."""
    curve_commits: tuple[int, ...]
    """Runnable commits of the curve, in order, with the baseline and the last commit."""
    measured: tuple[int, ...]
    """Runnable commits that ran, in order."""
    links: Mapping[Pair, Link]
    """States of the pairs that were opened."""
    undersampled: tuple[int, ...] = ()
    """Commits of the curve that ran in too few blocks with the baseline."""
    first: int = BASELINE
    """The commit before the first one that the campaign measures."""

    def next_block(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        """Return the commits of the next block, in their order; none if nothing is left to measure.

        Parameters are those of `History.next_block`.
        """
        if len(self.curve_commits) == 1:
            return ()
        ready = frozenset(built)
        preferred = ready if build_trials >= CHEAP_BUILD_TRIALS else frozenset()
        stretches = self._stretches()
        refined = [pair for pair, link in self.links.items() if link.changes]
        unrefined = [
            pair for pair in stretches if not any(_contains(stretch, pair) for stretch in refined)
        ]
        screening = self._side_by_side(unrefined, SCREENING_BLOCKS, ready)
        if screening:
            return screening
        patience = FIRST_PATIENCE
        max_blocks = max((link.blocks for link in self.links.values()), default=0)
        while True:
            block = (
                self._refinement(patience, preferred)
                or self._side_by_side(stretches, patience, ready)
                or self._side_by_side(self._halved(stretches, preferred), patience, ready)
                or self._undersampled_block()
            )
            if block or patience > max_blocks:
                return block
            patience *= 2

    def blocks_to_go(self) -> int:
        """Return a forecast of the remaining blocks, by the widths of the intervals so far."""
        if not self.next_block((), 0.0):
            return 0
        at_last = sorted(
            {place for place in (*self.measured, *self.curve_commits) if place >= self.first}
        )
        links = [self._link(pair) for pair in _chain(at_last)]
        forecasts = [link.expected for link in self.links.values() if link.expected is not None]
        usual = statistics.median(forecasts) if forecasts else FIRST_PATIENCE
        remaining_blocks = [
            max(1.0, (usual if link.expected is None else link.expected) - link.blocks)
            for link in links
            if link.needs_blocks(_UNLIMITED_PATIENCE)
        ]
        return max(1, math.ceil(sum(remaining_blocks) / MAX_COMMITS_OF_BLOCK))

    def _stretches(self) -> list[Pair]:
        """Return the stretches between measured commits and commits of the coarse grid."""
        last = self.curve_commits[-1]
        grid = {
            self.curve_commits[round(place * (len(self.curve_commits) - 1) / COARSE_STRETCHES)]
            for place in range(COARSE_STRETCHES + 1)
        }
        ends = {BASELINE, *self.measured, last}
        opened = [pair for pair in _chain(sorted(ends)) if pair in self.links]
        new = {place for place in grid if not any(u < place < v for u, v in opened)}
        return [pair for pair in _chain(sorted(ends | new)) if pair[0] >= self.first]

    def _halved(self, stretches: Sequence[Pair], ready: frozenset[int]) -> list[Pair]:
        """Return the stretches; the widest ones are halved at a missing commit of the curve."""
        missing_commits = [
            [place for place in self.curve_commits if u < place < v] for u, v in stretches
        ]
        widest = max(map(len, missing_commits), default=0)
        halves = {
            _middle(commits, ready)
            for commits in missing_commits
            if commits and 2 * len(commits) > widest
        }
        return _chain(sorted(halves.union(*stretches)))

    def _refinement(self, patience: int, ready: frozenset[int]) -> tuple[int, ...]:
        """Return a block that narrows the shortest changing stretch; empty if there is none."""
        changing = [pair for pair, link in self.links.items() if link.changes]
        weak_suspects = [
            pair for pair, link in self.links.items() if link.is_weak_suspect and not link.changes
        ]
        changing += [
            pair for pair in weak_suspects if any(_contains(stretch, pair) for stretch in changing)
        ]
        innermost = [
            pair
            for pair in changing
            if not any(other != pair and _contains(pair, other) for other in changing)
        ]
        # Named pairs come before others, and short stretches first.
        innermost.sort(key=lambda pair: (self._link(pair).status != "named", pair[1] - pair[0]))
        for pair in innermost:
            block = self._refine(pair, patience * SUSPECT_PATIENCE_FACTOR, ready)
            if block:
                return block
        return ()

    def _refine(self, pair: Pair, patience: int, ready: frozenset[int]) -> tuple[int, ...]:
        first, last = pair
        inside = [place for place in self.measured if first <= place <= last]
        if len(inside) > 2:
            shortest = self._shortest(_chain(inside), patience)
            return () if shortest is None else _with_neighbour(shortest, inside)
        between = [place for place in self.runnable if first < place < last]
        if between:
            return (first, _middle(between, ready), last)
        return pair if self._link(pair).needs_blocks(patience) else ()

    def _side_by_side(
        self, pairs: Sequence[Pair], patience: int, ready: frozenset[int]
    ) -> tuple[int, ...]:
        """Return the baseline and successive commits, around the pair with the fewest blocks.

        ``pairs`` are in order; commits in ``ready`` need no build.
        """
        shortest = self._shortest(pairs, patience)
        if shortest is None:
            return ()
        commits = list(shortest)
        while True:
            sides = [pair for pair in pairs if pair[0] == commits[-1] or pair[1] == commits[0]]
            sides = [pair for pair in sides if self._link(pair).needs_blocks(patience)]
            nearest = min(sides, key=lambda pair: self._link(pair).blocks, default=None)
            if nearest is None:
                break
            longer = sorted({*commits, *nearest})
            is_long = len({BASELINE, *longer}) > 1 + MAX_COMMITS_OF_BLOCK
            if is_long or len({BASELINE, *longer} - ready) > MAX_BUILDS:
                break
            commits = longer
        return tuple(sorted({BASELINE, *commits}))

    def _undersampled_block(self) -> tuple[int, ...]:
        """Return the baseline and commits that ran in too few blocks with it."""
        undersampled = [place for place in self.undersampled if place >= self.first][
            :MAX_COMMITS_OF_BLOCK
        ]
        return (BASELINE, *undersampled) if undersampled else ()

    def _shortest(self, pairs: Sequence[Pair], patience: int) -> Pair | None:
        """Return the pair with the fewest blocks among those that need more.

        Among equal ones it is the latest whose earlier commit has run, so that no pair spans later
        commits.
        """
        measured = {BASELINE, *self.measured}
        wanting = [pair for pair in pairs if self._link(pair).needs_blocks(patience)]
        return min(
            wanting,
            key=lambda pair: (self._link(pair).blocks, pair[0] not in measured, -pair[1]),
            default=None,
        )

    def _link(self, pair: Pair) -> Link:
        return self.links.get(pair, UNOPENED_LINK)


def _chain(places: Sequence[int]) -> list[Pair]:
    return list(itertools.pairwise(places))


def _contains(pair: Pair, other: Pair) -> bool:
    return pair[0] <= other[0] and other[1] <= pair[1]


def _with_neighbour(pair: Pair, inside: Sequence[int]) -> tuple[int, ...]:
    """Return a pair with the commit next to it, so that one block measures two stretches."""
    place = inside.index(pair[1])
    if place + 1 < len(inside):
        return (*pair, inside[place + 1])
    return (inside[place - 2], *pair)


def _middle(places: Sequence[int], ready: frozenset[int]) -> int:
    """Return the middle commit, or a commit of the middle half that needs no build."""
    middle = (len(places) - 1) / 2
    near = [
        index
        for index, place in enumerate(places)
        if place in ready and abs(index - middle) <= len(places) / 4
    ]
    return places[min(near or [math.floor(middle)], key=lambda index: abs(index - middle))]
