"""All rules, the most specific first: what one of them has claimed, no later one counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from equipoise.why.causes import (
    blocks_returned_at_free,
    cold_file,
    fork_of_large_process,
    huge_pages_off,
    lock_waits,
    many_processes,
    memory_contention,
    memory_given_back,
    messages,
    more_allocations,
    more_system_calls,
    more_time_in_function,
    more_time_in_python_function,
    one_thread,
    page_faults,
    path_look_ups,
    sleeping,
    slower_system_calls,
    sync_per_record,
    tiny_reads,
    tiny_writes,
    waiting,
    wrong_blas_kernel,
)
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining


@dataclass(frozen=True, slots=True)
class Rule:
    """One file of this folder."""

    cause: str
    """Its stable id."""
    words: str
    """What it means, for the docs."""
    find: Callable[[Remaining], tuple[Found, ...]]


RULES = tuple(
    Rule(file.CAUSE, file.WORDS, file.find)
    for file in (
        wrong_blas_kernel,
        blocks_returned_at_free,
        memory_given_back,
        huge_pages_off,
        fork_of_large_process,
        many_processes,
        sync_per_record,
        cold_file,
        tiny_writes,
        tiny_reads,
        path_look_ups,
        messages,
        lock_waits,
        sleeping,
        one_thread,
        memory_contention,
        more_allocations,
        more_time_in_python_function,
        more_time_in_function,
        more_system_calls,
        slower_system_calls,
        page_faults,
        waiting,
    )
)
