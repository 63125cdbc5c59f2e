"""The result of a bisection in every form: culprits, remaining commits and statements."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.api import Result
from equipoise.kinds.bisect.analysis import bisect_sentence, culprit_sentence
from equipoise.kinds.bisect.terms import BisectDocument, BisectGap, BisectResult, BisectVerdict
from equipoise.model.errors import UnusableInput
from equipoise.model.record import FAILURE_WARNING, CampaignWarning
from equipoise.model.result import ResultDocument
from equipoise.report.builders.result import ReportInput, campaign_document
from equipoise.report.json_document import encode, read_document
from packages.equipoise.tests.bisections import (
    BAD,
    COUNT,
    CULPRIT,
    GOOD,
    bisect_document,
    bisect_result,
    culprit_of,
    merge_result,
    name_of,
)
from packages.equipoise.tests.report.forms import (
    answer_of,
    breakable,
    page,
    screen,
    to_csv,
    to_markdown,
)
from packages.equipoise.tests.schema import validated

LEFT = (3, 4, 9)


def with_summary(result: BisectResult) -> BisectResult:
    """Return the result with the summary of its numbers."""
    return replace(result, summary=bisect_sentence(result))


def set_of(*left: int, not_built: frozenset[int] = frozenset()) -> BisectResult:
    """A search that ended with these commits."""
    result = bisect_result(verdict="set")
    return with_summary(
        replace(
            result,
            searched_commits=tuple(
                replace(
                    candidate,
                    status="suspect" if place in left else "excluded",
                    excluded_at=None if place in left else 5,
                    not_built=place in not_built,
                )
                for place, candidate in enumerate(result.searched_commits, start=1)
            ),
            blocks_to_go=30,
        )
    )


def cells(document: ResultDocument) -> list[list[str]]:
    """The rows of the commits in Markdown."""
    lines = to_markdown(document).splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("| commit |"))
    rows = lines[begin + 2 : lines.index("", begin)]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows if "|" in row]


def test_a_culprit_is_named_with_its_step_and_the_condition_of_the_statement() -> None:
    text = screen(bisect_document())
    assert text.startswith(
        "culprit: 17ba079149 (Change 11) made it 3.10 % slower (2.40 % to 3.80 %). "
        "If one commit made the whole difference, it is this one (95 %).\n"
    )
    assert "time of 17ba079149 against b1d5781111: +3.10 %, 97.5 % interval" in text
    assert "e-value 812 that it makes a difference" in text
    assert "explains 97 % of the gap (80 % to 110 %)" in text
    assert "equipoise resume" not in text


def test_the_assumptions_are_always_shown() -> None:
    sentence = "Commits on one side of a step are assumed to differ by less than 0.31 %."
    for result in (bisect_result(), set_of(*LEFT)):
        document = bisect_document(result=result)
        assert sentence in screen(document)
        assert sentence in to_markdown(document)
        assert sentence in page([ReportInput(document)])


def test_remaining_commits_are_listed_between_counts_of_excluded_ones() -> None:
    rows = cells(bisect_document(result=set_of(*LEFT)))
    assert [row[0] for row in rows] == [
        "2 commits",
        name_of(3)[:10],
        name_of(4)[:10],
        "4 commits",
        name_of(9)[:10],
        "7 commits",
    ]
    assert [row[-1] for row in rows if row[-1]] == ["suspect"] * 3


def test_a_set_has_the_number_of_commits_left_and_the_expected_rest() -> None:
    text = screen(bisect_document(result=set_of(*LEFT)))
    assert text.startswith(
        "If one commit made the whole difference, it is one of 3 commits, "
        f"{name_of(3)[:10]} to {name_of(9)[:10]} (95 %).\n"
    )
    assert "Expected rest: about 60 more trials" in text
    assert "To go on from here: equipoise resume 20260301-101500-ab12" in text
    assert "Commits left: 16; 3 after block 5." in text


def test_a_commit_that_does_not_build_is_left_with_the_next_one_that_does() -> None:
    result = set_of(3, 4, not_built=frozenset({3}))
    rows = cells(bisect_document(result=result))
    assert [row[-1] for row in rows] == ["", "not built", "suspect", ""]
    text = screen(bisect_document(result=result))
    assert "Cost: 18 trials of 5 commits in 34.0 s; 1 commit does not build or run" in text


def test_a_culprit_behind_commits_that_do_not_build_is_one_of_them() -> None:
    culprit = replace(culprit_of(CULPRIT), not_built=(name_of(CULPRIT - 1),))
    culprit = replace(culprit, summary=culprit_sentence(culprit, "wall_s"))
    result = with_summary(replace(bisect_result(), culprits=(culprit,)))
    assert result.summary == (
        "Either b1d5781111 or 17ba079149 (Change 11) made it 3.10 % slower (2.40 % to 3.80 %). "
        "If one commit made the whole difference, it is one of these (95 %)."
    )
    assert "Not built: b1d5781111. Any of them may be the culprit instead." in to_markdown(
        bisect_document(result=result)
    )


def test_several_culprits_are_named_each() -> None:
    both = (culprit_of(3), culprit_of(CULPRIT, ratio=0.97))
    result = with_summary(replace(bisect_result(verdict="several"), culprits=both))
    assert result.summary == (
        "No single commit made the whole difference: 77de68daec and 17ba079149 each made a part of "
        "it."
    )
    text = screen(bisect_document(result=result))
    assert text.startswith(result.summary)
    assert text.count("culprit: ") == 2
    assert "culprit: 17ba079149 (Change 11) made it take 3.00 % less time than its parent" in text


def test_the_branch_of_a_merge_is_reported_with_it() -> None:
    document = validated(bisect_document(result=merge_result()))
    text = " ".join(screen(document).split())
    merge, culprit = name_of(CULPRIT)[:10], name_of(23)[:10]
    assert f"In the branch of {merge}, {culprit} (Change 23) made it 3.10 % slower" in text
    assert "explains 97 % of the gap of its branch (80 % to 110 %)" in text
    assert f"The branch of {merge}" in text
    assert f"Gap of the branch of {merge}" in text
    assert "This line searches its branch" not in text
    rows = list(csv.DictReader(io.StringIO(to_csv([document]))))
    assert [row["status"] for row in rows].count("culprit") == 2
    assert len(rows) == COUNT + 4


def test_a_merge_without_a_searched_branch_has_the_line_that_searches_it() -> None:
    document = bisect_document(result=replace(merge_result(), branches=()))
    text = " ".join(screen(document).split())
    assert "This line searches its branch: equipoise bisect --good" in text


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        ("set", "one commit of the branch of {} made the whole difference, it is "),
        ("several", "No single commit of the branch of {} made the whole difference."),
        ("undecided", "Whether the branch of {} alone makes a difference is not known"),
        ("no difference", "The branch of {} alone makes no difference; "),
    ],
)
def test_a_branch_without_a_culprit_has_its_sentence(verdict: BisectVerdict, sentence: str) -> None:
    assert sentence.format(name_of(CULPRIT)[:10]) in merge_result(verdict).summary


def test_a_fraction_of_the_gap_without_an_interval_is_marked() -> None:
    culprit = replace(culprit_of(CULPRIT), share_ci=(None, None))
    result = replace(bisect_result(), culprits=(culprit,))
    text = screen(bisect_document(result=result))
    assert "explains 97 % of the gap (its interval is still unlimited)" in text
    culprit = replace(culprit, share_ci=(0.4, None))
    result = replace(bisect_result(), culprits=(culprit,))
    assert "(40 % to unlimited)" in screen(bisect_document(result=result))


def test_the_remainders_of_the_gap_are_reported() -> None:
    rest = BisectGap(name_of(CULPRIT), BAD.commit, 1.0, (0.995, 1.004), 0.05, 40, "equivalent")
    text = screen(bisect_document(result=replace(bisect_result(), remaining_gaps=(rest,))))
    assert (
        "Left over: 17ba079149 to 1574bddb75 +0.00 % (95 % interval -0.50 % to +0.40 %; "
        "40 blocks), equivalent"
    ) in text


def test_without_a_gap_nothing_is_searched_and_the_exclusion_is_reported() -> None:
    gap = BisectGap(GOOD.commit, BAD.commit, 1.001, (0.996, 1.008), 0.05, 9, "equivalent")
    same = with_summary(replace(bisect_result(verdict="no difference"), gap=gap))
    assert same.summary == (
        "There is no difference to search for: v1.0 (0000000000) and HEAD (1574bddb75) are the "
        "same, within 1 %; a difference below -0.40 % or above +0.80 % is excluded."
    )
    unknown = with_summary(replace(bisect_result(verdict="undecided"), gap=gap))
    assert unknown.summary.startswith(
        "Whether v1.0 (0000000000) and HEAD (1574bddb75) differ is not known after 9 blocks; "
    )
    open_gap = replace(gap, ratio=None, ratio_ci=(None, None))
    assert with_summary(replace(unknown, gap=open_gap)).summary.endswith("after 9 blocks.")


def test_without_a_search_no_commit_is_listed_but_on_the_page() -> None:
    result = bisect_result(verdict="undecided")
    unknown = tuple(
        replace(candidate, status="suspect", e_value=None) for candidate in result.searched_commits
    )
    document = bisect_document(
        result=with_summary(replace(result, searched_commits=unknown, margin=None))
    )
    assert "Change 3" not in to_markdown(document)
    assert "equipoise resume" in to_markdown(document)
    assert "Change 3" in page([ReportInput(document)])


def test_less_is_worse_if_more_of_the_metric_is_better() -> None:
    culprit = culprit_of(CULPRIT, ratio=1.25)
    throughput = culprit_sentence(culprit, "throughput_per_s", more_is_better=True)
    assert "made it serve 20.0 % less than its parent (19.5 % to 20.4 %)." in throughput
    memory = culprit_sentence(culprit, "max_rss_bytes")
    assert "made it use 25.0 % more memory than its parent (24.3 % to 25.7 %)." in memory
    own = culprit_sentence(replace(culprit, ratio=3.0, ratio_ci=(2.9, 3.1)), "latency_ms")
    assert "made latency_ms 3 times that of its parent (2.9 to 3.1)." in own


def test_why_a_search_ended_early_comes_first() -> None:
    failure = CampaignWarning(
        FAILURE_WARNING, "17ba079149 failed: exit status 3", "correct the command"
    )
    document = replace(bisect_document(result=set_of(*LEFT)), warnings=(failure,))
    text = screen(document)
    assert text.startswith(
        "The search ended early: 17ba079149 failed: exit status 3\nhint: correct"
    )
    assert set_of(*LEFT).summary in text


def test_csv_has_a_row_for_each_commit() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv([bisect_document()]))))
    assert len(rows) == COUNT
    (culprit,) = (row for row in rows if row["status"] == "culprit")
    assert (culprit["commit"], culprit["ratio"]) == (name_of(CULPRIT), "1.031")
    assert {row["ratio"] for row in rows if row is not culprit} == {""}


def test_the_page_asks_for_the_commit_and_draws_the_search_below_the_answer() -> None:
    text = page([ReportInput(bisect_document())])
    assert "Which commit from v1.0 to HEAD changed the time?" in text
    assert "Each vertical line is a block" in text
    assert "Every commit (16)" in text


def test_the_document_keeps_to_its_schema_and_comes_back(tmp_path: Path) -> None:
    document = validated(bisect_document())
    path = tmp_path / "result.json"
    path.write_bytes(encode(document))
    read = read_document(path)
    assert isinstance(read, BisectDocument)
    assert read == document
    assert answer_of(campaign_document(ReportInput(read))).statements


def test_in_python_it_prints_the_answer_and_draws_the_search() -> None:
    result = Result(bisect_document())
    assert str(result) == bisect_result().summary
    assert result.plot().to_dict()["title"]["text"] == "The search"
    assert "it is this one (95 %)" in breakable(result._repr_html_())


@pytest.mark.parametrize(
    "changed",
    [
        {"culprits": ()},
        {"alpha": 0.0},
        {"trials": -1},
        {"searched_commits": ()},
        {"gap": replace(bisect_result().gap, ratio=-1.0)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_file_with_an_impossible_search_is_refused(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(encode(bisect_document(result=replace(bisect_result(), **changed))))
    with pytest.raises(UnusableInput, match="has an impossible value"):
        read_document(path)
