"""Size of a ledger by trials; time of a merge by trials and by ledgers.

The trials are copies of those of a real campaign on this host, with all that it read beside them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from benchmarks.scale.growth import Growth, seconds_of
from equipoise.ledger import Ledger, open_for_reading, open_for_writing
from equipoise.model.record import RunRecord

TRIALS = (1_000, 4_000, 16_000, 64_000)
CAMPAIGN = 200
"""Trials of a campaign."""
BLOCKS = CAMPAIGN // 2
RUNS = (100, 400, 1_600, 6_400)
SLICE = 1000
PULLS = 20


def size_growths() -> list[Growth]:
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
    return [Growth(title, "trials", TRIALS, tuple(sizes))]


def run_growths() -> list[Growth]:
    """Return the CPU time of reading the list of runs, and one run, by the runs of a ledger."""
    listing, reading, alike = [], [], []
    with tempfile.TemporaryDirectory(prefix="equipoise-scale-") as name:
        folder = Path(name)
        real = real_campaign(folder)
        few = replace(real, draws=real.draws[:2], trials=real.trials[:4])
        for runs in RUNS:
            path = folder / f"{runs}.db"
            fill(path, few, range(runs))
            with open_for_reading(path) as ledger:
                listing.append(1000.0 * seconds_of(ledger.runs))
                reading.append(1000.0 * seconds_of(ledger.read_run))
                search = partial(ledger.runs_with_same_commands, real.plan)
                alike.append(1000.0 * seconds_of(search))
    return [
        Growth("list of all runs, CPU ms", "runs", RUNS, tuple(listing)),
        Growth("the last run, CPU ms", "runs", RUNS, tuple(reading)),
        Growth("runs of the same commands, CPU ms", "runs", RUNS, tuple(alike)),
    ]


def pull_growths() -> list[Growth]:
    """Return the CPU time of pulling a run, and of one more pull of its last trials."""
    whole, last = [], []
    with tempfile.TemporaryDirectory(prefix="equipoise-scale-") as name:
        folder = Path(name)
        real = real_campaign(folder)
        for trials in TRIALS:
            path = folder / f"host-{trials}.db"
            fill(path, real, [1], repeats=trials // CAMPAIGN)
            with (
                open_for_reading(path) as host,
                open_for_writing(folder / f"copy-{trials}.db", durable=False) as copy,
            ):
                identity = host.identity_of(host.runs()[0].id)
                started = time.process_time()
                ends = [b""]
                more = True
                while more:
                    part, more = host.slice(identity, ends[-1], max_trials=SLICE)
                    copy.append_slice(part)
                    ends.append(copy.cursor(identity))
                whole.append(time.process_time() - started)
                last.append(1000.0 * seconds_of(partial(_pull, host, copy, identity)) / PULLS)
    return [
        Growth(f"pulling a run in slices of {SLICE} trials, CPU s", "trials", TRIALS, (*whole,)),
        Growth("one pull that finds nothing new, CPU ms", "trials in the run", TRIALS, (*last,)),
    ]


def _pull(host: Ledger, copy: Ledger, identity: str) -> None:
    for _ in range(PULLS):
        content, _more = host.slice(identity, copy.cursor(identity), max_trials=SLICE)
        assert not content, "nothing is new"


def real_campaign(folder: Path) -> RunRecord:
    """Measure one campaign of two commands as a user would, and return its record."""
    ledger = folder / "real.db"
    command = [sys.executable, "-m", "equipoise.cli", "compare", "true", "echo x"]
    options = ["--blocks", str(BLOCKS), "--min-blocks", str(BLOCKS), "--quiet"]
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


def fill(path: Path, real: RunRecord, campaigns: Sequence[int], *, repeats: int = 1) -> None:
    """Record campaigns, one for each number and each of so many copies of a real one.

    Each has a seed of its own; a copy follows the other as later blocks.
    """
    measured = [one for one in real.trials if one.phase == "measured"]
    drawn = [one for one in real.draws if one.phase == "measured"]
    segment = real.segments[0]
    with open_for_writing(path, durable=False) as ledger:
        for number in campaigns:
            began = real.started_at + 60.0 * number
            run = ledger.begin_run(replace(real.plan, seed=number), segment.environment, began)
            opened = ledger.begin_segment(run, segment.environment, began)
            for later in range(0, repeats * BLOCKS, BLOCKS):
                for draw in drawn:
                    ledger.record_draw(run, replace(draw, block=draw.block + later))
                for trial in measured:
                    block = trial.block + later
                    ledger.record_trial(run, replace(trial, block=block, started_at=began + block))
            ledger.end_segment(run, opened, began + repeats * BLOCKS, "block limit")
