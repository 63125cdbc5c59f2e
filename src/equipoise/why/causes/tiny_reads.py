"""A file is read in many tiny pieces: line by line or byte by byte, without a buffer."""

from __future__ import annotations

from equipoise.why.causes.calls import READS
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.tiny import Direction, in_tiny_pieces

CAUSE = "tiny_reads"
WORDS = "the same bytes are read in many more calls: one for each line, for instance"

_READS = Direction(READS, "read", lambda change: change.reads, lambda change: change.bytes_read)


def find(remaining: Remaining) -> tuple[Found, ...]:
    """The same bytes in many more calls."""
    return in_tiny_pieces(remaining, CAUSE, _READS)
