"""Run all rules in their order, and rank the causes of a gap by the seconds that they explain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from equipoise.model.why import Explanation
from equipoise.why.causes import functions, memory, processes, system_calls
from equipoise.why.causes.unclaimed import Cause, UnclaimedTime
from equipoise.why.differences.changes import Difference, is_increase

Rule = Callable[[UnclaimedTime], Iterable[Cause]]
"""Function that finds causes of one type in the time that no earlier rule has claimed."""

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "wrong_blas_kernel": functions.wrong_blas_kernel,
        "blocks_returned_at_free": memory.blocks_returned_at_free,
        "memory_given_back": memory.memory_given_back,
        "huge_pages_off": memory.huge_pages_off,
        "fork_of_large_process": processes.fork_of_large_process,
        "many_processes": processes.many_processes,
        "sync_per_record": system_calls.sync_per_record,
        "cold_file": system_calls.cold_file,
        "tiny_writes": system_calls.tiny_writes,
        "tiny_reads": system_calls.tiny_reads,
        "path_look_ups": system_calls.path_look_ups,
        "messages": system_calls.messages,
        "lock_waits": processes.lock_waits,
        "sleeping": processes.sleeping,
        "one_thread": processes.one_thread,
        "memory_contention": functions.memory_contention,
        "more_allocations": memory.more_allocations,
        "more_time_in_python_function": functions.more_time_in_python_function,
        "more_time_in_function": functions.more_time_in_function,
        "more_system_calls": system_calls.more_system_calls,
        "slower_system_calls": system_calls.slower_system_calls,
        "page_faults": memory.page_faults,
        "waiting": processes.waiting,
    }
)
"""Rules by the stable id of their cause, the most specific rule first."""

MIN_FRACTION = 0.05
"""Smallest fraction of the gap for which a cause is reported. A smaller cause may come from the
observation itself, which costs a few per cent."""

OBSERVED_ONLY = "as observed and not tested"
"""End of the sentence about a cause that no intervention has tested."""


def suggested_causes(
    difference: Difference, rules: Mapping[str, Rule] = RULES
) -> tuple[Explanation, ...]:
    """Return the open causes that evidence suggests, the most seconds first.

    The result is empty if the gap is not certain, or if the evidence shows no cause.
    """
    if not is_increase(difference.wall_time):
        return ()
    unclaimed = UnclaimedTime(difference)
    accepted: list[tuple[str, Cause]] = []
    for name, rule in rules.items():
        unclaimed_before_rule = unclaimed
        # The longest cause of a rule is accepted, and the rule runs again on the remaining time.
        # From its second run on, a cause must claim a new part. So the loop ends.
        while causes := [
            cause
            for cause in rule(unclaimed)
            if cause.seconds >= MIN_FRACTION * unclaimed.gap_s
            and (unclaimed is unclaimed_before_rule or cause.parts - unclaimed.claimed_parts)
        ]:
            longest = max(causes, key=lambda cause: cause.seconds)
            accepted.append((name, longest))
            unclaimed = unclaimed.without(longest)
    accepted.sort(key=lambda item: -item[1].seconds)
    return tuple(_explanation(name, cause, difference.wall_time.extra) for name, cause in accepted)


def _explanation(name: str, cause: Cause, gap_s: float) -> Explanation:
    # A cause cannot explain more than the whole gap.
    share = min(1.0, cause.seconds / gap_s)
    low, high = (None if bound is None else min(1.0, bound / gap_s) for bound in cause.seconds_ci)
    return Explanation(
        cause=name,
        kind=cause.kind,
        evidence=cause.evidence,
        status="open",
        share_of_gap=share,
        share_ci=(low, high),
        summary=(
            f"{cause.summary}: {cause.seconds:.3g} s, {100 * share:.0f} % of the extra time, "
            f"{OBSERVED_ONLY}"
        ),
        seconds=cause.seconds,
        seconds_ci=cause.seconds_ci,
        remedy=REMEDIES.get(name),
    )


_BUFFER_REMEDY = "Read and write through a buffer: fewer and larger calls."
_FUNCTION_REMEDY = "Look at this function first: let it do less, or call it less often."

REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        "wrong_blas_kernel": "Set the library to this processor's core type, or leave it unset.",
        "blocks_returned_at_free": "Keep large blocks and use them again, or let the allocator "
        "keep freed memory.",
        "memory_given_back": "Give memory back less often, or keep it for the next use.",
        "huge_pages_off": "Allow huge pages for this memory.",
        "fork_of_large_process": "Start processes with posix_spawn or vfork, or before the memory "
        "is filled.",
        "many_processes": "Do the work inside one process, or give each process more of it.",
        "sync_per_record": "Sync once for many records.",
        "cold_file": "Read less of the file, read it ahead, or compare with the file in memory.",
        "tiny_writes": _BUFFER_REMEDY,
        "tiny_reads": _BUFFER_REMEDY,
        "path_look_ups": "Look each path up once and keep the result, or search in fewer folders.",
        "messages": "Put several messages into one call.",
        "lock_waits": "Ask for the lock less often and hold it for less time: give each thread "
        "data of its own and merge them at the end, or split the lock.",
        "sleeping": "Wait for the event itself, and not for a fixed time.",
        "one_thread": "Use as many threads as the faster condition does.",
        "memory_contention": "Give each thread data in cache lines of its own, and merge them at "
        "the end.",
        "more_allocations": "Use memory again, or allocate one block for many objects.",
        "more_time_in_python_function": _FUNCTION_REMEDY,
        "more_time_in_function": _FUNCTION_REMEDY,
        "more_system_calls": "Make fewer of these calls: do more in each, or keep the result.",
        "slower_system_calls": "Compare the files, sizes and devices of these calls.",
        "page_faults": "Use memory again, or use less of it.",
        "waiting": "Find out what the threads wait for there.",
    }
)
