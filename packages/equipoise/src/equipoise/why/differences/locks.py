"""Differences at locks: the waits by place, the functions of locks, and their callers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from equipoise.why.differences.allocations import is_inside_allocator
from equipoise.why.differences.changes import (
    LockChange,
    Locking,
    changes,
    count_change,
    measure_change,
)
from equipoise.why.differences.stacks import Place, places_of, weights
from equipoise.why.evidence.observer import Function, LockWaits, SampledStacks, SystemCalls
from equipoise.why.evidence.sources import Runs, Side

FUTEX = "futex"
"""System call with which threads wait for locks, and for each other."""

_LOCK = re.compile(
    r"_*(GI_+)?(pthread_(mutex|rwlock|cond|barrier)_\w*(lock|wait|signal|broadcast)\w*"
    r"|lll_\w*(lock|wait|wake)\w*|sem_(timed|clock)?(wait|post)\w*)(@\S*)?"
    r"|.*\b(Mutex|RwLock|Condvar|RawMutex|RawRwLock)(<.*>)?::\w+"
    r"|std::(mutex|unique_lock|lock_guard|shared_mutex|condition_variable)\b.*"
    r"|runtime\.(lock|unlock|futex|sema)\w*|sync\.\(\*(RW)?Mutex\)\.\w+|(PyThread|take_gil|drop_gil)\w*"
)
"""Functions that acquire or release a lock in C, Rust, C++, Go and CPython."""
_JOIN = re.compile(r".*(pthread_(\w+)?join|JoinHandle|thread::join|Thread::join).*")
"""Functions that wait for the end of a thread."""
_LIBRARY = re.compile(r"(libc|libpthread|libstdc\+\+|libc\+\+|ld-linux|ld-musl)\b.*")
"""Files of the C and C++ libraries and of the loader."""
_MAJORITY_SHARE = 0.5


def locks_change(runs: Runs[SystemCalls], slower: Side) -> Mapping[str, LockChange]:
    """Return the waits on the futexes of each place, the most extra seconds first."""

    def by_place(value_of: Callable[[LockWaits], float]) -> Runs[Mapping[str, float]]:
        return runs.map(lambda run: {lock.place: value_of(lock) for lock in run.locks})

    waits, seconds = by_place(lambda lock: lock.waits), by_place(lambda lock: lock.seconds)
    count = changes(waits, slower, count_change)

    faster: Side = "baseline" if slower == "candidate" else "candidate"

    def more_in_each_run(place: str) -> bool:
        more, less = (
            waits.map(lambda run: run.get(place, 0.0)).of(side) for side in (slower, faster)
        )
        return min(more) > max(less)

    return {
        place: LockChange(count[place], change, more_in_each_run(place))
        for place, change in changes(seconds, slower, measure_change).items()
    }


def locking(profile: Runs[SampledStacks], waits: Runs[SampledStacks], slower: Side) -> Locking:
    """Return the time at locks by sampled stacks; a part that no source saw is empty."""
    working = profile.map(lambda run: places_of(run.stacks))
    waiting = waits.map(lambda run: places_of(run.stacks))
    all_places = tuple(chain.from_iterable((*working.all_runs, *waiting.all_runs)))
    # Code without a name belongs to a lock if it calls the kernel's futex.
    in_futex = frozenset(
        place.functions[:depth]
        for place in all_places
        if place.entry == FUTEX and not any(map(is_inside_allocator, place.functions))
        for depth in range(1, len(place.functions) + 1)
    )

    def is_at_lock(place: Place) -> bool:
        if not place.functions or any(
            _JOIN.fullmatch(function.name) for function in place.functions
        ):
            return False
        inner = tuple(_inner_library_functions(place))
        if any(_LOCK.fullmatch(function.name) for function in inner):
            return True
        return bool(inner) and (place.entry == FUTEX or place.functions in in_futex)

    user = [place for place in chain.from_iterable(working.all_runs) if place.entry is None]
    all_s = weights(user, lambda place: place.functions[-1:])
    at_locks_s = weights(filter(is_at_lock, user), lambda place: place.functions[-1:])
    functions = tuple(
        function
        for function, lock_s in at_locks_s.items()
        if lock_s >= _MAJORITY_SHARE * all_s[function]
    )

    def has_name(place: Place) -> bool:
        return any(_LOCK.fullmatch(function.name) for function in place.functions)

    # Only names distinguish waiting for a lock from waiting for the end of a thread.
    has_named_lock = any(map(has_name, filter(is_at_lock, all_places)))

    def caller(place: Place) -> tuple[Function, ...]:
        if not is_at_lock(place) or (has_named_lock and not has_name(place)):
            return ()
        depth = len(tuple(_inner_library_functions(place)))
        return place.functions[: len(place.functions) - depth][-1:]

    def outermost_lock_function(place: Place) -> tuple[str, ...]:
        names = (function.name for function in place.functions if _LOCK.fullmatch(function.name))
        return tuple(names)[:1] if is_at_lock(place) else ()

    names_s = weights(all_places, outermost_lock_function)
    places = waiting if waiting.has_both else working
    return Locking(
        functions=functions,
        callers=changes(places.map(lambda run: weights(run, caller)), slower),
        lock_function=max(names_s, key=lambda name: names_s[name], default=None),
    )


def _inner_library_functions(place: Place) -> Iterator[Function]:
    """Yield the functions of a lock and of the C library at the end of a stack, innermost first."""
    for function in reversed(place.functions):
        if not (_LOCK.fullmatch(function.name) or _LIBRARY.fullmatch(function.module)):
            return
        yield function
