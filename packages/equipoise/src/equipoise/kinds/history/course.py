"""The order of work of a history: which commits the next block runs.

Coarse first, then where something changes down to one commit and its parent, then the rest of the
curve. Whatever it chooses from the past, no guarantee depends on it (docs/methods/statistics.md).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from equipoise.revisions.terms import CHEAP_BUILD_TRIALS, Pair

STRETCHES = 8
"""Number of stretches of the coarse grid."""
SCREENING_BLOCKS = 8
"""Blocks of each coarse stretch before any of them is refined."""
WIDTH = 8
"""Most commits of a block beside the baseline."""
MAX_BUILDS = 3
"""Most commits that a block without a suspect has built: the first block shall not wait for all."""
FIRST_PATIENCE = 40
"""Blocks that an undecided pair takes before others take their turn; then twice as many."""

PATIENCE_WITH_SUSPECTS = 4
"""As many times the patience has what looks like a change, and what lies within it."""

BASELINE = 0

LinkStatus = Literal["named", "suspect", "equivalent", "open"]
"""``suspect``: looks like a change, and is not certain yet."""


class Link(Struct, frozen=True):
    """How a pair of commits stands."""

    status: LinkStatus
    blocks: int
    """Blocks of the present era."""
    leans: bool = False
    """Whether it would look like a change with less evidence: enough within one that changes."""
    is_narrow: bool = False
    """Whether the size of a named change is known well enough."""
    expected: float | None = None
    """Blocks after which it is probably known whether it changes; ``None`` if that is unknown."""

    @property
    def changes(self) -> bool:
        """Whether there is a change, or what looks like one."""
        return self.status in ("named", "suspect")

    def wants_blocks(self, patience: int) -> bool:
        """Return whether more blocks would tell more, and it has not had its share of them."""
        if self.status == "named":
            return not self.is_narrow
        return self.status != "equivalent" and self.blocks < patience


_FOR_EVER = 1 << 62
UNKNOWN = Link("open", 0)


class Course(Struct, frozen=True):
    """What has been measured of a history, and what is wanted of it; commits by their places."""

    runnable: tuple[int, ...]
    """Commits that build and run, as far as is known; the baseline, 0, first."""
    wanted: tuple[int, ...]
    """Runnable commits of the curve: the baseline, the last commit, and others in order."""
    measured: tuple[int, ...]
    """Runnable commits that ran, in order."""
    links: Mapping[Pair, Link]
    """Pairs that were opened."""
    seldom: tuple[int, ...] = ()
    """Commits of the curve that ran, but not beside the baseline so often as the curve wants."""
    first: int = BASELINE
    """Commit before the first one that the curve asks about."""

    def next_block(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        """Return the commits of the next block, in their order; none if nothing is left to ask.

        Parameters are those of `History.next_block`.
        """
        if len(self.wanted) == 1:
            return ()
        ready = frozenset(built)
        preferred = ready if build_trials >= CHEAP_BUILD_TRIALS else frozenset()
        stretches = self._stretches()
        refined = [pair for pair, link in self.links.items() if link.changes]
        apart = [pair for pair in stretches if not any(_contains(one, pair) for one in refined)]
        screening = self._side_by_side(apart, SCREENING_BLOCKS, ready)
        if screening:
            return screening
        patience = FIRST_PATIENCE
        most = max((link.blocks for link in self.links.values()), default=0)
        while True:
            block = (
                self._refinement(patience, preferred)
                or self._side_by_side(stretches, patience, ready)
                or self._side_by_side(self._halved(stretches, preferred), patience, ready)
                or self._beside_baseline()
            )
            if block or patience > most:
                return block
            patience *= 2

    def blocks_to_go(self) -> int:
        """Return how many blocks are probably left, by the width of the intervals so far."""
        if not self.next_block((), 0.0):
            return 0
        at_last = sorted({one for one in (*self.measured, *self.wanted) if one >= self.first})
        links = [self._link(pair) for pair in _chain(at_last)]
        known = [link.expected for link in self.links.values() if link.expected is not None]
        usual = statistics.median(known) if known else FIRST_PATIENCE
        left = [
            max(1.0, (usual if link.expected is None else link.expected) - link.blocks)
            for link in links
            if link.wants_blocks(_FOR_EVER)
        ]
        return max(1, math.ceil(sum(left) / WIDTH))

    def _stretches(self) -> list[Pair]:
        """Return the stretches between commits that were measured, or are of the coarse grid."""
        last = self.wanted[-1]
        grid = {
            self.wanted[round(place * (len(self.wanted) - 1) / STRETCHES)]
            for place in range(STRETCHES + 1)
        }
        known = {BASELINE, *self.measured, last}
        opened = [pair for pair in _chain(sorted(known)) if pair in self.links]
        new = {one for one in grid if not any(u < one < v for u, v in opened)}
        return [pair for pair in _chain(sorted(known | new)) if pair[0] >= self.first]

    def _halved(self, stretches: Sequence[Pair], ready: frozenset[int]) -> list[Pair]:
        """Return the stretches, the widest ones halved where the curve wants a commit in them."""
        missing = [[one for one in self.wanted if u < one < v] for u, v in stretches]
        widest = max(map(len, missing), default=0)
        halves = {
            _middle(commits, ready) for commits in missing if commits and 2 * len(commits) > widest
        }
        return _chain(sorted(halves.union(*stretches)))

    def _refinement(self, patience: int, ready: frozenset[int]) -> tuple[int, ...]:
        """Return the block that best tells where the narrowest stretch that changes does so."""
        changing = [pair for pair, link in self.links.items() if link.changes]
        leaning = [pair for pair, link in self.links.items() if link.leans and not link.changes]
        changing += [pair for pair in leaning if any(_contains(one, pair) for one in changing)]
        inmost = [
            pair
            for pair in changing
            if not any(other != pair and _contains(pair, other) for other in changing)
        ]
        # Named pairs come before others, and short stretches first.
        inmost.sort(key=lambda pair: (self._link(pair).status != "named", pair[1] - pair[0]))
        for pair in inmost:
            block = self._refine(pair, patience * PATIENCE_WITH_SUSPECTS, ready)
            if block:
                return block
        return ()

    def _refine(self, pair: Pair, patience: int, ready: frozenset[int]) -> tuple[int, ...]:
        first, last = pair
        inside = [one for one in self.measured if first <= one <= last]
        if len(inside) > 2:
            shortest = self._shortest(_chain(inside), patience)
            return () if shortest is None else _with_neighbour(shortest, inside)
        between = [one for one in self.runnable if first < one < last]
        if between:
            return (first, _middle(between, ready), last)
        return pair if self._link(pair).wants_blocks(patience) else ()

    def _side_by_side(
        self, pairs: Sequence[Pair], patience: int, ready: frozenset[int]
    ) -> tuple[int, ...]:
        """Return the baseline and commits in a row, for the pair with the fewest blocks.

        The pairs follow each other; commits that are ready need no build.
        """
        shortest = self._shortest(pairs, patience)
        if shortest is None:
            return ()
        commits = list(shortest)
        while True:
            sides = [pair for pair in pairs if pair[0] == commits[-1] or pair[1] == commits[0]]
            sides = [pair for pair in sides if self._link(pair).wants_blocks(patience)]
            nearest = min(sides, key=lambda pair: self._link(pair).blocks, default=None)
            if nearest is None:
                break
            longer = sorted({*commits, *nearest})
            is_long = len({BASELINE, *longer}) > 1 + WIDTH
            if is_long or len({BASELINE, *longer} - ready) > MAX_BUILDS:
                break
            commits = longer
        return tuple(sorted({BASELINE, *commits}))

    def _beside_baseline(self) -> tuple[int, ...]:
        """Return the baseline and commits of the curve that ran beside it too seldom."""
        seldom = [one for one in self.seldom if one >= self.first][:WIDTH]
        return (BASELINE, *seldom) if seldom else ()

    def _shortest(self, pairs: Sequence[Pair], patience: int) -> Pair | None:
        """Return the pair with the fewest blocks of those that want more.

        Of several the latest whose earlier commit has run, so that no pair spans what follows.
        """
        known = {BASELINE, *self.measured}
        wanting = [pair for pair in pairs if self._link(pair).wants_blocks(patience)]
        return min(
            wanting,
            key=lambda pair: (self._link(pair).blocks, pair[0] not in known, -pair[1]),
            default=None,
        )

    def _link(self, pair: Pair) -> Link:
        return self.links.get(pair, UNKNOWN)


def _chain(places: Sequence[int]) -> list[Pair]:
    return list(itertools.pairwise(places))


def _contains(pair: Pair, other: Pair) -> bool:
    return pair[0] <= other[0] and other[1] <= pair[1]


def _with_neighbour(pair: Pair, inside: Sequence[int]) -> tuple[int, ...]:
    """Return a pair with the commit next to it, so that one block tells of two stretches."""
    place = inside.index(pair[1])
    if place + 1 < len(inside):
        return (*pair, inside[place + 1])
    return (inside[place - 2], *pair)


def _middle(places: Sequence[int], ready: frozenset[int]) -> int:
    """Return the middle one, or one that needs no build if it lies in the middle half."""
    middle = (len(places) - 1) / 2
    near = [place for place, one in enumerate(places) if one in ready]
    near = [place for place in near if abs(place - middle) <= len(places) / 4]
    return places[min(near or [math.floor(middle)], key=lambda place: abs(place - middle))]
