"""What differs in the allocations: by size class, lifetime and function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from equipoise.why.differences.allocator import is_of_allocator
from equipoise.why.differences.changes import changes, counted
from equipoise.why.differences.places import Place, places, weights
from equipoise.why.differences.result import (
    AllocationsChange,
    Function,
    Side,
    SizeClassChange,
)
from equipoise.why.evidence.allocations import Allocations, SizeClass
from equipoise.why.evidence.evidence_set import Runs

SHORT_LIVED_S = 64e-6

MOST = 0.9
"""The share of the blocks that live no longer than the usual lifetime."""

Bounds = tuple[int, int]
"""The least and the most bytes of a size class."""


def allocations_change(runs: Runs[Allocations], slower: Side) -> AllocationsChange | None:
    """The allocations; ``None`` unless both conditions have a run that was recorded."""
    recorded = Runs(_recorded(runs.baseline), _recorded(runs.candidate))
    if not recorded.both:
        return None
    return AllocationsChange(
        count=counted(recorded.map(lambda run: run.allocations), slower),
        bytes=counted(recorded.map(lambda run: run.bytes), slower),
        classes=_classes(recorded, slower),
        by_function=changes(
            recorded.map(lambda run: weights(places(run.stacks), _asked_by)), slower
        ),
    )


def _recorded(runs: tuple[Allocations, ...]) -> tuple[Allocations, ...]:
    """Without those in which nothing was recorded, which says nothing of what was allocated."""
    return tuple(run for run in runs if run.processes)


def _classes(runs: Runs[Allocations], slower: Side) -> tuple[SizeClassChange, ...]:
    def each(take: Callable[[Allocations, SizeClass], float]) -> Runs[Mapping[Bounds, float]]:
        return runs.map(lambda run: {_bounds(size): take(run, size) for size in run.classes})

    count = changes(each(lambda _, size: size.allocations), slower, counted)
    in_bytes = changes(each(lambda _, size: size.bytes), slower, counted)
    short_lived = changes(each(_short_lived), slower, counted)
    found = []
    for bounds, change in count.items():
        more = runs.candidate if change.candidate >= change.baseline else runs.baseline
        typical_bytes, typical_share = _typical(more, bounds)
        found.append(
            SizeClassChange(
                least_bytes=bounds[0],
                most_bytes=bounds[1],
                typical_bytes=typical_bytes,
                count=change,
                bytes=in_bytes[bounds],
                short_lived=short_lived[bounds],
                usual_lifetime_s=_usual_lifetime_s(more, bounds),
                typical_share=typical_share,
            )
        )
    most_first = sorted(found, key=lambda one: -max(one.count.baseline, one.count.candidate))
    return tuple(most_first)


def _bounds(size: SizeClass) -> Bounds:
    return size.least_bytes, size.most_bytes


def _short_lived(run: Allocations, size: SizeClass) -> float:
    within = sum(bound <= SHORT_LIVED_S for bound in run.lifetime_bounds_s)
    return sum(size.lifetimes[:within])


def _typical(runs: Sequence[Allocations], bounds: Bounds) -> tuple[int, float]:
    """The most frequent size of a class, and its share of the class's blocks."""
    seen: Counter[int] = Counter()
    blocks = 0
    for run in runs:
        for size in run.classes:
            if _bounds(size) == bounds:
                seen[size.typical_bytes] += size.typical_at_least
                blocks += size.allocations
    typical = max(seen, key=lambda size: (seen[size], -size))
    return typical, seen[typical] / blocks if blocks else 0.0


def _usual_lifetime_s(runs: Sequence[Allocations], bounds: Bounds) -> float | None:
    """The longest over the runs: the clocks of two runs need not be read at the same speed."""
    found = [
        _usual_of_run(run, size) for run in runs for size in run.classes if _bounds(size) == bounds
    ]
    known = [lifetime_s for lifetime_s in found if lifetime_s is not None]
    return max(known) if known and len(known) == len(found) else None


def _usual_of_run(run: Allocations, size: SizeClass) -> float | None:
    freed = 0
    for bound_s, count in zip(run.lifetime_bounds_s, size.lifetimes, strict=True):
        freed += count
        if freed >= MOST * size.allocations > 0:
            return bound_s
    return None


def _asked_by(place: Place) -> Iterator[Function]:
    for function in reversed(place.functions):
        if not is_of_allocator(function):
            yield function
            return
