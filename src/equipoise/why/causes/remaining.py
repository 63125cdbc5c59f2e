"""What no cause has claimed yet of the difference, and how its seconds become seconds of the gap.

The sources add up over threads what passes only once. Three things keep that from being told
twice:

- Where all threads together use more extra seconds on processors than the gap has, these ran side
  by side, and each such second counts as that fraction of one.
- Who waits while another one works is not the reason: where there are several threads or
  processes, only what the extra work leaves of the gap can be explained by waiting. A single thread
  cannot do both at once, and no such bound is needed.
- What is claimed as waiting is taken off that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from equipoise.model.interval import Interval
from equipoise.model.why import Kind
from equipoise.why.causes.found import Found, Part
from equipoise.why.causes.wording import sides
from equipoise.why.differences.profile import WHOLE_KERNEL
from equipoise.why.differences.result import Change, Difference, Function, Wait

LONG_CALL_S = 50e-6
"""A call that takes longer waits, as a rule, and what observing it costs is small beside that."""

NOTHING = Change(0.0, 0.0, 0.0, (0.0, 0.0))


@dataclass(frozen=True, slots=True)
class Extra:
    """Extra time in some parts together."""

    sides: Change
    """Over all threads."""
    seconds: float
    """Of the gap."""
    seconds_ci: Interval
    waited_s: float
    """How much of the seconds is waiting."""
    claims: frozenset[Part]

    def found(self, *, cause: str, kind: Kind, evidence: dict[str, Any], words: str) -> Found:
        """The cause that has this extra time, which its evidence then shows, too."""
        return Found(
            cause=cause,
            kind=kind,
            evidence={**evidence, "seconds": sides(self.sides)},
            seconds=self.seconds,
            seconds_ci=self.seconds_ci,
            words=words,
            claims=self.claims,
            waited_s=self.waited_s,
        )


@dataclass(frozen=True, slots=True)
class Remaining:
    """A difference, and what causes have claimed of it."""

    difference: Difference
    claimed: frozenset[Part] = field(default_factory=frozenset)
    waited_s: float = 0.0
    """Of the gap, that causes have claimed as waiting."""

    @property
    def gap_s(self) -> float:
        """Seconds that the slower condition takes more."""
        return self.difference.gap.extra

    @property
    def doors(self) -> Mapping[str, Change]:
        """Seconds on a processor in the kernel, by doors that nobody has claimed."""
        return {
            door: change
            for door, change in self.difference.doors.items()
            if ("door", door) not in self.claimed
        }

    @property
    def functions(self) -> Mapping[Function, Change]:
        """Seconds on a processor in functions themselves that nobody has claimed."""
        return {
            function: change
            for function, change in self.difference.functions.items()
            if part(function) not in self.claimed
        }

    @property
    def waits(self) -> Mapping[Wait, Change]:
        """Seconds off the processor at doors that nobody has claimed."""
        return {
            wait: change
            for wait, change in self.difference.waits.items()
            if ("wait", wait.door) not in self.claimed
        }

    def without(self, found: Found) -> Remaining:
        """What is left when this cause has got its parts."""
        return replace(
            self, claimed=self.claimed | found.claims, waited_s=self.waited_s + found.waited_s
        )

    def extra(
        self,
        doors: Iterable[str] = (),
        functions: Iterable[Function] = (),
        waits: Iterable[str] = (),
        called: Iterable[str] = (),
    ) -> Extra:
        """The extra time at these doors, in these functions and waiting at these doors.

        Where there is no profile, or it does not show the kernel, the system calls' own seconds
        stand for their doors; where waits could not be seen, those of long calls stand for them.

        Parameters
        ----------
        called
            Doors of long calls that samples miss: the calls' own seconds count in any case.
        """
        doors, functions, waits = tuple(doors), tuple(functions), tuple(waits)
        called = tuple(called)
        entered = [self._at_door(door) for door in doors]
        entered += [self._in_calls(door) for door in called]
        inside = [self.functions[one] for one in functions if one in self.functions]
        work = added([*entered, *inside])
        waiting = self._waiting(waits)
        worked_s = work.extra / self._side_by_side()
        waited_s = max(0.0, min(waiting.extra, self._most_waiting_s()))
        halves = (
            _half(work) / self._side_by_side(),
            _half(waiting) * (waited_s / waiting.extra if waiting.extra > 0 else 0.0),
        )
        seconds, half = worked_s + waited_s, math.hypot(*halves)
        return Extra(
            sides=added([work, waiting]),
            seconds=seconds,
            seconds_ci=(seconds - half, seconds + half),
            waited_s=waited_s,
            claims=frozenset(
                (
                    *(("door", door) for door in (*doors, *called)),
                    *(part(function) for function in functions),
                    *(("wait", door) for door in waits),
                )
            ),
        )

    def waiting(self, change: Change, claims: frozenset[Part]) -> Extra:
        """Extra time that was spent waiting, as another source than ``waits`` saw it."""
        waited_s = max(0.0, min(change.extra, self._most_waiting_s()))
        half = _half(change) * (waited_s / change.extra if change.extra > 0 else 0.0)
        return Extra(change, waited_s, (waited_s - half, waited_s + half), waited_s, claims)

    def _at_door(self, door: str) -> Change:
        if ("door", door) in self.claimed:
            return NOTHING
        if self._sees_doors():
            return self.difference.doors.get(door, NOTHING)
        calls = self.difference.calls.get(door)
        return NOTHING if calls is None or self._mostly_waits(door) else calls.seconds

    def _in_calls(self, door: str) -> Change:
        calls = self.difference.calls.get(door)
        return NOTHING if calls is None or ("door", door) in self.claimed else calls.seconds

    def _sees_doors(self) -> bool:
        return bool(self.difference.doors.keys() - {WHOLE_KERNEL})

    def _waiting(self, doors: Sequence[str]) -> Change:
        unclaimed = [door for door in doors if ("wait", door) not in self.claimed]
        if self.difference.waits:
            return added(change for wait, change in self.waits.items() if wait.door in unclaimed)
        calls = self.difference.calls
        return added(calls[door].seconds for door in unclaimed if self._mostly_waits(door))

    def _mostly_waits(self, door: str) -> bool:
        """Whether the calls' own seconds stand for waiting, as nothing saw the waits."""
        calls = self.difference.calls.get(door)
        if calls is None or self.difference.waits:
            return False
        each_s = LONG_CALL_S * getattr(calls.count, self.difference.slower)
        return calls.waits or getattr(calls.seconds, self.difference.slower) > each_s

    def _side_by_side(self) -> float:
        """How many extra seconds on processors passed within one second of the gap."""
        on_processor = self.difference.on_processor
        if on_processor is None or self.gap_s <= 0:
            return 1.0
        return max(1.0, on_processor.extra / self.gap_s)

    def _most_waiting_s(self) -> float:
        """How much of the gap can be explained by waiting that nobody has claimed."""
        on_processor = self.difference.on_processor
        worked_s = 0.0
        if on_processor is not None and self._has_several_threads():
            worked_s = max(0.0, on_processor.extra / self._side_by_side())
        return max(0.0, self.gap_s - worked_s - self.waited_s)

    def _has_several_threads(self) -> bool:
        several = (self.difference.threads, self.difference.processes)
        # Where nobody counted them there may be several.
        return any(
            change is None or getattr(change, self.difference.slower) > 1 for change in several
        )


def part(function: Function) -> Part:
    """A function itself as a part that can be claimed."""
    return ("function", f"{function.name} in {function.module}")


def added(changes: Iterable[Change]) -> Change:
    """The sum of changes; a part whose interval is unknown may be nothing or twice as much."""
    parts = tuple(changes)
    extra = sum(change.extra for change in parts)
    half = math.hypot(*(_half(change) for change in parts))
    return Change(
        baseline=sum(change.baseline for change in parts),
        candidate=sum(change.candidate for change in parts),
        extra=extra,
        extra_ci=(extra - half, extra + half),
    )


def _half(change: Change) -> float:
    low, high = change.extra_ci
    return abs(change.extra) if low is None or high is None else (high - low) / 2
