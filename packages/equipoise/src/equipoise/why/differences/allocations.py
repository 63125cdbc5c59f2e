"""What differs in the allocations: by size class, lifetime and function."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate

from equipoise.why.differences.changes import (
    AllocationsChange,
    SizeClassChange,
    changes,
    counted,
)
from equipoise.why.differences.stacks import Place, places_of, weights
from equipoise.why.evidence.allocations import Allocations, SizeClass
from equipoise.why.evidence.observer import Function
from equipoise.why.evidence.sources import Runs, Side

MOST = 0.9
"""Share of the blocks that live no longer than the usual lifetime."""

Bounds = tuple[int, int]
"""Smallest and largest number of bytes of a size class."""


def allocations_change(runs: Runs[Allocations], slower: Side) -> AllocationsChange | None:
    """Return the allocations; ``None`` unless both conditions have a recorded run."""
    recorded = Runs(
        *(tuple(run for run in side if run.processes) for side in (runs.baseline, runs.candidate))
    )
    if not recorded.both:
        return None
    return AllocationsChange(
        count=counted(recorded.map(lambda run: run.allocations), slower),
        classes=_classes(recorded, slower),
        by_function=changes(
            recorded.map(lambda run: weights(places_of(run.stacks), _requester)), slower
        ),
    )


def _classes(runs: Runs[Allocations], slower: Side) -> tuple[SizeClassChange, ...]:
    def values(value_of: Callable[[SizeClass], float]) -> Runs[Mapping[Bounds, float]]:
        return runs.map(lambda run: {_bounds(size): value_of(size) for size in run.classes})

    count = changes(values(lambda size: size.allocations), slower, counted)
    in_bytes = changes(values(lambda size: size.bytes), slower, counted)
    classes = []
    for bounds, change in count.items():
        baseline, candidate = (
            _with_class(side, bounds) for side in (runs.baseline, runs.candidate)
        )
        # Blocks that were only freed count as none: one side may have the class, neither a block.
        is_more = change.candidate >= change.baseline and bool(candidate)
        of_runs = candidate if is_more or not baseline else baseline
        sizes: Counter[int] = Counter()
        for _, size in of_runs:
            sizes[size.typical_bytes] += size.typical_at_least
        typical_bytes = max(sizes, key=lambda size: (sizes[size], -size))
        blocks = sum(size.allocations for _, size in of_runs)
        # The longest over the runs: their clocks need not have the same speed.
        lifetime_s = max(_usual_lifetime_s(run, size) for run, size in of_runs)
        classes.append(
            SizeClassChange(
                least_bytes=bounds[0],
                most_bytes=bounds[1],
                typical_bytes=typical_bytes,
                count=change,
                bytes=in_bytes[bounds],
                usual_lifetime_s=lifetime_s if math.isfinite(lifetime_s) else None,
                typical_share=sizes[typical_bytes] / blocks if blocks else 0.0,
            )
        )
    return tuple(sorted(classes, key=lambda size: -max(size.count.baseline, size.count.candidate)))


def _with_class(runs: Iterable[Allocations], bounds: Bounds) -> list[tuple[Allocations, SizeClass]]:
    return [(run, size) for run in runs for size in run.classes if _bounds(size) == bounds]


def _bounds(size: SizeClass) -> Bounds:
    return size.least_bytes, size.most_bytes


def _usual_lifetime_s(run: Allocations, size: SizeClass) -> float:
    """Return the bound below which most blocks of one run ended; infinite if they did not."""
    ended = zip(run.lifetime_bounds_s, accumulate(size.lifetimes), strict=True)
    return next((bound for bound, freed in ended if freed >= MOST * size.allocations > 0), math.inf)


def _requester(place: Place) -> Iterator[Function]:
    """Yield the innermost function outside the allocator."""
    for function in reversed(place.functions):
        if not is_of_allocator(function):
            yield function
            return


_ALLOCATOR_FILE = re.compile(
    r"lib(equipoise_recorder|equipoise_dlmalloc|jemalloc|tcmalloc|mimalloc|scudo|tbbmalloc|snmalloc"
    r"|rpmalloc|hoard)[\w.-]*"
)
"""Shared libraries that hold an allocator and nothing else."""

_C_LIBRARY = re.compile(r"(libc|ld-linux|ld-musl)[\w.-]*")

_INTERFACE = frozenset(
    "malloc calloc realloc reallocarray free cfree memalign posix_memalign aligned_alloc valloc "
    "pvalloc malloc_usable_size".split()
)
"""Names of malloc(3) and its like in any allocator."""

_INSIDE_C_LIBRARY = re.compile(
    r"_int_\w+|sysmalloc\w*|systrim\w*|unlink_chunk\w*|tcache_\w+|malloc_\w+|arena_\w+|heap_\w+"
    r"|(__libc_|__GI___libc_|__GI___|__)(malloc|calloc|realloc|free|memalign)\w*"
)

_CPLUSPLUS_AND_RUST = (
    "operator new",
    "operator delete",
    "std::__new_allocator<",
    "std::allocator<",
    "std::allocator_traits<",
    "__gnu_cxx::new_allocator<",
    "__gnu_cxx::__alloc_traits<",
    "__rust_",
    "__rdl_",
    "alloc::alloc::",
    "<alloc::alloc::",
    "alloc::raw_vec::",
    "std::alloc::",
)
"""Beginnings of names in the languages' own libraries that call the allocator."""


def is_of_allocator(function: Function) -> bool:
    """Return whether a function allocates for others, or asks an allocator for a language."""
    return function.name.startswith(_CPLUSPLUS_AND_RUST) or is_inside_allocator(function)


def is_inside_allocator(function: Function) -> bool:
    """Return whether a function is part of an allocator itself, by its file or its name."""
    if _ALLOCATOR_FILE.fullmatch(function.module) or function.name in _INTERFACE:
        return True
    inside = _C_LIBRARY.fullmatch(function.module) is not None
    return inside and _INSIDE_C_LIBRARY.fullmatch(function.name) is not None
