"""From the launcher's report of a trial to what the ledger keeps of it."""

from __future__ import annotations

import dataclasses

from equipoise.measure.launcher import Report
from equipoise.model.record import Accounting

_OBSERVED = ("cpu", "run_delay_s")
"""Covariates that the launcher reads."""


def accounting(report: Report) -> Accounting:
    """What the launcher measured, as the ledger keeps it; times in seconds."""
    unknown = {"wall_s" if name == "wall_ns" else name: why for name, why in report.unknown.items()}
    kept = {entry.name for entry in dataclasses.fields(Accounting)}
    kept.update(report.counters, _OBSERVED)
    return Accounting(
        wall_s=None if report.wall_ns is None else report.wall_ns / 1e9,
        user_s=report.user_s,
        sys_s=report.sys_s,
        max_rss_bytes=report.max_rss_bytes,
        minor_faults=report.minor_faults,
        major_faults=report.major_faults,
        voluntary_switches=report.voluntary_switches,
        involuntary_switches=report.involuntary_switches,
        block_reads=report.block_reads,
        block_writes=report.block_writes,
        output_bytes=report.output_bytes,
        counters=report.counters,
        unknown={name: why for name, why in unknown.items() if name in kept},
    )
