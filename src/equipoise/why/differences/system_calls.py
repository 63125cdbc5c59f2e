"""What differs in the system calls, the files, the locks and the processes.

Seconds are sums over all threads, and hold what observing a call costs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
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

Kind = TypeVar("Kind", bound=Struct)


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
        files=_by_name(runs, slower, FileChange, "files", key="name"),
        locks=_by_name(runs, slower, LockChange, "locks", key="place"),
        processes=counted(runs.map(lambda run: run.processes), slower),
        threads=counted(runs.map(lambda run: run.threads), slower),
        programs=counted(runs.map(lambda run: run.programs), slower),
    )


def _by_name(
    runs: Runs[SystemCalls], slower: Side, kind: type[Kind], items: str, *, key: str
) -> dict[str, Kind]:
    """Return by item the change of its seconds and of its counts, the other fields of ``kind``."""

    def values(field: str) -> Runs[Mapping[str, float]]:
        def sums(run: SystemCalls) -> Mapping[str, float]:
            # Several descriptors may have the same name.
            total: dict[str, float] = defaultdict(float)
            for item in getattr(run, items):
                total[getattr(item, key)] += getattr(item, field)
            return total

        return runs.map(sums)

    by_field = {
        field: changes(values(field), slower, measured if field == "seconds" else counted)
        for field in kind.__struct_fields__
    }
    return {
        name: kind(**{field: change[name] for field, change in by_field.items()})
        for name in by_field["seconds"]
    }


class _Calls(Struct):
    count: Change
    seconds: Change


def _calls(runs: Runs[SystemCalls], slower: Side) -> dict[str, CallsChange]:
    totals = _by_name(runs, slower, _Calls, "calls", key="name")
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
            count=total.count,
            seconds=total.seconds,
            errors={error: of_error for (call, error), of_error in errors.items() if call == name},
            typical_bytes=_typical_bytes(runs.of(slower), name),
            waits=name in waiting,
        )
        for name, total in totals.items()
    }


def _typical_bytes(runs: Sequence[SystemCalls], name: str) -> int | None:
    sizes: Counter[int] = Counter()
    for run in runs:
        for calls in run.calls:
            if calls.name == name:
                sizes.update({size.value: size.count for size in calls.sizes})
    return max(sizes, key=lambda size: (sizes[size], -size)) if sizes else None
