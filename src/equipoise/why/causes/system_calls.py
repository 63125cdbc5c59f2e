"""Causes in system calls: how files are used, messages, calls of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from equipoise.why.causes.remaining import Cause, Remaining, sides
from equipoise.why.causes.vocabulary import (
    NOT_ON_DISK,
    PAGE_FAULT,
    POLLS,
    READS,
    SYNCS,
    WRITES,
    call_evidence,
    caller,
    file_evidence,
    file_with_most,
    instead,
    most_more,
    number,
    short_name,
)
from equipoise.why.differences.changes import Change, Difference, FileChange, is_more, sum_of

_BLOCK_BYTES = 512
"""Unit of the kernel's account of block reads."""

TINY_BYTES = 1024.0
"""Bytes whose copying costs about as much as a call."""

_TINY_TIMES = 4.0
_SAME_BYTES = 2.0

_ASKING = (
    "newfstatat",
    "stat",
    "lstat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
)
_OPENING = ("openat", "openat2", "open", "execve")
"""Calls that look a path up and open it; only those that fail are a search."""

_ABSENT = ("ENOENT", "ENOTDIR")
_MOSTLY = 0.5


def sync_per_record(remaining: Remaining) -> Iterator[Cause]:
    """Find a file that is synced to its disk more often: after each record, for instance."""
    difference = remaining.difference
    syscall = most_more(difference, SYNCS)
    if syscall is None:
        return
    calls = difference.calls[syscall].count
    file = file_with_most(difference, lambda change: change.syncs)
    yield remaining.extra(entries=SYNCS, waits=SYNCS).cause(
        "file_io",
        {"syscall": syscall, **file_evidence(file), "calls": sides(calls)},
        f"{file or 'a file'} is synced to its disk more often: {syscall} "
        f"{instead(difference, calls)}",
    )


def cold_file(remaining: Remaining) -> Iterator[Cause]:
    """Find a file that is read from its disk, while the other condition finds it in memory.

    There are more blocks from the disk, and waits where files are read.
    """
    difference = remaining.difference
    blocks = difference.accounts.get("block_reads")
    if blocks is None or not is_more(blocks):
        return
    is_mapped = is_more(difference.accounts.get("major_faults"))
    entries = (*READS, PAGE_FAULT) if is_mapped else READS
    extra = remaining.extra(entries=entries, waits=entries)
    if extra.waited_s <= 0:
        return
    file = file_with_most(difference, lambda change: change.seconds)
    waits = {one: w for one, w in remaining.waits.items() if one.entry in (*READS, PAGE_FAULT)}
    longest = max(waits, key=lambda one: waits[one].extra, default=None)
    syscall = longest.entry if longest is not None and longest.entry in READS else None
    reader = None
    if syscall is None and longest is not None and longest.function is not None:
        reader = caller(difference, longest.function, 0.0) or longest.function
    yield extra.cause(
        "file_io",
        {
            "syscall": syscall,
            "function": None if reader is None else short_name(reader),
            **file_evidence(file),
            "bytes_from_disk": {
                "baseline": _BLOCK_BYTES * blocks.baseline,
                "candidate": _BLOCK_BYTES * blocks.candidate,
            },
        },
        f"{file or 'a file'} is not in memory: "
        f"{number(_BLOCK_BYTES * difference.of_slower(blocks))} bytes are read from the disk",
    )


def tiny_writes(remaining: Remaining) -> Iterator[Cause]:
    """Find the same bytes written in many more calls: one for each line, for instance."""
    return _in_tiny_pieces(
        remaining, WRITES, "written", lambda file: file.writes, lambda file: file.bytes_written
    )


def tiny_reads(remaining: Remaining) -> Iterator[Cause]:
    """Find the same bytes read in many more calls: one for each line, for instance."""
    return _in_tiny_pieces(
        remaining, READS, "read", lambda file: file.reads, lambda file: file.bytes_read
    )


