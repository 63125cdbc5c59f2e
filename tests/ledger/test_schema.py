"""A ledger of any version opens; one of the future says so."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise.ledger import Ledger, open_for_reading, open_for_writing, opening
from equipoise.ledger.schema import APPLICATION_ID, STEPS, VERSION, bring_up_to_date
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Plan
from equipoise.model.record import (
    Accounting,
    Draw,
    Observation,
    RecordedWarning,
    Sample,
    Segment,
    Trial,
)

NEXT_STEP = ("ALTER TABLE notice ADD COLUMN severity TEXT",)


@pytest.fixture
def old_file(tmp_path: Path) -> Path:
    return _file_of_version(1, tmp_path)


def _file_of_version(version: int, folder: Path) -> Path:
    path = folder / f"version_{version}.db"
    connection = sqlite3.connect(path)
    connection.executescript(Path(__file__).with_name(f"version_{version}.sql").read_text())
    connection.close()
    return path


def test_a_file_of_version_1_is_read_as_it_was_written(old_file: Path) -> None:
    with open_for_reading(old_file) as ledger:
        record = ledger.read_run("last")
    assert record.id == "20261120-113005-4f2a"
    assert record.plan.conditions == (
        Condition("true", ("true",)),
        Condition("false", ("false",)),
    )
    assert record.segments == (
        Segment(1795174205.25, {"host": "old", "cpus": 2}, 1795174210.5, "blocks"),
    )
    assert record.draws == (Draw("measured", 1, (1, 0), 128),)
    assert record.notices == (RecordedWarning("few_blocks", "one block", "run more"),)
    assert record.trials == (
        Trial(
            phase="measured",
            block=1,
            position=0,
            condition=1,
            started_at=1795174206.0,
            accounting=Accounting(
                wall_s=0.125,
                user_s=0.0625,
                max_rss_bytes=4096,
                minor_faults=1,
                major_faults=0,
                voluntary_switches=2,
                involuntary_switches=3,
                unknown={"sys_s": "not reported"},
            ),
            exit=1,
            failure="exit status 1",
            failure_kind="failed",
            error_tail="no luck",
            covariates={"load_1": 0.25, "temperature": None},
            samples=(Sample("latency_s", 0.001953125, 7, "s"),),
        ),
    )


def test_a_file_of_version_2_is_read_as_it_was_written(tmp_path: Path) -> None:
    with open_for_reading(_file_of_version(2, tmp_path)) as ledger:
        record = ledger.read_run("last")
    assert record.plan.measure.counters == ("task_clock", "cycles")
    (trial,) = record.trials
    assert trial.accounting == Accounting(
        wall_s=0.125,
        user_s=0.0625,
        max_rss_bytes=4096,
        minor_faults=1,
        major_faults=0,
        voluntary_switches=2,
        involuntary_switches=3,
        counters={"cycles": None, "task_clock": 0.0625},
        unknown={"sys_s": "not reported", "cycles": "not there"},
    )
    assert trial.covariates == {"load_1": 0.25, "temperature": None}
    assert trial.samples == (Sample("latency_s", 0.001953125, 7, "s"),)


def test_a_file_of_version_3_knows_the_layout_of_a_block(tmp_path: Path) -> None:
    with open_for_reading(_file_of_version(3, tmp_path)) as ledger:
        record = ledger.read_run("last")
    assert record.draws == (Draw("measured", 1, (1, 0), 128, 5),)


def test_a_file_of_version_4_gives_back_its_observations(tmp_path: Path) -> None:
    with open_for_reading(_file_of_version(4, tmp_path)) as ledger:
        record = ledger.read_run("last")
    assert record.observations == (
        Observation("profile", 1, 1, 0, 1795174300.5, b'{"samples":3}', None),
        Observation("waits", 0, 1, 1, 1795174301.5, None, "perf_event_open: forbidden"),
    )


def test_a_file_of_version_5_knows_the_resolution_of_a_sample(tmp_path: Path) -> None:
    with open_for_reading(_file_of_version(5, tmp_path)) as ledger:
        (trial,) = ledger.read_run("last").trials
    assert trial.samples == (Sample("latency_s", 0.001953125, 7, "s", resolution=0.000244140625),)


def test_a_sample_from_before_there_were_resolutions_has_none(tmp_path: Path) -> None:
    with open_for_reading(_file_of_version(4, tmp_path)) as ledger:
        (trial,) = ledger.read_run("last").trials
    assert trial.samples == (Sample("latency_s", 0.001953125, 7, "s"),)


def test_a_run_from_before_there_were_observations_has_none(tmp_path: Path) -> None:
    with open_for_reading(_file_of_version(3, tmp_path)) as ledger:
        assert ledger.read_run("last").observations == ()


def test_a_block_from_before_there_were_layouts_has_none(tmp_path: Path) -> None:
    with open_for_reading(_file_of_version(2, tmp_path)) as ledger:
        record = ledger.read_run("last")
    assert [draw.layout for draw in record.draws] == [None]
    assert record.plan.layouts == ()


def test_the_frozen_file_of_the_latest_version_has_the_columns_of_a_new_one(
    ledger: Ledger, path: Path, tmp_path: Path
) -> None:
    def columns(file: Path) -> list[tuple[str, str]]:
        connection = sqlite3.connect(file)
        rows: list[tuple[str, str]] = connection.execute(
            "SELECT tables.name, columns.name FROM sqlite_schema AS tables, "
            "pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'"
        ).fetchall()
        connection.close()
        return rows

    assert columns(_file_of_version(VERSION, tmp_path)) == columns(path)


def test_a_plan_from_before_there_were_counters_asks_for_none(old_file: Path) -> None:
    with open_for_reading(old_file) as ledger:
        record = ledger.read_run("last")
    assert record.plan.measure.counters == ()
    assert [trial.accounting.counters for trial in record.trials] == [{}]


def test_a_file_of_version_1_can_be_written_on(
    old_file: Path,
    make_plan: Callable[..., Plan],
    record_blocks: Callable[[Ledger, str, range], None],
) -> None:
    with open_for_writing(old_file, durable=False) as ledger:
        run = ledger.begin_run(make_plan(), {}, 1.8e9)
        record_blocks(ledger, run, range(1, 3))
        assert [summary.trials for summary in ledger.runs()] == [1, 4]


def test_a_new_file_says_what_it_is(ledger: Ledger, path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_step_brings_an_older_file_up_to_date_and_keeps_its_rows(old_file: Path) -> None:
    connection = sqlite3.connect(old_file, isolation_level=None)
    bring_up_to_date(connection, (*STEPS, NEXT_STEP))
    assert connection.execute("SELECT words, severity FROM notice").fetchall() == [
        ("one block", None)
    ]
    assert connection.execute("PRAGMA user_version").fetchone() == (len(STEPS) + 1,)
    connection.close()


def test_a_step_that_fails_changes_nothing(old_file: Path) -> None:
    connection = sqlite3.connect(old_file, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError):
        bring_up_to_date(connection, (*STEPS, (*NEXT_STEP, "ALTER TABLE nowhere ADD COLUMN a")))
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    columns = connection.execute("SELECT name FROM pragma_table_info('notice')").fetchall()
    assert ("severity",) not in columns
    connection.close()


def test_reading_an_older_file_updates_a_copy_in_memory_and_leaves_the_file(
    old_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pretend_one_version_more(monkeypatch)
    before = old_file.read_bytes()
    with open_for_reading(old_file) as ledger:
        assert [summary.trials for summary in ledger.runs()] == [1]
    assert old_file.read_bytes() == before


def test_writing_to_an_older_file_updates_it(
    old_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pretend_one_version_more(monkeypatch)
    with open_for_writing(old_file, durable=False) as ledger:
        assert [summary.trials for summary in ledger.runs()] == [1]
    connection = sqlite3.connect(old_file)
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)
    connection.close()


@pytest.mark.parametrize(
    "open_it", [open_for_reading, lambda path: open_for_writing(path, durable=False)]
)
def test_a_file_from_a_newer_version_is_refused(
    old_file: Path, open_it: Callable[[Path], Ledger]
) -> None:
    connection = sqlite3.connect(old_file)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(UnusableInput, match="is from a newer version of Equipoise") as refusal:
        open_it(old_file)
    assert str(old_file) in refusal.value.what
    assert refusal.value.hint is not None


def _pretend_one_version_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "VERSION", VERSION + 1)
    monkeypatch.setattr(
        opening,
        "bring_up_to_date",
        lambda connection: bring_up_to_date(connection, (*STEPS, NEXT_STEP)),
    )
