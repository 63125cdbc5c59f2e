"""Find causes in processes and threads: forks, fewer threads, locks, sleeps, waits of any kind."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from equipoise.model.quantities import Interval, duration, joined
from equipoise.why.causes.unclaimed import (
    NOT_ON_DISK,
    PAGE_FAULT,
    POLL_CALLS,
    Cause,
    TimeClaim,
    UnclaimedTime,
    describe_change,
    function_phrase,
    half_width_or_0,
    is_named,
    largest_increase,
    most_increased_call,
    number_text,
    short_name,
)
from equipoise.why.differences.changes import Change, Difference, is_increase, sum_of
from equipoise.why.differences.locks import FUTEX

_FORK_CALLS = ("clone", "clone3", "fork", "vfork")
_SLEEP_CALLS = ("clock_nanosleep", "nanosleep")
_CHILD_WAITS = ("wait4", "kernel_wait4", "waitid", "kernel_waitid")
"""Calls that wait for children; some kernels show the functions ``kernel_…`` instead."""

_MIN_FORK_SLOWDOWN = 2.0
"""Smallest ratio of the times of one fork in the two conditions."""
_MAX_FORKS_RATIO = 2.0
"""Largest ratio of the numbers of forks. With a larger ratio, the number itself is the cause."""

_LOADER = re.compile(r"ld-(linux|musl)[\w.-]*")
_PROCESS_ENTRY_POINTS = (
    *_FORK_CALLS,
    *"execve execveat exit_group exit".split(),
    *_CHILD_WAITS,
    PAGE_FAULT,
    *"mmap munmap mprotect brk openat close newfstatat access read pread64".split(),
    *"arch_prctl rt_sigprocmask rt_sigaction".split(),
)
"""Kernel entry points of the start, the loading and the end of a process."""

_MAX_SMALL_PROCESS_S = 0.01
"""Longest time of a small process on a processor."""

_MIN_PROCESSES_RATIO = 2.0
"""Smallest ratio of the numbers of processes that counts as many more."""

_MAX_WORK_DIFFERENCE = 0.25
"""Largest relative difference between amounts of work that count as equal."""

_MIN_PARALLELISM = 1.1
"""Smallest number of processor seconds per second of wall time if threads run at once."""


def fork_of_large_process(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find forks that take longer: each fork copies the page tables of a large memory."""
    difference = unclaimed.difference
    forks = [name for name in _FORK_CALLS if name in difference.calls and name != "vfork"]
    syscall = max(forks, key=lambda name: difference.calls[name].seconds.extra, default=None)
    if syscall is None:
        return
    count = difference.calls[syscall].count
    # Samples show forks on some kernels and miss them on others.
    is_sampled = is_increase(unclaimed.entry_points.get(syscall))
    seconds = unclaimed.entry_points[syscall] if is_sampled else difference.calls[syscall].seconds
    if not 0 < count.faster <= count.slower <= _MAX_FORKS_RATIO * count.faster:
        return
    fork_s, faster_fork_s = seconds.slower / count.slower, seconds.faster / count.faster
    if not is_increase(seconds) or fork_s < _MIN_FORK_SLOWDOWN * faster_fork_s:
        return
    has_faults = difference.faults is not None and is_increase(difference.faults.count)
    entry_points = (PAGE_FAULT, "exit_group") if has_faults else ("exit_group",)
    yield unclaimed.claim(
        entry_points=(*entry_points, syscall) if is_sampled else entry_points,
        calls=() if is_sampled else (syscall,),
        waits=_CHILD_WAITS,
    ).cause(
        "process",
        f"{number_text(count.slower)} forks ({syscall}) take {1e6 * fork_s:,.0f} microseconds "
        "of a processor each, several times as long",
        syscall=syscall,
        calls=count,
        call_seconds=seconds,
        resident_bytes=difference.resources.get("max_rss_bytes"),
    )


