"""A thread sleeps: nobody else is waited for."""

from __future__ import annotations

from equipoise.why.causes.calls import POLLS, SLEEPS, most_more
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining, added
from equipoise.why.causes.wording import instead, is_more, sides

CAUSE = "sleeping"
WORDS = "a thread sleeps for longer, or more often"


def find(remaining: Remaining) -> tuple[Found, ...]:
    """Longer or more often at the doors of sleep, or of polling while there is nobody to poll."""
    difference = remaining.difference
    # With a pipe or a socket it may be an answer that is waited for.
    alone = not any(name.startswith(("pipe", "socket")) for name in difference.files)
    doors = (*SLEEPS, *POLLS) if alone else SLEEPS
    by_door = {
        door: added(change for wait, change in remaining.waits.items() if wait.door == door)
        for door in doors
    }
    if not difference.waits:
        calls = difference.calls
        by_door = {door: calls[door].seconds for door in doors if door in calls}
    longer = {
        door: change
        for door, change in by_door.items()
        if is_more(change) or (change.extra > 0 and most_more(difference, (door,)) is not None)
    }
    syscall = max(longer, key=lambda door: longer[door].extra, default=None)
    if syscall is None:
        return ()
    extra = remaining.extra(waits=tuple(longer))
    calls_of = difference.calls.get(syscall)
    return (
        extra.found(
            cause=CAUSE,
            kind="waiting",
            evidence={
                "syscall": syscall,
                "calls": None if calls_of is None else sides(calls_of.count),
            },
            words=(
                f"it sleeps in {syscall}"
                f"{'' if calls_of is None else f', {instead(difference, calls_of.count)} times'}"
            ),
        ),
    )
