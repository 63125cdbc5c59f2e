"""Operating system primitives: the rows of ``equipoise os``, and the length of a campaign."""

from __future__ import annotations

from msgspec import Struct

from equipoise.figures.values import LATENCY_METRIC as LATENCY_METRIC

OS_STUDY = "os"
"""Name of the study of ``equipoise os``."""
BANDWIDTH = "bandwidth_bytes_per_s"
PRIMITIVE_METRICS = (LATENCY_METRIC, BANDWIDTH)
"""Metrics of probes; each probe reports one of them."""

CLASS, PROBE, PLACEMENT = "class", "probe", "placement"
"""Factors of a row's condition: its table, its probe, and the CPUs of its processes."""
PROBE_PROGRAM = "equipoise-probe"
"""File name of the program that contains the probes."""
MIN_BLOCKS = 6
"""Minimum number of processes for an exact 95 % interval of the median
(docs/methods/distribution.md)."""
TIMEOUT_S = 60.0
"""Maximum seconds of a process."""
ALPHA, MIN_EFFECT = 0.05, 5.0
"""Defaults of `equipoise os`: false-discovery rate, and smallest effect in percent."""


class ProbeRow(Struct, frozen=True):
    """A row: a probe with its options. A probe is a small benchmark of one operation."""

    name: str
    probe: str
    group: str
    """Table of the row, such as ``process`` or ``ipc``."""
    summary: str
    """Description of one operation."""
    metric: str
    options: tuple[str, ...] = ()
    placement: str = "none"
    """CPUs of its two processes: ``same_cpu`` or ``across_cpus``; ``none`` for one process."""


class Effort(Struct, frozen=True):
    """The number of blocks of a campaign, and of batches in each process of a probe."""

    batches: int
    """Number of batches in one process."""
    batch_ms: int
    """Approximate time of a batch."""
    blocks: int
    """Maximum number of blocks; each block has one process of each row."""
    budget_s: float
    """Seconds after which the campaign ends, if it has enough blocks."""

    @property
    def options(self) -> tuple[str, ...]:
        """Options of the probe."""
        return ("--batches", str(self.batches), "--batch-ms", str(self.batch_ms))


QUICK = Effort(batches=7, batch_ms=4, blocks=13, budget_s=42.0)
"""Effort with which all rows take less than a minute; a trial takes about 35 ms and a start."""
FULL = Effort(batches=11, batch_ms=10, blocks=15, budget_s=230.0)
"""Effort with which all rows take less than five minutes."""
