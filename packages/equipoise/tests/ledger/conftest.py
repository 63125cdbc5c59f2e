"""Plans, trials and ledgers for tests."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise.ledger import Ledger, open_for_reading, open_for_writing
from equipoise.model.plan import Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import Accounting, Draw, Observation, Trial
from packages.equipoise.tests.programs import finished

OPEN_EACH_WAY = pytest.mark.parametrize(
    "open_it",
    [open_for_reading, lambda path: open_for_writing(path, durable=False)],
    ids=["reading", "writing"],
)


def make_plan(*names: str, seed: int = 7, environment: dict[str, str] | None = None) -> Plan:
    return Plan(
        study="compare",
        conditions=tuple(
            Condition(name, (name, "--flag"), environment=environment or {})
            for name in names or ("old", "new")
        ),
        measure=Measure("/somewhere"),
        stopping=Stopping(),
        judgement=Judgement(),
        seed=seed,
    )


def make_trial(block: int = 1, position: int = 0, wall_s: float = 0.125) -> Trial:
    return Trial(
        phase="measured",
        block=block,
        position=position,
        condition=position,
        started_at=1_000.0 + block,
        accounting=Accounting(wall_s=wall_s, user_s=0.1, sys_s=0.0, max_rss_bytes=4096),
        exit=0,
    )


def record_blocks(ledger: Ledger, run: str, blocks: range) -> None:
    for block in blocks:
        ledger.record_draw(run, Draw("measured", block, (0, 1), 16 * block))
        ledger.record_trial(run, make_trial(block, 0))
        ledger.record_trial(run, make_trial(block, 1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".equipoise" / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with open_for_writing(path, durable=False) as opened:
        yield opened


@pytest.fixture
def filled(path: Path) -> Path:
    """A ledger with a run of twenty blocks and an observation."""
    with open_for_writing(path, durable=False) as opened:
        run = opened.begin_run(make_plan(), {"host": "here"}, 1.0)
        record_blocks(opened, run, range(1, 21))
        opened.record_observation(run, Observation("time", 0, 1, 0, 5.0, b"{}", None))
    return path


def run_script(
    source: str, *arguments: str, before: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run Python source with arguments in its own process, and return its output."""
    return finished([*before, sys.executable, "-c", source, *arguments])


def row_count(path: Path, table: str) -> int:
    """Return the number of rows of a table."""
    connection = sqlite3.connect(path)
    count: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    connection.close()
    return count
