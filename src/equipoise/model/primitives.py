"""Operating system primitives: the rows of ``equipoise os``, as frozen data."""

from __future__ import annotations

from msgspec import Struct

OS_STUDY = "os"
"""The study of the campaigns that ``equipoise os`` runs."""

LATENCY = "latency_s"
BANDWIDTH = "bandwidth_bytes_per_s"
PRIMITIVE_METRICS = (LATENCY, BANDWIDTH)
"""Metrics of which a probe reports one."""

CLASS, PROBE, PLACEMENT = "class", "probe", "placement"
"""The levels of a row's condition."""

PROBE_PROGRAM = "equipoise-probe"


class ProbeRow(Struct, frozen=True):
    """One row: a probe with certain options."""

    name: str
    probe: str
    group: str
    """The table that it stands in: ``process``, ``ipc`` …"""
    summary: str
    """Description of one operation."""
    metric: str
    options: tuple[str, ...] = ()
    placement: str = "none"
    """Placement of its sides: ``none``, ``same_cpu`` or ``across_cpus``."""
