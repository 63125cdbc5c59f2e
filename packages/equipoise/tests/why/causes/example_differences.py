"""Example differences with known extra seconds and intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from equipoise.model.why import Explanation
from equipoise.why.causes.ranking import RULES, suggested_causes
from equipoise.why.causes.unclaimed import Cause, UnclaimedTime
from equipoise.why.differences.changes import (
    AllocationsChange,
    CallsChange,
    Change,
    Difference,
    FaultsChange,
    FileChange,
    LockChange,
    SizeClassChange,
    Wait,
)
from equipoise.why.evidence.observer import Function

NONE = Change(0.0, 0.0, 0.0, (0.0, 0.0))
ONE = Change(1.0, 1.0, 0.0, (0.0, 0.0))


def change(baseline: float, candidate: float, half: float = 0.0) -> Change:
    """A change whose interval reaches so far to both sides."""
    extra = candidate - baseline
    return Change(baseline, candidate, extra, (extra - half, extra + half))


def calls(
    baseline: float,
    candidate: float,
    seconds: Change = NONE,
    *,
    errors: Mapping[str, Change] | None = None,
    typical_bytes: int | None = None,
    waits: bool = False,
) -> CallsChange:
    """Return calls of one name, as many in each run."""
    return CallsChange(change(baseline, candidate), seconds, errors or {}, typical_bytes, waits)


def file(**changes: Change) -> FileChange:
    """Return the changes of one file; all others are zero."""
    return FileChange(**changes)


def lock(waits: Change, seconds: Change) -> LockChange:
    """Waits at one place."""
    return LockChange(waits, seconds)


def function(name: str, module: str = "program", kind: Any = "user") -> Function:
    """A function of the program."""
    return Function(name, module, kind)


def wait(entry_point: str, name: str = "waiter") -> Wait:
    """A place where threads wait."""
    return Wait(entry_point, function(name))


def blocks(size: int, baseline: float, candidate: float) -> SizeClassChange:
    """Blocks of one size."""
    return SizeClassChange(
        min_bytes=size,
        max_bytes=size + 1,
        typical_bytes=size,
        count=change(baseline, candidate),
        bytes=change(size * baseline, size * candidate),
    )


def allocations(*classes: SizeClassChange, by: str = "asker") -> AllocationsChange:
    """All allocations, asked for by one function."""
    baseline = sum(size_class.count.baseline for size_class in classes)
    candidate = sum(size_class.count.candidate for size_class in classes)
    in_bytes = change(
        sum(size_class.bytes.baseline for size_class in classes),
        sum(size_class.bytes.candidate for size_class in classes),
    )
    return AllocationsChange(change(baseline, candidate), classes, {function(by): in_bytes})


def faults(baseline: float, candidate: float, by: str = "toucher") -> FaultsChange:
    """Page faults, all in one function."""
    count = change(baseline, candidate)
    return FaultsChange(count, {function(by): count})


def difference_with(**fields: Any) -> Difference:
    """A difference of one second more in the candidate, on one thread, with these fields."""
    plain = Difference("candidate", change(1.0, 2.0, 0.1), processes=ONE, threads=ONE, programs=ONE)
    return replace(plain, **fields)


def cause_ids(difference: Difference) -> list[str]:
    """The ids of all causes, the most seconds first."""
    return [cause.cause for cause in suggested_causes(difference)]


def first(difference: Difference) -> Explanation:
    """The cause with the most seconds."""
    return suggested_causes(difference)[0]


def assert_first(difference: Difference, cause: str, **evidence: Any) -> Explanation:
    """Return the cause with the most seconds, which is this one and has this evidence."""
    found = first(difference)
    known = {name: found.evidence[name] for name in evidence}
    assert (found.cause, known) == (cause, evidence)
    return found


def found_by(rule: str, difference: Difference) -> tuple[Cause, ...]:
    """Return the causes that a single rule finds."""
    return tuple(RULES[rule](UnclaimedTime(difference)))
