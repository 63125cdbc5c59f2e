"""Find causes in system calls: the use of files, messages, calls of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from equipoise.why.causes.unclaimed import (
    NOT_ON_DISK,
    PAGE_FAULT,
    POLL_CALLS,
    Cause,
    UnclaimedTime,
    call_evidence,
    describe_change,
    is_named,
    largest_increase,
    most_increased_call,
    number_text,
    short_name,
)
from equipoise.why.differences.changes import Change, Difference, FileChange, is_increase, sum_of

_WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2")
_READS = ("read", "readv", "pread64", "preadv", "preadv2")
_SYNCS = ("fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync")

_BLOCK_BYTES = 512
"""Bytes of a block in the kernel's account of block reads."""

TINY_BYTES = 1024.0
"""Bytes of a small transfer. Copying them takes about as long as one system call."""

_MIN_CALLS_RATIO = 4.0
_MAX_BYTES_RATIO = 2.0
"""The slower condition makes four times as many tiny transfers, for at most twice the bytes."""

_PATH_QUERIES = tuple(
    "newfstatat stat lstat statx access faccessat faccessat2 readlink readlinkat".split()
)
_PATH_OPENS = ("openat", "openat2", "open", "execve")
"""Calls that look a path up and open the file. They count as look-ups if most of them fail."""

_NOT_FOUND_ERRORS = ("ENOENT", "ENOTDIR")
_MAJORITY_SHARE = 0.5
"""Smallest share of failures among the extra calls, if most of them fail."""


