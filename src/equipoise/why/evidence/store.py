"""Which observations of a campaign are of which pair of conditions, and which of them count.

The observations of one command are a gathering: their positions count from 0. Both conditions of
its pair were observed in one random order, so a gathering serves no other pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from equipoise.model.observation import Observation


def gatherings(observations: Iterable[Observation]) -> Iterator[tuple[Observation, ...]]:
    """The observations of each gathering, the oldest first."""
    current: list[Observation] = []
    for one in observations:
        if one.position == 0 and current:
            yield tuple(current)
            current = []
        current.append(one)
    if current:
        yield tuple(current)


def of_pair(
    observations: Iterable[Observation], baseline: int, candidate: int
) -> tuple[Observation, ...]:
    """What counts for a pair: the newest of each source, condition and repetition."""
    newest: dict[tuple[str, int, int], Observation] = {}
    for gathering in gatherings(observations):
        if {one.condition for one in gathering} <= {baseline, candidate}:
            for one in gathering:
                newest[(one.source, one.condition, one.repetition)] = one
    return tuple(newest.values())


def latest_conditions(observations: Sequence[Observation]) -> frozenset[int]:
    """The conditions of the newest gathering; none without observations."""
    last: tuple[Observation, ...] = ()
    for gathering in gatherings(observations):
        last = gathering
    return frozenset(one.condition for one in last)
