"""A ledger of another user is refused if it contains values that no campaign records."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from equipoise.ledger import Ledger, file, open_for_reading, open_for_writing, rows
from equipoise.ledger.schema import latest_version
from equipoise.model.errors import UnusableInput
from equipoise.model.record import Observation
from packages.equipoise.tests.ledger.conftest import OPEN_EACH_WAY, make_plan

ENDLESS_VIEW = """
    ALTER TABLE run RENAME TO hidden;
    CREATE VIEW run AS WITH RECURSIVE every(number) AS (
        SELECT 1 UNION ALL SELECT number + 1 FROM every
    ) SELECT number, 'id' AS id, 'study' AS study, '[]' AS names, x'00' AS commands_digest,
        '{}' AS plan, 1.0 AS started_at FROM every;
"""
TRIGGER = "CREATE TRIGGER more AFTER INSERT ON trial BEGIN SELECT randomblob(1000000000); END;"
EXPRESSION = "CREATE INDEX odd ON trial (abs(block));"
GENERATED = "ALTER TABLE run ADD COLUMN more AS (hex(zeroblob(100000000)));"
VIRTUAL = "DROP TABLE sample; CREATE VIRTUAL TABLE sample USING fts5(trial, ordinal, metric);"


def change(path: Path, script: str, *parameters: object) -> None:
    """Change a ledger without its triggers and checks."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        if parameters:
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute(script, parameters)
        else:
            connection.executescript(script)
    connection.close()


@OPEN_EACH_WAY
@pytest.mark.parametrize(
    ("script", "what"),
    [
        (ENDLESS_VIEW, "was not created by Equipoise"),
        (TRIGGER, "its trigger 'more' was not created"),
        (EXPRESSION, "its index 'odd' was not created"),
        (GENERATED, "its table 'run' was not created"),
        (VIRTUAL, "its table 'sample' was not created"),
        ("DROP INDEX trial_by_run;", "its index 'trial_by_run' is missing"),
        ("DROP TABLE warning;", "its table 'warning' is missing"),
        ("CREATE VIEW mine AS SELECT 1;", "its view 'mine' was not created"),
        ("CREATE VIRTUAL TABLE mine USING fts5(a);", "its table 'mine' was not created"),
        (
            "CREATE TABLE mine (a); CREATE TRIGGER ours AFTER INSERT ON mine BEGIN SELECT 1; END;",
            "its trigger 'ours' was not created",
        ),
    ],
    ids=[
        *("view", "trigger", "expression", "generated", "virtual", "no index", "no table"),
        *("view of another name", "virtual table of another name", "trigger of another name"),
    ],
)
def test_an_unknown_table_is_refused_before_it_is_read(
    script: str, what: str, filled: Path, open_it: Callable[[Path], Ledger]
) -> None:
    change(filled, script)
    with pytest.raises(UnusableInput, match="is damaged") as refusal:
        open_it(filled)
    assert what in refusal.value.what


def test_tables_of_the_users_own_are_left_alone(filled: Path) -> None:
    change(filled, "CREATE TABLE mine (a); CREATE INDEX by_a ON mine (a); ANALYZE;")
    with open_for_reading(filled) as ledger:
        assert len(ledger.read_run("last").trials) == 40
    open_for_writing(filled, durable=False).close()


@pytest.mark.parametrize(
    "identifier",
    ["last", "", "all", "20261120 x", "2" * 65, "20261120\n", "0" * 32, "20261120-113005-last"],
)
def test_a_run_whose_id_has_another_form_is_refused(filled: Path, identifier: str) -> None:
    change(filled, "UPDATE run SET id = ?", identifier)
    with pytest.raises(UnusableInput, match=r"run\.id has a value"):
        open_for_reading(filled)


def test_a_ledger_that_was_dumped_and_loaded_is_valid(filled: Path, tmp_path: Path) -> None:
    loaded = tmp_path / "loaded.db"
    with sqlite3.connect(filled) as connection:
        script = "\n".join(connection.iterdump())
    connection.close()
    with sqlite3.connect(loaded) as connection:
        connection.executescript(script)
        connection.execute("PRAGMA application_id = 0x45515053")
        connection.execute(f"PRAGMA user_version = {latest_version()}")
    connection.close()
    with open_for_reading(loaded) as ledger:
        assert len(ledger.read_run("last").trials) == 40


