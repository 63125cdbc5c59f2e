"""The column of a received ledger with a value that Equipoise never writes is named."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from equipoise.ledger import Ledger, open_for_reading, open_for_writing
from equipoise.model.errors import UnusableInput
from equipoise.model.record import Accounting, Draw, RecordedWarning, Sample, Trial
from packages.equipoise.tests.ledger.conftest import make_plan, record_blocks
from packages.equipoise.tests.plans import plan_of

WRONG = {
    "segment_end.ended_at = 'yesterday'": "segment_end.ended_at",
    "segment_end.ended_at = 1e201": "segment_end.ended_at",
    "trial.condition = condition + 1": "condition 2 of a plan with 2",
    "trial.condition = -1": "trial.condition",
    "trial.condition = 1e300": "trial.condition",
    "trial.wall_s = 'fast'": "trial.wall_s",
    "trial.max_rss_bytes = 1e251": "trial.max_rss_bytes",
    "trial.block = zeroblob(3)": "trial.block",
    "trial.exit = 'ok'": "trial.exit",
    "trial.failure = zeroblob(1)": "trial.failure",
    "trial.failure_kind = 'late'": "trial.failure_kind",
    "sample.metric = zeroblob(1)": "sample.metric",
    "sample.iteration = 0.5": "sample.iteration",
    "warning.hint = zeroblob(1)": "warning.hint",
    "run.id = zeroblob(4)": "run.id",
    "run.started_at = 'now'": "run.started_at",
    "trial.covariates = '[1]'": "array",
    'trial.covariates = \'{"load": "high"}\'': "float",
    "trial.unknown = '{\"wall_s\": 5}'": "str",
    "draw.conditions = '{\"a\": 1}'": "object",
    "environment.document = '[]'": "array",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with a row in every table of a run."""
    path = tmp_path_factory.mktemp("whole") / "ledger.db"
    with open_for_writing(path, durable=False) as ledger:
        run = ledger.begin_run(plan_of("old", "new"), {"host": "here"}, 1.0)
        ledger.record_draw(run, Draw("measured", 1, (0, 1), 0))
        for place in (0, 1):
            samples = (Sample("latency_s", 0.5, 1),)
            took = Accounting(wall_s=0.5, unknown={"user_s": "not permitted"})
            ledger.record_trial(
                run,
                Trial("measured", 1, place, place, 1.0, took, 0, None, None, False, "",
                      {"load": 0.5}, samples),
            )  # fmt: skip
        ledger.record_warning(run, RecordedWarning("code", "words", "hint"))
        ledger.end_segment(run, 1, 2.0, "verdict")
    return path


@pytest.fixture
def filled(whole: Path, tmp_path: Path) -> Path:
    """A copy of the ledger `whole`."""
    return Path(shutil.copy(whole, tmp_path))


def changed(path: Path, assignment: str) -> None:
    """Set a column of every row, without the checks and triggers of the schema."""
    table, _, rest = assignment.partition(".")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f"DROP TRIGGER IF EXISTS {table}_refuses_update")
        assert connection.execute(f"UPDATE {table} SET {rest}").rowcount > 0


@pytest.mark.parametrize(("assignment", "named"), WRONG.items())
def test_a_column_of_another_kind_is_damage(filled: Path, assignment: str, named: str) -> None:
    changed(filled, assignment)
    with (
        pytest.raises(UnusableInput, match=named) as refusal,
        open_for_reading(filled) as ledger,
    ):
        ledger.read_run("last")
    assert "is damaged" in refusal.value.what


@pytest.mark.parametrize(
    "assignment",
    ["run.names = '7'", "run.id = zeroblob(4)", "segment_end.stopped_because = zeroblob(1)"],
)
def test_a_list_of_runs_contains_no_other_kinds(filled: Path, assignment: str) -> None:
    changed(filled, assignment)
    with pytest.raises(UnusableInput, match="is damaged"), open_for_reading(filled) as ledger:
        ledger.runs()


@pytest.mark.parametrize(
    "plan",
    [
        "json_set(plan, '$.control', 2)",
        "json_set(plan, '$.control', -1)",
        "json_set(plan, '$.chosen_contrasts', json('[{\"baseline\": 0, \"candidate\": 9}]'))",
        "json_set(plan, '$.conditions', json('[]'))",
        "'[1]'",
        "'7'",
        "json_set(plan, '$.terms', 'gap')",
        "json_set(plan, '$.terms', json('[1]'))",
        "json_set(plan, '$.terms', json('{\"kind\": 7}'))",
        'json_set(plan, \'$.terms\', json(\'{"kind": "explain", "causes": 7}\'))',
    ],
)
def test_a_plan_refers_only_to_its_own_conditions(filled: Path, plan: str) -> None:
    changed(filled, f"run.plan = {plan}")
    with open_for_reading(filled) as ledger, pytest.raises(UnusableInput, match="is damaged"):
        ledger.read_run("last")


def test_a_sound_ledger_is_read(filled: Path) -> None:
    with open_for_reading(filled) as ledger:
        assert [run.commands for run in ledger.runs()] == [("old", "new")]
        assert len(ledger.read_run("last").trials) == 2


def test_an_unsound_run_leaves_the_others_readable(ledger: Ledger, path: Path) -> None:
    first, second = (ledger.begin_run(make_plan(), {}, 1.0) for _ in range(2))
    for run in (first, second):
        record_blocks(ledger, run, range(1, 3))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER trial_refuses_update")
        connection.execute("UPDATE trial SET condition = 7 WHERE run = 2")
    assert len(ledger.read_run(first).trials) == 4
    with pytest.raises(UnusableInput, match="condition 7 of a plan with 2"):
        ledger.read_run(second)
