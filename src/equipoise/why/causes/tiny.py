"""What rules about tiny reads and tiny writes share: the same bytes in many more calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from equipoise.why.causes.calls import NOT_ON_DISK, file_with_most, most_more
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining, added
from equipoise.why.causes.wording import instead, known_file, of_faster, of_slower, sides
from equipoise.why.differences.result import Change, Difference, FileChange

TINY_BYTES = 1024.0
"""A call costs about as much as copying so many bytes."""

_TIMES = 4.0
_SAME_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class Direction:
    """Reading or writing."""

    syscalls: Sequence[str]
    participle: str
    """``read``, ``written``."""
    calls: Callable[[FileChange], Change]
    moved: Callable[[FileChange], Change]
    """Bytes."""


@dataclass(frozen=True, slots=True)
class _Tiny:
    """Calls that move few bytes each."""

    syscall: str
    count: Change
    bytes_each: float
    """In the slower condition."""


def in_tiny_pieces(remaining: Remaining, cause: str, direction: Direction) -> tuple[Found, ...]:
    """The cause, if about the same bytes are moved in many more and much smaller calls."""
    difference = remaining.difference
    found = _tiny(difference, direction)
    if found is None:
        return ()
    extra = remaining.extra(doors=direction.syscalls, waits=direction.syscalls)
    file = file_with_most(difference, direction.calls)
    return (
        extra.found(
            cause=cause,
            kind="system_call",
            evidence={
                "syscall": found.syscall,
                **known_file(file),
                "size_bytes": round(found.bytes_each),
                "calls": sides(found.count),
            },
            words=(
                f"{file or 'a file'} is {direction.participle} in pieces of about "
                f"{found.bytes_each:,.0f} bytes: {found.syscall} "
                f"{instead(difference, found.count)}"
            ),
        ),
    )


def _tiny(difference: Difference, direction: Direction) -> _Tiny | None:
    syscall = most_more(difference, direction.syscalls)
    on_disk = [
        change for name, change in difference.files.items() if not name.startswith(NOT_ON_DISK)
    ]
    if syscall is None or not on_disk:
        return None
    count, size = added(map(direction.calls, on_disk)), added(map(direction.moved, on_disk))
    slower, faster = of_slower(difference, count), of_faster(difference, count)
    if slower <= 0 or of_slower(difference, size) / slower > TINY_BYTES:
        return None
    if slower < _TIMES * faster:
        return None
    if of_slower(difference, size) > _SAME_BYTES * of_faster(difference, size):
        return None
    return _Tiny(syscall, difference.calls[syscall].count, of_slower(difference, size) / slower)
