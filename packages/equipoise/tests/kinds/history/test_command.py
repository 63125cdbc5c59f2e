"""`equipoise history` from a repository to the commits that changed something."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise.kinds.history.judge import campaigns_of_series, read_history
from equipoise.kinds.history.terms import HistoryPlan
from equipoise.ledger import open_for_reading
from equipoise.model.record import RunRecord
from packages.equipoise.tests.cli.conftest import Answer, RunIn
from packages.equipoise.tests.repositories import MadeRepository, everything_in, repository

FAST, SLOW = "sleep 0.001", "sleep 0.02"
"""Far apart, so that a busy host cannot hide it for long."""
COUNT, CHANGED = 3, 2
LOGGED = 'make -s && echo built >> "$LOG"'
MEASURED = ("--build", LOGGED, "--budget", "300", "--min-effect", "50", "--alpha", "0.2")
QUIET = ("--quiet", "--ledger", "../ledger.db")
SHORT = ("--build", LOGGED, "--blocks", "1", *QUIET)
History = Callable[..., Answer]


@pytest.fixture
def project(tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> MadeRepository:
    """A program that sleeps, longer from the second of three commits after the tag v1 on."""
    project = repository(tmp_path / "project")
    project.write("Makefile", "bench: source\n\t@cp source bench && chmod +x bench\n")
    project.write(".gitignore", "bench\n")
    add(project, 0, FAST)
    project.git("tag", "v1")
    for number in range(1, COUNT + 1):
        add(project, number, SLOW if number >= CHANGED else FAST)
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    return project


def add(project: MadeRepository, number: int, work: str) -> str:
    """Add a commit whose program does ``work``; return its name."""
    project.write("source", f"#!/bin/sh\n# {number}\n{work}\n")
    return project.commit(f"change {number}")


@pytest.fixture
def history(project: MadeRepository, run_in: RunIn) -> History:
    """Run one command in the repository, `history` unless it is named."""

    def call(*words: str, command: str = "history") -> Answer:
        return run_in(project.path, command, *words)

    return call


def builds(project: MadeRepository) -> int:
    return (project.path.parent / "log").read_text().count("built")


def series(project: MadeRepository) -> tuple[RunRecord, ...]:
    """Return the campaigns of the latest history."""
    with open_for_reading(project.path.parent / "ledger.db") as ledger:
        return campaigns_of_series(ledger.read_run())


def terms(record: RunRecord) -> HistoryPlan:
    assert isinstance(record.plan.terms, HistoryPlan)
    return record.plan.terms


def changed_commits(project: MadeRepository) -> list[str]:
    """Return the commits that are confirmed to have changed something."""
    changes = read_history(series(project)).state().changes
    return [change.pair.later_hash for change in changes if change.is_confirmed]


def test_a_change_is_named_and_later_nights_add_new_commits(
    history: History, project: MadeRepository
) -> None:
    before = everything_in(project.path)
    answer = history("--from", "v1", *MEASURED, *QUIET, "--", "./bench")
    assert (answer.status, answer.err) == (0, "")
    culprit = project.git("rev-parse", f"HEAD~{COUNT - CHANGED}").strip()
    assert changed_commits(project) == [culprit]
    assert everything_in(project.path) == before
    assert builds(project) == COUNT + 1
    # Nothing is left to measure, so no campaign is added.
    answer = history(*MEASURED, *QUIET, "--", "./bench")
    assert answer.status == 0
    assert "nothing is left to measure" in answer.err
    (first,) = series(project)
    new = add(project, COUNT + 1, SLOW)
    assert history("--new", *MEASURED, *QUIET, "--", "./bench").status == 0
    both = series(project)
    assert both[0] == first
    assert terms(both[1]).earlier_ids == (first.id,)
    assert (terms(both[0]).series, terms(both[0]).era) == (terms(both[1]).series, terms(first).era)
    assert changed_commits(project) == [culprit]
    assert builds(project) == COUNT + 2
    ran = {trial.condition for trial in both[1].trials}
    assert COUNT + 1 in ran and not ran & set(range(1, COUNT))
    assert terms(both[1]).commits[-1].hash == new
    # The later campaign depends on the earlier one, which must not change.
    answer = history(first.id, "--quiet", "--ledger", "../ledger.db", command="resume")
    assert answer.status == 2
    assert f"the later campaign {both[1].id} of this history depends on it" in answer.err
    answer = history("last", "--quiet", "--ledger", "../ledger.db", command="resume")
    assert answer.status == 0
    assert series(project) == both
    answer = history("last", "--quiet", "--ledger", "../ledger.db", command="why")
    assert answer.status == 2
    assert "equipoise bisect --good PARENT --bad COMMIT --why" in answer.err


def test_its_command_line_adds_new_commits_with_new_orders(
    history: History, project: MadeRepository
) -> None:
    words = ("--every", "2", "--seed", "7", "--host", "a", *SHORT, "--", "./bench", "a b")
    assert history("--from", "v1", "--to", "main", *words).status == 0
    (first,) = series(project)
    again = list(first.plan.command_line)
    assert again[:2] == ["equipoise", "history"]
    assert terms(first).selected == (0, 2, 3)
    assert terms(first).baseline.commit in again
    assert history(*QUIET, *again[2:]).status == 0
    both = series(project)
    assert [campaign.id for campaign in both][:1] == [first.id] and len(both) == 2
    assert sorted(both[1].plan.command_line) == sorted(again)
    assert both[0].plan.conditions == both[1].plan.conditions
    assert (first.plan.seed, both[1].plan.seed != 7) == (7, True)
    # Another host has another history.
    assert history("--from", "v1", *SHORT, "--host", "b", "--", "./bench", "a b").status == 0
    assert len(series(project)) == 1


def test_a_campaign_that_was_stopped_goes_on(history: History, project: MadeRepository) -> None:
    assert history("--from", "v1", *SHORT, "--", "./bench").status == 0
    (stopped,) = series(project)
    more = ("last", "--blocks", "3", "--quiet", "--ledger", "../ledger.db")
    assert history(*more, command="resume").status == 0
    (resumed,) = series(project)
    assert resumed.id == stopped.id
    assert resumed.trials[: len(stopped.trials)] == stopped.trials
    assert read_history([resumed]).state().blocks == 3


def test_another_toolchain_begins_an_era(
    history: History, project: MadeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert history("--from", "v1", *SHORT, "--", "./bench").status == 0
    monkeypatch.setenv("CFLAGS", "-O3")
    more = ("last", "--blocks", "3", "--quiet", "--ledger", "../ledger.db")
    answer = history(*more, command="resume")
    assert answer.status == 2
    assert "the toolchain or the environment of builds has changed" in answer.err
    assert "begin another campaign of the history: equipoise history --from" in answer.err
    assert history(*SHORT, "--", "./bench").status == 0
    first, second = series(project)
    assert terms(first).era != terms(second).era
    assert read_history([first, second]).state().eras == 2


def test_each_benchmark_of_a_suite_has_a_history_of_its_own(
    history: History, project: MadeRepository
) -> None:
    suite = 'build = "make"\n[benchmarks]\nlong = "./bench long"\nshort = "./bench"\n'
    (project.path.parent / "suite.toml").write_text(suite)
    words = ("--suite", "../suite.toml", "--blocks", "1", "--budget", "40", *QUIET)
    answer = history("--from", "v1", *words, "--json", "../result.json")
    assert answer.status == 0, answer
    assert history(*words).status == 0
    with open_for_reading(project.path.parent / "ledger.db") as ledger:
        first, second, third, fourth = (ledger.read_run(run.id) for run in ledger.runs())
    assert [campaign.plan.conditions[0].command[1:] for campaign in (first, second)] == [
        ("long",),
        (),
    ]
    assert terms(first).series == terms(third).series != terms(second).series
    assert (terms(third).earlier_ids, terms(fourth).earlier_ids) == ((first.id,), (second.id,))
    # They share the budget.
    assert first.plan.stopping.budget_s == 20.0
    for number, record in enumerate((first, second), start=1):
        written = json.loads((project.path.parent / f"result-{number}.json").read_text())
        assert written["run"]["id"] == record.id
    again = list(second.plan.command_line)
    assert again[-2:] == ["--", "./bench"] and "--suite" not in again
    answer = history("--from", "v1", *words, "--json", "-")
    assert answer.status == 2
    assert "2 benchmarks give 2 JSON documents" in answer.err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--from", "v1"), 2, "a history needs exactly one of --bench"),
        (("--", "true"), 2, "a history needs a baseline"),
        (("--from", "nowhere", "--", "true"), 2, "--from nowhere: there is no such commit"),
        (("--from", "v1", "--to", "nowhere", "--", "true"), 2, "--to nowhere: there is no such"),
        (("--from", "HEAD", "--", "true"), 2, "baseline and last revision are the same commit"),
        (("--from", "HEAD", "--to", "v1", "--", "true"), 2, "is older than baseline HEAD"),
        (("--from", "v1", "--tags", "--every", "2", "--", "true"), 2, "exclude each other"),
        (("--from", "v1", "--tags", "--", "true"), 2, "no commit after the baseline has a tag"),
        (("--from", "v1", "--since", "2037-01-01", "--", "true"), 2, "is later than this date"),
        (("--from", "v1", "--every", "0", "--", "true"), 2, "--every 0 is out of range"),
        (("--from", "v1", "--metrics", "a,b", "--", "true"), 2, "uses one metric"),
        (("--from", "v1", "--min-effect", "0", "--", "true"), 2, "needs a smallest effect"),
        (("--from", "v1", "--", "./bench"), 2, "the baseline v1 ("),
        (("--from", "v1", "--build", "exit 3", "--", "true"), 3, "the baseline: commit"),
        (("--from", "v1", "--", "false"), 3, "failed: exit status 1"),
    ],
)
def test_unusable_input_is_reported_in_two_lines(
    history: History, words: tuple[str, ...], status: int, message: str
) -> None:
    answer = history(*words)
    assert answer.status == status, answer
    assert answer.out == ""
    assert message in answer.err
    assert "  hint: " in answer.err
    assert answer.err.count("\n") == 2


def test_series_of_other_tools_are_shown_beside_the_curve(
    history: History, project: MadeRepository
) -> None:
    names = project.git("rev-list", "--reverse", "HEAD").split()
    rows = [f"{names[0]}~{number},1.0\n" for number in range(12, 0, -1)]
    rows += [f"{name},{1 + (number >= CHANGED)}\n" for number, name in enumerate(names)]
    file = project.path.parent / "old.csv"
    file.write_text(f"commit,value\n{''.join(rows)}")
    words = ("--import", str(file), "--json", "-", *SHORT, "--", "./bench", "a b")
    answer = history("--from", "v1", *words)
    assert answer.status == 0
    document = json.loads(answer.out)["history"]
    assert document["baseline"]["commit"] == names[0]
    (old,) = document["imported_series"]
    (suspicion,) = old["suspicions"]
    assert (suspicion["last_old_commit"], suspicion["first_new_commit"]) == (names[1], names[2])
    assert suspicion["confirm_command"] == (
        f"equipoise bisect --good {names[1]} --bad {names[2]} --build {shlex.quote(LOGGED)} -- "
        "./bench 'a b'"
    )
