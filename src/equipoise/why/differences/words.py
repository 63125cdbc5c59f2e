"""Where the extra time is, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from equipoise.model.quantities import count, duration, exact_bytes
from equipoise.why.differences.changes import is_certain
from equipoise.why.differences.result import (
    CallsChange,
    Change,
    Difference,
    Function,
    SizeClassChange,
    Wait,
)

WORTH_SAYING = 0.05
"""Of the gap; what is less is not told."""

MOST_BLOCKS = 0.5
"""The share of the allocations from which on a size class is told."""

LEAST_FAULT_S = 1e-7
"""No page fault takes less."""

TOLD = 3
"""Things of one kind that are told at most."""

Place = TypeVar("Place")

_PARTS = {
    "user_s": "user time",
    "system_s": "system time",
    "waiting_s": "waiting",
    "queueing_s": "waiting for a processor",
}
_MEMORY_CALLS = frozenset({"mmap", "munmap", "mremap", "brk", "madvise"})


def where_the_time_is(found: Difference) -> str:
    """Where the extra time is, in up to three clauses without a full stop.

    What is told as it is differs certainly: its interval over the runs excludes no change. What
    would explain much and is not certain is told as such.
    """
    calls = _rising_calls(found)
    faults = _faults(found)
    rises = [*_rises(calls, faults), *_places(found)]
    clauses = [_split(found)]
    if rises:
        clauses.append(", ".join(rises[: 2 * TOLD]))
    about_memory = faults is not None or not _MEMORY_CALLS.isdisjoint(calls)
    allocated = _allocated(found, about_memory=about_memory)
    if allocated is not None:
        clauses.append(allocated)
    perhaps = _uncertain(found)
    if perhaps is not None and not rises:
        clauses.append(perhaps)
    return "; ".join(clauses)


def _split(found: Difference) -> str:
    gap = found.gap
    if not is_certain(gap):
        return f"whether the mean trial takes longer is uncertain ({duration(gap.extra)})"
    if gap.extra <= 0:
        return "the typical trial takes longer, and the mean trial does not"
    shares = {
        name: found.split[part].extra / gap.extra
        for part, name in _PARTS.items()
        if part in found.split and is_certain(found.split[part])
    }
    told = sorted(
        ((name, share) for name, share in shares.items() if share >= WORTH_SAYING),
        key=lambda item: -item[1],
    )
    if not told:
        return _without_split(found)
    first, *others = [f"{100 * share:.0f} % {{}}{name}" for name, share in told]
    return _and([first.format("of the extra time is "), *(one.format("") for one in others)])


def _without_split(found: Difference) -> str:
    if "waiting_s" in found.split:
        return "no part of it is user, system or waiting time for certain"
    if found.split:
        return "no part of it is user or system time for certain, and waiting is not known"
    return "its trials were not accounted"


def _rising_calls(found: Difference) -> Mapping[str, CallsChange]:
    """The calls that certainly become more, and take a part of the gap; most seconds first."""
    worth = {
        name: _call_s(found, name)
        for name, change in found.calls.items()
        if change.count.extra > 0 and is_certain(change.count)
    }
    told = [name for name, seconds in worth.items() if seconds >= _least_s(found)]
    told.sort(key=lambda name: -worth[name])
    return {name: found.calls[name] for name in told[:TOLD]}


def _call_s(found: Difference, name: str) -> float:
    """The extra seconds of a call: observed ones hold the cost of observing, sampled ones not."""
    door = found.doors.get(name)
    if door is not None and not found.calls[name].waits:
        return door.extra
    return found.calls[name].seconds.extra


def _faults(found: Difference) -> Change | None:
    if found.faults is None or not is_certain(found.faults.count):
        return None
    door = found.doors.get("page_fault")
    least_s = found.faults.count.extra * LEAST_FAULT_S
    seconds = least_s if door is None else max(door.extra, least_s)
    return found.faults.count if seconds >= _least_s(found) else None


def _rises(calls: Mapping[str, CallsChange], faults: Change | None) -> Iterator[str]:
    alike: dict[tuple[str, str], list[str]] = {}
    for name, change in calls.items():
        alike.setdefault(_ends(change.count), []).append(name)
    verb = " rose"
    for (low, high), names in alike.items():
        yield f"{_and(names)}{verb} from {low} to {high} calls"
        verb = ""
    if faults is not None:
        low, high = _ends(faults)
        yield f"page faults{verb} from {low} to {high}"


def _waits(wait: Wait) -> str:
    """The door by itself where the function is only the library's way to it."""
    if wait.function is None or wait.function.name == wait.door:
        return f"waits in {wait.door}"
    return f"waits of {_name(wait.function)} in {wait.door}"


