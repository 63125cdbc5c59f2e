"""Threads wait for one another at a lock."""

from __future__ import annotations

from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import instead, is_more, is_named, sides
from equipoise.why.differences.result import Function

CAUSE = "lock_waits"
WORDS = "threads wait more often for a lock that another one has"

_FUTEX = "futex"
_UNNAMED = "anonymous memory"


def find(remaining: Remaining) -> tuple[Found, ...]:
    """The lock for which threads wait more often, and longer.

    Who waits for the end of a thread waits longer where that takes longer, but not more often.
    """
    difference = remaining.difference
    contended = {
        place: lock
        for place, lock in difference.locks.items()
        if is_named(place) and is_more(lock.waits) and lock.seconds.extra > 0
    }
    place = max(contended, key=lambda one: contended[one].seconds.extra, default=None)
    if place is None:
        return ()
    lock = contended[place]
    extra = remaining.waiting(lock.seconds, frozenset({("wait", _FUTEX), ("door", _FUTEX)}))
    name, _, file = place.partition(" in ")
    function = _waiter(remaining)
    shown = name if place != _UNNAMED else None
    what = "a lock without a name" if shown is None else f"the lock {shown}"
    at = f" in {function.name}()" if function is not None else ""
    return (
        extra.found(
            cause=CAUSE,
            kind="waiting",
            evidence={
                "lock": shown,
                "module": file or None,
                "function": None if function is None else function.name,
                "syscall": _FUTEX,
                "waits": sides(lock.waits),
            },
            words=f"threads wait for {what}{at}: {instead(difference, lock.waits)} times",
        ),
    )


def _waiter(remaining: Remaining) -> Function | None:
    """The named function that waits most at futexes."""
    waits = {
        wait.function: change.extra
        for wait, change in remaining.waits.items()
        if wait.door == _FUTEX and wait.function is not None and is_named(wait.function.name)
    }
    return max(waits, key=lambda function: waits[function], default=None)
