"""Memory is given back to the kernel by advice, and faulted in again."""

from __future__ import annotations

from equipoise.why.causes.callers import toucher
from equipoise.why.causes.calls import PAGE_FAULT
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import call_evidence, instead, is_more, sides

CAUSE = "memory_given_back"
WORDS = "madvise gives memory back that is used again, so that each of its pages faults again"

_SYSCALL = "madvise"


def find(remaining: Remaining) -> tuple[Found, ...]:
    """More advice, and more page faults than advice."""
    difference = remaining.difference
    calls, faults = difference.calls.get(_SYSCALL), difference.faults
    if calls is None or faults is None or not is_more(calls.count) or not is_more(faults.count):
        return ()
    if faults.count.extra < calls.count.extra:
        return ()
    extra = remaining.extra(doors=(_SYSCALL, PAGE_FAULT))
    function = toucher(difference, faults, extra)
    return (
        extra.found(
            cause=CAUSE,
            kind="page_fault",
            evidence={
                **call_evidence(_SYSCALL, calls),
                "function": function,
                "page_faults": sides(faults.count),
            },
            words=(
                f"memory is given back to the kernel and faulted in again: {_SYSCALL} "
                f"{instead(difference, calls.count)}, page faults "
                f"{instead(difference, faults.count)}"
                f"{'' if function is None else f', in {function}()'}"
            ),
        ),
    )
