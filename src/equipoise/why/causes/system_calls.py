"""Causes in system calls of any kind, and in messages between processes or threads."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.why.causes.remaining import Cause, Remaining, sides
from equipoise.why.causes.vocabulary import (
    NOT_ON_DISK,
    POLLS,
    READS,
    WRITES,
    call_evidence,
    file_with_most,
    instead,
    most_more,
    number,
)
from equipoise.why.differences.changes import is_more

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