def test_evidence_that_inflates_beyond_all_evidence_is_not_inflated(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MAX_DOCUMENT_BYTES", 1_000_000)
    bomb = zlib.compress(bytes(1_000_001))
    assert len(bomb) < 2000
    change(filled, "UPDATE observation SET document = ?", bomb)
    with (
        open_for_reading(filled) as ledger,
        pytest.raises(UnusableInput, match="unpacks to more than 1000000 bytes"),
    ):
        ledger.read_run("last")


def test_all_evidence_of_a_run_together_is_bounded_too(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MAX_EVIDENCE_BYTES", 1_000_000)
    with open_for_writing(filled, durable=False) as ledger:
        (run,) = (run.id for run in ledger.runs())
        for repetition in (2, 3):
            observation = Observation("time", 0, repetition, 0, 5.0, bytes(600_000), None)
            ledger.record_observation(run, observation)
        with pytest.raises(UnusableInput, match="of the run to more than 1000000"):
            ledger.read_run("last")


def test_evidence_that_could_not_be_read_again_is_kept_as_a_failure(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MAX_DOCUMENT_BYTES", 10)
    with open_for_writing(path, durable=False) as ledger:
        run = ledger.begin_run(make_plan(), {}, 1.0)
        ledger.record_observation(run, Observation("time", 0, 1, 0, 5.0, b"x" * 11, None))
        (observation,) = ledger.read_run(run).observations
    assert observation.document is None
    assert observation.failure == "its document has 11 bytes; at most 10 are kept"


def test_evidence_that_is_cut_short_is_damage(filled: Path) -> None:
    change(filled, "UPDATE observation SET document = ?", zlib.compress(b"long enough")[:-5])
    with open_for_reading(filled) as ledger, pytest.raises(UnusableInput, match="is truncated"):
        ledger.read_run("last")


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("run", "id", b"\xff"),
        ("run", "identity", b"short"),
        ("run", "part_of", "another"),
        ("run", "host", "here"),
        ("host", "name", b"here"),
        ("run", "started_at", "yesterday"),
        ("run", "names", "[1, 2]"),
        ("run", "plan", "[" * 100_000),
        ("segment", "started_at", "yesterday"),
        ("segment", "number", "many"),
        ("environment", "document", "[]"),
        ("draw", "padding_bytes", -1),
        ("draw", "conditions", "[2]"),
        ("draw", "conditions", '["a"]'),
        ("draw", "conditions", "7"),
        ("trial", "block", "first"),
        ("trial", "condition", 2),
        ("trial", "condition", -1),
        ("trial", "position", 2**60),
        ("trial", "wall_s", "slow"),
        ("trial", "wall_s", 1e101),
        ("trial", "wall_s", float("inf")),
        ("trial", "started_at", 1e300),
        ("trial", "condition", 0),
        ("trial", "covariates", '{"load_1": NaN}'),
        ("trial", "covariates", '{"load_1": 1e200}'),
        ("observation", "observed_at", 1e300),
        ("trial", "covariates", '{"load_1": "high"}'),
        ("trial", "covariates", "[]"),
        ("trial", "unknown", '{"sys_s": 7}'),
        ("trial", "exit", "zero"),
        ("observation", "condition", 7),
        ("observation", "document", "text"),
    ],
)
def test_a_value_that_no_campaign_records_is_damage(
    table: str, column: str, value: object, filled: Path
) -> None:
    # The key of a trial forbids two trials at the same place.
    change(filled, f"UPDATE OR IGNORE {table} SET {column} = ?", value)
    with (
        pytest.raises(UnusableInput, match=r"is damaged|damaged: "),
        open_for_reading(filled) as ledger,
    ):
        ledger.runs()
        ledger.read_run("last")


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("judgement", "alpha", float("nan")),
        ("judgement", "alpha", 0.0),
        ("judgement", "min_effect", 1e308),
        ("stopping", "blocks", 2**70),
        ("stopping", "min_blocks", -1),
        ("stopping", "blocks_before_budget", 2**70),
        ("stopping", "tail", 0.0),
        ("stopping", "budget_s", float("inf")),
        ("", "seed", 2**70),
        ("", "seed", -1),
    ],
)
def test_a_plan_with_numbers_that_no_campaign_has_is_damage(
    part: str, name: str, value: float, filled: Path
) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        (text,) = connection.execute("SELECT plan FROM run").fetchone()
    plan = json.loads(text)
    (plan[part] if part else plan)[name] = value
    change(filled, "UPDATE run SET plan = ?", json.dumps(plan))
    with (
        open_for_reading(filled) as ledger,
        pytest.raises(UnusableInput, match="impossible|Integer value out of range|`int`"),
    ):
        ledger.read_run("last")


def test_a_plan_whose_comparisons_name_no_condition_of_it_is_damage(filled: Path) -> None:
    connection = sqlite3.connect(filled)
    plan = json.loads(connection.execute("SELECT plan FROM run").fetchone()[0])
    connection.close()
    change(filled, "UPDATE run SET plan = ?", json.dumps(plan | {"control": 10**12}))
    with open_for_reading(filled) as ledger, pytest.raises(UnusableInput, match="condition 10000"):
        ledger.read_run("last")


def test_a_question_that_takes_more_steps_than_its_file_needs_is_ended(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "_STEPS_FOR_ANY_FILE", 0)
    monkeypatch.setattr(file, "_STEPS_PER_BYTE", 0)
    monkeypatch.setattr(file, "_STEPS_BETWEEN_CHECKS", 10)
    with pytest.raises(UnusableInput, match="more steps than a file of its size needs"):
        open_for_reading(filled)


def test_nothing_in_the_file_is_trusted(filled: Path) -> None:
    with open_for_reading(filled) as ledger:
        trusted = ledger.connection.execute("PRAGMA trusted_schema").fetchone()
        sizes = ledger.connection.execute("PRAGMA cell_size_check").fetchone()
    assert (trusted, sizes) == ((0,), (1,))


def test_a_run_that_the_index_of_a_damaged_file_lacks_has_its_name(filled: Path) -> None:
    with open_for_reading(filled) as ledger:
        (run,) = ledger.runs()
    with closing(sqlite3.connect(filled, isolation_level=None)) as connection:
        pages = dict(connection.execute("SELECT name, rootpage FROM sqlite_schema"))
        connection.execute("PRAGMA writable_schema = ON")
        # Exchange the pages of two indexes: no key of the other index is an id.
        connection.executemany(
            "UPDATE sqlite_schema SET rootpage = ? WHERE name = ?",
            ((pages["run_by_part_of"], "run_by_id"), (pages["run_by_id"], "run_by_part_of")),
        )
    with open_for_reading(filled) as ledger:
        assert ledger.read_run("last").id == run.id
