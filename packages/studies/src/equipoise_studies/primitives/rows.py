"""Operating system primitives: the rows of ``equipoise os``, and how much of each is measured."""

from __future__ import annotations

from msgspec import Struct

from equipoise.figures.values import LATENCY as LATENCY

OS_STUDY = "os"
"""The study of the campaigns that ``equipoise os`` runs."""

BANDWIDTH = "bandwidth_bytes_per_s"
PRIMITIVE_METRICS = (LATENCY, BANDWIDTH)
"""Metrics of which a probe reports one."""

CLASS, PROBE, PLACEMENT = "class", "probe", "placement"
"""The levels of a row's condition."""

PROBE_PROGRAM = "equipoise-probe"

MIN_BLOCKS = 6
"""Least number of processes that gives a row's median an exact interval at 95 %
(docs/methods/distribution.md)."""
TIMEOUT_S = 60.0
ALPHA, MIN_EFFECT = 0.05, 5.0
"""Defaults of `equipoise os`; the effect in percent."""


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


class Form(Struct, frozen=True):
    """Amount that a campaign measures, and each process of a probe."""

    batches: int
    """Batches in one process."""
    batch_ms: int
    """Approximate time of a batch."""
    blocks: int
    budget_s: float

    @property
    def options(self) -> tuple[str, ...]:
        """Options of the probe."""
        return ("--batches", str(self.batches), "--batch-ms", str(self.batch_ms))


QUICK = Form(batches=7, batch_ms=4, blocks=13, budget_s=42.0)
"""A process start and about 35 ms for each trial: less than a minute for all rows."""
FULL = Form(batches=11, batch_ms=10, blocks=15, budget_s=230.0)
"""Less than five minutes for all rows."""
