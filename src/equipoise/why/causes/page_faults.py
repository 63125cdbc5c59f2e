"""More pages are faulted in."""

from __future__ import annotations

from equipoise.why.causes.callers import toucher
from equipoise.why.causes.calls import PAGE_FAULT
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import instead, is_more, sides

CAUSE = "page_faults"
WORDS = "more pages are faulted in, as more memory is used or memory is got anew"


def find(remaining: Remaining) -> tuple[Found, ...]:
    """More faults, with who touches the pages."""
    difference = remaining.difference
    faults = difference.faults
    if ("door", PAGE_FAULT) in remaining.claimed or faults is None or not is_more(faults.count):
        return ()
    extra = remaining.extra(doors=(PAGE_FAULT,))
    function = toucher(difference, faults, extra)
    return (
        extra.found(
            cause=CAUSE,
            kind="page_fault",
            evidence={
                "function": function,
                "page_faults": sides(faults.count),
            },
            words=(
                f"more page faults: {instead(difference, faults.count)}"
                f"{'' if function is None else f', most of them in {function}()'}"
            ),
        ),
    )
