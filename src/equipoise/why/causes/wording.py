"""How evidence is put into numbers and words."""

from __future__ import annotations

from typing import Any

from equipoise.why.differences.changes import is_certain
from equipoise.why.differences.result import CallsChange, Change, Difference, Function

HIDDEN = ("(",)
"""How the names begin that sources give to what has none: ``(unknown)``."""


def is_more(change: Change | None) -> bool:
    """Whether the slower condition certainly has more of it."""
    return change is not None and change.extra > 0 and is_certain(change)


def sides(change: Change) -> dict[str, float]:
    """Both conditions, as evidence shows them."""
    return {"baseline": change.baseline, "candidate": change.candidate}


def call_evidence(syscall: str, calls: CallsChange) -> dict[str, Any]:
    """A system call as evidence shows it, without its seconds."""
    return {
        "syscall": syscall,
        "size_bytes": calls.typical_bytes,
        "calls": sides(calls.count),
    }


def of_slower(difference: Difference, change: Change) -> float:
    """What the slower condition has."""
    return float(getattr(change, difference.slower))


def of_faster(difference: Difference, change: Change) -> float:
    """What the faster condition has."""
    return float(getattr(change, difference.faster))


def instead(difference: Difference, change: Change) -> str:
    """``150,000 instead of 879``: the slower condition's number first."""
    slower, faster = of_slower(difference, change), of_faster(difference, change)
    return f"{counted(slower)} instead of {counted(faster)}"


def counted(number: float) -> str:
    """``150,000``; means over runs that differ are rounded."""
    return f"{number:,.0f}"


def called(function: Function) -> str:
    """The name of a function, without the file in which an interpreter found it."""
    if function.kind == "python":
        return function.name.partition(":")[0]
    return function.name


def spoken(function: Function) -> str:
    """It in a sentence: ``fill()``, or ``code without a name in libc.so.6``."""
    if is_named(function.name):
        return f"{called(function)}()"
    return f"code without a name in {function.module}"


def is_named(name: str) -> bool:
    """Whether this is a name and not a remark that there is none."""
    return not name.startswith(HIDDEN)


def known_file(name: str | None) -> dict[str, Any]:
    """The file as evidence shows it."""
    if name is None:
        return {
            "file": None,
            "file_unknown_because": "it was closed before its name could be looked up",
        }
    return {"file": name}
