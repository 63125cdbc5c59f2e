"""The part of a difference that no cause has claimed yet, in seconds of the gap.

The gap is the extra wall time of the slower condition. Each cause claims parts of the gap. The
evidence has the seconds of all threads. Three principles keep a second from counting twice:

- If the extra processor seconds of all threads exceed the gap, the threads ran in parallel. Their
  seconds are scaled down, so that the sum is the gap.
- With several threads or processes, one may wait while another works. So waiting explains at most
  the part of the gap that extra work does not explain.
- Claimed waiting is subtracted from this part.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from equipoise.model.quantities import Interval
from equipoise.model.why import CauseKind
from equipoise.why.differences.changes import (
    NO_CHANGE,
    CallsChange,
    Change,
    Difference,
    Wait,
    is_increase,
    sum_of,
)
from equipoise.why.differences.stacks import WHOLE_KERNEL
from equipoise.why.evidence.observer import Function

POLL_CALLS = ("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2")
PAGE_FAULT = "page_fault"
"""Name of a page fault among the kernel entry points."""
NOT_ON_DISK = ("pipe", "socket")
"""Beginnings of the names of files that are not on a disk."""

Key = TypeVar("Key")

LONG_CALL_S = 50e-6
"""Seconds above which a call usually waits."""

Part = tuple[Literal["kernel", "function", "wait"], str]
"""A part of the extra time: work in the kernel (by entry point), work in a function
(``name in module``), or waits (by entry point)."""


class TimeClaim(Struct, frozen=True):
    """Extra time of the slower condition that one cause claims."""

    thread_seconds: Change
    """Seconds over all threads."""
    seconds: float
    """Seconds of the gap that these parts explain."""
    seconds_ci: Interval
    waited_s: float
    """Seconds of waiting among ``seconds``."""
    parts: frozenset[Part]

    def cause(self, kind: CauseKind, summary: str, **evidence: Any) -> Cause:
        """Return the cause; each `Change` in its evidence becomes the values of both conditions."""
        values = {
            name: {"baseline": value.baseline, "candidate": value.candidate}
            if isinstance(value, Change)
            else value
            for name, value in {**evidence, "seconds": self.thread_seconds}.items()
        }
        return Cause(**asdict(self), kind=kind, evidence=values, summary=summary)


class Cause(TimeClaim, frozen=True):
    """A cause that a rule found, before any intervention tested it."""

    kind: CauseKind
    evidence: dict[str, Any]
    """Name of the thing (``syscall``, ``function``, ``file``, ``lock``, ``size_bytes``), and counts
    and seconds as ``{"baseline": …, "candidate": …}``."""
    summary: str


class UnclaimedTime(Struct, frozen=True):
    """A difference, and the parts of it that causes have claimed."""

    difference: Difference
    claimed_parts: frozenset[Part] = field(default_factory=frozenset)
    waited_s: float = 0.0
    """Seconds of the gap that causes have claimed as waiting."""

    @property
    def gap_s(self) -> float:
        """Extra seconds of the slower condition."""
        return self.difference.wall_time.extra

    @property
    def entry_points(self) -> Mapping[str, Change]:
        """Seconds on a processor by kernel entry point, without claimed entry points."""
        points = self.difference.entry_points
        return {
            point: points[point] for point in points if ("kernel", point) not in self.claimed_parts
        }

    @property
    def functions(self) -> Mapping[Function, Change]:
        """Seconds on a processor in a function itself, without claimed functions."""
        functions = self.difference.functions
        return {
            function: functions[function]
            for function in functions
            if _function_part(function) not in self.claimed_parts
        }

    @property
    def waits(self) -> Mapping[Wait, Change]:
        """Seconds off the processor by wait, without claimed entry points."""
        waits, claimed_parts = self.difference.waits, self.claimed_parts
        return {
            wait: waits[wait] for wait in waits if ("wait", wait.entry_point) not in claimed_parts
        }

    @property
    def waits_by_entry_point(self) -> Mapping[str, Change]:
        """Sums of ``waits`` by kernel entry point."""
        waits = self.waits
        return {
            point: sum_of(change for wait, change in waits.items() if wait.entry_point == point)
            for point in dict.fromkeys(wait.entry_point for wait in waits)
        }

    def without(self, cause: Cause) -> UnclaimedTime:
        """Return the unclaimed time after this cause has claimed its parts."""
        return replace(
            self,
            claimed_parts=self.claimed_parts | cause.parts,
            waited_s=self.waited_s + cause.waited_s,
        )

    def claim(
        self,
        entry_points: Collection[str] = (),
        functions: Collection[Function] = (),
        waits: Collection[str] = (),
        calls: Collection[str] = (),
    ) -> TimeClaim:
        """Return the extra time at kernel entry points, in functions and in waits.

        ``entry_points`` are for time on a processor. If the profile does not show the kernel, the
        seconds of system calls are used instead. ``waits`` are entry points for time spent waiting.
        If waits were not observed, the seconds of long calls are used instead. ``calls`` are long
        system calls that samples miss; their own seconds are used.
        """
        unclaimed = self.functions
        work = sum_of(
            (
                *map(self._entry_point_change, entry_points),
                *map(self._calls_change, calls),
                *(unclaimed[function] for function in functions if function in unclaimed),
            )
        )
        parts: frozenset[Part] = frozenset(
            (
                *(("kernel", entry_point) for entry_point in (*entry_points, *calls)),
                *map(_function_part, functions),
                *(("wait", wait) for wait in waits),
            )
        )
        waiting_claim = self.claim_waiting(self._waits_change(waits), parts)
        parallelism = self._parallelism()
        waiting_margin = half_width_or_0(waiting_claim.seconds_ci)
        margin = math.hypot(work.half_width / parallelism, waiting_margin)
        seconds = work.extra / parallelism + waiting_claim.waited_s
        interval = (seconds - margin, seconds + margin)
        thread_seconds = sum_of((work, waiting_claim.thread_seconds))
        return TimeClaim(thread_seconds, seconds, interval, waiting_claim.waited_s, parts)

    def claim_waiting(self, change: Change, parts: frozenset[Part]) -> TimeClaim:
        """Return the extra time of a wait, up to the part of the gap that waiting can explain."""
        waited_s = max(0.0, min(change.extra, self._max_waiting_s()))
        margin = change.half_width * (waited_s / change.extra if change.extra > 0 else 0.0)
        return TimeClaim(change, waited_s, (waited_s - margin, waited_s + margin), waited_s, parts)

    def _entry_point_change(self, entry_point: str) -> Change:
        if ("kernel", entry_point) in self.claimed_parts:
            return NO_CHANGE
        if self.difference.entry_points.keys() - {WHOLE_KERNEL}:
            return self.difference.entry_points.get(entry_point, NO_CHANGE)
        return NO_CHANGE if self._mostly_waits(entry_point) else self._calls_change(entry_point)

    def _calls_change(self, name: str) -> Change:
        calls = self.difference.calls.get(name)
        return (
            NO_CHANGE if calls is None or ("kernel", name) in self.claimed_parts else calls.seconds
        )

    def _waits_change(self, entry_points: Collection[str]) -> Change:
        if self.difference.waits:
            return sum_of(
                change for wait, change in self.waits.items() if wait.entry_point in entry_points
            )
        calls = self.difference.calls
        waits = (entry_point for entry_point in entry_points if self._mostly_waits(entry_point))
        return sum_of(
            calls[call].seconds for call in waits if ("wait", call) not in self.claimed_parts
        )

    def _mostly_waits(self, name: str) -> bool:
        """Return whether the seconds of a call replace unobserved waits."""
        calls = self.difference.calls.get(name)
        if calls is None or self.difference.waits:
            return False
        return calls.waits or calls.seconds.slower > LONG_CALL_S * calls.count.slower

    def _parallelism(self) -> float:
        """Return the extra processor seconds per second of the gap, at least 1."""
        on_processor = self.difference.on_processor
        if on_processor is None or self.gap_s <= 0:
            return 1.0
        return max(1.0, on_processor.extra / self.gap_s)

    def _max_waiting_s(self) -> float:
        """Return the seconds of the gap that unclaimed waiting can explain."""
        on_processor = self.difference.on_processor
        counts = (self.difference.threads, self.difference.processes)
        # If no source counted the threads or processes, assume several.
        has_several = any(count is None or count.slower > 1 for count in counts)
        worked_s = 0.0
        if on_processor is not None and has_several:
            worked_s = max(0.0, on_processor.extra / self._parallelism())
        return max(0.0, self.gap_s - worked_s - self.waited_s)


def _function_part(function: Function) -> Part:
    return ("function", f"{function.name} in {function.module}")


def half_width_or_0(interval: Interval) -> float:
    """Return half of an interval's width; 0 if the interval is unknown."""
    low, high = interval
    return 0.0 if low is None or high is None else (high - low) / 2


