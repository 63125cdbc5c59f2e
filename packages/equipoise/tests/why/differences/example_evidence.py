"""Example evidence with known answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from equipoise.model.plan import Condition
from equipoise.model.record import Accounting, Trial
from equipoise.why.differences.changes import Difference
from equipoise.why.differences.compare import difference_between
from equipoise.why.evidence.allocations import Allocations, SizeClass
from equipoise.why.evidence.observer import (
    Calls,
    End,
    FileUse,
    Frequency,
    Function,
    FunctionKind,
    LockWaits,
    SampledSource,
    SampledStacks,
    Stack,
    Stacks,
    SystemCalls,
)
from equipoise.why.evidence.sources import EvidenceSet, Runs

CONDITIONS = (Condition("before", ("program",)), Condition("after", ("program",)))
SUCCESS = End(0, None)
_KINDS: Mapping[str, FunctionKind] = {"kernel": "kernel", "size": "size"}


def trial(block: int, condition: int, wall_s: float, **account: float | None) -> Trial:
    """A measured trial; ``account`` are fields of its accounting."""
    known = Accounting(wall_s=wall_s)
    return Trial("measured", block, condition, condition, 0.0, replace(known, **account))


def trials(baseline_s: Sequence[float], candidate_s: Sequence[float]) -> Runs[Trial]:
    """One trial of each condition in each block, with these wall times, all in the program."""

    def side(condition: int, walls: Sequence[float]) -> tuple[Trial, ...]:
        return tuple(
            trial(block, condition, wall_s, user_s=wall_s, sys_s=0.0)
            for block, wall_s in enumerate(walls, start=1)
        )

    return Runs(side(0, baseline_s), side(1, candidate_s))


def stacks(weights: Mapping[str, float]) -> Stacks:
    """Stacks of ``main;work@libm.so;mmap@kernel``, the outermost first, with their weights.

    A frame without a file is in ``program``.
    """
    places: dict[Function, int] = {}
    every = []
    for names, weight in weights.items():
        frames = []
        for word in names.split(";") if names else ():
            name, _, module = word.partition("@")
            frame = Function(name, module or "program", _KINDS.get(module, "user"))
            frames.append(places.setdefault(frame, len(places)))
        every.append(Stack(tuple(frames), 1, weight))
    return Stacks(tuple(places), tuple(every))


def sampled(
    weights: Mapping[str, float],
    source: SampledSource = "profile",
    *,
    total: float | None = None,
    unseen: tuple[str, ...] = (),
) -> SampledStacks:
    """One run with these stacks."""
    return SampledStacks(source, 1.0, SUCCESS, len(weights), total, stacks(weights), unseen)


def calls(name: str, count: int, seconds: float, **fields: object) -> Calls:
    """The calls of one name."""
    plain = Calls(name, count, seconds, seconds, False, {}, 0, None, None, (), ())
    return replace(plain, **fields)


def system_calls(
    *of: Calls,
    files: tuple[FileUse, ...] = (),
    locks: tuple[LockWaits, ...] = (),
    threads: int = 1,
    lost_records: int = 0,
) -> SystemCalls:
    """One run with these calls."""
    return SystemCalls(
        "tracepoints", 1.0, SUCCESS, 1, threads, 1, 0.0, tuple(of), files, locks, (), lost_records
    )


def sizes(**counts: int) -> tuple[Frequency, ...]:
    """Size arguments: ``_4096=3``."""
    return tuple(Frequency(int(size[1:]), count) for size, count in counts.items())


BOUNDS_S = (0.25e-6, 0.5e-6, 1e-6, 50e-6, 100e-6)


def size_class(typical: int, allocations: int, lifetimes: tuple[int, ...] = ()) -> SizeClass:
    """A class of which all blocks have one size."""
    whole = (*lifetimes, *(0 for _ in range(len(BOUNDS_S) - len(lifetimes))))
    least = 32768 if typical >= 32768 else 16
    return SizeClass(
        least, 2 * least, allocations, typical * allocations, typical, allocations, whole
    )


def allocations(*classes: SizeClass, by: Mapping[str, float] | None = None) -> Allocations:
    """One recorded run; ``by`` are sampled stacks with estimated bytes."""
    return Allocations(
        processes=1,
        allocations=sum(size.allocations for size in classes),
        bytes=sum(size.bytes for size in classes),
        frees=sum(sum(size.lifetimes) for size in classes),
        resized=0,
        zeroed=0,
        aligned=0,
        classes=classes,
        lifetime_bounds_s=BOUNDS_S,
        stacks=stacks(by or {}),
        unseen=(),
    )


WALLS = trials([1.0, 1.1, 1.2, 1.0, 1.1, 1.2], [2.0, 2.2, 2.1, 2.1, 2.2, 2.0])


def differs(of: Runs[Trial] = WALLS, **sources: Any) -> Difference:
    """Return the difference between both conditions in these trials and this evidence."""
    return difference_between(of, EvidenceSet(**sources), CONDITIONS)
