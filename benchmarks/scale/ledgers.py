"""Size of a ledger by trials; time of a merge by trials and by ledgers.

The trials are copies of those of a real campaign on this host, with all that it read beside them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from benchmarks.scale.growth import Growth
from equipoise.ledger import open_for_reading, open_for_writing
from equipoise.model.record import RunRecord

TRIALS = (1_000, 4_000, 16_000, 64_000)
CAMPAIGN = 200
"""Trials of a campaign."""
SEGMENT_ENDS = "block limit"


def size_growth() -> Growth:
    """Return the bytes of a ledger by the trials in it, in campaigns of 200."""
    with tempfile.TemporaryDirectory(prefix="equipoise-scale-") as name:
        folder = Path(name)
        real = real_campaign(folder)
        sizes = []
        for trials in TRIALS:
            path = folder / f"{trials}.db"
            fill(path, real, range(trials // CAMPAIGN))
            sizes.append(float(path.stat().st_size))
    title = f"size of a ledger, campaigns of {CAMPAIGN} trials, bytes"
    return Growth(title, "trials", TRIALS, tuple(sizes))


def real_campaign(folder: Path) -> RunRecord:
    """Measure one campaign of two commands as a user would, and return its record."""
    ledger = folder / "real.db"
    command = [sys.executable, "-m", "equipoise.cli", "compare", "true", "echo x"]
    options = ["--blocks", str(CAMPAIGN // 2), "--min-blocks", str(CAMPAIGN // 2), "--quiet"]
    options += ["--allow-concurrent", "--ledger", str(ledger)]
    subprocess.run(
        [*command, *options],
        check=True,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        env=dict(os.environ),
    )
    with open_for_reading(ledger) as opened:
        return opened.read_run()


def fill(path: Path, real: RunRecord, campaigns: Sequence[int]) -> None:
    """Record copies of a campaign, one for each number, each with a seed of its own."""
    measured = [one for one in real.trials if one.phase == "measured"]
    segment = real.segments[0]
    with open_for_writing(path, durable=False) as ledger:
        for number in campaigns:
            began = real.started_at + 60.0 * number
            run = ledger.begin_run(replace(real.plan, seed=number), segment.environment, began)
            opened = ledger.begin_segment(run, segment.environment, began)
            for draw in real.draws:
                if draw.phase == "measured":
                    ledger.record_draw(run, draw)
            for trial in measured:
                ledger.record_trial(run, replace(trial, started_at=began + trial.block))
            ledger.end_segment(run, opened, began + CAMPAIGN, SEGMENT_ENDS)
