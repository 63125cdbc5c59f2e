"""`equipoise merge`, and the slice of a ledger that travels to one."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from equipoise.ledger import open_for_reading, open_for_writing
from packages.equipoise.tests.cli.conftest import Equipoise
from packages.equipoise.tests.cli.test_show import record
from packages.equipoise.tests.plans import plan_of


@pytest.fixture
def ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The ledgers of two hosts."""
    paths = [tmp_path / "one.db", tmp_path / "two.db"]
    for path, factor in zip(paths, (1.0, 1.5), strict=True):
        with host_named(path.stem, monkeypatch):
            record(path, plan_of("a", "b"), "6.1", factor=factor)
    return paths


@contextmanager
def host_named(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("EQUIPOISE_HOST", name)
        yield


def only_run(path: Path) -> str:
    with open_for_reading(path) as ledger:
        (run,) = ledger.runs()
    return run.id


def call_runs_alike(path: Path) -> None:
    """Give the run of a ledger the id that hosts which start together may draw."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        statement = "SELECT sql FROM sqlite_schema WHERE name = 'run_refuses_update'"
        (trigger,) = connection.execute(statement).fetchone()
        connection.execute("DROP TRIGGER run_refuses_update")
        connection.execute("UPDATE run SET id = '20260301-101112-4f2a'")
        connection.execute(trigger)


def test_ledgers_of_two_hosts_become_one(equipoise: Equipoise, ledgers: list[Path]) -> None:
    answer = equipoise("merge", "all.db", "one.db", "two.db")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        "one.db: 1 new; 60 new trials",
        "two.db: 1 new; 60 new trials",
    ]
    again = equipoise("merge", "all.db", "two.db", "one.db")
    assert again.out.splitlines()[0] == "two.db: 1 unchanged; 0 new trials"
    assert equipoise("merge", "--quiet", "all.db", "one.db").out == ""
    for path in ledgers:
        run = only_run(path)
        own, merged = (
            equipoise("show", run, "--ledger", name, "--json", "-")
            for name in (path.name, "all.db")
        )
        assert own.out == merged.out != ""
    listed = json.loads(equipoise("list", "--ledger", "all.db", "--json", "-").out)
    assert {entry["host"] for entry in listed} == {"one", "two"}
    screen = equipoise("list", "--ledger", "all.db").out
    assert "host" in screen.splitlines()[2] and "two" in screen
    assert "host" not in equipoise("list", "--ledger", "one.db").out.splitlines()[2]


def test_runs_with_one_id_have_longer_names_that_are_accepted_everywhere(
    equipoise: Equipoise, ledgers: list[Path]
) -> None:
    for path in ledgers:
        call_runs_alike(path)
    assert equipoise("merge", "all.db", "one.db", "two.db").status == 0
    refused = equipoise("show", "20260301-101112-4f2a", "--ledger", "all.db")
    assert refused.status == 2
    assert "2 runs in" in refused.err and "are called 20260301-101112-4f2a" in refused.err
    listed = json.loads(equipoise("list", "--ledger", "all.db", "--json", "-").out)
    for entry in listed:
        assert entry["id"].startswith("20260301-101112-4f2a-")
        assert entry["id"] in refused.err
        shown = equipoise("show", entry["id"], "--ledger", "all.db", "--json", "-")
        assert json.loads(shown.out)["run"]["id"] == entry["id"]
        exported = equipoise("export", entry["id"], "--ledger", "all.db", "-o", "trials.csv")
        assert exported.status == 0
        assert equipoise("list", "--ledger", f"{entry['host']}.db").out.count(entry["id"][:20]) == 1
    pair = [entry["id"] for entry in listed]
    against = equipoise("show", *pair, "--ledger", "all.db", "--json", "-")
    assert json.loads(against.out)["against"]["run"] == pair[0]


def test_a_fork_is_named_and_the_rest_merges(equipoise: Equipoise, ledgers: list[Path]) -> None:
    fork = Path(shutil.copy(ledgers[0], equipoise.folder / "fork.db"))
    run = only_run(fork)
    for path, moment in ((ledgers[0], 1.8e9), (fork, 1.9e9)):
        with open_for_writing(path, durable=False) as ledger:
            ledger.begin_segment(run, {}, moment)
    equipoise("merge", "fork.db", "two.db")
    answer = equipoise("merge", "all.db", "one.db", "fork.db", "missing.db")
    assert answer.status == 2
    assert f"fork.db: two copies of run {run} were continued differently" in answer.err
    assert "no ledger at" in answer.err
    assert "fork.db: 1 new, 1 left out; 60 new trials" in answer.out
    assert equipoise("merge", "new.db", "missing.db").status == 2
    assert not (equipoise.folder / "new.db").exists()


def test_a_slice_holds_one_run_and_merges_into_the_ledger_of_another(
    equipoise: Equipoise, tmp_path: Path, ledgers: list[Path]
) -> None:
    equipoise("merge", "all.db", "one.db", "two.db")
    run = only_run(ledgers[1])
    line = ("export", "--ledger-slice", run, "--ledger", "all.db", "-o", "slice.db")
    answer = equipoise(*line)
    assert (answer.status, answer.out, answer.err) == (0, "", "")
    assert only_run(tmp_path / "slice.db") == run
    assert (tmp_path / "slice.db").stat().st_mode & 0o777 == 0o600
    assert equipoise("merge", "one.db", "slice.db").out == "slice.db: 1 new; 60 new trials\n"
    assert equipoise(*line).status == 0
    refused = equipoise(*line, "--format", "csv")
    assert refused.status == 2 and "--format" in refused.err


def test_a_campaign_says_which_host_measured_it(equipoise: Equipoise) -> None:
    line = ("compare", "true", "true", "--blocks", "1", "--min-seconds", "0", "--warmup", "0")
    assert equipoise(*line, "--quiet", "--allow-concurrent", "--host", "lab-3").status == 0
    (entry,) = json.loads(equipoise("list", "--json", "-").out)
    assert entry["host"] == "lab-3"
