"""The difference without what causes have claimed, and its seconds as seconds of the gap.

The sources add up over threads what passes only once. Three rules keep a second from counting
twice:

- Where all threads together use more extra seconds on processors than the gap has, these ran side
  by side, and each such second counts as that fraction of one.
- A thread that waits while another one works is not the reason. Where there are several threads or
  processes, waiting can explain only what the extra work leaves of the gap. A single thread cannot
  do both at once, and needs no such bound.
- What is claimed as waiting is taken off that.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from equipoise.model.quantities import Interval
from equipoise.model.why import Kind
from equipoise.why.differences.changes import (
    NO_CHANGE,
    CallsChange,
    Change,
    Difference,
    Wait,
    is_more,
    sum_of,
)
from equipoise.why.differences.stacks import WHOLE_KERNEL
from equipoise.why.evidence.observer import Function

POLLS = ("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2")
PAGE_FAULT = "page_fault"
NOT_ON_DISK = ("pipe", "socket")
"""Beginnings of the names of files that lie on no disk."""

Key = TypeVar("Key")

LONG_CALL_S = 50e-6
"""A call that takes longer usually waits, and observing it costs little beside that."""

Part = tuple[Literal["entry", "function", "wait"], str]
"""A part of the extra time: a kernel entry point, a function itself (``name in module``), a kernel
entry point at which threads waited. A part that one cause has claimed counts for no later one."""


class Extra(Struct, frozen=True):
    """Extra time in some parts together."""

    sides: Change
    """Seconds over all threads."""
    seconds: float
    """Seconds of the gap."""
    seconds_ci: Interval
    waited_s: float
    """Seconds of waiting among ``seconds``."""
    claims: frozenset[Part]

    def cause(self, kind: Kind, summary: str, **evidence: Any) -> Cause:
        """Return the cause that has this extra time; its evidence then shows the time, too.

        A `Change` in the evidence is shown as its values in both conditions.
        """
        shown = {
            name: {"baseline": value.baseline, "candidate": value.candidate}
            if isinstance(value, Change)
            else value
            for name, value in {**evidence, "seconds": self.sides}.items()
        }
        return Cause(**asdict(self), kind=kind, evidence=shown, summary=summary)


class Cause(Extra, frozen=True):
    """One cause that a rule found, before anything was changed on purpose."""

    kind: Kind
    evidence: dict[str, Any]
    """Names the thing (``syscall``, ``function``, ``file``, ``lock``, ``size_bytes``), with counts
    and seconds as ``{"baseline": …, "candidate": …}``."""
    summary: str


class Remaining(Struct, frozen=True):
    """A difference, and what causes have claimed of it."""

    difference: Difference
    claimed: frozenset[Part] = field(default_factory=frozenset)
    waited_s: float = 0.0
    """Seconds of the gap that causes have claimed as waiting."""

    @property
    def gap_s(self) -> float:
        """Seconds that the slower condition takes more."""
        return self.difference.gap.extra

    @property
    def entries(self) -> Mapping[str, Change]:
        """Seconds on a processor in the kernel, by entry points that no cause has claimed."""
        entries = self.difference.entries
        return {entry: entries[entry] for entry in entries if ("entry", entry) not in self.claimed}

    @property
    def functions(self) -> Mapping[Function, Change]:
        """Seconds on a processor in functions themselves that no cause has claimed."""
        functions = self.difference.functions
        return {
            function: functions[function]
            for function in functions
            if _part(function) not in self.claimed
        }

    @property
    def waits(self) -> Mapping[Wait, Change]:
        """Seconds off the processor at entry points that no cause has claimed."""
        waits = self.difference.waits
        return {wait: waits[wait] for wait in waits if ("wait", wait.entry) not in self.claimed}

    @property
    def waits_by_entry(self) -> Mapping[str, Change]:
        """Sums of ``waits`` by kernel entry point."""
        waits = self.waits
        return {
            entry: sum_of(change for wait, change in waits.items() if wait.entry == entry)
            for entry in dict.fromkeys(wait.entry for wait in waits)
        }

    def without(self, cause: Cause) -> Remaining:
        """Return what is left when this cause has claimed its parts."""
        return replace(
            self, claimed=self.claimed | cause.claims, waited_s=self.waited_s + cause.waited_s
        )

    def extra(
        self,
        entries: Collection[str] = (),
        functions: Collection[Function] = (),
        waits: Collection[str] = (),
        calls: Collection[str] = (),
    ) -> Extra:
        """Return the extra time at kernel entry points, in functions and in waits.

        ``entries`` are kernel entry points, for the time on a processor. Without a profile that
        shows the kernel, the system calls' own seconds stand for them. ``waits`` are kernel entry
        points, for the time spent waiting there. Where waits could not be seen, the seconds of
        long calls stand for them. ``calls`` are long system calls that samples miss: their own
        seconds count in any case.
        """
        unclaimed = self.functions
        work = sum_of(
            (
                *map(self._at_entry, entries),
                *map(self._in_calls, calls),
                *(unclaimed[function] for function in functions if function in unclaimed),
            )
        )
        claims: frozenset[Part] = frozenset(
            (
                *(("entry", place) for place in (*entries, *calls)),
                *map(_part, functions),
                *(("wait", wait) for wait in waits),
            )
        )
        waiting = self.waiting(self._waiting(waits), claims)
        work_half, waiting_half = (
            work.half_width / self._side_by_side(),
            half_width(waiting.seconds_ci),
        )
        half = math.hypot(work_half, waiting_half)
        seconds = work.extra / self._side_by_side() + waiting.waited_s
        interval = (seconds - half, seconds + half)
        sides = sum_of((work, waiting.sides))
        return Extra(sides, seconds, interval, waiting.waited_s, claims)

    def waiting(self, change: Change, claims: frozenset[Part]) -> Extra:
        """Return extra time that was spent waiting, by any source."""
        waited_s = max(0.0, min(change.extra, self._max_waiting_s()))
        half = change.half_width * (waited_s / change.extra if change.extra > 0 else 0.0)
        return Extra(change, waited_s, (waited_s - half, waited_s + half), waited_s, claims)

    def _at_entry(self, entry: str) -> Change:
        if ("entry", entry) in self.claimed:
            return NO_CHANGE
        if self.difference.entries.keys() - {WHOLE_KERNEL}:
            return self.difference.entries.get(entry, NO_CHANGE)
        return NO_CHANGE if self._mostly_waits(entry) else self._in_calls(entry)

    def _in_calls(self, name: str) -> Change:
        calls = self.difference.calls.get(name)
        return NO_CHANGE if calls is None or ("entry", name) in self.claimed else calls.seconds

    def _waiting(self, entries: Collection[str]) -> Change:
        if self.difference.waits:
            return sum_of(change for wait, change in self.waits.items() if wait.entry in entries)
        calls = self.difference.calls
        waiting = (entry for entry in entries if self._mostly_waits(entry))
        return sum_of(calls[call].seconds for call in waiting if ("wait", call) not in self.claimed)

    def _mostly_waits(self, name: str) -> bool:
        """Return whether a call's own seconds stand for waiting, as nothing saw the waits."""
        calls = self.difference.calls.get(name)
        if calls is None or self.difference.waits:
            return False
        return calls.waits or calls.seconds.slower > LONG_CALL_S * calls.count.slower

    def _side_by_side(self) -> float:
        """Return how many extra seconds on processors passed within one second of the gap."""
        on_processor = self.difference.on_processor
        if on_processor is None or self.gap_s <= 0:
            return 1.0
        return max(1.0, on_processor.extra / self.gap_s)

    def _max_waiting_s(self) -> float:
        """Return how much of the gap waiting that no cause has claimed can explain."""
        on_processor = self.difference.on_processor
        counts = (self.difference.threads, self.difference.processes)
        # Where no source counted them there may be several.
        has_several = any(count is None or count.slower > 1 for count in counts)
        worked_s = 0.0
        if on_processor is not None and has_several:
            worked_s = max(0.0, on_processor.extra / self._side_by_side())
        return max(0.0, self.gap_s - worked_s - self.waited_s)


