"""Causes in processes and threads: forks, fewer threads, locks, sleeps, waits of any kind."""

from __future__ import annotations

import re
from collections.abc import Iterator

from equipoise.model.interval import Interval
from equipoise.why.causes.remaining import Cause, Extra, Part, Remaining, sides
from equipoise.why.causes.vocabulary import (
    FORKS,
    NOT_ON_DISK,
    PAGE_FAULT,
    POLLS,
    SLEEPS,
    WAITS_FOR_CHILDREN,
    in_function,
    instead,
    is_named,
    most_more,
    number,
    optional_sides,
)
from equipoise.why.differences.changes import is_more

_LONGER_TIMES = 2.0
_AS_MANY_TIMES = 2.0
"""Largest ratio of the numbers of forks; beyond it, the cause is the number of processes."""

_LOADER = re.compile(r"ld-(linux|musl)[\w.-]*")
_STARTING = (
    *FORKS,
    "execve",
    "execveat",
    "exit_group",
    "exit",
    *WAITS_FOR_CHILDREN,
    PAGE_FAULT,
    "mmap",
    "munmap",
    "mprotect",
    "brk",
    "openat",
    "close",
    "newfstatat",
    "access",
    "read",
    "pread64",
    "arch_prctl",
    "rt_sigprocmask",
    "rt_sigaction",
)
"""Kernel entry points by which a process begins, loads its program and ends."""

_SMALL_PROCESS_S = 0.01
"""Most seconds on a processor of a small process."""

_MANY_TIMES = 2.0

_SAME_WORK = 0.25
"""Largest relative difference of equal work."""

_AT_ONCE = 1.1
"""Least seconds on processors for each second that passes, where threads ran at once."""


def fork_of_large_process(remaining: Remaining) -> Iterator[Cause]:
    """Find forks that take longer: each copies the tables of a large memory."""
    difference = remaining.difference
    of_slower, of_faster = difference.of_slower, difference.of_faster
    forks = [name for name in FORKS if name in difference.calls and name != "vfork"]
    syscall = max(forks, key=lambda name: difference.calls[name].seconds.extra, default=None)
    if syscall is None:
        return
    count = difference.calls[syscall].count
    # Samples come to some kernels' forks and miss those of others.
    is_sampled = is_more(remaining.entries.get(syscall))
    seconds = remaining.entries[syscall] if is_sampled else difference.calls[syscall].seconds
    if not 0 < of_faster(count) <= of_slower(count) <= _AS_MANY_TIMES * of_faster(count):
        return
    each_s, usual_s = of_slower(seconds) / of_slower(count), of_faster(seconds) / of_faster(count)
    if not is_more(seconds) or each_s < _LONGER_TIMES * usual_s:
        return
    has_faults = difference.faults is not None and is_more(difference.faults.count)
    others = (PAGE_FAULT, "exit_group") if has_faults else ("exit_group",)
    yield remaining.extra(
        entries=(*others, syscall) if is_sampled else others,
        calls=() if is_sampled else (syscall,),
        waits=WAITS_FOR_CHILDREN,
    ).cause(
        "process",
        {
            "syscall": syscall,
            "calls": sides(count),
            "call_seconds": sides(seconds),
            "resident_bytes": optional_sides(difference.accounts.get("max_rss_bytes")),
        },
        f"{number(of_slower(count))} forks ({syscall}) take {1e6 * each_s:,.0f} microseconds "
        "of a processor each, several times as long",
    )


def many_processes(remaining: Remaining) -> Iterator[Cause]:
    """Find many more processes that are started, each for little work."""
    difference = remaining.difference
    processes, programs = difference.processes, difference.programs
    if processes is None or not is_more(processes):
        return
    if difference.of_slower(processes) < _MANY_TIMES * difference.of_faster(processes):
        return
    on_processor = difference.on_processor
    if on_processor is not None and on_processor.extra > _SMALL_PROCESS_S * processes.extra:
        return
    executing = ("execve", "execveat") if is_more(programs) else FORKS
    syscall = most_more(difference, executing)
    loading = [one for one in remaining.functions if _LOADER.fullmatch(one.module)]
    yield remaining.extra(
        entries=_STARTING, functions=loading, waits=(*WAITS_FOR_CHILDREN, *FORKS)
    ).cause(
        "process",
        {
            "syscall": syscall,
            "processes": sides(processes),
            "programs": optional_sides(programs),
        },
        f"many small processes are started: {instead(difference, processes)}"
        f"{'' if syscall is None else f' ({syscall})'}",
    )


