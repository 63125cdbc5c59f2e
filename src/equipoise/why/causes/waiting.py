"""Causes in waiting: locks, sleeps, and waits of any kind."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.why.causes.remaining import Cause, Part, Remaining, sides
from equipoise.why.causes.vocabulary import (
    NOT_ON_DISK,
    POLLS,
    SLEEPS,
    in_function,
    instead,
    is_named,
    most_more,
    optional_sides,
)
from equipoise.why.differences.changes import is_more

_FUTEX = "futex"
_LOCK_WITHOUT_NAME = "anonymous memory"


def lock_waits(remaining: Remaining) -> Iterator[Cause]:
    """Find a lock for which threads wait more often, and longer.

    A thread that waits for the end of another one may wait longer, but not more often.
    """
    difference = remaining.difference
    contended = {
        place: lock
        for place, lock in difference.locks.items()
        if is_named(place) and is_more(lock.waits) and lock.seconds.extra > 0
    }
    place = max(contended, key=lambda one: contended[one].seconds.extra, default=None)
    if place is None:
        return
    lock = contended[place]
    name, _, module = place.partition(" in ")
    is_unnamed = place == _LOCK_WITHOUT_NAME
    function = _waiter(remaining, _FUTEX)
    claims: frozenset[Part] = frozenset({("wait", _FUTEX), ("entry", _FUTEX)})
    yield remaining.waiting(lock.seconds, claims).cause(
        "waiting",
        {
            "lock": None if is_unnamed else name,
            "module": module or None,
            "function": function,
            "syscall": _FUTEX,
            "waits": sides(lock.waits),
        },
        f"threads wait for {'a lock without a name' if is_unnamed else f'the lock {name}'}"
        f"{in_function(function, ' in ')}: {instead(difference, lock.waits)} times",
    )


def sleeping(remaining: Remaining) -> Iterator[Cause]:
    """Find threads that sleep for longer, or more often, and wait for nobody else.

    Calls that poll are sleeps while there is neither a pipe nor a socket.
    """
    difference = remaining.difference
    is_alone = not any(name.startswith(NOT_ON_DISK) for name in difference.files)
    entries = (*SLEEPS, *POLLS) if is_alone else SLEEPS
    seconds = remaining.waits_by_entry
    if not difference.waits:
        seconds = {name: calls.seconds for name, calls in difference.calls.items()}
    longer = {
        entry: seconds[entry]
        for entry in entries
        if entry in seconds
        and seconds[entry].extra > 0
        and (is_more(seconds[entry]) or most_more(difference, (entry,)) is not None)
    }
    syscall = max(longer, key=lambda entry: longer[entry].extra, default=None)
    if syscall is None:
        return
    calls = difference.calls.get(syscall)
    yield remaining.extra(waits=tuple(longer)).cause(
        "waiting",
        {"syscall": syscall, "calls": optional_sides(None if calls is None else calls.count)},
        f"it sleeps in {syscall}"
        f"{'' if calls is None else f', {instead(difference, calls.count)} times'}",
    )


def waiting(remaining: Remaining) -> Iterator[Cause]:
    """Find a kernel entry point at which threads wait longer, for what no other rule knows."""
    by_entry = remaining.waits_by_entry
    longer = {entry: change for entry, change in by_entry.items() if is_more(change)}
    entry = max(longer, key=lambda one: (longer[one].extra, one), default=None)
    if entry is None:
        return
    extra = remaining.extra(waits=(entry,))
    if remaining.waited_s > 0 and extra.waited_s < longer[entry].extra:
        # It overlaps with waiting that has a cause: waiting for a thread that waits is no cause.
        return
    calls = remaining.difference.calls.get(entry)
    yield extra.cause(
        "waiting",
        {
            "syscall": entry,
            "function": _waiter(remaining, entry),
            "calls": optional_sides(None if calls is None else calls.count),
        },
        f"threads wait longer in {entry}",
    )


def _waiter(remaining: Remaining, entry: str) -> str | None:
    """Return the named function that waits longest at a kernel entry point."""
    seconds = {
        wait.function.name: change.extra
        for wait, change in remaining.waits.items()
        if wait.entry == entry and wait.function is not None and is_named(wait.function.name)
    }
    return max(seconds, key=lambda name: seconds[name], default=None)
