"""A system call is made as often, and takes longer."""

from __future__ import annotations

from equipoise.explain.causes.found import Found
from equipoise.explain.causes.remaining import Remaining
from equipoise.explain.causes.wording import counted, is_more, of_slower, sides

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
                words=(
                    f"{syscall} takes longer: {counted(of_slower(difference, calls.count))} calls"
                ),
                claims=extra.claims,
            )
        )
    return tuple(found)
