"""Operating system primitives: the rows of ``equipoise os``, as frozen data."""

from __future__ import annotations

from dataclasses import dataclass

OS_STUDY = "os"
"""The study of the campaigns that ``equipoise os`` runs."""

LATENCY = "latency_s"
BANDWIDTH = "bandwidth_bytes_per_s"
PRIMITIVE_METRICS = (LATENCY, BANDWIDTH)
"""What a probe reports: one of them."""

CLASS, PROBE, PLACEMENT = "class", "probe", "placement"
"""The levels of a row's condition."""

PROBE_PROGRAM = "equipoise-probe"


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One row: a probe with certain options."""

    name: str
    probe: str
    group: str
    """The table that it stands in: ``process``, ``ipc`` …"""
    words: str
    """What one operation is."""
    metric: str
    options: tuple[str, ...] = ()
    placement: str = "none"
    """Where its sides are held: ``none``, ``same_cpu`` or ``across_cpus``."""
    needs: str = ""
    """What must be there, in words; empty if every Linux has it."""
