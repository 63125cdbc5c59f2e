"""``import`` makes a run that every command of results can use, and never a verdict."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.cli import export, report, resume, show
from equipoise.cli import list as listing
from equipoise.kinds.imported import command
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.report.json_document import decode
from packages.equipoise.tests.imports import SAMPLES, written
from packages.equipoise.tests.report.forms import breakable
from packages.equipoise.tests.schema import validated

PAYLOADS = (
    "<script>document.title='pwned'</script>",
    "</script><img src=x onerror=alert(1)>",
    "'; DROP TABLE trial; --",
    "$(touch pwned) `touch pwned` ; touch pwned",
    "{{ 7*7 }} {% raw %}",
    "\x1b[31mred\x1b]0;title\x07",
    "../../etc/passwd",
    "name with 'quotes' and \"more\"",
)


def call(command: object, *arguments: str) -> int:
    """Run a command in this process; return its exit status."""
    status = command.main([*arguments], standalone_mode=False)  # type: ignore[attr-defined]
    assert isinstance(status, int)
    return status


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a private folder with its own ledger."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EQUIPOISE_LEDGER", raising=False)
    return tmp_path


def printed(command: object, *arguments: str) -> str:
    """Stdout of a command that must succeed."""
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as text:
        assert call(command, *arguments) == 0
    text.seek(0)
    return text.read()


def run_import(*arguments: str) -> str:
    """Stdout of ``equipoise import``, which must succeed."""
    return printed(command.command, *arguments)


def document_of(*arguments: str) -> dict[str, Any]:
    """The document of an import, held against its schema."""
    text = run_import(*arguments, "--json", "-")
    validated(decode(text.encode(), "stdout"))
    document: dict[str, Any] = json.loads(text)
    return document


def slower_csv(folder: Path, *, blocks: bool = False) -> Path:
    """Write two conditions, of which b takes about 20 % longer."""
    generator = np.random.default_rng(5)
    rows = [
        f"{name},{median * np.exp(0.01 * generator.normal())},{block}"
        for block in range(1, 13)
        for name, median in (("a", 0.10), ("b", 0.12))
    ]
    text = "condition,wall_s,block\n" + "\n".join(rows) + "\n"
    if not blocks:
        # All of a, then all of b.
        lines = sorted(row.rpartition(",")[0] for row in rows)
        text = "condition,wall_s\n" + "\n".join(lines) + "\n"
    return written(folder, "rows.csv", text)


def test_an_import_has_an_interval_its_scope_and_no_verdict(folder: Path) -> None:
    document = document_of(str(slower_csv(folder)))
    assert document["comparisons"] == []
    imported = document["imported"]
    (comparison,) = imported["comparisons"]
    low, high = comparison["ratio_ci"]
    assert 1.18 < low < 1.2 < high < 1.22
    assert comparison["method"] == "Welch"
    assert "e_value" not in comparison and "verdict" not in comparison
    assert "12 processes against 12 processes of these files" in comparison["scope"]
    assert "no verdict and no e-value" in imported["summary"]
    (warning,) = [
        warning for warning in document["warnings"] if warning["code"] == "not_randomised"
    ]
    assert "one after the other" in warning["summary"]


def test_blocks_of_a_file_are_compared_within_them(folder: Path) -> None:
    imported = document_of(str(slower_csv(folder, blocks=True)))["imported"]
    (comparison,) = imported["comparisons"]
    assert comparison["method"] == "paired"
    assert comparison["scope"] == "only 12 blocks of these files"


def test_the_screen_has_the_meaning_of_the_interval_and_show_repeats_it(folder: Path) -> None:
    first = run_import(str(slower_csv(folder)), "--verbose")
    assert " longer than a in these trials" in " ".join(first.split())
    assert "ordinary 95 % interval" in first
    assert "order: one after the other" in " ".join(first.split())
    assert "e-value" not in first.replace("no e-value", "")
    assert printed(show.command, "--verbose") == first


def test_reports_of_an_import_say_that_it_has_no_verdict(folder: Path) -> None:
    run_import(str(slower_csv(folder)), "--quiet")
    assert call(report.command, "-o", "report.md") == 0
    assert call(report.command, "-o", "report.csv") == 0
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    assert markdown.startswith("**imported**: ")
    assert "no verdict and no e-value" in markdown
    assert "12 processes against 12 processes of these files" in markdown
    assert "the conditions ran one after the other: every change" in markdown
    with (folder / "report.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[-1]["ratio"] != ""
    assert {row["verdict"] for row in rows} == {""}


def test_drift_of_an_import_is_in_the_ratio_with_a_warning(folder: Path) -> None:
    rows = [f"{name},{0.1 * (1 + place / 20)}" for name in "ab" for place in range(24)]
    path = written(folder, "drift.csv", "condition,wall_s\n" + "\n".join(rows) + "\n")
    assert "nothing keeps this out of a ratio" in run_import(str(path))


def test_iterations_of_one_process_have_no_interval() -> None:
    go = str(SAMPLES / "go.txt")
    imported = document_of("-n", "old", "-n", "new", go, go)["imported"]
    assert len(imported["comparisons"]) == 3
    for comparison in imported["comparisons"]:
        assert comparison["ratio"] == pytest.approx(1.0)
        assert comparison["ratio_ci"] == [None, None]
        assert comparison["unknown"] == "one process does not show how much processes differ"


@pytest.mark.parametrize(
    "sample",
    ["hyperfine_2.json", "jmh.json", "criterion", "go.txt", "rebench.data", "sysbench.txt"],
)
def test_every_format_is_listed_shown_and_exported(folder: Path, sample: str) -> None:
    document = document_of(str(SAMPLES / sample))
    assert "imported" in printed(listing.command)
    for form in ("csv", "parquet", "json", "bmf"):
        assert call(export.command, "last", "--format", form, "-o", f"out.{form}") == 0
    rows = list(csv.DictReader(io.StringIO((folder / "out.csv").read_text())))
    assert len(rows) == len(document["trials"])
    metric = document["imported"]["metric"]
    bmf = json.loads((folder / "out.bmf").read_text())
    assert all(metric in measures for measures in bmf.values())


def test_the_form_of_hyperfine_takes_wall_times_only(folder: Path) -> None:
    run_import(str(SAMPLES / "hyperfine_2.json"), "--quiet")
    assert call(export.command, "--format", "hyperfine", "-o", "out") == 0
    results = json.loads((folder / "out").read_text())["results"]
    assert [result["times"] for result in results] == [[0.125, 0.135], [pytest.approx(0.075), 0.08]]
    assert results[0]["parameters"] == {"threads": "1"}
    run_import(str(SAMPLES / "go.txt"), "--quiet")
    with pytest.raises(UnusableInput, match="has no wall times"):
        call(export.command, "--format", "hyperfine", "-o", "out")


def test_a_report_of_an_import_shows_the_interval_and_how_to_import_again(folder: Path) -> None:
    run_import(str(slower_csv(folder)), "--quiet")
    assert call(report.command, "-o", "page.html") == 0
    page = breakable((folder / "page.html").read_text(encoding="utf-8"))
    assert " longer than a in these trials" in page
    assert "ordinary 95 %" in page
    assert "12 processes against 12 processes of these files" in page
    assert "the conditions ran one after the other: every change" in page
    assert "no coin of Equipoise ordered these trials" in page
    assert "equipoise import" in page
    assert "block by block" not in page
    assert call(show.command, "--json", "result.json", "--quiet") == 0
    assert call(report.command, "result.json", "-o", "again.html") == 0
    assert breakable((folder / "again.html").read_text(encoding="utf-8")) == page


def test_hostile_names_stay_text(folder: Path) -> None:
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["condition", "value", "host"])
    for place, name in enumerate(PAYLOADS):
        writer.writerows([name, place + 1 + trial / 10, name] for trial in range(3))
    path = written(folder, "hostile.csv", table.getvalue())
    assert "\x1b[31m" not in run_import(str(path))
    document = document_of(str(path))
    assert [condition["name"] for condition in document["conditions"]] == list(PAYLOADS)
    assert call(report.command, "-o", "page.html") == 0
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert "<script>document.title" not in page
    assert "{{ 7*7 }}" in page
    with open_for_reading(folder / ".equipoise" / "ledger.db") as ledger:
        assert [len(ledger.read_run(run.id).trials) for run in ledger.runs()] == [24, 24]
    assert not list(folder.glob("**/pwned"))


def test_earlier_imports_of_the_same_benchmarks_are_listed(folder: Path) -> None:
    assert "Other campaigns" not in run_import(str(slower_csv(folder)))
    again = run_import(str(slower_csv(folder)))
    assert "Other campaigns of the same commands in this ledger: 1" in again


def test_an_import_cannot_be_resumed_or_pooled(folder: Path) -> None:
    path = str(slower_csv(folder))
    run_import(path, "--quiet")
    run_import(path, "--quiet")
    with pytest.raises(UnusableInput, match="was imported and cannot be resumed"):
        call(resume.command, "last", "--quiet")
    with pytest.raises(UnusableInput, match="imported runs cannot be pooled"):
        call(show.command, "--pool")


def test_an_unusable_file_is_not_recorded(folder: Path) -> None:
    with pytest.raises(UnusableInput, match="the format of the file is unknown"):
        run_import(str(written(folder, "poem.txt", "the quick brown fox")))
    with pytest.raises(UnusableInput, match="2 files but 1 names"):
        run_import("-n", "old", "a.json", "b.json")
    assert not (folder / ".equipoise").exists()
