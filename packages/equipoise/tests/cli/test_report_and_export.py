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
from msgspec.structs import replace

from equipoise.analysis import sequences
from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.conduct import start
from equipoise.campaign.progress import ProgressListener
from equipoise.campaign.segment import Runner
from equipoise.cli import export, report, show
from equipoise.ledger import open_for_reading, open_for_writing
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan, Stopping
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.scripted import ScriptedClock, ScriptedRunner

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

            words = ("equipoise", "compare", "a", "b", "--seed", str(seed))
            plan = plan_of(stopping=Stopping(blocks=BLOCKS, min_blocks=BLOCKS), seed=seed)
            start(
                replace(plan, command_line=words),
                store,
                ProgressListener(),
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
    assert "cd / &amp;&amp; equipoise compare a b --seed 2" in text
    assert "block by block" in text


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (".md", "**slower**: b is slower than a"),
        (".tex", r"\textbf{slower}: b is slower than a"),
        (".csv", "compare,b,30,0,wall_s"),
    ],
)
def test_the_ending_says_the_form_of_a_report(
    ledger: Path, tmp_path: Path, ending: str, words: str
) -> None:
    output = tmp_path / f"report{ending}"
    with open_for_reading(ledger) as store:
        runs = [run.id for run in store.runs()]
    assert call(report.command, ledger, *runs, "-o", str(output)) == 0
    text = output.read_text(encoding="utf-8")
    assert text.count(words) == 2
    assert all(run in text for run in runs)


@pytest.mark.parametrize(("form", "ending"), [("markdown", ".md"), ("latex", ".tex")])
def test_an_export_in_the_form_of_a_report_is_that_report(
    ledger: Path, tmp_path: Path, form: str, ending: str
) -> None:
    reported, exported = tmp_path / f"report{ending}", tmp_path / "exported"
    assert call(report.command, ledger, "-o", str(reported)) == 0
    assert call(export.command, ledger, "-o", str(exported), "--format", form) == 0
    assert exported.read_bytes() == reported.read_bytes()
    assert b"cd / &" in exported.read_bytes() or rb"cd / \&" in exported.read_bytes()


def test_show_writes_a_report_of_any_form(ledger: Path, tmp_path: Path) -> None:
    output = tmp_path / "summary.md"
    assert call(show.command, ledger, "last", "--quiet", "--report", str(output)) == 0
    assert output.read_text(encoding="utf-8").startswith("**slower**: b is slower than a")


def json_of(ledger: Path, folder: Path) -> Path:
    """The file that `show --json` writes of the last campaign."""
    path = folder / "result.json"
    assert call(show.command, ledger, "last", "--json", str(path), "--quiet") == 0
    return path


def test_a_page_of_a_result_file_is_that_of_the_ledger_without_a_ledger(
    ledger: Path, tmp_path: Path
) -> None:
    """All plots are made from one result file without running anything again."""
    result = json_of(ledger, tmp_path)
    pages = (tmp_path / "from_ledger.html", tmp_path / "from_file.html")
    assert call(report.command, ledger, "-o", str(pages[0])) == 0
    nowhere = tmp_path / "nowhere" / "ledger.db"
    assert call(report.command, nowhere, str(result), "-o", str(pages[1])) == 0
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_every_figure_of_a_result_file_becomes_a_file(ledger: Path, tmp_path: Path) -> None:
    result, folder = json_of(ledger, tmp_path), tmp_path / "figures"
    assert call(report.command, tmp_path / "none.db", str(result), "--figures", str(folder)) == 0
    names = {"distributions", "sequence", "shift", "time_course"}
    assert {file.name for file in folder.iterdir()} == {
        f"{name}.{ending}" for name in names for ending in ("html", "svg", "png")
    }


def test_figures_of_several_campaigns_have_a_folder_each(ledger: Path, tmp_path: Path) -> None:
    with open_for_reading(ledger) as store:
        runs = [run.id for run in store.runs()]
    folder = tmp_path / "figures"
    assert call(report.command, ledger, *runs, "--figures", str(folder)) == 0
    assert {file.name for file in folder.iterdir()} == {
        f"{number}-{run}" for number, run in enumerate(runs, 1)
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is not JSON"),
        (b"\xff\xfe", "it is not JSON"),
        (b"[1]", "the field 'schema' is missing"),
        (b'{"schema": "other/1"}', "its schema is 'other/1'"),
        (b'{"schema": "equipoise.result/1"}', "the field 'kind' is missing"),
        (b'{"schema": "equipoise.result/1", "kind": "compare"}', "missing required field"),
        (
            b'{"schema": "equipoise.result/1", "kind": "compare", "conditions": 3}',
            "it is not a result document",
        ),
        (b'{"schema": "equipoise.result/1", "kind": "duel"}', "of the kind 'duel' are not known"),
        (None, "no such file"),
    ],
)
def test_a_file_that_is_no_result_is_refused_with_a_hint(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "result.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UnusableInput, match=words) as refusal:
        call(report.command, tmp_path / "none.db", str(path), "-o", str(tmp_path / "page.html"))
    assert refusal.value.hint


def test_a_report_of_nothing_asks_what_is_wanted(ledger: Path) -> None:
    with pytest.raises(UnusableInput, match="neither a report nor figures"):
        call(report.command, ledger)


def test_several_runs_share_a_page(ledger: Path, tmp_path: Path) -> None:
    with open_for_reading(ledger) as store:
        runs = [run.id for run in store.runs()]
    output = tmp_path / "page.html"
    assert call(report.command, ledger, *runs, "-o", str(output)) == 0
    assert output.read_text(encoding="utf-8").count("<article") == 2


def test_the_sequence_ends_where_the_document_stands(ledger: Path) -> None:
    with open_for_reading(ledger) as store:
        record = store.read_run("last")
    comparison = analyse_campaign(record).comparisons[0]
    points = sequences.sequences_of(record)["b"]
    assert [point.block for point in points] == list(range(1, BLOCKS + 1))
    assert (points[-1].low, points[-1].high) == comparison.ratio_ci
    assert points[-1].ratio == comparison.ratio
    assert points[0].low is None


def test_a_long_sequence_is_looked_at_now_and_then_and_at_its_end(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequences, "MAX_POINTS", 7)
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
        (report.command, "page.pdf", "the extension '.pdf' does not select"),
        (report.command, "page", "a name without extension does not"),
        (report.command, "nowhere/page.html", "there is no folder"),
        (report.command, "folder.html", "is a folder"),
        (export.command, "trials.xlsx", "the extension '.xlsx' does not select a format"),
        (export.command, "trials", "a name without extension does not select a format"),
        (export.command, "nowhere/trials.csv", "there is no folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_with_a_hint(
    ledger: Path, tmp_path: Path, command: object, name: str, words: str
) -> None:
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(UnusableInput, match=words) as refusal:
        call(command, ledger, "-o", str(tmp_path / name))
    assert refusal.value.hint


def test_an_unknown_run_is_named(ledger: Path, tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="nosuchrun"):
        call(report.command, ledger, "nosuchrun", "-o", str(tmp_path / "page.html"))
