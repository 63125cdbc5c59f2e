"""What differs in the time off the processor, by door of the kernel and function.

Seconds are sums over all threads: each thread of a pool that has nothing to do waits all the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from equipoise.why.differences.changes import changes
from equipoise.why.differences.places import Place, places, weights
from equipoise.why.differences.result import Change, Side, Wait
from equipoise.why.evidence.evidence_set import Runs
from equipoise.why.evidence.sampled import Sampled

UNKNOWN_DOOR = "kernel"
"""Where no frame of the kernel was seen, although one waits nowhere else."""


def waits_change(runs: Runs[Sampled], slower: Side) -> Mapping[Wait, Change]:
    """The seconds of each place where threads wait; empty unless both conditions have a run."""
    return changes(runs.map(lambda run: weights(places(run.stacks), _wait)), slower)


def _wait(place: Place) -> Iterator[Wait]:
    yield Wait(place.door or UNKNOWN_DOOR, place.function)
