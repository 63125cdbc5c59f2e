"""Threads wait longer, for what no other rule knows."""

from __future__ import annotations

from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining, added
from equipoise.why.causes.wording import is_more, is_named, sides

CAUSE = "waiting"
WORDS = "threads wait longer at one door of the kernel"


def find(remaining: Remaining) -> tuple[Found, ...]:
    """The door at which threads certainly wait longest, as far as no work is done meanwhile."""
    difference = remaining.difference
    by_door = {
        door: added(change for wait, change in remaining.waits.items() if wait.door == door)
        for door in {wait.door for wait in remaining.waits}
    }
    longer = {door: change for door, change in by_door.items() if is_more(change)}
    door = max(longer, key=lambda one: (longer[one].extra, one), default=None)
    if door is None:
        return ()
    extra = remaining.extra(waits=(door,))
    if remaining.waited_s > 0 and extra.waited_s < longer[door].extra:
        # It overlaps with waiting that has been named: who waits for who waits is no cause.
        return ()
    calls = difference.calls.get(door)
    functions = {
        wait.function.name: change.extra
        for wait, change in remaining.waits.items()
        if wait.door == door and wait.function is not None and is_named(wait.function.name)
    }
    return (
        extra.found(
            cause=CAUSE,
            kind="waiting",
            evidence={
                "syscall": door,
                "function": max(functions, key=lambda name: functions[name], default=None),
                "calls": None if calls is None else sides(calls.count),
            },
            words=f"threads wait longer in {door}",
        ),
    )
