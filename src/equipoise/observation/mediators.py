"""Columns that what ran changes itself: to match on them takes part of the effect away."""

from __future__ import annotations

KNOWN = frozenset(
    {
        "wall_s", "user_s", "sys_s", "cpu_s", "cpu_time", "cpu_time_s", "user_time", "system_time",
        "busy_s", "elapsed", "duration", "latency", "throughput",
        "minor_faults", "major_faults", "page_faults", "faults",
        "max_rss_bytes", "max_rss", "rss", "peak_memory", "memory_bytes",
        "voluntary_switches", "involuntary_switches", "context_switches",
        "block_reads", "block_writes", "output_bytes",
        "instructions", "cycles", "cache_misses", "branch_misses", "dtlb_misses",
        "system_calls", "allocations",
        "pressure_cpu_s", "pressure_memory_s", "pressure_io_s", "run_delay_s", "steal_s",
        "frequency_hz", "exit", "failure",
    }
)  # fmt: skip
"""By name, without what a ledger's columns begin with. Whatever is counted over a trial grows with
the time that it took."""

_PREFIXES = ("covariate_", "metric_")


def is_mediator(name: str, named: tuple[str, ...] = ()) -> bool:
    """Whether a column is known to be one, or was named as one."""
    plain = name.lower()
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    return name in named or plain in KNOWN
