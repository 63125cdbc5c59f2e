"""System calls by name, count, time and typical arguments; files with bytes; waits on locks.

The native observer (``crates/evidence``, ``calls``) takes them from the kernel's tracepoints, and
by ``ptrace`` where those are forbidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from equipoise.why.evidence.process import End, Process, read_document, under_observer

_FILE = "system_calls.json"

Method = Literal["best", "tracepoints", "ptrace"]


class Frequency(Struct, frozen=True):
    """A value of an argument, and the least number of times that it was seen."""

    value: int
    count: int


class Calls(Struct, frozen=True):
    """All calls of one name."""

    name: str
    count: int
    seconds: float
    """Seconds from entry to return, over the calls that returned, of all threads."""
    longest_s: float
    waits: bool
    """Whether the call mostly waits for another thread, process or device."""
    errors: Mapping[str, int]
    """Number of errors by name: ``ENOENT``."""
    unfinished: int
    """Calls whose return was not seen."""
    bytes_asked: int | None
    """Sum of the size arguments; ``None`` if the call has none."""
    bytes_done: int | None
    """Sum of the bytes read or written; ``None`` if the call does neither."""
    sizes: tuple[Frequency, ...]
    """The most frequent size arguments, at most 8."""
    modes: tuple[Frequency, ...]
    """The most frequent advice of madvise, operation of futex, request of ioctl."""


class FileUse(Struct, frozen=True):
    """All that was done with one file; sockets and pipes are one each."""

    name: str
    reads: int
    bytes_read: int
    writes: int
    bytes_written: int
    syncs: int
    seconds: float


class LockWaits(Struct, frozen=True):
    """Waits on the futexes of one place: "gate in /usr/bin/program", "anonymous memory"."""

    place: str
    waits: int
    seconds: float


class SystemCalls(Struct, frozen=True):
    """The system calls of one run and its descendants."""

    method: Literal["tracepoints", "ptrace"]
    wall_s: float
    end: End
    processes: int
    threads: int
    programs: int
    """Number of programs that were executed, with the command itself."""
    waiting_s: float
    """Seconds that threads spent in calls that wait for others, added up."""
    calls: tuple[Calls, ...]
    """The calls with the most seconds first."""
    files: tuple[FileUse, ...]
    locks: tuple[LockWaits, ...]
    unseen: tuple[str, ...]
    """Sentences about what could not be seen."""


def wrap(process: Process, folder: Path, method: Method = "best") -> Process:
    """Return the process under the observer, which writes into the folder.

    Raise `UnusableInput` if the observer is missing.
    """
    return under_observer(process, folder / _FILE, "calls", "--method", method)


def read(folder: Path) -> SystemCalls:
    """Read what the observer wrote into the folder.

    Raise `UnusableInput` if the observer wrote nothing.
    """
    return read_document(folder / _FILE, SystemCalls)
