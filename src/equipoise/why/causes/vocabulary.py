"""Names of system calls, and what many rules ask of a difference or say in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from equipoise.why.causes.remaining import Extra, Remaining
from equipoise.why.differences.changes import (
    CallsChange,
    Change,
    Difference,
    FaultsChange,
    FileChange,
    Function,
    is_more,
)

WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2")
READS = ("read", "readv", "pread64", "preadv", "preadv2")
FORKS = ("clone", "clone3", "fork", "vfork")
SYNCS = ("fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync")
MAPPINGS = ("mmap", "munmap", "madvise", "brk", "mremap")
SLEEPS = ("clock_nanosleep", "nanosleep")
POLLS = ("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2")
WAITS_FOR_CHILDREN = ("wait4", "kernel_wait4", "waitid", "kernel_waitid")
"""Calls that wait for children, and the kernel's functions that some kernels show instead."""

PAGE_FAULT = "page_fault"
PAGE_BYTES = 4096
NOT_ON_DISK = ("pipe", "socket")
"""Beginnings of the names of files that lie on no disk."""

_UNNAMED = "("
"""Beginning of the names that sources give to what has none: ``(unknown)``."""

_OF_EVERY_PROGRAM = frozenset(
    {"_start", "__libc_start_main", "__libc_start_call_main", "<module>", "clone3"}
)
"""Functions from which every program is called."""

_MOST = 0.8
"""Least part of a function's extra time that its caller has: stacks are cut sometimes."""


def most_more(difference: Difference, names: Iterable[str]) -> str | None:
    """Return the call of which the slower condition certainly makes most more."""
    calls = difference.calls
    more = [name for name in names if name in calls and is_more(calls[name].count)]
    return max(more, key=lambda name: calls[name].count.extra, default=None)


def file_with_most(
    difference: Difference, change_of: Callable[[FileChange], Change], *, on_disk: bool = True
) -> str | None:
    """Return the named file on a disk, or the pipe or socket, that has most more of a change."""
    extra = {
        name: change_of(file).extra
        for name, file in difference.files.items()
        if is_named(name) and name.startswith(NOT_ON_DISK) is not on_disk
    }
    name = max(extra, key=lambda item: extra[item], default=None)
    return name if name is not None and extra[name] > 0 else None


def largest(changes: Mapping[Function, Change]) -> Function | None:
    """Return the function of which the slower condition has most more."""
    more = [function for function, change in changes.items() if change.extra > 0]
    return max(more, key=lambda function: changes[function].extra, default=None)


def caller(difference: Difference, function: Function, seconds: float) -> Function | None:
    """Return the nearest named caller through which a function got these extra seconds.

    A caller has all seconds of the function; the nearest of several callers has the fewest other
    seconds. Of equal callers it is the last, as stacks are read inwards.
    """
    callers = {
        one: change
        for one, change in difference.reached.items()
        if one != function
        and is_named(one.name)
        and one.name.partition(":")[0] not in _OF_EVERY_PROGRAM
        and change.extra >= _MOST * seconds > 0
    }
    return min(reversed(callers), key=lambda caller: callers[caller].slower, default=None)


def toucher(remaining: Remaining, faults: FaultsChange, extra: Extra) -> str | None:
    """Return the named function that touches the pages that fault more, if it is known."""
    function = largest(faults.by_function)
    if function is None:
        return None
    if not is_named(function.name):
        function = caller(remaining.difference, function, extra.sides.extra) or function
    return short_name(function)


def call_evidence(syscall: str, calls: CallsChange) -> dict[str, Any]:
    """Return a system call as evidence shows it, without its seconds."""
    return {"syscall": syscall, "size_bytes": calls.typical_bytes, "calls": calls.count}


def file_evidence(name: str | None) -> dict[str, Any]:
    """Return a file as evidence shows it."""
    because = "it was closed before its name could be looked up"
    return {"file": name} if name is not None else {"file": None, "file_unknown_because": because}


def instead(change: Change) -> str:
    """Return ``150,000 instead of 879``: the slower condition's number first."""
    return f"{number(change.slower)} instead of {number(change.faster)}"


def number(value: float) -> str:
    """Return ``150,000``: means over runs that differ are rounded."""
    return f"{value:,.0f}"


def in_function(name: str | None, before: str = ", in ") -> str:
    """Return the end of a sentence that names a function: empty if there is none."""
    return "" if name is None else f"{before}{name}()"


def is_named(name: str) -> bool:
    """Return whether this is a name and not a remark that there is none."""
    return not name.startswith(_UNNAMED)


def short_name(function: Function) -> str:
    """Return the name of a function, without the file in which an interpreter found it."""
    return function.name.partition(":")[0] if function.kind == "python" else function.name
