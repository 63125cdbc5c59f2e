"""Plans, trials and ledgers for tests."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from equipoise.ledger import Ledger, open_for_writing
from equipoise.model.plan import Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import Accounting, Draw, Trial

MakePlan = Callable[..., Plan]
MakeTrial = Callable[..., Trial]
RunScript = Callable[..., "subprocess.CompletedProcess[str]"]


def _plan(*names: str, seed: int = 7, environment: dict[str, str] | None = None) -> Plan:
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


def _trial(block: int = 1, position: int = 0, wall_s: float = 0.125) -> Trial:
    return Trial(
        phase="measured",
        block=block,
        position=position,
        condition=position,
        started_at=1_000.0 + block,
        accounting=Accounting(wall_s=wall_s, user_s=0.1, sys_s=0.0, max_rss_bytes=4096),
        exit=0,
    )


@pytest.fixture
def make_plan() -> MakePlan:
    return _plan


@pytest.fixture
def make_trial() -> MakeTrial:
    return _trial


@pytest.fixture
def record_blocks() -> Callable[[Ledger, str, range], None]:
    def record(ledger: Ledger, run: str, blocks: range) -> None:
        for block in blocks:
            ledger.record_draw(run, Draw("measured", block, (0, 1), 16 * block))
            ledger.record_trial(run, _trial(block, 0))
            ledger.record_trial(run, _trial(block, 1))

    return record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".equipoise" / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with open_for_writing(path, durable=False) as opened:
        yield opened


@pytest.fixture
def run_script() -> RunScript:
    """Run Python source with arguments in its own process, and return its output."""

    def run(
        source: str, *arguments: str, before: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*before, sys.executable, "-c", source, *arguments],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    return run


def row_count(path: Path, table: str) -> int:
    """Return the number of rows of a table."""
    connection = sqlite3.connect(path)
    count: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    connection.close()
    return count
