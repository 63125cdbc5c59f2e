"""A file is read in many tiny pieces: line by line or byte by byte, without a buffer."""

from __future__ import annotations

from equipoise.explain.causes.calls import READS, file_with_most
from equipoise.explain.causes.found import Found
from equipoise.explain.causes.remaining import Remaining
from equipoise.explain.causes.tiny import tiny
from equipoise.explain.causes.wording import instead, known_file, sides

CAUSE = "tiny_reads"
WORDS = "the same bytes are read in many more calls: one for each line, for instance"


def find(remaining: Remaining) -> tuple[Found, ...]:
    """The same bytes in many more calls."""
    difference = remaining.difference
    found = tiny(difference, READS, lambda change: change.reads, lambda change: change.bytes_read)
    if found is None:
        return ()
    extra = remaining.extra(doors=READS, waits=READS)
    file = file_with_most(difference, lambda change: change.reads)
    return (
        Found(
            cause=CAUSE,
            kind="system_call",
            evidence={
                "syscall": found.syscall,
                **known_file(file),
                "size_bytes": round(found.bytes_each),
                "calls": sides(found.count),
                "seconds": sides(extra.sides),
            },
            seconds=extra.seconds,
            seconds_ci=extra.seconds_ci,
            words=(
                f"{file or 'a file'} is read in pieces of about {found.bytes_each:,.0f} bytes: "
                f"{found.syscall} {instead(difference, found.count)}"
            ),
            claims=extra.claims,
            waited_s=extra.waited_s,
        ),
    )
