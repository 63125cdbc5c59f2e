"""Blocks of several hosts in rounds: the i-th block of every host, bet on as one.

Given the past and the times by position, the coins of the hosts' i-th blocks are independent and
fair. So the weighted mean of d - θ over the hosts changes its sign with all of these coins at once:
it is what a block of one campaign is, and the betting engine takes it (fleet.md). That holds while
no host leaves. A *roster* is the hosts that are in every round of a stretch; a round that will
never be complete ends it, and those that go on are the next roster, with a sequence of its own.
The g-th roster is judged at level/(g(g + 1)), so all of them together are at ``level``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise._native import BettingSequence
from equipoise.model.plan import LATEST_ENGINE
from equipoise.stats.arrays import FloatArray, OrderArray
from equipoise.stats.sequence import PairedBlocks

_FIRST_SLOT = 6
"""Blocks from which a slot effect is estimated first, as the betting engine does."""
_SLOT_GROWTH = 1.25
"""It is estimated again whenever the blocks have grown by this factor."""


class HostBlocks(Struct, frozen=True):
    """Blocks of one comparison on one host, and whether more of them can come."""

    blocks: PairedBlocks
    has_stopped: bool
    known_at_stop: tuple[int, ...] | None = None
    """Blocks of every host that were known where it was decided that this one stops; ``None`` if
    that was decided without a look at any other host: by its own rules, or by a fault."""


class Roster(Struct, frozen=True):
    """Hosts that are in every round of a stretch."""

    number: int
    """From 1, of those that have a round."""
    places: tuple[int, ...]
    """Places of the hosts among the asked ones, from 0."""
    starts: tuple[int, ...]
    """For each of these hosts the number of its blocks before the first round."""
    rounds: int
    """Complete rounds."""


def rosters_of(hosts: Sequence[HostBlocks]) -> tuple[Roster, ...]:
    """Return the rosters that have at least one round, in the order of their rounds.

    A host that was stopped with a look at others' blocks (``known_at_stop``) must not choose what
    the next roster is made of: that roster begins after the blocks that were known.
    """
    lengths = [len(host.blocks) for host in hosts]
    members, starts = list(range(len(hosts))), [0] * len(hosts)
    rosters: list[Roster] = []
    while members:
        rounds = min(max(0, lengths[place] - starts[place]) for place in members)
        if rounds:
            of_members = tuple(starts[place] for place in members)
            rosters.append(Roster(len(rosters) + 1, tuple(members), of_members, rounds))
        ended = [
            place
            for place in members
            if hosts[place].has_stopped and lengths[place] - starts[place] <= rounds
        ]
        if not ended:
            break
        members = [place for place in members if place not in ended]
        for place in members:
            known = (hosts[one].known_at_stop for one in ended)
            later = [one[place] for one in known if one is not None]
            starts[place] = max(starts[place] + rounds, *later, 0)
    return tuple(rosters)


class Rounds:
    """Rounds of all rosters of a fleet.

    Parameters
    ----------
    hosts
        All asked hosts.
    weights
        Weight of each, above 0; those of a roster are scaled to add up to 1.
    engine
        Version of the bets.
    """

    def __init__(
        self, hosts: Sequence[HostBlocks], weights: Sequence[float], *, engine: int = LATEST_ENGINE
    ) -> None:
        self.rosters = rosters_of(hosts)
        """Rosters that have a round."""
        self._hosts = hosts
        self._weights = np.array(weights, dtype=np.float64)
        self._engine = engine
        self._corrected: dict[int, FloatArray] = {}
        self._stretches: dict[int, _Stretch] = {}

    def mean_sequence(self, roster: Roster, *, without: int | None = None) -> BettingSequence:
        """Return the bets on the mean over a roster, one block for each round.

        Parameters
        ----------
        without
            Place of an asked host that is left out; at least one other is in the roster.
        """
        stretch = self._stretch(roster)
        used = np.array(roster.places) != (-1 if without is None else without)
        weights = self._weights[list(roster.places)][used]
        weights /= weights.sum()
        # All coins of a round change their sides together; that of one host stands for them.
        orders = stretch.orders[used][int(np.argmax(weights))]
        with np.errstate(invalid="ignore"):
            means = (weights[:, None] * stretch.differences[used]).sum(axis=0)
        return BettingSequence(means, orders, weights @ stretch.tolerances[used], self._engine)

    def _stretch(self, roster: Roster) -> _Stretch:
        if roster.number not in self._stretches:
            parts = [
                (place, slice(start, start + roster.rounds))
                for place, start in zip(roster.places, roster.starts, strict=True)
            ]
            blocks = [self._hosts[place].blocks for place, _ in parts]
            self._stretches[roster.number] = _Stretch(
                np.array([self._differences(place)[part] for place, part in parts]),
                np.array([one.orders[part] for one, (_, part) in zip(blocks, parts, strict=True)]),
                np.array(
                    [one.tolerances[part] for one, (_, part) in zip(blocks, parts, strict=True)]
                ),
            )
        return self._stretches[roster.number]

    def _differences(self, place: int) -> FloatArray:
        if place not in self._corrected:
            self._corrected[place] = _without_slot(self._hosts[place].blocks, self._engine)
        return self._corrected[place]


class _Stretch(Struct, frozen=True):
    """Blocks in the rounds of one roster, each of shape (hosts, rounds)."""

    differences: FloatArray
    """Without the slot effect."""
    orders: OrderArray
    tolerances: FloatArray


def _without_slot(blocks: PairedBlocks, engine: int) -> FloatArray:
    """Return the block differences without the slot effect of the blocks before each.

    Shape (n,). The slot effect of a host follows the host's own coin, which the mean over hosts
    no longer shows.
    """
    differences, orders = blocks.differences, blocks.orders
    corrected = differences.copy()
    learnt = _FIRST_SLOT
    while learnt < len(differences):
        known = BettingSequence(
            differences[:learnt], orders[:learnt], blocks.tolerances[:learnt], engine
        ).centre()
        until = min(len(differences), math.ceil(learnt * _SLOT_GROWTH))
        if known is not None:
            corrected[learnt:until] -= orders[learnt:until] * known[1]
        learnt = until
    return corrected
