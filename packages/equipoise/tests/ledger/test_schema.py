"""A ledger of an earlier version is migrated; an unknown version is an error."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from equipoise.ledger import Ledger, open_for_reading, open_for_writing, schema
from equipoise.ledger.schema import APPLICATION_ID, CREATION, latest_version
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord
from packages.equipoise.tests.ledger.conftest import OPEN_EACH_WAY

NEXT = (
    "DROP TRIGGER trial_refuses_update",
    "ALTER TABLE trial ADD COLUMN energy_j",
    "UPDATE trial SET energy_j = 2.5 * position",
    "CREATE TRIGGER trial_refuses_update BEFORE UPDATE ON trial "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: no UPDATE on trial'); END",
)
"""Migration that a later Equipoise might bring."""


def migrations(monkeypatch: pytest.MonkeyPatch, *scripts: schema.Statements) -> None:
    monkeypatch.setattr(schema, "MIGRATIONS", scripts)


def record_in(path: Path) -> RunRecord:
    with open_for_reading(path) as ledger:
        return ledger.read_run("last")


def query(path: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


def test_a_new_file_has_version_1(filled: Path) -> None:
    assert latest_version() == 1
    assert query(filled, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert query(filled, "PRAGMA user_version") == [(1,)]
    assert query(filled, "PRAGMA journal_mode") == [("wal",)]
    objects = query(filled, "SELECT count(*) FROM sqlite_schema WHERE sql IS NOT NULL")
    assert objects == [(len(CREATION),)]


def test_writing_migrates_a_file_and_keeps_its_rows(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = record_in(filled)
    migrations(monkeypatch, NEXT)
    with open_for_writing(filled, durable=False) as ledger:
        assert ledger.read_run("last") == before
    assert query(filled, "PRAGMA user_version") == [(2,)]
    assert query(filled, "SELECT position, energy_j FROM trial LIMIT 2") == [(0, 0.0), (1, 2.5)]


def test_reading_migrates_a_copy_in_memory_and_leaves_the_file(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, content = record_in(filled), filled.read_bytes()
    migrations(monkeypatch, NEXT)
    with open_for_reading(filled) as ledger:
        assert ledger.read_run("last") == before
        energies = ledger.connection.execute("SELECT sum(energy_j) FROM trial").fetchone()
        assert energies == (50.0,)
    assert filled.read_bytes() == content


def test_a_new_file_of_a_later_version_has_every_migration(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrations(monkeypatch, NEXT, ("CREATE INDEX trial_by_energy ON trial (energy_j)",))
    open_for_writing(path, durable=False).close()
    assert query(path, "PRAGMA user_version") == [(3,)]
    with open_for_reading(path) as ledger:
        assert ledger.runs() == []


def test_a_migration_that_fails_changes_nothing(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = record_in(filled)
    with monkeypatch.context() as patched:
        migrations(patched, (*NEXT, "ALTER TABLE nowhere ADD COLUMN a"))
        with pytest.raises(UnusableInput, match="nowhere"):
            open_for_writing(filled, durable=False)
    assert query(filled, "PRAGMA user_version") == [(1,)]
    assert record_in(filled) == before


def test_a_migrated_file_is_checked_as_one_of_its_version(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute("ALTER TABLE trial ADD COLUMN energy_j")
    migrations(monkeypatch, NEXT)
    with pytest.raises(UnusableInput, match="its table 'trial' was not created by Equipoise"):
        open_for_reading(filled)


@OPEN_EACH_WAY
@pytest.mark.parametrize("version", [2, 6])
def test_a_ledger_of_a_later_version_is_refused_and_left_alone(
    filled: Path, open_it: Callable[[Path], Ledger], version: int
) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    content = filled.read_bytes()
    with pytest.raises(UnusableInput) as refusal:
        open_it(filled)
    assert refusal.value.what == (
        f"the ledger {filled} was written by a newer Equipoise: its tables have version {version}, "
        "and this Equipoise reads versions up to 1"
    )
    assert refusal.value.hint == (
        'install the latest Equipoise, or name another ledger with ledger="FILE"'
    )
    assert filled.read_bytes() == content


@OPEN_EACH_WAY
@pytest.mark.parametrize("version", [0, -1])
def test_a_ledger_of_no_version_is_damaged(
    filled: Path, open_it: Callable[[Path], Ledger], version: int
) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(UnusableInput, match="is damaged"):
        open_it(filled)
