"""A system call is made as often, and takes longer."""

from __future__ import annotations

from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import call_evidence, counted, is_more, of_slower

CAUSE = "slower_system_calls"
WORDS = "a system call takes longer, without being made more often"


def find(remaining: Remaining) -> tuple[Found, ...]:
    """Every call with certainly more seconds on a processor and no more calls."""
    difference = remaining.difference
    found = []
    for syscall, seconds in remaining.doors.items():
        calls = difference.calls.get(syscall)
        if calls is None or not is_more(seconds) or is_more(calls.count):
            continue
        extra = remaining.extra(doors=(syscall,))
        words = f"{syscall} takes longer: {counted(of_slower(difference, calls.count))} calls"
        found.append(
            extra.found(
                cause=CAUSE,
                kind="system_call",
                evidence=call_evidence(syscall, calls),
                words=words,
            )
        )
    return tuple(found)