def one_thread(remaining: Remaining) -> Iterator[Cause]:
    """Find the same work done by fewer threads or processes at once.

    There are fewer threads, as many seconds on processors, and more seconds that pass.
    """
    difference = remaining.difference
    threads, work, gap = difference.threads, difference.on_processor, difference.gap
    if threads is None or work is None or threads.extra >= 0 or not threads.is_certain:
        return
    if abs(work.extra) > _SAME_WORK * difference.of_slower(work):
        return
    if difference.of_faster(work) < _AT_ONCE * difference.of_faster(gap):
        return
    waited_s = sum(max(0.0, change.extra) for change in difference.waits.values())
    seconds = remaining.gap_s - max(0.0, work.extra) - waited_s
    interval: Interval = (seconds - gap.half_width, seconds + gap.half_width)
    if None in gap.extra_ci:
        interval = (None, None)
    yield Extra(gap, seconds, interval, 0.0, frozenset()).cause(
        "process",
        {"threads": sides(threads), "processor_seconds": sides(work)},
        f"the same work is done by fewer threads ({instead(difference, threads)}), one after "
        "another",
    )


_FUTEX = "futex"
_LOCK_WITHOUT_NAME = "anonymous memory"


def lock_waits(remaining: Remaining) -> Iterator[Cause]:
    """Find a lock for which threads wait more often, and longer.

    A thread that waits for the end of another one may wait longer, but not more often.
    """
    difference = remaining.difference
    contended = {
        place: lock
        for place, lock in difference.locks.items()
        if is_named(place) and is_more(lock.waits) and lock.seconds.extra > 0
    }
    place = max(contended, key=lambda one: contended[one].seconds.extra, default=None)
    if place is None:
        return
    lock = contended[place]
    name, _, module = place.partition(" in ")
    is_unnamed = place == _LOCK_WITHOUT_NAME
    function = _waiter(remaining, _FUTEX)
    claims: frozenset[Part] = frozenset({("wait", _FUTEX), ("entry", _FUTEX)})
    yield remaining.waiting(lock.seconds, claims).cause(
        "waiting",
        {
            "lock": None if is_unnamed else name,
            "module": module or None,
            "function": function,
            "syscall": _FUTEX,
            "waits": sides(lock.waits),
        },
        f"threads wait for {'a lock without a name' if is_unnamed else f'the lock {name}'}"
        f"{in_function(function, ' in ')}: {instead(difference, lock.waits)} times",
    )


def sleeping(remaining: Remaining) -> Iterator[Cause]:
    """Find threads that sleep for longer, or more often, and wait for nobody else.

    Calls that poll are sleeps while there is neither a pipe nor a socket.
    """
    difference = remaining.difference
    is_alone = not any(name.startswith(NOT_ON_DISK) for name in difference.files)
    entries = (*SLEEPS, *POLLS) if is_alone else SLEEPS
    seconds = remaining.waits_by_entry
    if not difference.waits:
        seconds = {name: calls.seconds for name, calls in difference.calls.items()}
    longer = {
        entry: seconds[entry]
        for entry in entries
        if entry in seconds
        and seconds[entry].extra > 0
        and (is_more(seconds[entry]) or most_more(difference, (entry,)) is not None)
    }
    syscall = max(longer, key=lambda entry: longer[entry].extra, default=None)
    if syscall is None:
        return
    calls = difference.calls.get(syscall)
    yield remaining.extra(waits=tuple(longer)).cause(
        "waiting",
        {"syscall": syscall, "calls": optional_sides(None if calls is None else calls.count)},
        f"it sleeps in {syscall}"
        f"{'' if calls is None else f', {instead(difference, calls.count)} times'}",
    )


def waiting(remaining: Remaining) -> Iterator[Cause]:
    """Find a kernel entry point at which threads wait longer, for what no other rule knows."""
    by_entry = remaining.waits_by_entry
    longer = {entry: change for entry, change in by_entry.items() if is_more(change)}
    entry = max(longer, key=lambda one: (longer[one].extra, one), default=None)
    if entry is None:
        return
    extra = remaining.extra(waits=(entry,))
    if remaining.waited_s > 0 and extra.waited_s < longer[entry].extra:
        # It overlaps with waiting that has a cause: waiting for a thread that waits is no cause.
        return
    calls = remaining.difference.calls.get(entry)
    yield extra.cause(
        "waiting",
        {
            "syscall": entry,
            "function": _waiter(remaining, entry),
            "calls": optional_sides(None if calls is None else calls.count),
        },
        f"threads wait longer in {entry}",
    )


def _waiter(remaining: Remaining, entry: str) -> str | None:
    """Return the named function that waits longest at a kernel entry point."""
    seconds = {
        wait.function.name: change.extra
        for wait, change in remaining.waits.items()
        if wait.entry == entry and wait.function is not None and is_named(wait.function.name)
    }
    return max(seconds, key=lambda name: seconds[name], default=None)
