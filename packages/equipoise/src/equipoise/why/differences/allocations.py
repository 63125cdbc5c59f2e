"""Compare the allocations: by size class, lifetime and function."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate

from equipoise.why.differences.changes import (
    AllocationsChange,
    SizeClassChange,
    changes_by_key,
    count_change,
)
from equipoise.why.differences.stacks import CallPath, call_paths, weights
from equipoise.why.evidence.allocations import Allocations, SizeClass
from equipoise.why.evidence.observer import Function
from equipoise.why.evidence.sources import Runs, Side

USUAL_LIFETIME_SHARE = 0.9
"""Share of the blocks that must be freed within the usual lifetime."""

Bounds = tuple[int, int]
"""Smallest and largest number of bytes of a size class."""


def allocations_change(runs: Runs[Allocations], slower: Side) -> AllocationsChange | None:
    """Return the changes of allocations; ``None`` unless both conditions have a recorded run."""
    recorded_runs = Runs(
        tuple(run for run in runs.baseline if run.processes),
        tuple(run for run in runs.candidate if run.processes),
    )
    if not recorded_runs.has_both:
        return None
    return AllocationsChange(
        count=count_change(recorded_runs.map(lambda run: run.allocations), slower),
        classes=_size_class_changes(recorded_runs, slower),
        by_function=changes_by_key(
            recorded_runs.map(lambda run: weights(call_paths(run.stacks), _requester)), slower
        ),
    )


def _size_class_changes(runs: Runs[Allocations], slower: Side) -> tuple[SizeClassChange, ...]:
    def by_bounds(value_of: Callable[[SizeClass], float]) -> Runs[Mapping[Bounds, float]]:
        return runs.map(lambda run: {_bounds_of(item): value_of(item) for item in run.classes})

    counts = changes_by_key(by_bounds(lambda item: item.allocations), slower, count_change)
    byte_changes = changes_by_key(by_bounds(lambda item: item.bytes), slower, count_change)
    classes = []
    for bounds, change in counts.items():
        baseline, candidate = (
            _runs_with_class(allocations, bounds) for allocations in (runs.baseline, runs.candidate)
        )
        # A condition may have no block of this class.
        candidate_has_more = change.candidate >= change.baseline and bool(candidate)
        runs_with_more = candidate if candidate_has_more or not baseline else baseline
        sizes: Counter[int] = Counter()
        for _, size_class in runs_with_more:
            sizes[size_class.typical_bytes] += size_class.min_typical_blocks
        typical_bytes = max(sizes, key=lambda size: (sizes[size], -size))
        block_count = sum(size_class.allocations for _, size_class in runs_with_more)
        # The bounds differ between runs, because each run measures the speed of its clock.
        lifetime_s = max(_usual_lifetime_s(*run_and_class) for run_and_class in runs_with_more)
        classes.append(
            SizeClassChange(
                min_bytes=bounds[0],
                max_bytes=bounds[1],
                typical_bytes=typical_bytes,
                count=change,
                bytes=byte_changes[bounds],
                usual_lifetime_s=lifetime_s if math.isfinite(lifetime_s) else None,
                typical_share=sizes[typical_bytes] / block_count if block_count else 0.0,
            )
        )
    return tuple(sorted(classes, key=lambda item: -max(item.count.baseline, item.count.candidate)))


def _runs_with_class(
    runs: Iterable[Allocations], bounds: Bounds
) -> list[tuple[Allocations, SizeClass]]:
    return [(run, item) for run in runs for item in run.classes if _bounds_of(item) == bounds]


def _bounds_of(size_class: SizeClass) -> Bounds:
    return size_class.min_bytes, size_class.max_bytes


def _usual_lifetime_s(run: Allocations, size_class: SizeClass) -> float:
    """Return the lifetime within which 90 % of the blocks were freed; infinite if fewer were."""
    freed_below = zip(run.lifetime_bounds_s, accumulate(size_class.lifetimes), strict=True)
    min_freed = USUAL_LIFETIME_SHARE * size_class.allocations
    return next((bound for bound, freed in freed_below if freed >= min_freed > 0), math.inf)


def _requester(path: CallPath) -> Iterator[Function]:
    """Yield the innermost function outside the allocator, if there is one."""
    for function in reversed(path.functions):
        if not is_or_calls_allocator(function):
            yield function
            return


_ALLOCATOR_FILE = re.compile(
    r"lib(equipoise_recorder|equipoise_dlmalloc|jemalloc|tcmalloc|mimalloc|scudo|tbbmalloc|snmalloc"
    r"|rpmalloc|hoard)[\w.-]*"
)
"""Shared libraries that contain an allocator and nothing else."""

_C_LIBRARY_FILE = re.compile(r"(libc|ld-linux|ld-musl)[\w.-]*")

_INTERFACE_FUNCTIONS = frozenset(
    "malloc calloc realloc reallocarray free cfree memalign posix_memalign aligned_alloc valloc "
    "pvalloc malloc_usable_size".split()
)
"""Names of malloc(3) and related functions in any allocator."""

_ALLOCATOR_FUNCTION_IN_C_LIBRARY = re.compile(
    r"_int_\w+|sysmalloc\w*|systrim\w*|unlink_chunk\w*|tcache_\w+|malloc_\w+|arena_\w+|heap_\w+"
    r"|(__libc_|__GI___libc_|__GI___|__)(malloc|calloc|realloc|free|memalign)\w*"
)

_LANGUAGE_PREFIXES = (
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
"""Beginnings of the names of functions in C++'s and Rust's libraries that call the allocator."""


def is_or_calls_allocator(function: Function) -> bool:
    """Return whether a function belongs to an allocator, or to language code that calls one."""
    return function.name.startswith(_LANGUAGE_PREFIXES) or is_inside_allocator(function)


def is_inside_allocator(function: Function) -> bool:
    """Return whether a function is part of an allocator itself, by its file or its name."""
    if _ALLOCATOR_FILE.fullmatch(function.module) or function.name in _INTERFACE_FUNCTIONS:
        return True
    is_in_c_library = _C_LIBRARY_FILE.fullmatch(function.module) is not None
    return is_in_c_library and bool(_ALLOCATOR_FUNCTION_IN_C_LIBRARY.fullmatch(function.name))
