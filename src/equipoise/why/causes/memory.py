"""Causes in memory: allocations, page faults, huge pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from equipoise.why.causes.remaining import Cause, Remaining, sides
from equipoise.why.causes.vocabulary import (
    MAPPINGS,
    PAGE_BYTES,
    PAGE_FAULT,
    call_evidence,
    in_function,
    instead,
    most_more,
    number,
    optional_sides,
    short_name,
    toucher,
)
from equipoise.why.differences.allocations import is_of_allocator
from equipoise.why.differences.changes import (
    AllocationsChange,
    Difference,
    SizeClassChange,
    is_more,
)

_RETURNING = {
    "munmap": ("munmap", "mmap", "mremap"),
    "madvise": ("madvise", "mmap", "munmap"),
    "brk": ("brk",),
}
"""Calls that return memory, each with the calls that return it or get it."""

_FEWEST_CALLS, _MOST_CALLS = 0.25, 4.0
"""Calls for each block: brk returns and gets, and an allocator may return several at once."""

LEAST_HUGE_BYTES = 8 << 20
"""Least resident memory for huge pages: below, the program's own files are most of it."""

_SMALL, _HUGE = 2 * PAGE_BYTES, 8 * PAGE_BYTES
"""Resident bytes for each page fault: at most in small pages, at least where pages are huge."""

_SAME_BYTES = 1.25


def blocks_returned_at_free(remaining: Remaining) -> Iterator[Cause]:
    """Find large blocks that go back to the kernel at every free, and are faulted in again.

    There are about as many blocks of one size as calls that return memory.
    """
    difference = remaining.difference
    syscall = most_more(difference, _RETURNING)
    if syscall is None or difference.allocations is None:
        return
    calls = difference.calls[syscall].count
    size = _returned_size(difference, difference.allocations, calls.extra)
    if size is None:
        return
    faults = None if difference.faults is None else difference.faults.count
    touched = (PAGE_FAULT,) if is_more(faults) else ()
    yield remaining.extra(entries=(*_RETURNING[syscall], *touched)).cause(
        "allocation",
        {
            "size_bytes": size.typical_bytes,
            "syscall": syscall,
            "function": _largest_requester(difference, difference.allocations),
            "blocks": sides(size.count),
            "calls": sides(calls),
            "page_faults": optional_sides(faults),
        },
        f"blocks of {size.typical_bytes:,} bytes go back to the kernel at every free "
        f"({number(difference.of_slower(size.count))} blocks, {syscall} "
        f"{instead(difference, calls)})",
    )


def _returned_size(
    difference: Difference, allocations: AllocationsChange, calls: float
) -> SizeClassChange | None:
    """Return the size class with the most bytes of those that fit the number of calls."""
    of_slower = difference.of_slower
    fitting = [
        size
        for size in allocations.classes
        if size.typical_bytes >= PAGE_BYTES
        and _FEWEST_CALLS * of_slower(size.count) <= calls <= _MOST_CALLS * of_slower(size.count)
    ]
    return max(fitting, key=lambda size: of_slower(size.bytes), default=None)


def _largest_requester(difference: Difference, allocations: AllocationsChange) -> str | None:
    """Return the function that asks for most bytes in the slower condition."""
    by = allocations.by_function
    largest = max(by, key=lambda function: difference.of_slower(by[function]), default=None)
    return None if largest is None else short_name(largest)


def memory_given_back(remaining: Remaining) -> Iterator[Cause]:
    """Find memory that goes back to the kernel by madvise, and is faulted in again.

    There is more advice, and more page faults than advice.
    """
    difference = remaining.difference
    calls, faults = difference.calls.get("madvise"), difference.faults
    if calls is None or faults is None or not is_more(calls.count) or not is_more(faults.count):
        return
    if faults.count.extra < calls.count.extra:
        return
    extra = remaining.extra(entries=("madvise", PAGE_FAULT))
    function = toucher(difference, faults, extra)
    yield extra.cause(
        "page_fault",
        {
            **call_evidence("madvise", calls),
            "function": function,
            "page_faults": sides(faults.count),
        },
        "memory is given back to the kernel and faulted in again: madvise "
        f"{instead(difference, calls.count)}, page faults {instead(difference, faults.count)}"
        f"{in_function(function)}",
    )


def huge_pages_off(remaining: Remaining) -> Iterator[Cause]:
    """Find equal memory that takes many more page faults, as its pages are not huge."""
    difference = remaining.difference
    faults, resident = difference.faults, difference.accounts.get("max_rss_bytes")
    if faults is None or resident is None or not is_more(faults.count):
        return
    slower, faster = difference.of_slower(resident), difference.of_faster(resident)
    if not LEAST_HUGE_BYTES <= slower <= _SAME_BYTES * faster:
        return
    if not _are_as_many(difference, MAPPINGS):
        return
    if slower > _SMALL * difference.of_slower(faults.count):
        return
    if faster < _HUGE * difference.of_faster(faults.count):
        return
    extra = remaining.extra(entries=(PAGE_FAULT,))
    function = toucher(difference, faults, extra)
    yield extra.cause(
        "page_fault",
        {
            "function": function,
            "page_faults": sides(faults.count),
            "resident_bytes": sides(resident),
        },
        "the same memory is faulted in page by page instead of in huge pages: page faults "
        f"{instead(difference, faults.count)}{in_function(function)}",
    )


def _are_as_many(difference: Difference, names: Iterable[str]) -> bool:
    """Return whether the slower condition makes about as many of each of these calls, or fewer."""
    counts = [difference.calls[name].count for name in names if name in difference.calls]
    return all(one.extra <= max(8.0, 0.1 * difference.of_faster(one)) for one in counts)


def page_faults(remaining: Remaining) -> Iterator[Cause]:
    """Find more page faults, as more memory is used or memory is got anew."""
    difference = remaining.difference
    faults = difference.faults
    if ("entry", PAGE_FAULT) in remaining.claimed or faults is None or not is_more(faults.count):
        return
    extra = remaining.extra(entries=(PAGE_FAULT,))
    function = toucher(difference, faults, extra)
    yield extra.cause(
        "page_fault",
        {"function": function, "page_faults": sides(faults.count)},
        f"more page faults: {instead(difference, faults.count)}"
        f"{in_function(function, ', most of them in ')}",
    )


def more_allocations(remaining: Remaining) -> Iterator[Cause]:
    """Find many more allocated blocks, where the allocator takes the time."""
    difference = remaining.difference
    allocations = difference.allocations
    if allocations is None or not is_more(allocations.count):
        return
    inside = [function for function in remaining.functions if is_of_allocator(function)]
    extra = remaining.extra(functions=inside)
    if not inside or not is_more(extra.sides):
        return
    size = max(allocations.classes, key=lambda one: one.count.extra)
    yield extra.cause(
        "allocation",
        {
            "size_bytes": size.typical_bytes,
            "function": _largest_requester(difference, allocations),
            "blocks": sides(allocations.count),
        },
        f"more blocks are allocated: {instead(difference, allocations.count)}, most of "
        f"them of {size.typical_bytes:,} bytes",
    )
