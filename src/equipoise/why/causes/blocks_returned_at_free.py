"""Large blocks go back to the kernel at every free, and are mapped and faulted in again."""

from __future__ import annotations

from equipoise.why.causes.calls import PAGE_FAULT, most_more
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import called, counted, instead, is_more, of_slower, sides
from equipoise.why.differences.result import AllocationsChange, Difference, SizeClassChange

CAUSE = "blocks_returned_at_free"
WORDS = "the allocator returns large blocks to the kernel at every free and gets them anew"

_DOORS = {
    "munmap": ("munmap", "mmap", "mremap"),
    "madvise": ("madvise", "mmap", "munmap"),
    "brk": ("brk",),
}
"""What returns memory, with what gets it."""

PAGE_BYTES = 4096
"""Nothing smaller can be returned."""

_FEWEST, _MOST = 0.25, 4.0
"""Calls for each block: brk returns and gets, and an allocator may return several at once."""


def find(remaining: Remaining) -> tuple[Found, ...]:
    """The size of block of which there are about as many as calls that return memory."""
    difference = remaining.difference
    syscall = most_more(difference, _DOORS)
    if syscall is None or difference.allocations is None:
        return ()
    calls = difference.calls[syscall].count
    size = _size(difference, difference.allocations, calls.extra)
    if size is None:
        return ()
    faults = difference.faults.count if difference.faults is not None else None
    touched = (PAGE_FAULT,) if is_more(faults) else ()
    extra = remaining.extra(doors=(*_DOORS[syscall], *touched))
    asked_by = with_most_bytes(difference, difference.allocations)
    return (
        extra.found(
            cause=CAUSE,
            kind="allocation",
            evidence={
                "size_bytes": size.typical_bytes,
                "syscall": syscall,
                "function": asked_by,
                "blocks": sides(size.count),
                "calls": sides(calls),
                "page_faults": None if faults is None else sides(faults),
            },
            words=(
                f"blocks of {size.typical_bytes:,} bytes go back to the kernel at every free "
                f"({counted(of_slower(difference, size.count))} blocks, {syscall} "
                f"{instead(difference, calls)})"
            ),
        ),
    )


def _size(
    difference: Difference, allocations: AllocationsChange, calls: float
) -> SizeClassChange | None:
    """Of the sizes that fit, the one with the most bytes."""
    fitting = [
        size
        for size in allocations.classes
        if size.typical_bytes >= PAGE_BYTES
        and _FEWEST * of_slower(difference, size.count) <= calls
        and calls <= _MOST * of_slower(difference, size.count)
    ]
    return max(fitting, key=lambda size: of_slower(difference, size.bytes), default=None)


def with_most_bytes(difference: Difference, allocations: AllocationsChange) -> str | None:
    """The function that asks for most bytes in the slower condition."""
    by = allocations.by_function
    most = max(by, key=lambda function: of_slower(difference, by[function]), default=None)
    return None if most is None else called(most)
