"""Files are synced to the disk more often."""

from __future__ import annotations

from equipoise.why.causes.calls import SYNCS, file_with_most, most_more
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import instead, known_file, sides

CAUSE = "sync_per_record"
WORDS = "a file is synced to its disk more often: after each record, for instance"


def find(remaining: Remaining) -> tuple[Found, ...]:
    """More calls that sync."""
    difference = remaining.difference
    syscall = most_more(difference, SYNCS)
    if syscall is None:
        return ()
    calls = difference.calls[syscall].count
    extra = remaining.extra(doors=SYNCS, waits=SYNCS)
    file = file_with_most(difference, lambda change: change.syncs)
    return (
        extra.found(
            cause=CAUSE,
            kind="file_io",
            evidence={
                "syscall": syscall,
                **known_file(file),
                "calls": sides(calls),
            },
            words=(
                f"{file or 'a file'} is synced to its disk more often: {syscall} "
                f"{instead(difference, calls)}"
            ),
        ),
    )
