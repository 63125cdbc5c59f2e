"""The order of work of a history: which commits the next block runs.

Coarse first, then where something changes down to one commit and its parent, then the rest of the
curve. Whatever it chooses from the past, no guarantee depends on it (bisect.md §12).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from equipoise.stats.bisection_segment import CHEAP_BUILD, Pair

STRETCHES = 8
"""Number of stretches of the coarse grid."""
SCREENING_BLOCKS = 10
"""Blocks of each coarse stretch before any of them is refined."""
FIRST_PATIENCE = 40
"""Blocks that an undecided pair takes before others take their turn; then twice as many."""

BASELINE = 0

LinkStatus = Literal["named", "suspect", "equivalent", "open"]
"""``suspect``: looks like a change, and is not certain yet."""


class Link(Struct, frozen=True):
    """How a pair of commits stands."""

    status: LinkStatus
    blocks: int
    """Blocks of the present era."""
    is_narrow: bool = False
    """Whether the size of a named change is known well enough."""

    @property
    def changes(self) -> bool:
        """Whether there is a change, or what looks like one."""
        return self.status in ("named", "suspect")

    def wants_blocks(self, patience: int) -> bool:
        """Return whether more blocks would tell more, and it has not had its share of them."""
        if self.status == "named":
            return not self.is_narrow
        return self.status != "equivalent" and self.blocks < patience


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
    first: int = BASELINE
    """Commit before the first one that the curve asks about."""

    def next_block(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        """Return the commits of the next block, in their order; none if nothing is left to ask.

        Parameters
        ----------
        built
            Commits that can be run without a build.
        build_trials
            Seconds of a build over those of a trial, as measured.
        """
        ready = frozenset(built) if build_trials >= CHEAP_BUILD else frozenset()
        coarse = self._coarse()
        screening = self._shortest(coarse, SCREENING_BLOCKS)
        if screening is not None:
            return self._beside_baseline(screening)
        patience, most = (
            FIRST_PATIENCE,
            max((link.blocks for link in self.links.values()), default=0),
        )
        while True:
            block = (
                self._refinement(patience, ready)
                or self._filling(coarse, patience)
                or self._filling(_chain(self.measured), patience)
                or self._split_of_widest(ready)
            )
            if block or patience > most:
                return block
            patience *= 2

    def _coarse(self) -> list[Pair]:
        """Return the stretches between the commits of the grid and those that were measured."""
        last = self.wanted[-1]
        grid = {
            self.wanted[round(place * (len(self.wanted) - 1) / STRETCHES)]
            for place in range(STRETCHES + 1)
        }
        known = {BASELINE, *self.measured, last}
        opened = [pair for pair in _chain(sorted(known)) if pair in self.links]
        new = {one for one in grid if not any(u < one < v for u, v in opened)}
        stretches = _chain(sorted(known | new))
        refined = [pair for pair, link in self.links.items() if link.changes]
        return [
            pair
            for pair in stretches
            if pair[0] >= self.first
            and not any(one != pair and _contains(one, pair) for one in refined)
        ]

    def _refinement(self, patience: int, ready: frozenset[int]) -> tuple[int, ...]:
        """Return the block that best tells where the narrowest stretch that changes does so."""
        changing = [pair for pair, link in self.links.items() if link.changes]
        inmost = [
            pair
            for pair in changing
            if not any(other != pair and _contains(pair, other) for other in changing)
        ]
        for pair in sorted(inmost, key=self._strength):
            block = self._refine(pair, patience, ready)
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

    def _filling(self, pairs: Sequence[Pair], patience: int) -> tuple[int, ...]:
        asked = [pair for pair in pairs if pair[0] >= self.first]
        shortest = self._shortest(asked, patience)
        return () if shortest is None else self._beside_baseline(shortest)

    def _split_of_widest(self, ready: frozenset[int]) -> tuple[int, ...]:
        """Return the first block of the commit that halves the widest stretch of the curve."""
        missing = {
            pair: [one for one in self.wanted if pair[0] < one < pair[1]]
            for pair in _chain(self.measured)
            if pair[0] >= self.first
        }
        widest = max(missing, key=lambda pair: (len(missing[pair]), pair), default=None)
        if widest is None or not missing[widest]:
            return ()
        return self._beside_baseline((widest[0], _middle(missing[widest], ready)))

    def _shortest(self, pairs: Sequence[Pair], patience: int) -> Pair | None:
        """Return the pair with the fewest blocks of those that want more."""
        wanting = [pair for pair in pairs if self._link(pair).wants_blocks(patience)]
        return min(wanting, key=lambda pair: (self._link(pair).blocks, pair), default=None)

    def _strength(self, pair: Pair) -> tuple[bool, int]:
        """Return the key by which certain changes come before others, and narrow ones first."""
        return (self._link(pair).status != "named", pair[1] - pair[0])

    def _link(self, pair: Pair) -> Link:
        return self.links.get(pair, UNKNOWN)

    def _beside_baseline(self, pair: Pair) -> tuple[int, ...]:
        return pair if pair[0] == BASELINE else (BASELINE, *pair)


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
