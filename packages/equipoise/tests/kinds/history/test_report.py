"""The result of a history in every form: changes, the curve, campaigns and statements."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.api import Result
from equipoise.cli.writing import write_documents
from equipoise.kinds.history.analysis import change_sentence, history_sentence
from equipoise.kinds.history.report import build_answer
from equipoise.kinds.history.terms import HistoryDocument, HistoryResult
from equipoise.model.errors import UnusableInput
from equipoise.model.record import FAILURE_WARNING, CampaignWarning
from equipoise.report.builders.result import ReportInput, campaign_document
from equipoise.report.json_document import encode, read_document
from packages.equipoise.tests.histories import (
    FASTER,
    RANGE,
    SLOWER,
    change_of,
    history_document,
    history_result,
    name_of,
    series_of,
)
from packages.equipoise.tests.report.forms import page, screen, to_csv, to_markdown
from packages.equipoise.tests.schema import validated


def with_summary(**changes: object) -> HistoryResult:
    """Return a history with other numbers, and their summary."""
    result = replace(history_result(), **changes)
    return replace(result, summary=history_sentence(result))


def test_changes_come_first_each_with_its_step_and_its_evidence() -> None:
    text = screen(history_document())
    assert text.startswith(
        "3 changes in 24 commits since v1.0 (0000000000): 2 slower and 1 faster.\n"
        "The latest change: The 4 commits after b3f0c7f6bb, up to d435a6cdd7, made it 2.45 % "
        "slower (1.75 % to 3.15 %).\nHEAD (4d134bc072) against v1.0 (0000000000): +4.50 %"
    )
    both = with_summary(changes=(history_result().changes[0], history_result().changes[2]))
    text = screen(history_document(result=both))
    assert "change: 0ade7c2cf9 (Change 9) made it 5.20 % slower (4.50 % to 5.90 %)." in text
    assert "time of 0ade7c2cf9 against fe5dbbcea5: +5.20 %, 99.75 % interval" in text
    assert "e-value 4321, where 420 was needed; 48 blocks" in text
    assert "range: The 4 commits after b3f0c7f6bb, up to d435a6cdd7, made it 2.45 % slower" in text


def test_one_change_is_the_answer_itself() -> None:
    text = screen(history_document(result=with_summary(changes=(change_of(8, SLOWER),))))
    assert text.startswith(
        "change: One change in 24 commits since v1.0 (0000000000): 0ade7c2cf9 (Change 9) made it "
        "5.20 % slower (4.50 % to 5.90 %).\n"
    )


def test_without_a_change_the_answer_has_the_number_of_commits() -> None:
    result = with_summary(changes=())
    assert result.summary == (
        "No change above 1 % is certain in 24 commits since v1.0 (0000000000); 16 commits measured."
    )
    assert result.summary in page([ReportInput(history_document(result=result))])


def test_many_changes_are_a_table_on_a_screen() -> None:
    changes = tuple(change_of(place - 1, place, ratio=1.03) for place in (2, 4, 9, 12))
    text = screen(history_document(result=with_summary(changes=changes)))
    assert "4 changes in 24 commits since v1.0 (0000000000): 4 slower." in text
    assert "\nchange: " not in text
    assert [
        line.split()[0] for line in text.splitlines() if "% to" in line and " confirmed" in line
    ] == [name_of(place)[:10] for place in (2, 4, 9, 12)]


def test_the_statements_are_always_shown() -> None:
    document = history_document()
    promises = (
        "At most 5 % of the changes that such histories name are false on average, however long "
        "they go on. A change counts above 1 %",
        "A change is confirmed if one commit ran side by side with its parent.",
        "All these intervals hold together with 95 %, on this host",
    )
    text = " ".join(screen(document).split())
    for promise in promises:
        assert promise in text
        assert promise in to_markdown(document)
        assert promise in page([ReportInput(document)])


def test_a_range_comes_with_the_line_that_finds_the_commit() -> None:
    after, until = (name_of(place) for place in RANGE)
    text = screen(history_document())
    assert (
        f"To find the commit after {after[:10]}, up to {until[:10]}: "
        f"equipoise bisect --good {after} --bad {until} -- ./bench\n"
    ) in text


def test_a_change_behind_commits_that_do_not_build_may_be_any_of_them() -> None:
    change = replace(
        change_of(8, SLOWER), not_built=(name_of(8),), earlier_hash=name_of(7), commit_count=2
    )
    change = replace(change, summary=change_sentence(change, "wall_s"))
    text = to_markdown(history_document(result=with_summary(changes=(change,))))
    assert "Either fe5dbbcea5 or 0ade7c2cf9 (Change 9) made it 5.20 % slower" in text
    assert "Not built: fe5dbbcea5. Any of them may have made the change instead." in text
    assert "confirmed, or one of 1 before it" in text


def test_a_screen_draws_each_interval_and_leaves_out_commits_of_a_long_curve() -> None:
    result = history_result()
    first = result.revisions[1]
    revisions = tuple(
        replace(first, commit=name_of(place), place=place, subject=f"Change {place}")
        for place in range(1, 400)
    )
    long = with_summary(revisions=(result.revisions[0], *revisions), commit_count=399)
    document = history_document(result=long)
    text = screen(document)
    rows = [line for line in text.splitlines() if "●" in line]
    assert len(rows) == 20
    assert "380 commits between them left out." in text
    shown = {row.split()[0] for row in rows}
    beside = (SLOWER - 1, SLOWER, FASTER - 1, FASTER, *RANGE, 399)
    assert {name_of(place)[:10] for place in beside} <= shown
    assert "Every commit of the curve (400)" in page([ReportInput(history_document(result=long))])


def test_an_era_has_its_differences_from_the_one_before() -> None:
    assert (
        "Era 2 began 2026-03-27 02:00 UTC: kernel: 6.1 instead of 5.10. Commits are compared "
        "within an era only."
    ) in to_markdown(history_document())


def test_the_line_that_resumes_depends_on_the_remaining_blocks() -> None:
    text = screen(history_document())
    assert "To go on from here: equipoise resume 20260301-101500-ab12" in text
    assert "Left to measure: about 40 more blocks" in text
    assert "To add new commits: equipoise history --from v1.0 --build make" in text
    done = screen(history_document(result=with_summary(blocks_to_go=0)))
    assert "equipoise resume" not in done
    assert "Left to measure: nothing, until there are new commits" in done


def test_a_suspicion_of_another_tool_has_the_line_that_confirms_it() -> None:
    document = history_document(result=with_summary(imported_series=(series_of(),)))
    suspicion = series_of().suspicions[0]
    text = screen(document)
    assert "Suspicions, not measured side by side" in text
    assert f": {suspicion.confirm_command}\n" in text
    assert (suspicion.confirm_command or "no line") in page([ReportInput(document)])


def test_reports_show_values_if_more_of_the_metric_is_better() -> None:
    change = replace(change_of(8, SLOWER, ratio=1.25), summary="")
    sentence = change_sentence(change, "throughput_per_s", more_is_better=True)
    assert "made it serve 20.0 % less than its parent (19.5 % to 20.4 %)." in sentence
    change = replace(change, summary=sentence)
    changes = (change, replace(change, ratio=0.8, ratio_ci=(0.79, 0.81)))
    result = with_summary(changes=changes, metric="throughput_per_s")
    assert history_sentence(result, more_is_better=True).endswith("1 lower and 1 higher.")
    document = replace(history_document(result=result), more_is_better=("throughput_per_s",))
    assert "-20.0 %, 99.75 % interval -20.4 % to -19.5 %" in screen(document)
    # A fall has the colour of a loss, as a ratio of costs above 1 has.
    assert [statement.color_verdict for statement in build_answer(document, result).statements] == [
        "slower",
        "faster",
    ]


def test_why_a_campaign_ended_early_comes_first() -> None:
    failure = CampaignWarning(
        FAILURE_WARNING, "0000000000 failed: exit status 3", "correct the command"
    )
    text = screen(replace(history_document(), warnings=(failure,)))
    assert text.startswith(
        "The campaign ended early: 0000000000 failed: exit status 3\nhint: correct the command\n"
        "3 changes in 24 commits"
    )


def test_csv_has_a_row_for_each_commit_of_the_curve() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv([history_document()]))))
    assert [row["commit"] for row in rows] == [
        revision.commit for revision in history_result().revisions
    ]
    changed = {row["commit"]: row["change_confirmed"] for row in rows if row["change_ratio"]}
    assert changed == {
        name_of(SLOWER): "true",
        name_of(FASTER): "true",
        name_of(RANGE[1]): "false",
    }


def test_markdown_has_the_chart_as_a_picture(tmp_path: Path) -> None:
    document = history_document(result=with_summary(imported_series=(series_of(),)))
    file = tmp_path / "last night.md"
    write_documents(file, [campaign_document(ReportInput(document))])
    text = file.read_text()
    assert "![Time over the commits since v1.0](last%20night-curve.svg)" in text
    assert (tmp_path / "last night-curve.svg").read_text().startswith("<svg")
    assert "![" not in to_markdown(document)


def test_the_page_asks_what_changed_and_draws_the_curve_below_the_answer() -> None:
    text = page([ReportInput(history_document())])
    assert "What changed the time since v1.0?" in text
    assert "Each bar is a commit that ran side by side with the baseline" in text


def test_the_document_keeps_to_its_schema_and_comes_back(tmp_path: Path) -> None:
    document = validated(history_document(result=with_summary(imported_series=(series_of(),))))
    path = tmp_path / "result.json"
    path.write_bytes(encode(document))
    read = read_document(path)
    assert isinstance(read, HistoryDocument)
    assert read == document


def test_in_python_it_prints_the_answer_and_draws_the_curve() -> None:
    result = Result(history_document())
    assert str(result) == history_result().summary
    assert result.plot().to_dict()["title"]["text"] == "Time over the commits since v1.0"
    assert "3 changes in 24 commits" in result._repr_html_()


@pytest.mark.parametrize(
    "changed",
    [
        {"alpha": 0.0},
        {"min_effect": 0.0},
        {"revisions": history_result().revisions[1:]},
        {"changes": (replace(change_of(8, SLOWER), ratio=-1.0),)},
        {"changes": (replace(change_of(8, SLOWER), commit_count=0),)},
        {"imported_series": (replace(series_of(), points=()),)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_file_with_an_impossible_history_is_refused(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(encode(history_document(result=replace(history_result(), **changed))))
    with pytest.raises(UnusableInput, match="has an impossible value"):
        read_document(path)
