"""Compare locks: the waits for each lock, the functions of locks, and their callers.

A lock is named after the variable of its futex in memory, such as ``gate in /usr/bin/program``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from equipoise.why.differences.allocations import is_inside_allocator
from equipoise.why.differences.changes import (
    LockChange,
    Locking,
    changes_by_key,
    count_change,
    measure_change,
)
from equipoise.why.differences.stacks import CallPath, call_paths, weights
from equipoise.why.evidence.observer import Function, LockWaits, SampledStacks, SystemCalls
from equipoise.why.evidence.sources import Runs, Side

FUTEX = "futex"
"""System call with which threads wait for locks, and for each other."""

_LOCK_NAME = re.compile(
    r"_*(GI_+)?(pthread_(mutex|rwlock|cond|barrier)_\w*(lock|wait|signal|broadcast)\w*"
    r"|lll_\w*(lock|wait|wake)\w*|sem_(timed|clock)?(wait|post)\w*)(@\S*)?"
    r"|.*\b(Mutex|RwLock|Condvar|RawMutex|RawRwLock)(<.*>)?::\w+"
    r"|std::(mutex|unique_lock|lock_guard|shared_mutex|condition_variable)\b.*"
    r"|runtime\.(lock|unlock|futex|sema)\w*|sync\.\(\*(RW)?Mutex\)\.\w+|(PyThread|take_gil|drop_gil)\w*"
)
"""Functions that acquire or release a lock in C, Rust, C++, Go and CPython."""
_JOIN_NAME = re.compile(r".*(pthread_(\w+)?join|JoinHandle|thread::join|Thread::join).*")
"""Functions that wait for the end of a thread."""
_C_FILE = re.compile(r"(libc|libpthread|libstdc\+\+|libc\+\+|ld-linux|ld-musl)\b.*")
"""Files of the C and C++ libraries and of the loader."""
_MAJORITY_SHARE = 0.5
"""A function belongs to a lock if at least this share of its time is at locks."""


def locks_change(runs: Runs[SystemCalls], slower: Side) -> Mapping[str, LockChange]:
    """Return the change of the waits for each lock, the most extra seconds first."""

    def by_lock(value_of: Callable[[LockWaits], float]) -> Runs[Mapping[str, float]]:
        return runs.map(lambda run: {lock.place: value_of(lock) for lock in run.locks})

    waits, seconds = by_lock(lambda lock: lock.waits), by_lock(lambda lock: lock.seconds)
    wait_changes = changes_by_key(waits, slower, count_change)

    faster: Side = "baseline" if slower == "candidate" else "candidate"

    def has_more_in_each_run(name: str) -> bool:
        wait_counts = waits.map(lambda run: run.get(name, 0.0))
        return min(wait_counts.runs_of(slower)) > max(wait_counts.runs_of(faster))

    return {
        name: LockChange(wait_changes[name], change, has_more_in_each_run(name))
        for name, change in changes_by_key(seconds, slower, measure_change).items()
    }


def locking(profile: Runs[SampledStacks], waits: Runs[SampledStacks], slower: Side) -> Locking:
    """Return the time at locks from sampled stacks. Without stacks, the result is empty.

    A stack is at a lock if its innermost functions acquire or release a lock.
    """
    cpu_paths = profile.map(lambda run: call_paths(run.stacks))
    wait_paths = waits.map(lambda run: call_paths(run.stacks))
    all_paths = tuple(chain.from_iterable((*cpu_paths.all_runs, *wait_paths.all_runs)))
    # A function without a name belongs to a lock if it calls the kernel's futex.
    futex_callers = frozenset(
        path.functions[:depth]
        for path in all_paths
        if path.entry_point == FUTEX and not any(map(is_inside_allocator, path.functions))
        for depth in range(1, len(path.functions) + 1)
    )

    def is_at_lock(path: CallPath) -> bool:
        if any(_JOIN_NAME.fullmatch(function.name) for function in path.functions):
            return False
        innermost = tuple(_inner_library_functions(path))
        if any(_LOCK_NAME.fullmatch(function.name) for function in innermost):
            return True
        return bool(innermost) and (path.entry_point == FUTEX or path.functions in futex_callers)

    user_paths = [path for path in chain(*cpu_paths.all_runs) if path.entry_point is None]
    function_s = weights(user_paths, lambda path: path.functions[-1:])
    lock_s = weights(filter(is_at_lock, user_paths), lambda path: path.functions[-1:])
    functions = tuple(
        function
        for function, seconds in lock_s.items()
        if seconds >= _MAJORITY_SHARE * function_s[function]
    )

    def has_lock_function(path: CallPath) -> bool:
        return any(_LOCK_NAME.fullmatch(function.name) for function in path.functions)

    # Only a name distinguishes a wait for a lock from a wait for the end of a thread.
    some_lock_has_name = any(map(has_lock_function, filter(is_at_lock, all_paths)))

    def caller_of_lock(path: CallPath) -> tuple[Function, ...]:
        if not is_at_lock(path) or (some_lock_has_name and not has_lock_function(path)):
            return ()
        depth = len(tuple(_inner_library_functions(path)))
        return path.functions[: len(path.functions) - depth][-1:]

    def outermost_lock_function(path: CallPath) -> tuple[str, ...]:
        names = (
            function.name for function in path.functions if _LOCK_NAME.fullmatch(function.name)
        )
        return tuple(names)[:1] if is_at_lock(path) else ()

    lock_function_s = weights(all_paths, outermost_lock_function)
    paths = wait_paths if wait_paths.has_both else cpu_paths
    return Locking(
        functions=functions,
        callers=changes_by_key(paths.map(lambda run: weights(run, caller_of_lock)), slower),
        lock_function=max(lock_function_s, key=lambda name: lock_function_s[name], default=None),
    )


def _inner_library_functions(path: CallPath) -> Iterator[Function]:
    """Yield the innermost functions of a path, while they belong to a lock or the C library."""
    for function in reversed(path.functions):
        if not (_LOCK_NAME.fullmatch(function.name) or _C_FILE.fullmatch(function.module)):
            return
        yield function
