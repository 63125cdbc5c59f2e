"""Processes or threads talk to one another in many more messages."""

from __future__ import annotations

from equipoise.why.causes.calls import (
    NOT_ON_DISK,
    POLLS,
    READS,
    WRITES,
    file_with_most,
    most_more,
)
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import instead, is_more, sides

CAUSE = "messages"
WORDS = "many more messages go through a pipe or a socket"

_MESSAGES = (
    "sendto",
    "recvfrom",
    "sendmsg",
    "recvmsg",
    "sendmmsg",
    "recvmmsg",
    "splice",
    *POLLS,
)
_DOORS = (*READS, *WRITES, *_MESSAGES)


def find(remaining: Remaining) -> tuple[Found, ...]:
    """More reads or writes of pipes or sockets, and not of files."""
    difference = remaining.difference
    pipes = {
        name: change
        for name, change in difference.files.items()
        if name.startswith(NOT_ON_DISK) and (is_more(change.reads) or is_more(change.writes))
    }
    file = file_with_most(difference, lambda change: change.writes, beginning=NOT_ON_DISK)
    file = file or file_with_most(difference, lambda change: change.reads, beginning=NOT_ON_DISK)
    syscall = most_more(difference, _DOORS)
    if not pipes or file is None or syscall is None:
        return ()
    calls = difference.calls[syscall].count
    through = sum(
        max(change.reads.extra, 0) + max(change.writes.extra, 0) for change in pipes.values()
    )
    if 2 * through < calls.extra:
        return ()
    extra = remaining.extra(doors=_DOORS, waits=_DOORS)
    change = difference.files[file]
    return (
        extra.found(
            cause=CAUSE,
            kind="system_call",
            evidence={
                "syscall": syscall,
                "file": file,
                "calls": sides(calls),
                "bytes_written": sides(change.bytes_written),
                "bytes_read": sides(change.bytes_read),
            },
            words=f"many more messages: {syscall} {instead(difference, calls)}, through {file}",
        ),
    )
