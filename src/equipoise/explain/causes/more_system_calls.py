"""A system call is made more often."""

from __future__ import annotations

from equipoise.explain.causes.found import Found
from equipoise.explain.causes.remaining import Remaining
from equipoise.explain.causes.wording import instead, is_more, sides

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
        found.append(
            Found(
                cause=CAUSE,
                kind="system_call",
                evidence={
                    "syscall": syscall,
                    "size_bytes": calls.typical_bytes,
                    "calls": sides(calls.count),
                    "seconds": sides(extra.sides),
                },
                seconds=extra.seconds,
                seconds_ci=extra.seconds_ci,
                words=f"more system calls: {syscall} {instead(difference, calls.count)}",
                claims=extra.claims,
                waited_s=extra.waited_s,
            )
        )
    return tuple(found)
