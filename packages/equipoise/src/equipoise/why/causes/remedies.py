"""Remedies: what to change in a program if a cause is right, a sentence for each cause."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_BUFFER = "Read and write through a buffer: fewer and larger calls."
_FUNCTION = "Look at this function first: let it do less, or call it less often."

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
        "tiny_writes": _BUFFER,
        "tiny_reads": _BUFFER,
        "path_look_ups": "Look each path up once and keep the result, or search in fewer folders.",
        "messages": "Put several messages into one call.",
        "lock_waits": "Ask for the lock less often and hold it for less time: give each thread "
        "data of its own and merge them at the end, or split the lock.",
        "sleeping": "Wait for the event itself, and not for a fixed time.",
        "one_thread": "Use as many threads as the faster one does.",
        "memory_contention": "Give each thread data in cache lines of its own, and merge them at "
        "the end.",
        "more_allocations": "Use memory again, or allocate one block for many objects.",
        "more_time_in_python_function": _FUNCTION,
        "more_time_in_function": _FUNCTION,
        "more_system_calls": "Make fewer of these calls: do more in each, or keep the result.",
        "slower_system_calls": "Look at what these calls work on: files, sizes and devices.",
        "page_faults": "Use memory again, or use less of it.",
        "waiting": "Look at what the threads wait for there.",
    }
)
"""Remedies by the id of the cause."""
