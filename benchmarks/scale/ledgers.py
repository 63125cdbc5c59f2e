"""Size of a ledger by trials; time of a merge by trials and by ledgers."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.ledger.run import fill
from benchmarks.scale.growth import Growth

TRIALS = (1_000, 4_000, 16_000, 64_000)
RUN = 200
"""Trials of a campaign."""


def size_growth() -> Growth:
    """Return the bytes of a ledger by the trials in it, in campaigns of 200."""
    sizes = []
    with tempfile.TemporaryDirectory(prefix="equipoise-scale-") as name:
        for trials in TRIALS:
            path = Path(name) / f"{trials}.db"
            fill(path, campaigns=trials // RUN, blocks=RUN // 2)
            sizes.append(float(path.stat().st_size))
    return Growth(
        f"size of a ledger, campaigns of {RUN} trials, bytes", "trials", TRIALS, (*sizes,)
    )
