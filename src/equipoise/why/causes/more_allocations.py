"""Many more blocks are allocated."""

from __future__ import annotations

from equipoise.why.causes.blocks_returned_at_free import with_most_bytes
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import instead, is_more, sides
from equipoise.why.differences.allocator import is_of_allocator

CAUSE = "more_allocations"
WORDS = "many more blocks are allocated, and the allocator takes the time"


def find(remaining: Remaining) -> tuple[Found, ...]:
    """More blocks, and more time inside the allocator."""
    difference = remaining.difference
    allocations = difference.allocations
    if allocations is None or not is_more(allocations.count):
        return ()
    inside = [function for function in remaining.functions if is_of_allocator(function)]
    extra = remaining.extra(functions=inside)
    if not inside or not is_more(extra.sides):
        return ()
    size = max(allocations.classes, key=lambda one: one.count.extra)
    asked_by = with_most_bytes(difference, allocations)
    return (
        extra.found(
            cause=CAUSE,
            kind="allocation",
            evidence={
                "size_bytes": size.typical_bytes,
                "function": asked_by,
                "blocks": sides(allocations.count),
            },
            words=(
                f"more blocks are allocated: {instead(difference, allocations.count)}, most of "
                f"them of {size.typical_bytes:,} bytes"
            ),
        ),
    )
