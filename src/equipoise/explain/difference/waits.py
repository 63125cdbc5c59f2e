"""What differs in the time off the processor, by door of the kernel and function.

Seconds are sums over all threads: each thread of a pool that has nothing to do waits all the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from equipoise.explain.difference.changes import changes
from equipoise.explain.difference.places import door, innermost_function, weights
from equipoise.explain.difference.result import Change, Side, Wait
from equipoise.explain.evidence.sampled import Sampled
from equipoise.explain.evidence.stacks import Frame
from equipoise.explain.gathered import Runs

UNKNOWN_DOOR = "kernel"
"""Where no frame of the kernel was seen, although one waits nowhere else."""


def waits_change(runs: Runs[Sampled], slower: Side) -> Mapping[Wait, Change]:
    """The seconds of each place where threads wait; empty unless both conditions have a run."""
    return changes(runs.map(lambda run: weights(run.stacks, _wait)), slower)


def _wait(frames: Sequence[Frame]) -> Iterator[Wait]:
    yield Wait(door(frames) or UNKNOWN_DOOR, innermost_function(frames))
