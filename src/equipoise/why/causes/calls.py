"""What rules ask of the system calls and files of a difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from equipoise.why.causes.wording import is_more, is_named
from equipoise.why.differences.result import Change, Difference, FileChange

WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2")
READS = ("read", "readv", "pread64", "preadv", "preadv2")
FORKS = ("clone", "clone3", "fork", "vfork")
SYNCS = ("fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync")
MAPPINGS = ("mmap", "munmap", "madvise", "brk", "mremap")
SLEEPS = ("clock_nanosleep", "nanosleep")
POLLS = ("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2")
FOR_CHILDREN = ("wait4", "kernel_wait4", "waitid", "kernel_waitid")
"""The kernel's own function is the door where the call's is only a jump to it."""

PAGE_FAULT = "page_fault"
NOT_ON_DISK = ("pipe", "socket")
"""How the names of files begin that lie on no disk."""


def most_more(difference: Difference, names: Iterable[str]) -> str | None:
    """Of these calls, the one of which the slower condition certainly makes most more."""
    calls = difference.calls
    more = [name for name in names if name in calls and is_more(calls[name].count)]
    return max(more, key=lambda name: calls[name].count.extra, default=None)


def not_more(difference: Difference, names: Iterable[str], *, allowed: float = 0.1) -> bool:
    """Whether the slower condition makes about as many of each of these calls, or fewer."""
    found = [difference.calls[name].count for name in names if name in difference.calls]
    return all(
        count.extra <= max(8.0, allowed * getattr(count, difference.faster)) for count in found
    )


def file_with_most(
    difference: Difference,
    take: Callable[[FileChange], Change],
    *,
    beginning: tuple[str, ...] | None = None,
) -> str | None:
    """The named file of which the slower condition has most more.

    Parameters
    ----------
    beginning
        How its name begins; by default it lies on a disk.
    """

    def fits(name: str) -> bool:
        if beginning is not None:
            return name.startswith(beginning)
        return is_named(name) and not name.startswith(NOT_ON_DISK)

    more = [
        name for name, change in difference.files.items() if fits(name) and take(change).extra > 0
    ]
    return max(more, key=lambda name: take(difference.files[name]).extra, default=None)
