"""The same memory is touched, in small pages instead of huge ones."""

from __future__ import annotations

from equipoise.why.causes.callers import toucher
from equipoise.why.causes.calls import MAPPINGS, PAGE_FAULT, not_more
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import (
    instead,
    is_more,
    of_faster,
    of_slower,
    sides,
)

CAUSE = "huge_pages_off"
WORDS = "the same memory takes many more page faults, as its pages are not huge"

PAGE_BYTES = 4096
LEAST_BYTES = 8 << 20
"""Below, the program's own files are what is resident, of which a fault maps many pages."""

_SMALL, _HUGE = 2 * PAGE_BYTES, 8 * PAGE_BYTES
"""Resident bytes for each fault: at most in small pages, at least where there are huge ones."""

_SAME = 1.25


def find(remaining: Remaining) -> tuple[Found, ...]:
    """Equal memory, no more mappings, and many more faults for it."""
    difference = remaining.difference
    faults, resident = difference.faults, difference.accounts.get("max_rss_bytes")
    if faults is None or resident is None or not is_more(faults.count):
        return ()
    slower, faster = of_slower(difference, resident), of_faster(difference, resident)
    if not LEAST_BYTES <= slower <= _SAME * faster or not not_more(difference, MAPPINGS):
        return ()
    if slower > _SMALL * of_slower(difference, faults.count):
        return ()
    if faster < _HUGE * of_faster(difference, faults.count):
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
                "resident_bytes": sides(resident),
            },
            words=(
                "the same memory is faulted in page by page instead of in huge pages: page faults "
                f"{instead(difference, faults.count)}"
                f"{'' if function is None else f', in {function}()'}"
            ),
        ),
    )
