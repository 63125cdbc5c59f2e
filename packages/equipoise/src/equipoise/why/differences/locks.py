"""What differs at locks: the waits by place, the functions of locks, and who calls them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from equipoise.why.differences.allocations import is_inside_allocator
from equipoise.why.differences.changes import LockChange, Locking, changes, counted, measured
from equipoise.why.differences.stacks import Place, places_of, weights
from equipoise.why.evidence.observer import Function, LockWaits, Sampled, SystemCalls
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
"""Functions that get or give a lock: of C, of Rust, of C++, of Go, of CPython."""
_JOIN = re.compile(r".*(pthread_(\w+)?join|JoinHandle|thread::join|Thread::join).*")
"""Functions that wait for the end of a thread."""
_LIBRARY = re.compile(r"(libc|libpthread|libstdc\+\+|libc\+\+|ld-linux|ld-musl)\b.*")
"""Files whose functions are of no program."""
_MOSTLY = 0.5


def locks_change(runs: Runs[SystemCalls], slower: Side) -> Mapping[str, LockChange]:
    """Return the waits on the futexes of each place, the most extra seconds first."""

    def by_place(value: Callable[[LockWaits], float]) -> Runs[Mapping[str, float]]:
        return runs.map(lambda run: {lock.place: value(lock) for lock in run.locks})

    waits, seconds = by_place(lambda lock: lock.waits), by_place(lambda lock: lock.seconds)
    count = changes(waits, slower, counted)

    faster: Side = "baseline" if slower == "candidate" else "candidate"

    def more_in_each_run(place: str) -> bool:
        more, less = (
            waits.map(lambda run: run.get(place, 0.0)).of(side) for side in (slower, faster)
        )
        return min(more) > max(less)

    return {
        place: LockChange(count[place], change, more_in_each_run(place))
        for place, change in changes(seconds, slower, measured).items()
    }


def locking(profile: Runs[Sampled], waits: Runs[Sampled], slower: Side) -> Locking:
    """Return the time at locks by sampled stacks; what a source did not see is empty."""
    working = profile.map(lambda run: places_of(run.stacks))
    waiting = waits.map(lambda run: places_of(run.stacks))
    every = tuple(chain.from_iterable((*working.every, *waiting.every)))
    # Code without a name is of a lock where it goes on into the kernel's call.
    in_futex = frozenset(
        place.functions[:depth]
        for place in every
        if place.entry == FUTEX and not any(map(is_inside_allocator, place.functions))
        for depth in range(1, len(place.functions) + 1)
    )

    def is_at_lock(place: Place) -> bool:
        if not place.functions or any(_JOIN.fullmatch(one.name) for one in place.functions):
            return False
        own = tuple(_of_libraries(place))
        if any(_LOCK.fullmatch(one.name) for one in own):
            return True
        return bool(own) and (place.entry == FUTEX or place.functions in in_futex)

    user = [place for place in chain.from_iterable(working.every) if place.entry is None]
    all_s = weights(user, lambda place: place.functions[-1:])
    at_locks_s = weights(filter(is_at_lock, user), lambda place: place.functions[-1:])
    functions = tuple(one for one, at_s in at_locks_s.items() if at_s >= _MOSTLY * all_s[one])

    def has_name(place: Place) -> bool:
        return any(_LOCK.fullmatch(one.name) for one in place.functions)

    # Only a name tells waiting for a lock from waiting for the end of a thread.
    is_named = any(map(has_name, filter(is_at_lock, every)))

    def caller(place: Place) -> tuple[Function, ...]:
        if not is_at_lock(place) or (is_named and not has_name(place)):
            return ()
        own = len(tuple(_of_libraries(place)))
        return place.functions[: len(place.functions) - own][-1:]

    def through(place: Place) -> tuple[str, ...]:
        names = (one.name for one in place.functions if _LOCK.fullmatch(one.name))
        return tuple(names)[:1] if is_at_lock(place) else ()

    names_s = weights(every, through)
    seen = waiting if waiting.both else working
    return Locking(
        functions=functions,
        callers=changes(seen.map(lambda run: weights(run, caller)), slower),
        through=max(names_s, key=lambda name: names_s[name], default=None),
    )


def _of_libraries(place: Place) -> Iterator[Function]:
    """Yield the functions of a lock and of the C library at the end of a stack, innermost first."""
    for function in reversed(place.functions):
        if not (_LOCK.fullmatch(function.name) or _LIBRARY.fullmatch(function.module)):
            return
        yield function
