"""The ledger only grows: no row can be changed; certificates can be found."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.ledger import FIRST_SEGMENT, Ledger
from equipoise.model.host import Certificate
from equipoise.model.plan import Plan
from equipoise.model.record import Accounting, Draw, Observation, RecordedWarning, Sample, Trial
from packages.equipoise.tests.ledger.conftest import make_plan, row_count

TABLES = (
    "environment",
    "host",
    "run",
    "segment",
    "segment_end",
    "draw",
    "trial",
    "sample",
    "warning",
    "observation",
    "certificate",
)

CERTIFICATE = Certificate(
    made_at=1.0,
    boot_id="boot",
    kernel="6.1",
    cpu_model="fast",
    equipoise=None,
    alpha=0.05,
    campaigns=60,
    blocks=40,
    false_alarms=0,
    injected_percent=3.0,
    injected_campaigns=20,
    detected_campaigns=20,
    blocks_to_detection=9.5,
    trial_s=0.01,
    ratio_spread=1.0,
    smallest_effect_in_a_minute=0.25,
    smallest_effect_in_ten_minutes=None,
    runs=("one", "two"),
)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", ["UPDATE {0} SET {1} = {1}", "DELETE FROM {0}"])
def test_no_row_of_any_table_can_be_changed_or_deleted(
    ledger: Ledger, path: Path, table: str, statement: str
) -> None:
    _fill_every_table(ledger, make_plan())
    assert row_count(path, table) == 1
    connection = sqlite3.connect(path)
    column = connection.execute(f"SELECT name FROM pragma_table_info('{table}')").fetchone()[0]
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement.format(table, column))
    connection.close()


def test_every_table_is_one_whose_protection_is_tested(ledger: Ledger, path: Path) -> None:
    connection = sqlite3.connect(path)
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    connection.close()
    assert {name for (name,) in tables} == set(TABLES)


def test_the_latest_certificate_is_that_of_the_same_kernel_and_cpu(ledger: Ledger) -> None:
    assert ledger.latest_certificate("6.1", "fast") is None
    later = replace(CERTIFICATE, made_at=2.0, false_alarms=1)
    elsewhere = replace(CERTIFICATE, kernel="6.2")
    for certificate in (CERTIFICATE, later, elsewhere):
        ledger.record_certificate(certificate)
    assert ledger.latest_certificate("6.1", "fast") == later
    assert ledger.latest_certificate("6.2", "fast") == elsewhere
    assert ledger.latest_certificate("6.1", None) is None


def _fill_every_table(ledger: Ledger, plan: Plan) -> None:
    run = ledger.begin_run(plan, {"host": "here"}, 1.0)
    ledger.record_draw(run, Draw("measured", 1, (0, 1), 0))
    ledger.record_trial(
        run,
        Trial("measured", 1, 0, 0, 1.0, Accounting(), samples=(Sample("latency_s", 0.5),)),
    )
    ledger.record_warning(run, RecordedWarning("code", "words", "hint"))
    ledger.record_observation(run, Observation("profile", 0, 1, 0, 1.0, b"{}", None))
    ledger.record_certificate(CERTIFICATE)
    ledger.end_segment(run, FIRST_SEGMENT, 2.0, "verdict")
