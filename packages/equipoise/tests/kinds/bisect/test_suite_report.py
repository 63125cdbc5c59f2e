"""The result of a bisection of several benchmarks in every form."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from equipoise.analysis.result import analyse_campaign
from equipoise.api import Result
from equipoise.kinds.bisect.report import suite_sentence
from equipoise.kinds.bisect.terms import BisectDocument
from equipoise.report.builders.result import ReportInput
from equipoise.report.json_document import encode, read_document
from equipoise.why.gap import gaps_of
from packages.equipoise.tests.report.forms import page, screen, to_csv, to_markdown
from packages.equipoise.tests.schema import validated
from packages.equipoise.tests.searched_suites import (
    plan_of_one_command,
    plan_of_suite,
    stage_of,
    stage_of_one_command,
)

COUNT = 8
NAMES = ("parse", "render", "sort")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> BisectDocument:
    """Three benchmarks, of which two got slower by the same commit."""
    stage = stage_of(tmp_path_factory.mktemp("suite"), COUNT, ((3,), (3,), ()))
    document = validated(analyse_campaign(stage.start(plan_of_suite(COUNT, *NAMES))))
    assert isinstance(document, BisectDocument)
    return document


def test_each_benchmark_has_a_search_of_the_same_form(document: BisectDocument) -> None:
    assert document.bisect is None
    assert [search.benchmark for search in document.bisects] == [*NAMES]
    assert [search.verdict for search in document.bisects] == [
        "culprit",
        "culprit",
        "no difference",
    ]
    for search in document.bisects[:2]:
        assert [culprit.commit for culprit in search.culprits] == [f"{3:040x}"]
        assert len(search.searched_commits) == COUNT
    measured = [trial for trial in document.trials if trial.analysed]
    assert sum(search.trials for search in document.bisects) == len(measured)
    assert len({search.tried_commits for search in document.bisects}) == 1
    assert [comparison.candidate.partition(":")[0] for comparison in document.comparisons] == [
        *NAMES
    ]


def test_the_first_sentence_names_the_commits_with_their_benchmarks(
    document: BisectDocument,
) -> None:
    sentence = "A culprit is named for 2 of 3 benchmarks: 0000000000 changed parse and render."
    assert suite_sentence(document.bisects) == sentence
    text = screen(document)
    assert text.startswith(sentence)
    assert "culprit: parse: 0000000000 (change 3) made it " in text
    assert "every commit that is named for any benchmark changed it." in text
    assert "equipoise resume" not in text
    assert str(Result(document)).splitlines()[2].startswith("sort: There is no difference")


def test_without_a_culprit_the_answer_names_none(document: BisectDocument) -> None:
    assert suite_sentence(document.bisects[2:]) == "No commit is named for any of 1 benchmarks."


def test_the_page_has_a_section_and_a_picture_of_each_search(document: BisectDocument) -> None:
    text = page([ReportInput(document)])
    assert "Which commits from old to new changed which benchmarks?" in text
    assert "The search: parse" in text
    assert "The search: render" in text
    # There was nothing to search for.
    assert "The search: sort" not in text
    assert text.count(f"Every commit ({COUNT})") == 2
    assert "| sort | time |" in to_markdown(document)


def test_csv_has_a_row_for_each_benchmark_and_commit(document: BisectDocument) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv([document]))))
    assert len(rows) == len(NAMES) * COUNT
    culprits = [(row["benchmark"], row["commit"]) for row in rows if row["status"] == "culprit"]
    assert culprits == [("parse", f"{3:040x}"), ("render", f"{3:040x}")]


def test_the_document_comes_back(document: BisectDocument, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(encode(document))
    again = read_document(path)
    assert isinstance(again, BisectDocument)
    assert again.bisects == document.bisects


def test_each_culprit_can_be_explained_with_its_own_benchmark(tmp_path: Path) -> None:
    record = stage_of(tmp_path, COUNT, ((), (3,), (5,))).start(plan_of_suite(COUNT, *NAMES))
    render, sort = COUNT + 1, 2 * (COUNT + 1)
    pairs = [gap.contrast.pair for gap in gaps_of(record)]
    assert pairs == [(render + 2, render + 3), (sort + 4, sort + 5)]


def test_benchmarks_of_one_command_have_their_own_metrics(tmp_path: Path) -> None:
    culprits = {"parse": (3,), "sort": ()}
    stage = stage_of_one_command(tmp_path, COUNT, culprits)
    record = stage.start(plan_of_one_command(COUNT, *culprits))
    document = validated(analyse_campaign(record))
    assert isinstance(document, BisectDocument)
    assert [search.metric for search in document.bisects] == ["parse time_s", "sort time_s"]
    assert [len(search.culprits) for search in document.bisects] == [1, 0]
    (gap,) = gaps_of(record)
    assert gap.contrast.pair == (2, 3)
    assert gap.campaign_metric == "parse time_s"
