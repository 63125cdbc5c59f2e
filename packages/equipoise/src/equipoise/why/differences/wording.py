"""The sentence that says where the extra time of the slower condition (the gap) goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from equipoise.model.quantities import count, duration, exact_bytes, joined
from equipoise.why.differences.changes import (
    CallsChange,
    Change,
    Difference,
    SizeClassChange,
    Wait,
    is_increase,
)
from equipoise.why.evidence.observer import Function

MIN_MENTIONED_FRACTION = 0.05
"""Smallest fraction of the gap for which the sentence mentions a part."""

MAJORITY_SHARE = 0.5
"""Smallest share that counts as most: of all allocations, or of the blocks in a size class."""

MIN_FAULT_S = 1e-7
"""Minimum seconds of a page fault."""

MAX_LISTED_ITEMS = 3
"""Largest number of functions, of waits, and of calls in the sentence."""

_MAX_SUM_OF_PARTS = 1.005
"""Largest sum of fractions that is rounded to 100 %."""

Key = TypeVar("Key")

_PART_NAMES = {
    "user_s": "user time",
    "system_s": "system time",
    "waiting_s": "waiting",
    "queueing_s": "waiting for a processor",
}
"""Names of the parts of the wall time, by their keys in `Difference.time_parts`."""
_MEMORY_CALLS = frozenset({"mmap", "munmap", "mremap", "brk", "madvise"})
"""System calls that get memory from the kernel, or give it back."""


def extra_time_clauses(difference: Difference) -> str:
    """Return up to three clauses, without a full stop, that say where the extra time goes.

    A clause with "perhaps" is uncertain: the interval of the change contains 0.
    """
    calls = _increased_calls(difference)
    faults = _increased_faults(difference)
    increase_clauses = [*_count_clauses(calls, faults), *_time_clauses(difference)]
    is_about_memory = faults is not None or not _MEMORY_CALLS.isdisjoint(calls)
    clauses = (
        _parts_clause(difference),
        ", ".join(increase_clauses[: 2 * MAX_LISTED_ITEMS]),
        _allocation_clause(difference, is_about_memory=is_about_memory),
        None if increase_clauses else _uncertain_clause(difference),
    )
    return "; ".join(filter(None, clauses))


def _parts_clause(difference: Difference) -> str:
    """Return the clause with the percentages of the gap: user time, system time, waiting."""
    wall_time = difference.wall_time
    if not wall_time.is_certain:
        return f"whether the mean trial takes longer is uncertain ({duration(wall_time.extra)})"
    if wall_time.extra <= 0:
        return "the typical trial takes longer, but the mean trial does not"
    fractions = {
        name: difference.time_parts[part].extra / wall_time.extra
        for part, name in _PART_NAMES.items()
        if part in difference.time_parts and difference.time_parts[part].is_certain
    }
    mentioned = [name for name in fractions if fractions[name] >= MIN_MENTIONED_FRACTION]
    if mentioned:
        mentioned.sort(key=lambda name: -fractions[name])
        if sum(map(fractions.__getitem__, mentioned)) > _MAX_SUM_OF_PARTS:
            return _growth_above_gap(difference, mentioned)
        phrases = [f"{100 * fractions[name]:.0f} % {name}" for name in mentioned]
        return joined([phrases[0].replace(" % ", " % of the extra time is ", 1), *phrases[1:]])
    if "waiting_s" in difference.time_parts:
        return "neither user, system nor waiting time certainly grew"
    if difference.time_parts:
        return "neither user nor system time certainly grew, and waiting is not known"
    return "the user and system time of the trials are not known"


def _growth_above_gap(difference: Difference, mentioned: Sequence[str]) -> str:
    """Return the growth of the mentioned parts, and the reason why it exceeds the gap."""
    extra_s = {
        name: difference.time_parts[part].extra
        for part, name in _PART_NAMES.items()
        if part in difference.time_parts
    }
    growth = joined(f"{name} by {duration(extra_s[name])}" for name in mentioned)
    reason = "another part of the time shrank"
    if sum(extra_s.values()) > _MAX_SUM_OF_PARTS * difference.wall_time.extra:
        reason = "several threads or processes worked at once"
    return (
        f"{growth.replace(' by ', ' grew by ', 1)}, which is more than the "
        f"{duration(difference.wall_time.extra)} that passed, because {reason}"
    )


def _increased_calls(difference: Difference) -> Mapping[str, CallsChange]:
    """Return the calls whose certain increase explains a part of the gap, most seconds first."""
    # Sampled seconds are better, because the seconds of observed calls include observing them.
    seconds = {
        name: (
            change.seconds if change.waits else difference.entry_points.get(name, change.seconds)
        )
        for name, change in difference.calls.items()
        if is_increase(change.count)
    }
    names = [name for name in seconds if seconds[name].extra >= _min_extra_s(difference)]
    names.sort(key=lambda name: -seconds[name].extra)
    return {name: difference.calls[name] for name in names[:MAX_LISTED_ITEMS]}


def _increased_faults(difference: Difference) -> Change | None:
    """Return the change in page faults; ``None`` if they do not explain a part of the gap."""
    if difference.faults is None or not difference.faults.count.is_certain:
        return None
    faults, sampled_time = difference.faults.count, difference.entry_points.get("page_fault")
    seconds = faults.extra * MIN_FAULT_S
    if sampled_time is not None:
        seconds = max(seconds, sampled_time.extra)
    return faults if seconds >= _min_extra_s(difference) else None


def _count_clauses(calls: Mapping[str, CallsChange], faults: Change | None) -> Iterator[str]:
    """Yield a clause for each group of calls with equal counts, and a clause for page faults."""
    names_by_counts: dict[tuple[str, str], list[str]] = {}
    for name, change in calls.items():
        names_by_counts.setdefault(_low_and_high(change.count), []).append(name)
    verb = " rose"
    for (low, high), names in names_by_counts.items():
        yield f"{joined(names)}{verb} from {low} to {high} calls"
        verb = ""
    if faults is not None:
        low, high = _low_and_high(faults)
        yield f"page faults{verb} from {low} to {high}"


def _describe_wait(wait: Wait) -> str:
    """Return "waits in read" or, with the function that called read, "waits of load in read"."""
    if wait.function is None or wait.function.name == wait.entry_point:
        return f"waits in {wait.entry_point}"
    return f"waits of {_describe_function(wait.function)} in {wait.entry_point}"


def _low_and_high(change: Change) -> tuple[str, str]:
    low, high = sorted((change.baseline, change.candidate))
    return count(low), count(high)


def _time_clauses(difference: Difference) -> Iterator[str]:
    """Yield clauses about functions, waits and processes that certainly explain the gap."""
    for function, change in _certain_increases(difference.functions, difference):
        yield f"{_describe_function(function)} takes {duration(change.extra)} more on a processor"
    for wait, change in _certain_increases(difference.waits, difference):
        yield f"{_describe_wait(wait)} take {duration(change.extra)} more"
    if difference.processes is not None and is_increase(difference.processes):
        low, high = _low_and_high(difference.processes)
        yield f"processes rose from {low} to {high}"


def _certain_increases(
    changes: Mapping[Key, Change], difference: Difference
) -> list[tuple[Key, Change]]:
    """Return the certain changes that explain a part of the gap, in their order."""
    min_extra_s = _min_extra_s(difference)
    large = ((key, change) for key, change in changes.items() if change.extra >= min_extra_s)
    return [(key, change) for key, change in large if change.is_certain][:MAX_LISTED_ITEMS]


def _allocation_clause(difference: Difference, *, is_about_memory: bool) -> str | None:
    """Return a clause about the size of most allocated blocks, or ``None``."""
    allocations = difference.allocations
    if allocations is None or not (is_about_memory or allocations.count.is_certain):
        return None
    block_count = allocations.count.slower
    largest = max(allocations.classes, key=lambda size: size.count.slower, default=None)
    if largest is None or block_count == 0 or largest.count.slower < MAJORITY_SHARE * block_count:
        return None
    percent = 100 * largest.count.slower / block_count
    clause = f"{percent:.0f} % of the allocations are of {_describe_size(largest)}"
    if largest.usual_lifetime_s is None:
        return clause
    return f"{clause}, and nine in ten of these live under {duration(largest.usual_lifetime_s)}"


def _describe_size(blocks: SizeClassChange) -> str:
    size_text = exact_bytes(blocks.typical_bytes)
    if round(100 * blocks.typical_share) == 100:
        return size_text
    if blocks.typical_share >= MAJORITY_SHARE:
        return f"about {size_text}"
    return f"{blocks.min_bytes:,} to {exact_bytes(blocks.max_bytes)}"


def _uncertain_clause(difference: Difference) -> str | None:
    """Return a clause about the largest uncertain part of the gap, or ``None``."""
    descriptions: list[tuple[str, Change]] = [
        *((name, change.seconds) for name, change in difference.calls.items()),
        *((_describe_wait(wait), change) for wait, change in difference.waits.items()),
        *((_describe_function(name), change) for name, change in difference.functions.items()),
    ]
    uncertain = [
        (description, change)
        for description, change in descriptions
        if change.extra >= _min_extra_s(difference) and not change.is_certain
    ]
    if not uncertain:
        return None
    description, change = max(uncertain, key=lambda item: item[1].extra)
    extra = duration(change.extra)
    return f"perhaps {description} ({extra} more, but the observed runs do not prove it)"


def _describe_function(function: Function) -> str:
    if function.kind == "unknown":
        return f"code without a name in {function.module}"
    return f"{function.name} ({function.module})" if function.module else function.name


def _min_extra_s(difference: Difference) -> float:
    return max(MIN_MENTIONED_FRACTION * difference.wall_time.extra, 0.0)
