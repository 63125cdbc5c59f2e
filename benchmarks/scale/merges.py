"""Time of `equipoise merge` by trials, by ledgers, and by what is there already."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.scale.growth import Growth
from benchmarks.scale.ledgers import CAMPAIGN, fill, real_campaign
from equipoise.ledger import open_for_reading, open_for_writing
from equipoise.ledger.merging import merge
from equipoise.model.record import RunRecord

TRIALS = (2_000, 8_000, 32_000, 128_000)
LEDGERS = 5
LEDGER_SIZES = (1, 4, 16, 64)
SAME_TRIALS = 12_800


def growths() -> list[Growth]:
    """Return CPU seconds of merges, read, checked and written."""
    by_trials, by_ledgers, into_larger, again = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="equipoise-scale-") as name:
        folder = Path(name)
        real = real_campaign(folder)
        for trials in TRIALS:
            campaigns = trials // CAMPAIGN
            sources = _ledgers(folder / f"t{trials}", real, campaigns, LEDGERS)
            into = folder / f"t{trials}.db"
            by_trials.append(_seconds(into, sources))
            again.append(_seconds(into, sources))
            (one,) = _ledgers(folder / f"one{trials}", real, 1, 1, first=1_000_000)
            into_larger.append(_seconds(into, [one]))
        for ledgers in LEDGER_SIZES:
            sources = _ledgers(folder / f"l{ledgers}", real, SAME_TRIALS // CAMPAIGN, ledgers)
            by_ledgers.append(_seconds(folder / f"l{ledgers}.db", sources))
    return [
        Growth(f"merge of {LEDGERS} ledgers, CPU s", "trials", TRIALS, tuple(by_trials)),
        Growth("the same merge again, nothing new, CPU s", "trials", TRIALS, tuple(again)),
        Growth(
            f"merge of {SAME_TRIALS:,} trials, CPU s", "ledgers", LEDGER_SIZES, tuple(by_ledgers)
        ),
        Growth(
            f"merge of one campaign of {CAMPAIGN} trials, CPU s",
            "trials that INTO has",
            TRIALS,
            tuple(into_larger),
        ),
    ]


def _ledgers(
    folder: Path, real: RunRecord, campaigns: int, ledgers: int, *, first: int = 0
) -> list[Path]:
    """Return so many new ledgers, with the campaigns in equal parts."""
    folder.mkdir()
    paths = [folder / f"{number}.db" for number in range(ledgers)]
    for number, path in enumerate(paths):
        fill(path, real, range(first + number, first + campaigns, ledgers))
    return paths


def _seconds(into: Path, sources: Sequence[Path]) -> float:
    started = time.process_time()
    with open_for_writing(into, durable=False) as ledger:
        for source in sources:
            with open_for_reading(source) as opened:
                merge(ledger, opened, None)
    return time.process_time() - started
