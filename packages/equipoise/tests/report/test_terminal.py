"""The screen has the answer for a manager, and its certainty for an engineer."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace
from rich.console import Console

from equipoise.model.record import CampaignWarning, RunSummary
from equipoise.model.result import ControlResult, Drift, ResultDocument
from equipoise.report.builders.runs import runs_document, runs_table
from equipoise.report.renderers import terminal
from equipoise.report.renderers.terminal import BARS, print_document, print_parts, text_histogram
from packages.equipoise.tests.documents import (
    by_level_of,
    comparison_of,
    document_of,
    layered_document,
)
from packages.equipoise.tests.report.forms import screen


def summary(run_id: str, stopped: str | None = "verdict") -> RunSummary:
    return RunSummary(run_id, "compare", ("a", "b"), 1.7e9, 18, stopped)


def with_drift(document: ResultDocument, ratio: float, low: float, high: float) -> ResultDocument:
    first = document.conditions[0]
    wall = replace(first.metrics["wall_s"], drift=Drift(ratio, (low, high)))
    drifting = replace(first, metrics={**first.metrics, "wall_s": wall})
    return replace(document, conditions=(drifting, *document.conditions[1:]))


def test_each_condition_has_a_line_and_each_comparison_its_sentence() -> None:
    document = document_of()
    printed = screen(document)
    for condition in document.conditions:
        assert any(line.startswith(condition.name) for line in printed.splitlines())
    for comparison in document.comparisons:
        assert f"{comparison.verdict}: {comparison.summary}" in printed
    assert document.run.id in printed
    assert f"seed {document.run.seed}" in printed


def test_warnings_come_with_their_hint() -> None:
    document = document_of()
    printed = " ".join(screen(document).split())
    assert document.warnings
    for warning in document.warnings:
        assert f"warning: {warning.summary} hint: {warning.hint}" in printed


def test_other_metrics_stand_in_a_table_as_costs() -> None:
    document = document_of()
    other = comparison_of("a", "b", 1.25, metric="max_rss_bytes")
    printed = screen(replace(document, comparisons=(*document.comparisons, other)))
    row = next(line for line in printed.splitlines() if line.startswith("max_rss_bytes"))
    assert "+25.0 %" in row
    assert row.rstrip().endswith("more")


def test_a_control_has_its_line() -> None:
    document = document_of()
    control = ControlResult(
        document.conditions[0], comparison_of("a", "a again", 1.001), False, "cannot be told apart"
    )
    printed = screen(replace(document, control=control))
    assert "control: cannot be told apart; interval" in printed


def test_a_drift_is_shown_when_it_is_certain_and_matters() -> None:
    document = document_of()
    name = document.conditions[0].name
    assert f"drift: {name} became 8.00 % slower" in screen(with_drift(document, 1.08, 1.05, 1.11))
    assert f"drift: {name}" not in screen(with_drift(document, 1.08, 0.99, 1.17))
    assert f"drift: {name}" not in screen(with_drift(document, 1.004, 1.002, 1.006))


def test_the_certificate_of_the_host_is_cited() -> None:
    document = document_of()
    cited = replace(document, environment={**document.environment, "certificate": "1 of 60"})
    assert "certificate of this host: 1 of 60" in screen(cited)
    assert "certificate" not in screen(document)


def test_other_campaigns_of_the_same_commands_are_listed() -> None:
    printed = screen(document_of(), summary("run-1"), summary("run-2", None))
    assert "in this ledger: 2." in printed
    assert "run-1" in printed
    assert "not ended" in printed


def test_hostile_names_are_shown_not_obeyed() -> None:
    document = document_of()
    hostile = replace(document.conditions[0], name="\x1b[31mred\x07")
    printed = screen(replace(document, conditions=(hostile, *document.conditions[1:])))
    assert "\\x1b[31mred\\x07" in printed
    assert "\x1b" not in printed


def test_campaigns_are_listed_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_parts([runs_table([summary("run-1"), summary("run-2", None)])], color=False)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "run-1" in lines[1]
    assert "not ended" in lines[2]
    print_document(runs_document([]), color=False)
    assert capsys.readouterr().out == "no campaigns yet\n"


def test_both_scopes_and_the_advice_are_shown_where_layouts_are_a_level() -> None:
    printed = screen(layered_document("a", "b"))
    heading, ratio, *_ = printed[printed.index("by level") :].splitlines()
    assert "these 12 layouts" in heading and "across layouts" in heading
    assert ratio.startswith("b against a")
    assert "+1.59 % to +2.61 %" in ratio and "-0.96 % to +5.16 %" in ratio
    assert "90 % (±3.0 %; 2.0 to 5.0)" in ratio
    assert (
        "One more minute on new layouts narrows the interval by 40 %, on new trials by 2 %"
        in printed
    )


def test_levels_that_cannot_be_separated_have_a_reason() -> None:
    document = layered_document("a", "b")
    unknown = replace(
        by_level_of(1.0),
        geometric_mean=None,
        components=(),
        advice_summary=None,
        unknown_because="one layout",
    )
    (comparison,) = document.comparisons
    printed = screen(replace(document, comparisons=(replace(comparison, by_level=unknown),)))
    assert "variance by level: unknown: one layout" in printed


def test_rows_of_levels_keep_their_names_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def narrow_console(color: bool, *, stderr: bool = False) -> Console:
        return Console(width=80, no_color=not color, stderr=stderr, highlight=False)

    monkeypatch.setattr(terminal, "console_for", narrow_console)
    printed = screen(layered_document("a", "b"))
    table = printed[printed.index("by level") :].splitlines()
    assert table[1].startswith("b again")
    assert all(len(line) <= 80 for line in table[:3])


def test_trials_alone_have_no_table_of_levels() -> None:
    assert "by level" not in screen(document_of())


def test_conditions_of_different_numbers_of_trials_share_a_heading_without_a_number() -> None:
    document = layered_document("a", "b")
    fewer = replace(by_level_of(1.0), within_scope="these 9 layouts")
    (comparison,) = document.comparisons
    printed = screen(replace(document, comparisons=(replace(comparison, by_level=fewer),)))
    heading = printed[printed.index("by level") :].splitlines()[0]
    assert "these layouts" in heading


def test_a_brief_screen_has_the_answer_first_and_ends_with_how_to_see_the_rest() -> None:
    minor = CampaignWarning("inflated", "the effect of b is probably overstated", "")
    major = CampaignWarning("no_constant_ratio", "no constant ratio of b to a fits", "")
    document = replace(document_of("a", "b"), warnings=(minor, major, minor))
    answer, table, *below = screen(document, form="brief").split("\n\n")
    assert answer.startswith("slower: b is slower than a")
    assert table.startswith("condition")
    lines = [line for part in below for line in part.splitlines() if line]
    assert [line.split()[0] for line in lines] == ["warning:", "2", "run"]
    assert lines[0] == "warning: no constant ratio of b to a fits"
    assert lines[1].strip() == "2 more warnings: --verbose"
    assert "60 blocks" in lines[2]
    verbose = screen(document)
    for expected in ("e-value", "scope:", "seed", major.summary, minor.summary):
        assert expected in verbose


@pytest.mark.parametrize(
    ("values", "low", "high", "drawn"),
    [
        pytest.param([1.0] * 10 + [2.0], 0.0, 4.0, f" {BARS[-1]}{BARS[1]} ", id="fullest bin"),
        pytest.param([0.0] * 100_000 + [1.0], 0.0, 1.0, f"{BARS[-1]}  {BARS[1]}", id="rare value"),
        pytest.param([3.0, 3.0], 3.0, 3.0, f"  {BARS[-1]} ", id="equal values in the middle"),
        pytest.param([math.inf], 0.0, 1.0, "    ", id="a trial that timed out"),
    ],
)
def test_the_histogram_of_a_screen_has_a_bar_for_each_bin(
    values: list[float], low: float, high: float, drawn: str
) -> None:
    assert text_histogram(values, low, high, width=4) == drawn
