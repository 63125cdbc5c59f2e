"""What rules about tiny reads and tiny writes share: the same bytes in many more calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from equipoise.explain.causes.calls import NOT_ON_DISK, most_more
from equipoise.explain.causes.remaining import added
from equipoise.explain.causes.wording import of_faster, of_slower
from equipoise.explain.difference.result import Change, Difference, FileChange

TINY_BYTES = 1024.0
"""A call costs about as much as copying so many bytes."""

_TIMES = 4.0
_SAME_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class Tiny:
    """Calls that move few bytes each."""

    syscall: str
    count: Change
    bytes_each: float
    """In the slower condition."""


def tiny(
    difference: Difference,
    names: Sequence[str],
    calls: Callable[[FileChange], Change],
    moved: Callable[[FileChange], Change],
) -> Tiny | None:
    """The calls, if about the same bytes are moved in many more and much smaller ones."""
    syscall = most_more(difference, names)
    on_disk = [
        change for name, change in difference.files.items() if not name.startswith(NOT_ON_DISK)
    ]
    if syscall is None or not on_disk:
        return None
    count, size = added(map(calls, on_disk)), added(map(moved, on_disk))
    slower, faster = of_slower(difference, count), of_faster(difference, count)
    if slower <= 0 or of_slower(difference, size) / slower > TINY_BYTES:
        return None
    if slower < _TIMES * faster:
        return None
    if of_slower(difference, size) > _SAME_BYTES * of_faster(difference, size):
        return None
    return Tiny(syscall, difference.calls[syscall].count, of_slower(difference, size) / slower)
