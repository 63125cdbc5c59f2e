"""What differs in the system calls, the files, the locks, and the processes.

Seconds are sums over all threads, and hold what observing a call costs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from equipoise.why.differences.changes import changes, counted, measured
from equipoise.why.differences.result import (
    CallsChange,
    Change,
    FileChange,
    LockChange,
    Side,
)
from equipoise.why.evidence.evidence_set import Runs
from equipoise.why.evidence.system_calls import Calls, FileUse, LockWaits, SystemCalls


@dataclass(frozen=True, slots=True)
class SystemCallsChange:
    """The fields of the same names of ``Difference``."""

    calls: Mapping[str, CallsChange] = field(default_factory=dict)
    files: Mapping[str, FileChange] = field(default_factory=dict)
    locks: Mapping[str, LockChange] = field(default_factory=dict)
    processes: Change | None = None
    threads: Change | None = None
    programs: Change | None = None


def system_calls_change(runs: Runs[SystemCalls], slower: Side) -> SystemCallsChange:
    """The system calls; nothing unless both conditions have a run.

    In each mapping what the slower condition spent most more seconds with comes first.
    """
    if not runs.both:
        return SystemCallsChange()
    return SystemCallsChange(
        calls=_calls(runs, slower),
        files=_files(runs, slower),
        locks=_locks(runs, slower),
        processes=counted(runs.map(lambda run: run.processes), slower),
        threads=counted(runs.map(lambda run: run.threads), slower),
        programs=counted(runs.map(lambda run: run.programs), slower),
    )


def _calls(runs: Runs[SystemCalls], slower: Side) -> dict[str, CallsChange]:
    def each(take: Callable[[Calls], float]) -> Runs[Mapping[str, float]]:
        return runs.map(lambda run: {calls.name: take(calls) for calls in run.calls})

    count = changes(each(lambda calls: calls.count), slower, counted)
    errors = changes(
        runs.map(
            lambda run: {
                (calls.name, error): float(times)
                for calls in run.calls
                for error, times in calls.errors.items()
            }
        ),
        slower,
        counted,
    )
    both = (*runs.baseline, *runs.candidate)
    waiting = {calls.name for run in both for calls in run.calls if calls.waits}
    return {
        name: CallsChange(
            count=count[name],
            seconds=seconds,
            errors={error: change for (call, error), change in errors.items() if call == name},
            typical_bytes=_typical_bytes(_side(runs, slower), name),
            waits=name in waiting,
        )
        for name, seconds in changes(each(lambda calls: calls.seconds), slower, measured).items()
    }


def _side(runs: Runs[SystemCalls], side: Side) -> tuple[SystemCalls, ...]:
    return runs.baseline if side == "baseline" else runs.candidate


def _typical_bytes(runs: Sequence[SystemCalls], name: str) -> int | None:
    sizes: Counter[int] = Counter()
    for run in runs:
        for calls in run.calls:
            if calls.name == name:
                sizes.update({size.value: size.count for size in calls.sizes})
    return max(sizes, key=lambda size: (sizes[size], -size)) if sizes else None


def _files(runs: Runs[SystemCalls], slower: Side) -> dict[str, FileChange]:
    def each(take: Callable[[FileUse], float]) -> Runs[Mapping[str, float]]:
        return runs.map(lambda run: _sums((use.name, take(use)) for use in run.files))

    reads = changes(each(lambda use: use.reads), slower, counted)
    bytes_read = changes(each(lambda use: use.bytes_read), slower, counted)
    writes = changes(each(lambda use: use.writes), slower, counted)
    bytes_written = changes(each(lambda use: use.bytes_written), slower, counted)
    syncs = changes(each(lambda use: use.syncs), slower, counted)
    return {
        name: FileChange(
            reads=reads[name],
            bytes_read=bytes_read[name],
            writes=writes[name],
            bytes_written=bytes_written[name],
            syncs=syncs[name],
            seconds=seconds,
        )
        for name, seconds in changes(each(lambda use: use.seconds), slower, measured).items()
    }


def _locks(runs: Runs[SystemCalls], slower: Side) -> dict[str, LockChange]:
    def each(take: Callable[[LockWaits], float]) -> Runs[Mapping[str, float]]:
        return runs.map(lambda run: _sums((lock.place, take(lock)) for lock in run.locks))

    waits = changes(each(lambda lock: lock.waits), slower, counted)
    return {
        place: LockChange(waits=waits[place], seconds=seconds)
        for place, seconds in changes(each(lambda lock: lock.seconds), slower, measured).items()
    }


def _sums(pairs: Iterable[tuple[str, float]]) -> Mapping[str, float]:
    """The sum for each name: several descriptors may have the same one."""
    sums: dict[str, float] = defaultdict(float)
    for name, value in pairs:
        sums[name] += value
    return sums
