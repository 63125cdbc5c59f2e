"""Find causes in memory: allocations, page faults, huge pages."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.why.causes.unclaimed import (
    PAGE_FAULT,
    Cause,
    UnclaimedTime,
    call_evidence,
    describe_change,
    function_phrase,
    is_named,
    largest_increase,
    most_increased_call,
    named_caller,
    number_text,
    short_name,
)
from equipoise.why.differences.allocations import is_or_calls_allocator
from equipoise.why.differences.changes import AllocationsChange, FaultsChange, is_increase

_MAPPING_CALLS = ("mmap", "munmap", "madvise", "brk", "mremap")
PAGE_BYTES = 4096

_MEMORY_CALLS_BY_RETURN = {
    "munmap": ("munmap", "mmap", "mremap"),
    "madvise": ("madvise", "mmap", "munmap"),
    "brk": ("brk",),
}
"""For each call that returns memory to the kernel: all calls that return or get such memory."""

_MIN_CALLS_PER_BLOCK, _MAX_CALLS_PER_BLOCK = 0.25, 4.0
"""Accepted numbers of calls per block: brk both returns and gets memory, and one call may return
several blocks."""

MIN_HUGE_BYTES = 8 << 20
"""Smallest resident memory for `huge_pages_off`. A smaller program mostly maps its own files."""

_MAX_BYTES_PER_SMALL_FAULT, _MIN_BYTES_PER_HUGE_FAULT = 2 * PAGE_BYTES, 8 * PAGE_BYTES
"""Resident bytes per page fault: the maximum with small pages, the minimum with huge pages."""

_MAX_MEMORY_RATIO = 1.25
"""Largest ratio of two amounts of memory that count as equal."""


def blocks_returned_at_free(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find large blocks that go back to the kernel at every free, and are faulted in again."""
    difference = unclaimed.difference
    allocations = difference.allocations
    syscall = most_increased_call(difference, _MEMORY_CALLS_BY_RETURN)
    if syscall is None or allocations is None:
        return
    calls = difference.calls[syscall].count
    size_classes = [
        size_class
        for size_class in allocations.classes
        if size_class.typical_bytes >= PAGE_BYTES
        and _MIN_CALLS_PER_BLOCK * size_class.count.slower <= calls.extra
        and calls.extra <= _MAX_CALLS_PER_BLOCK * size_class.count.slower
    ]
    if not size_classes:
        return
    size_class = max(size_classes, key=lambda change: change.bytes.slower)
    faults = None if difference.faults is None else difference.faults.count
    entry_points = _MEMORY_CALLS_BY_RETURN[syscall] + ((PAGE_FAULT,) if is_increase(faults) else ())
    yield unclaimed.claim(entry_points=entry_points).cause(
        "allocation",
        f"blocks of {size_class.typical_bytes:,} bytes go back to the kernel at every free "
        f"({number_text(size_class.count.slower)} blocks, {syscall} {describe_change(calls)})",
        size_bytes=size_class.typical_bytes,
        syscall=syscall,
        function=_largest_requester(allocations),
        blocks=size_class.count,
        calls=calls,
        page_faults=faults,
    )


def _largest_requester(allocations: AllocationsChange) -> str | None:
    by_function = allocations.by_function
    requester = max(by_function, key=lambda function: by_function[function].slower, default=None)
    return None if requester is None else short_name(requester)


def memory_given_back(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find memory that goes back to the kernel by madvise, and is faulted in again."""
    difference = unclaimed.difference
    calls, faults = difference.calls.get("madvise"), difference.faults
    if (
        calls is None
        or faults is None
        or not is_increase(calls.count)
        or not is_increase(faults.count)
    ):
        return
    if faults.count.extra < calls.count.extra:
        return
    claim = unclaimed.claim(entry_points=("madvise", PAGE_FAULT))
    function = _touching_function(unclaimed, faults)
    yield claim.cause(
        "page_fault",
        "memory is given back to the kernel and faulted in again: madvise "
        f"{describe_change(calls.count)}, page faults {describe_change(faults.count)}"
        f"{function_phrase(function)}",
        **call_evidence("madvise", calls),
        function=function,
        page_faults=faults.count,
    )


def huge_pages_off(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find equal memory that needs many more page faults, because its pages are not huge."""
    difference = unclaimed.difference
    faults, resident = difference.faults, difference.resources.get("max_rss_bytes")
    if faults is None or resident is None or not is_increase(faults.count):
        return
    slower_bytes, faster_bytes = resident.slower, resident.faster
    is_same_memory = MIN_HUGE_BYTES <= slower_bytes <= _MAX_MEMORY_RATIO * faster_bytes
    is_paged_differently = (
        slower_bytes <= _MAX_BYTES_PER_SMALL_FAULT * faults.count.slower
        and faster_bytes >= _MIN_BYTES_PER_HUGE_FAULT * faults.count.faster
    )
    mappings = [difference.calls[name].count for name in _MAPPING_CALLS if name in difference.calls]
    # The use of memory counts as the same with up to 8 more calls, or 10 % more.
    has_same_mappings = all(mapping.extra <= max(8.0, 0.1 * mapping.faster) for mapping in mappings)
    if not (is_same_memory and is_paged_differently and has_same_mappings):
        return
    claim = unclaimed.claim(entry_points=(PAGE_FAULT,))
    function = _touching_function(unclaimed, faults)
    yield claim.cause(
        "page_fault",
        "the same memory is faulted in page by page instead of in huge pages: page faults "
        f"{describe_change(faults.count)}{function_phrase(function)}",
        function=function,
        page_faults=faults.count,
        resident_bytes=resident,
    )


def _touching_function(unclaimed: UnclaimedTime, faults: FaultsChange) -> str | None:
    """Return the function with most of the extra page faults, or its named caller."""
    function = largest_increase(faults.by_function)
    if function is None:
        return None
    if not is_named(function.name):
        function = named_caller(unclaimed.difference, function) or function
    return short_name(function)


def page_faults(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find more page faults: more memory is used, or freed memory is requested again."""
    faults = unclaimed.difference.faults
    if (
        ("kernel", PAGE_FAULT) in unclaimed.claimed_parts
        or faults is None
        or not is_increase(faults.count)
    ):
        return
    claim = unclaimed.claim(entry_points=(PAGE_FAULT,))
    function = _touching_function(unclaimed, faults)
    yield claim.cause(
        "page_fault",
        f"more page faults: {describe_change(faults.count)}"
        f"{function_phrase(function, ', most of them in ')}",
        function=function,
        page_faults=faults.count,
    )


def more_allocations(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find many more allocated blocks, if functions of the allocator take longer."""
    allocations = unclaimed.difference.allocations
    if allocations is None or not is_increase(allocations.count):
        return
    allocators = [function for function in unclaimed.functions if is_or_calls_allocator(function)]
    claim = unclaimed.claim(functions=allocators)
    if not allocators or not is_increase(claim.thread_seconds):
        return
    size_class = max(allocations.classes, key=lambda change: change.count.extra)
    yield claim.cause(
        "allocation",
        f"more blocks are allocated: {describe_change(allocations.count)}, most of "
        f"them of {size_class.typical_bytes:,} bytes",
        size_bytes=size_class.typical_bytes,
        function=_largest_requester(allocations),
        blocks=allocations.count,
    )