def _ends(change: Change) -> tuple[str, str]:
    """From the less to the more."""
    low, high = sorted((change.baseline, change.candidate))
    return count(low), count(high)


def _places(found: Difference) -> Iterator[str]:
    """Functions, waits and processes that certainly take a part of the gap."""
    for function, change in _largest(found.functions, found):
        yield f"{_name(function)} takes {duration(change.extra)} more on a processor"
    for wait, change in _largest(found.waits, found):
        yield f"{_waits(wait)} take {duration(change.extra)} more"
    if found.processes is not None and found.processes.extra > 0 and is_certain(found.processes):
        low, high = _ends(found.processes)
        yield f"processes rose from {low} to {high}"


def _largest(changes: Mapping[Place, Change], found: Difference) -> list[tuple[Place, Change]]:
    """What certainly takes a part of the gap, the largest first; mappings are in that order."""
    least_s = _least_s(found)
    worth = [
        (place, change)
        for place, change in changes.items()
        if change.extra >= least_s and is_certain(change)
    ]
    return worth[:TOLD]


def _allocated(found: Difference, *, about_memory: bool) -> str | None:
    """What most blocks of the slower condition are, if it has to do with the gap."""
    allocations = found.allocations
    if allocations is None or not (about_memory or is_certain(allocations.count)):
        return None
    blocks = _slow(allocations.count, found)
    most = max(allocations.classes, key=lambda one: _slow(one.count, found), default=None)
    if most is None or blocks == 0 or _slow(most.count, found) < MOST_BLOCKS * blocks:
        return None
    share = _slow(most.count, found) / blocks
    lives = _lifetime(most)
    return f"{100 * share:.0f} % of the allocations are of {_size(most)}{lives}"


def _slow(change: Change, found: Difference) -> float:
    return change.candidate if found.slower == "candidate" else change.baseline


def _size(blocks: SizeClassChange) -> str:
    typical = exact_bytes(blocks.typical_bytes)
    if round(100 * blocks.typical_share) == 100:
        return typical
    if blocks.typical_share >= MOST_BLOCKS:
        return f"about {typical}"
    return f"{blocks.least_bytes:,} to {exact_bytes(blocks.most_bytes)}"


def _lifetime(blocks: SizeClassChange) -> str:
    if blocks.usual_lifetime_s is None:
        return ""
    return f", and nine in ten of these live under {duration(blocks.usual_lifetime_s)}"


def _uncertain(found: Difference) -> str | None:
    """What would take a part of the gap if the runs did not differ so much."""
    places: list[tuple[str, Change]] = [
        *((name, change.seconds) for name, change in found.calls.items()),
        *((_waits(wait), change) for wait, change in found.waits.items()),
        *((_name(function), change) for function, change in found.functions.items()),
    ]
    uncertain = [
        (place, change)
        for place, change in places
        if change.extra >= _least_s(found) and not is_certain(change)
    ]
    if not uncertain:
        return None
    place, change = max(uncertain, key=lambda item: item[1].extra)
    return f"perhaps {place} ({duration(change.extra)} more, uncertain over the observed runs)"


def _name(function: Function) -> str:
    if function.kind == "unknown":
        return f"code without a name in {function.module}"
    return f"{function.name} ({function.module})" if function.module else function.name


def _least_s(found: Difference) -> float:
    return max(WORTH_SAYING * found.gap.extra, 0.0)


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
