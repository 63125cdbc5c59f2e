"""What differs in the system calls, the files, the locks and the processes.

Seconds are sums over all threads, and hold what observing a call costs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from equipoise.why.differences.changes import (
    CallsChange,
    Change,
    Difference,
    FileChange,
    LockChange,
    changes,
    counted,
    measured,
)
from equipoise.why.evidence.sources import Runs, Side
from equipoise.why.evidence.system_calls import SystemCalls

Items = Callable[[SystemCalls], Iterable[tuple[str, object]]]
"""The named items of one run: its calls, its files or its locks."""


def with_system_calls(difference: Difference, runs: Runs[SystemCalls]) -> Difference:
    """Add the system calls; nothing unless both conditions have a run.

    In each mapping the item with the largest extra seconds comes first.
    """
    if not runs.both:
        return difference
    slower = difference.slower
    return replace(
        difference,
        calls=_calls(runs, slower),
        files={
            name: FileChange(**fields)
            for name, fields in _fields(
                runs,
                slower,
                lambda run: ((use.name, use) for use in run.files),
                ("reads", "bytes_read", "writes", "bytes_written", "syncs"),
            ).items()
        },
        locks={
            place: LockChange(**fields)
            for place, fields in _fields(
                runs, slower, lambda run: ((lock.place, lock) for lock in run.locks), ("waits",)
            ).items()
        },
        processes=counted(runs.map(lambda run: run.processes), slower),
        threads=counted(runs.map(lambda run: run.threads), slower),
        programs=counted(runs.map(lambda run: run.programs), slower),
    )


def _fields(
    runs: Runs[SystemCalls], slower: Side, items: Items, counts: Sequence[str]
) -> dict[str, dict[str, Change]]:
    """Return by item the change of each of its counts and of its seconds."""

    def values(field: str) -> Runs[Mapping[str, float]]:
        return runs.map(lambda run: _sums((name, getattr(one, field)) for name, one in items(run)))

    by_count = {field: changes(values(field), slower, counted) for field in counts}
    return {
        name: {**{field: by_count[field][name] for field in counts}, "seconds": seconds}
        for name, seconds in changes(values("seconds"), slower, measured).items()
    }


def _calls(runs: Runs[SystemCalls], slower: Side) -> dict[str, CallsChange]:
    fields = _fields(
        runs, slower, lambda run: ((calls.name, calls) for calls in run.calls), ("count",)
    )
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
    waiting = {calls.name for run in runs.every for calls in run.calls if calls.waits}
    return {
        name: CallsChange(
            count=change["count"],
            seconds=change["seconds"],
            errors={error: of_error for (call, error), of_error in errors.items() if call == name},
            typical_bytes=_typical_bytes(runs.of(slower), name),
            waits=name in waiting,
        )
        for name, change in fields.items()
    }


def _typical_bytes(runs: Sequence[SystemCalls], name: str) -> int | None:
    sizes: Counter[int] = Counter()
    for run in runs:
        for calls in run.calls:
            if calls.name == name:
                sizes.update({size.value: size.count for size in calls.sizes})
    return max(sizes, key=lambda size: (sizes[size], -size)) if sizes else None


def _sums(pairs: Iterable[tuple[str, float]]) -> Mapping[str, float]:
    """Return the sum for each name: several descriptors may have the same name."""
    sums: dict[str, float] = defaultdict(float)
    for name, value in pairs:
        sums[name] += value
    return sums
