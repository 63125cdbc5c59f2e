"""A system call is made more often."""

from __future__ import annotations

from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import call_evidence, instead, is_more

CAUSE = "more_system_calls"
WORDS = "a system call is made more often"


def find(remaining: Remaining) -> tuple[Found, ...]:
    """Every call that is certainly made more often, and that nobody has claimed."""
    difference = remaining.difference
    found = []
    for syscall, calls in difference.calls.items():
        if ("door", syscall) in remaining.claimed or not is_more(calls.count):
            continue
        extra = remaining.extra(doors=(syscall,), waits=(syscall,))
        words = f"more system calls: {syscall} {instead(difference, calls.count)}"
        found.append(
            extra.found(
                cause=CAUSE,
                kind="system_call",
                evidence=call_evidence(syscall, calls),
                words=words,
            )
        )
    return tuple(found)