_NO_NAME_PREFIX = "("
"""Beginning of a text that replaces a missing name, such as ``(unknown)``."""

_STARTUP_FUNCTIONS = frozenset(
    {"_start", "__libc_start_main", "__libc_start_call_main", "<module>", "clone3"}
)
"""Functions that start every program, and call its own functions."""


def most_increased_call(difference: Difference, names: Iterable[str]) -> str | None:
    """Return the system call with the largest certain increase in number, or ``None``."""
    counts = {name: difference.calls[name].count for name in names if name in difference.calls}
    return largest_increase({name: count for name, count in counts.items() if is_increase(count)})


def largest_increase(changes: Mapping[Key, Change]) -> Key | None:
    """Return the key with the largest ``extra``; ``None`` if no ``extra`` is above 0."""
    increased = [key for key, change in changes.items() if change.extra > 0]
    return max(increased, key=lambda key: changes[key].extra, default=None)


def named_caller(difference: Difference, function: Function) -> Function | None:
    """Return the nearest named caller among the main callers of a function, or ``None``."""
    callers = (
        caller
        for caller in difference.callers.get(function, ())
        if is_named(caller.name) and caller.name.partition(":")[0] not in _STARTUP_FUNCTIONS
    )
    return next(callers, None)


def call_evidence(syscall: str, calls: CallsChange) -> dict[str, Any]:
    """Return the name, the typical size and the number of a system call, as evidence."""
    return {"syscall": syscall, "size_bytes": calls.typical_bytes, "calls": calls.count}


def describe_change(change: Change) -> str:
    """Return ``150,000 instead of 879``: the slower condition's number first."""
    return f"{number_text(change.slower)} instead of {number_text(change.faster)}"


def number_text(value: float) -> str:
    """Return a rounded number such as ``150,000``."""
    return f"{value:,.0f}"


def function_phrase(name: str | None, prefix: str = ", in ") -> str:
    """Return the end of a sentence that names a function; empty without a name."""
    return "" if name is None else f"{prefix}{name}()"


def is_named(name: str) -> bool:
    """Return whether the text is a name; ``(unknown)`` is not."""
    return not name.startswith(_NO_NAME_PREFIX)


def short_name(function: Function) -> str:
    """Return the name of a function, without the file that follows a Python function's name."""
    return function.name.partition(":")[0] if function.kind == "python" else function.name