def many_processes(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find many more processes, each with little work."""
    difference = unclaimed.difference
    processes, programs = difference.processes, difference.programs
    if processes is None or not is_increase(processes):
        return
    on_processor = difference.on_processor
    is_small = on_processor is None or on_processor.extra <= _MAX_SMALL_PROCESS_S * processes.extra
    if processes.slower < _MIN_PROCESSES_RATIO * processes.faster or not is_small:
        return
    start_calls = ("execve", "execveat") if is_increase(programs) else _FORK_CALLS
    syscall = most_increased_call(difference, start_calls)
    loader = [function for function in unclaimed.functions if _LOADER.fullmatch(function.module)]
    yield unclaimed.claim(
        entry_points=_PROCESS_ENTRY_POINTS, functions=loader, waits=(*_CHILD_WAITS, *_FORK_CALLS)
    ).cause(
        "process",
        f"many small processes are started: {describe_change(processes)}"
        f"{'' if syscall is None else f' ({syscall})'}",
        syscall=syscall,
        processes=processes,
        programs=programs,
    )


def one_thread(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find the same work done by fewer threads or processes at once."""
    difference = unclaimed.difference
    threads, processor_time = difference.threads, difference.on_processor
    wall_time = difference.wall_time
    if threads is None or processor_time is None or threads.extra >= 0 or not threads.is_certain:
        return
    if (
        abs(processor_time.extra) > _MAX_WORK_DIFFERENCE * processor_time.slower
        or processor_time.faster < _MIN_PARALLELISM * wall_time.faster
    ):
        return
    waited_s = sum(max(0.0, change.extra) for change in difference.waits.values())
    seconds = unclaimed.gap_s - max(0.0, processor_time.extra) - waited_s
    is_known = None not in wall_time.extra_ci
    margin = wall_time.half_width
    interval: Interval = (seconds - margin, seconds + margin) if is_known else (None, None)
    yield TimeClaim(wall_time, seconds, interval, 0.0, frozenset()).cause(
        "process",
        f"the same work is done by fewer threads ({describe_change(threads)}), one after another",
        threads=threads,
        processor_seconds=processor_time,
    )


_MEMORY_PHRASES = {"anonymous memory": "", "[heap]": " on the heap", "[stack]": " on the stack"}
"""Kinds of memory without variable names, and their phrases in "a lock … without a name"."""
_SYNCHRONISATION = re.compile(r".*(cond|sem_|barrier).*", re.IGNORECASE)
"""Functions in which a thread waits for other threads, not for a lock."""
_MIN_EXTRA_WAITS = 10.0
"""Smallest number of extra waits that shows contention, if the number varies between runs."""
_MIN_CALLER_SHARE = 0.1
"""Smallest share of the time at locks at which the summary names a caller."""
_MAX_CALLERS = 3
"""Largest number of callers in the summary."""


def lock_waits(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find a lock for which threads wait more often.

    The cause claims the time of waiting for the lock, acquiring it and releasing it. The place of a
    lock is its variable or memory, such as ``gate in /usr/bin/program``.
    """
    difference = unclaimed.difference
    contended = {
        place: lock.seconds
        for place, lock in difference.locks.items()
        if is_increase(lock.waits)
        or (lock.more_in_each_run and lock.waits.extra >= _MIN_EXTRA_WAITS)
    }
    place = largest_increase({place: contended[place] for place in contended if is_named(place)})
    place = place or largest_increase(contended)
    if place is None:
        return
    lock, calls = difference.locks[place], difference.calls.get(FUTEX)
    variable, _, module = place.partition(" in ")
    has_name = is_named(place) and place not in _MEMORY_PHRASES
    lock_phrase = f"a lock{_MEMORY_PHRASES.get(place, '')} without a name"
    if has_name:
        lock_phrase = f"{variable} in {PurePath(module).name}"
    lock_function, callers = difference.locking.lock_function, _lock_callers(difference)
    is_synchronisation = (
        lock_function is not None and _SYNCHRONISATION.fullmatch(lock_function) is not None
    )
    waiter = _waiter(unclaimed, FUTEX)
    called_by = joined(f"{caller}() ({100 * share:.0f} %)" for caller, share in callers.items())
    futex_calls = ""
    if calls is not None:
        slower, faster = number_text(calls.count.slower), number_text(calls.count.faster)
        futex_calls = f"{slower} futex calls instead of {faster}, "
    yield _time_at_lock(unclaimed, lock.seconds).cause(
        "waiting",
        f"threads wait for {'each other' if is_synchronisation else 'a lock'} (futex): "
        f"{lock_phrase}, {number_text(lock.waits.slower)} waits instead of "
        f"{number_text(lock.waits.faster)}, {futex_calls}{duration(lock.seconds.slower)} of "
        f"waiting over all threads"
        f"{f', called by {called_by}' if callers else function_phrase(waiter)}",
        lock=variable if has_name else None,
        module=module or None,
        function=next(iter(callers), waiter),
        through=lock_function,
        syscall=FUTEX,
        waits=lock.waits,
        calls=None if calls is None else calls.count,
    )


def _lock_callers(difference: Difference) -> Mapping[str, float]:
    """Return the callers of the lock's functions, each with its share of the time at the lock."""
    extra_s = {
        short_name(function): change.extra
        for function, change in difference.locking.callers.items()
        if change.extra > 0 and is_named(function.name)
    }
    all_s = sum(extra_s.values())
    large_callers = [name for name in extra_s if extra_s[name] >= _MIN_CALLER_SHARE * all_s]
    return {name: extra_s[name] / all_s for name in large_callers[:_MAX_CALLERS]}


def _time_at_lock(unclaimed: UnclaimedTime, wait_time: Change) -> TimeClaim:
    work = unclaimed.claim(entry_points=(FUTEX,), functions=unclaimed.difference.locking.functions)
    wait = unclaimed.claim_waiting(wait_time, work.parts | {("wait", FUTEX)})
    margin = math.hypot(half_width_or_0(work.seconds_ci), half_width_or_0(wait.seconds_ci))
    seconds = work.seconds + wait.seconds
    interval = (seconds - margin, seconds + margin)
    thread_seconds = sum_of((work.thread_seconds, wait.thread_seconds))
    return TimeClaim(thread_seconds, seconds, interval, wait.waited_s, wait.parts)


def sleeping(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find threads that sleep longer, or more often, without waiting for others.

    Calls that poll count as sleeps if there is neither a pipe nor a socket.
    """
    difference = unclaimed.difference
    has_channel = any(name.startswith(NOT_ON_DISK) for name in difference.files)
    entry_points = _SLEEP_CALLS if has_channel else (*_SLEEP_CALLS, *POLL_CALLS)
    seconds = unclaimed.waits_by_entry_point
    if not difference.waits:
        seconds = {name: calls.seconds for name, calls in difference.calls.items()}
    increases = {
        name: seconds[name]
        for name in entry_points
        if name in seconds
        and seconds[name].extra > 0
        and (is_increase(seconds[name]) or most_increased_call(difference, (name,)) is not None)
    }
    syscall = largest_increase(increases)
    if syscall is None:
        return
    count = _number_of_calls(difference, syscall)
    yield unclaimed.claim(waits=increases).cause(
        "waiting",
        f"it sleeps in {syscall}{'' if count is None else f', {describe_change(count)} times'}",
        syscall=syscall,
        calls=count,
    )


def waiting(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find a kernel entry point with longer waits that no earlier rule has claimed."""
    waits = unclaimed.waits_by_entry_point
    increases = {name: change for name, change in waits.items() if is_increase(change)}
    entry_point = max(increases, key=lambda name: (increases[name].extra, name), default=None)
    if entry_point is None:
        return
    claim = unclaimed.claim(waits=(entry_point,))
    if unclaimed.waited_s > 0 and claim.waited_s < increases[entry_point].extra:
        # This waiting overlaps with claimed waiting: a thread may wait for a waiting thread.
        return
    yield claim.cause(
        "waiting",
        f"threads wait longer in {entry_point}",
        syscall=entry_point,
        function=_waiter(unclaimed, entry_point),
        calls=_number_of_calls(unclaimed.difference, entry_point),
    )


def _number_of_calls(difference: Difference, syscall: str) -> Change | None:
    calls = difference.calls.get(syscall)
    return None if calls is None else calls.count


def _waiter(unclaimed: UnclaimedTime, entry_point: str) -> str | None:
    """Return the named function that waits longest at a kernel entry point."""
    seconds = {
        wait.function.name: change.extra
        for wait, change in unclaimed.waits.items()
        if wait.entry_point == entry_point
        and wait.function is not None
        and is_named(wait.function.name)
    }
    return max(seconds, key=lambda name: seconds[name], default=None)