def sync_per_record(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find a file that is synced to its disk more often, for instance after each record."""
    difference = unclaimed.difference
    syscall = most_increased_call(difference, _SYNCS)
    if syscall is None:
        return
    calls = difference.calls[syscall].count
    file = _file_with_most(difference, attrgetter("syncs"))
    yield unclaimed.claim(entry_points=_SYNCS, waits=_SYNCS).cause(
        "file_io",
        f"{file or 'a file'} is synced to its disk more often: {syscall} {describe_change(calls)}",
        syscall=syscall,
        **_file_evidence(file),
        calls=calls,
    )


def cold_file(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find a file that one condition reads from the disk, and the other condition from memory."""
    difference = unclaimed.difference
    blocks = difference.resources.get("block_reads")
    if blocks is None or not is_increase(blocks):
        return
    is_mapped = is_increase(difference.resources.get("major_faults"))
    entry_points = (*_READS, PAGE_FAULT) if is_mapped else _READS
    claim = unclaimed.claim(entry_points=entry_points, waits=entry_points)
    if claim.waited_s <= 0:
        return
    file = _file_with_most(difference, attrgetter("seconds"))
    waits = unclaimed.waits.items()
    read_waits = {
        wait: change for wait, change in waits if wait.entry_point in (*_READS, PAGE_FAULT)
    }
    wait = largest_increase(read_waits)
    syscall = wait.entry_point if wait is not None and wait.entry_point in _READS else None
    reader = None if syscall is not None or wait is None else wait.function
    yield claim.cause(
        "file_io",
        f"{file or 'a file'} is not in memory: "
        f"{number_text(_BLOCK_BYTES * blocks.slower)} bytes are read from the disk",
        syscall=syscall,
        function=None if reader is None else short_name(reader),
        **_file_evidence(file),
        bytes_from_disk={
            "baseline": _BLOCK_BYTES * blocks.baseline,
            "candidate": _BLOCK_BYTES * blocks.candidate,
        },
    )


def _file_with_most(
    difference: Difference, change_of: Callable[[FileChange], Change], *, on_disk: bool = True
) -> str | None:
    """Return the file with the largest increase; ``on_disk=False`` selects pipes and sockets."""
    changes = {
        name: change_of(file)
        for name, file in difference.files.items()
        if is_named(name) and name.startswith(NOT_ON_DISK) is not on_disk
    }
    return largest_increase(changes)


def _file_evidence(name: str | None) -> dict[str, Any]:
    reason = "it was closed before its name could be looked up"
    return {"file": name} if name is not None else {"file": None, "file_unknown_because": reason}


def tiny_writes(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find the same bytes written in many more calls, for instance one call for each line."""
    return _tiny_transfers(unclaimed, _WRITES, "writes", "written")


def tiny_reads(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find the same bytes read in many more calls, for instance one call for each line."""
    return _tiny_transfers(unclaimed, _READS, "reads", "read")


def _tiny_transfers(
    unclaimed: UnclaimedTime, syscalls: Sequence[str], count_field: str, participle: str
) -> Iterator[Cause]:
    """Find calls that transfer few bytes; ``count_field`` of `FileChange` counts the calls."""
    difference = unclaimed.difference
    calls_of, bytes_of = attrgetter(count_field), attrgetter(f"bytes_{participle}")
    syscall = most_increased_call(difference, syscalls)
    # A file without a name may be the other end of a pipe or socket.
    may_be_unnamed = not _more_used_channels(difference)
    on_disk = [
        file
        for name, file in difference.files.items()
        if not name.startswith(NOT_ON_DISK) and (may_be_unnamed or is_named(name))
    ]
    if syscall is None or not on_disk:
        return
    transfers, transferred = sum_of(map(calls_of, on_disk)), sum_of(map(bytes_of, on_disk))
    if transfers.slower <= 0 or transfers.slower < _MIN_CALLS_RATIO * transfers.faster:
        return
    bytes_each = transferred.slower / transfers.slower
    if bytes_each > TINY_BYTES or transferred.slower > _MAX_BYTES_RATIO * transferred.faster:
        return
    calls = difference.calls[syscall].count
    file = _file_with_most(difference, calls_of)
    yield unclaimed.claim(entry_points=syscalls, waits=syscalls).cause(
        "system_call",
        f"{file or 'a file'} is {participle} in pieces of about "
        f"{bytes_each:,.0f} bytes: {syscall} {describe_change(calls)}",
        syscall=syscall,
        **_file_evidence(file),
        size_bytes=round(bytes_each),
        calls=calls,
    )


def path_look_ups(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find many more look-ups of paths, for instance a search in several folders."""
    difference = unclaimed.difference
    names = (*_PATH_QUERIES, *(name for name in _PATH_OPENS if _mostly_fails(difference, name)))
    syscall = most_increased_call(difference, names)
    if syscall is None:
        return
    calls, not_found = difference.calls[syscall].count, _not_found_calls(difference, syscall)
    yield unclaimed.claim(entry_points=names, waits=names).cause(
        "system_call",
        f"paths are looked up more often: {syscall} {describe_change(calls)}, of which "
        f"{describe_change(not_found)} find nothing",
        syscall=syscall,
        calls=calls,
        not_found=not_found,
    )


def _not_found_calls(difference: Difference, name: str) -> Change:
    errors = difference.calls[name].errors
    return sum_of(errors[error] for error in _NOT_FOUND_ERRORS if error in errors)


def _mostly_fails(difference: Difference, name: str) -> bool:
    if name not in difference.calls:
        return False
    count = difference.calls[name].count
    not_found = _not_found_calls(difference, name)
    return is_increase(count) and not_found.extra >= _MAJORITY_SHARE * count.extra


_SOCKET_CALLS = ("sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "splice")
_MESSAGE_CALLS = (*_READS, *_WRITES, *_SOCKET_CALLS, *POLL_CALLS)


def messages(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find many more messages through a pipe or a socket."""
    difference = unclaimed.difference
    channels = _more_used_channels(difference)
    file = _file_with_most(difference, attrgetter("writes"), on_disk=False)
    file = file or _file_with_most(difference, attrgetter("reads"), on_disk=False)
    syscall = most_increased_call(difference, _MESSAGE_CALLS)
    if not channels or file is None or syscall is None:
        return
    calls = difference.calls[syscall].count
    channel_calls = sum(max(use.reads.extra, 0) + max(use.writes.extra, 0) for use in channels)
    if 2 * channel_calls < calls.extra:
        return
    change = difference.files[file]
    yield unclaimed.claim(entry_points=_MESSAGE_CALLS, waits=_MESSAGE_CALLS).cause(
        "system_call",
        f"many more messages: {syscall} {describe_change(calls)}, through {file}",
        syscall=syscall,
        file=file,
        calls=calls,
        bytes_written=change.bytes_written,
        bytes_read=change.bytes_read,
    )


def _more_used_channels(difference: Difference) -> list[FileChange]:
    """Return the changes of pipes and of sockets that are read or written more often."""
    return [
        change
        for name, change in difference.files.items()
        if name.startswith(NOT_ON_DISK)
        and (is_increase(change.reads) or is_increase(change.writes))
    ]


def more_system_calls(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find system calls that are made more often."""
    difference = unclaimed.difference
    for syscall, calls in difference.calls.items():
        if ("kernel", syscall) not in unclaimed.claimed_parts and is_increase(calls.count):
            yield unclaimed.claim(entry_points=(syscall,), waits=(syscall,)).cause(
                "system_call",
                f"more system calls: {syscall} {describe_change(calls.count)}",
                **call_evidence(syscall, calls),
            )


def slower_system_calls(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find system calls that take longer, but are not made more often."""
    difference = unclaimed.difference
    for syscall, seconds in unclaimed.entry_points.items():
        calls = difference.calls.get(syscall)
        if calls is not None and is_increase(seconds) and not is_increase(calls.count):
            yield unclaimed.claim(entry_points=(syscall,)).cause(
                "system_call",
                f"{syscall} takes longer: {number_text(calls.count.slower)} calls",
                **call_evidence(syscall, calls),
            )
