"""A file is written in many tiny pieces: line by line or byte by byte, without a buffer."""

from __future__ import annotations

from equipoise.why.causes.calls import WRITES
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.tiny import Direction, in_tiny_pieces

CAUSE = "tiny_writes"
WORDS = "the same bytes are written in many more calls: one for each line, for instance"

_WRITES = Direction(
    WRITES, "written", lambda change: change.writes, lambda change: change.bytes_written
)


def find(remaining: Remaining) -> tuple[Found, ...]:
    """The same bytes in many more calls."""
    return in_tiny_pieces(remaining, CAUSE, _WRITES)