def _part(function: Function) -> Part:
    return ("function", f"{function.name} in {function.module}")


def half_width(interval: Interval) -> float:
    """Return half of an interval; 0 where it is unknown."""
    low, high = interval
    return 0.0 if low is None or high is None else (high - low) / 2


_UNNAMED = "("
"""Beginning of the names that sources give to what has none: ``(unknown)``."""

_OF_EVERY_PROGRAM = frozenset(
    {"_start", "__libc_start_main", "__libc_start_call_main", "<module>", "clone3"}
)
"""Functions from which every program is called."""


def most_more(difference: Difference, names: Iterable[str]) -> str | None:
    """Return the call of which the slower condition certainly makes most more."""
    counts = {name: difference.calls[name].count for name in names if name in difference.calls}
    return largest({name: count for name, count in counts.items() if is_more(count)})


def largest(changes: Mapping[Key, Change]) -> Key | None:
    """Return the key with the largest surplus in the slower condition; ``None`` without one."""
    more = [key for key, change in changes.items() if change.extra > 0]
    return max(more, key=lambda key: changes[key].extra, default=None)


def caller(difference: Difference, function: Function) -> Function | None:
    """Return the nearest named caller through which a function got most of its extra seconds."""
    callers = difference.callers.get(function, ())
    named = (
        one
        for one in callers
        if is_named(one.name) and one.name.partition(":")[0] not in _OF_EVERY_PROGRAM
    )
    return next(named, None)


def call_evidence(syscall: str, calls: CallsChange) -> dict[str, Any]:
    """Return a system call as evidence shows it, without its seconds."""
    return {"syscall": syscall, "size_bytes": calls.typical_bytes, "calls": calls.count}


def instead(change: Change) -> str:
    """Return ``150,000 instead of 879``: the slower condition's number first."""
    return f"{number(change.slower)} instead of {number(change.faster)}"


def number(value: float) -> str:
    """Return ``150,000``: means over runs that differ are rounded."""
    return f"{value:,.0f}"


def in_function(name: str | None, before: str = ", in ") -> str:
    """Return the end of a sentence that names a function: empty if there is none."""
    return "" if name is None else f"{before}{name}()"


def is_named(name: str) -> bool:
    """Return whether this is a name and not a remark that there is none."""
    return not name.startswith(_UNNAMED)


def short_name(function: Function) -> str:
    """Return the name of a function, without the file in which an interpreter found it."""
    return function.name.partition(":")[0] if function.kind == "python" else function.name
