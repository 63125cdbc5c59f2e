"""``report`` and ``export`` read a campaign out of the ledger and write one file."""

from __future__ import annotations

import csv
import importlib
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from equipoise.campaign import sequences
from equipoise.campaign.conduct import begin
from equipoise.campaign.result import document_of
from equipoise.campaign.sitting import Runner
from equipoise.campaign.watch import Unwatched
from equipoise.cli import export, report
from equipoise.ledger import open_for_reading, open_for_writing
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan, Stopping
from tests.plans import plan_of
from tests.scripted import ScriptedClock, ScriptedRunner

BLOCKS = 30


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger with two campaigns in which the candidate takes 5 % longer."""
    path = tmp_path / "ledger.db"
    with open_for_writing(path, durable=False) as store:
        for seed in (1, 2):
            clock = ScriptedClock()
            runner = ScriptedRunner(clock, medians=(0.010, 0.0105), noise=0.01)

            @contextmanager
            def hire(
                plan: Plan, on_wait: Callable[[], None], runner: Runner = runner
            ) -> Iterator[Runner]:
                yield runner

            begin(
                plan_of(stopping=Stopping(blocks=BLOCKS, min_blocks=BLOCKS), seed=seed),
                store,
                Unwatched(),
                runner_factory=hire,
                clock=clock,
                now=lambda seed=seed: 1.7e9 + seed,  # type: ignore[misc]
            )
    return path


def call(command: object, ledger: Path, *arguments: str) -> int:
    """Run a command in this process; return its exit status."""
    status = command.main(  # type: ignore[attr-defined]
        [*arguments, "--ledger", str(ledger)], standalone_mode=False
    )
    assert isinstance(status, int)
    return status


def test_a_report_is_one_page_with_the_verdict_and_the_command(
    ledger: Path, tmp_path: Path
) -> None:
    output = tmp_path / "page.html"
    assert call(report.command, ledger, "-o", str(output)) == 0
    text = output.read_text(encoding="utf-8")
    assert "b is slower than a" in text
    assert "cd / &amp;&amp; equipoise compare --seed 2" in text
    assert "block by block" in text


def test_several_runs_share_a_page(ledger: Path, tmp_path: Path) -> None:
    with open_for_reading(ledger) as store:
        runs = [run.id for run in store.runs()]
    output = tmp_path / "page.html"
    assert call(report.command, ledger, *runs, "-o", str(output)) == 0
    assert output.read_text(encoding="utf-8").count("<article") == 2


def test_the_sequence_ends_where_the_document_stands(ledger: Path) -> None:
    with open_for_reading(ledger) as store:
        record = store.read_run("last")
    comparison = document_of(record).comparisons[0]
    points = sequences.sequences_of(record)["b"]
    assert [point.block for point in points] == list(range(1, BLOCKS + 1))
    assert (points[-1].low, points[-1].high) == comparison.ratio_ci
    assert points[-1].ratio == comparison.ratio
    assert points[0].low is None


def test_a_long_sequence_is_looked_at_now_and_then_and_at_its_end(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequences, "MOST_LOOKS", 7)
    with open_for_reading(ledger) as store:
        points = sequences.sequences_of(store.read_run("last"))["b"]
    assert [point.block for point in points] == [5, 10, 15, 20, 25, 30]


@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
def test_every_trial_is_exported(ledger: Path, tmp_path: Path, ending: str) -> None:
    output = tmp_path / f"trials.{ending}"
    assert call(export.command, ledger, "last", "-o", str(output)) == 0
    if ending == "json":
        count = len(json.loads(output.read_text()))
    elif ending == "csv":
        count = len(list(csv.DictReader(io.StringIO(output.read_text()))))
    else:
        parquet = importlib.import_module("pyarrow.parquet")
        count = parquet.read_table(output).num_rows
    assert count == 2 * BLOCKS + 2


@pytest.mark.parametrize(
    ("command", "name", "words"),
    [
        (report.command, "page.pdf", "is no page"),
        (report.command, "nowhere/page.html", "there is no folder"),
        (report.command, "folder.html", "is a folder"),
        (export.command, "trials.xlsx", "cannot be written as '.xlsx'"),
        (export.command, "trials", "cannot be written as ''"),
        (export.command, "nowhere/trials.csv", "there is no folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_with_a_mend(
    ledger: Path, tmp_path: Path, command: object, name: str, words: str
) -> None:
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(UnusableInput, match=words) as refusal:
        call(command, ledger, "-o", str(tmp_path / name))
    assert refusal.value.mend


def test_an_unknown_run_is_named(ledger: Path, tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="nosuchrun"):
        call(report.command, ledger, "nosuchrun", "-o", str(tmp_path / "page.html"))