def _in_tiny_pieces(
    remaining: Remaining,
    syscalls: Sequence[str],
    participle: str,
    calls_of: Callable[[FileChange], Change],
    bytes_of: Callable[[FileChange], Change],
) -> Iterator[Cause]:
    difference = remaining.difference
    of_slower, of_faster = difference.of_slower, difference.of_faster
    syscall = most_more(difference, syscalls)
    on_disk = [
        change for name, change in difference.files.items() if not name.startswith(NOT_ON_DISK)
    ]
    if syscall is None or not on_disk:
        return
    count, size = sum_of(map(calls_of, on_disk)), sum_of(map(bytes_of, on_disk))
    if of_slower(count) <= 0 or of_slower(count) < _TINY_TIMES * of_faster(count):
        return
    bytes_each = of_slower(size) / of_slower(count)
    if bytes_each > TINY_BYTES or of_slower(size) > _SAME_BYTES * of_faster(size):
        return
    calls = difference.calls[syscall].count
    file = file_with_most(difference, calls_of)
    yield remaining.extra(entries=syscalls, waits=syscalls).cause(
        "system_call",
        {
            "syscall": syscall,
            **file_evidence(file),
            "size_bytes": round(bytes_each),
            "calls": sides(calls),
        },
        f"{file or 'a file'} is {participle} in pieces of about "
        f"{bytes_each:,.0f} bytes: {syscall} {instead(difference, calls)}",
    )


def path_look_ups(remaining: Remaining) -> Iterator[Cause]:
    """Find many more look-ups of paths: a search in several folders, for instance.

    There are more questions for files, or more attempts to open what is not there.
    """
    difference = remaining.difference
    names = (*_ASKING, *(name for name in _OPENING if _mostly_fails(difference, name)))
    syscall = most_more(difference, names)
    if syscall is None:
        return
    calls, absent = difference.calls[syscall].count, _absent(difference, syscall)
    yield remaining.extra(entries=names, waits=names).cause(
        "system_call",
        {"syscall": syscall, "calls": sides(calls), "not_there": sides(absent)},
        f"paths are looked up more often: {syscall} {instead(difference, calls)}, of which "
        f"{instead(difference, absent)} find nothing",
    )


def _absent(difference: Difference, name: str) -> Change:
    """Return the calls of this name that find nothing."""
    errors = difference.calls[name].errors
    return sum_of(errors[error] for error in _ABSENT if error in errors)


def _mostly_fails(difference: Difference, name: str) -> bool:
    if name not in difference.calls:
        return False
    count = difference.calls[name].count
    return is_more(count) and _absent(difference, name).extra >= _MOSTLY * count.extra


_MESSAGES = (
    *READS,
    *WRITES,
    "sendto",
    "recvfrom",
    "sendmsg",
    "recvmsg",
    "sendmmsg",
    "recvmmsg",
    "splice",
    *POLLS,
)


def messages(remaining: Remaining) -> Iterator[Cause]:
    """Find many more messages through a pipe or a socket."""
    difference = remaining.difference
    pipes = [
        change
        for name, change in difference.files.items()
        if name.startswith(NOT_ON_DISK) and (is_more(change.reads) or is_more(change.writes))
    ]
    file = file_with_most(
        difference, lambda change: change.writes, beginning=NOT_ON_DISK
    ) or file_with_most(difference, lambda change: change.reads, beginning=NOT_ON_DISK)
    syscall = most_more(difference, _MESSAGES)
    if not pipes or file is None or syscall is None:
        return
    calls = difference.calls[syscall].count
    through = sum(max(one.reads.extra, 0) + max(one.writes.extra, 0) for one in pipes)
    if 2 * through < calls.extra:
        return
    change = difference.files[file]
    yield remaining.extra(entries=_MESSAGES, waits=_MESSAGES).cause(
        "system_call",
        {
            "syscall": syscall,
            "file": file,
            "calls": sides(calls),
            "bytes_written": sides(change.bytes_written),
            "bytes_read": sides(change.bytes_read),
        },
        f"many more messages: {syscall} {instead(difference, calls)}, through {file}",
    )


def more_system_calls(remaining: Remaining) -> Iterator[Cause]:
    """Find system calls that are made more often."""
    difference = remaining.difference
    for syscall, calls in difference.calls.items():
        if ("entry", syscall) not in remaining.claimed and is_more(calls.count):
            yield remaining.extra(entries=(syscall,), waits=(syscall,)).cause(
                "system_call",
                call_evidence(syscall, calls),
                f"more system calls: {syscall} {instead(difference, calls.count)}",
            )


def slower_system_calls(remaining: Remaining) -> Iterator[Cause]:
    """Find system calls that take longer, without being made more often."""
    difference = remaining.difference
    for syscall, seconds in remaining.entries.items():
        calls = difference.calls.get(syscall)
        if calls is not None and is_more(seconds) and not is_more(calls.count):
            yield remaining.extra(entries=(syscall,)).cause(
                "system_call",
                call_evidence(syscall, calls),
                f"{syscall} takes longer: {number(difference.of_slower(calls.count))} calls",
            )
