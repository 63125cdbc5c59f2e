"""Paths are looked up much more often."""

from __future__ import annotations

from equipoise.why.causes.calls import most_more
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining, added
from equipoise.why.causes.wording import instead, is_more, sides
from equipoise.why.differences.result import Change, Difference

CAUSE = "path_look_ups"
WORDS = "many more paths are looked up: files that are sought in several places, for instance"

_ASKING = (
    "newfstatat",
    "stat",
    "lstat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
)
_OPENING = ("openat", "openat2", "open", "execve")
"""Looked up and opened; only what fails is a search."""

_ABSENT = ("ENOENT", "ENOTDIR")
_MOSTLY = 0.5


def find(remaining: Remaining) -> tuple[Found, ...]:
    """More questions for files, and more attempts to open what is not there."""
    difference = remaining.difference
    searching = [name for name in _OPENING if _mostly_fails(difference, name)]
    names = (*_ASKING, *searching)
    syscall = most_more(difference, names)
    if syscall is None:
        return ()
    calls = difference.calls[syscall]
    absent = added(_absent(difference, syscall))
    extra = remaining.extra(doors=names, waits=names)
    return (
        extra.found(
            cause=CAUSE,
            kind="system_call",
            evidence={
                "syscall": syscall,
                "calls": sides(calls.count),
                "not_there": sides(absent),
            },
            words=(
                f"paths are looked up more often: {syscall} {instead(difference, calls.count)}, of "
                f"which {instead(difference, absent)} find nothing"
            ),
        ),
    )


def _absent(difference: Difference, name: str) -> list[Change]:
    errors = difference.calls[name].errors
    return [errors[error] for error in _ABSENT if error in errors]


def _mostly_fails(difference: Difference, name: str) -> bool:
    if name not in difference.calls:
        return False
    count, absent = difference.calls[name].count, added(_absent(difference, name))
    return is_more(count) and absent.extra >= _MOSTLY * count.extra
