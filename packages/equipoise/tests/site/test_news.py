"""Each kind of campaign has its own news: changes for the feed, and badges."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from equipoise.analysis.result import analyse_campaign, analyse_comparisons
from equipoise.kinds.gate.terms import GateDocument, GateOutcome
from equipoise.report.builders.result import ReportInput, campaign_document
from equipoise.report.kind import kind_report
from packages.equipoise.tests.report.kinds import kinds
from packages.equipoise.tests.screens.results import bisected, compared, gated, historied


def test_a_gate_reports_slower_benchmarks_and_a_badge_for_each() -> None:
    gate = gated()
    report = kind_report(gate)
    (change,) = report.changes(gate)
    assert change.tone == "slower"
    assert change.summary.startswith("main to HEAD: parse is slower by more than 2 %")
    assert [badge.label for badge in report.badges(gate)] == ["parse", "write"]


@pytest.mark.parametrize(
    ("outcome", "ratio_ci", "message"),
    [
        ("passes", (0.99, 1.014), "main to HEAD: no slower, ±1.2 %"),
        ("slower", (1.04, 1.08), "main to HEAD: slower, +6.00 % ±2.0 %"),
        ("undecided", (0.9, 1.2), "main to HEAD: undecided, +6.00 % ±15 %"),
        ("undecided", (0.9, None), "main to HEAD: undecided"),
    ],
)
def test_a_badge_says_what_was_measured(
    outcome: GateOutcome, ratio_ci: tuple[float | None, float | None], message: str
) -> None:
    gate = gated().gate
    assert gate is not None
    row = replace(gate.rows[0], outcome=outcome, ratio=1.06, ratio_ci=ratio_ci)
    document: GateDocument = replace(gated(), gate=replace(gate, rows=(row,)))
    (badge,) = kind_report(document).badges(document)
    assert badge.message == message


def test_a_history_reports_its_confirmed_changes_under_a_key_of_the_series() -> None:
    history = historied()
    report = kind_report(history)
    changes = list(report.changes(history))
    assert [change.tone for change in changes] == ["slower", "faster"]
    series = report.series(history)
    assert series is not None
    assert all(change.key.startswith(f"{series} ") for change in changes)


def test_a_bisection_reports_its_culprit() -> None:
    bisection = bisected()
    (change,) = kind_report(bisection).changes(bisection)
    assert "made it 3.10 % slower" in change.summary


def test_a_brief_answer_is_the_answer_of_the_report() -> None:
    record, whole = compared()
    brief = analyse_comparisons(record)
    assert brief.comparisons == analyse_campaign(record).comparisons
    for condition, described in zip(brief.conditions, whole.conditions, strict=True):
        times = condition.metrics["wall_s"], described.metrics["wall_s"]
        assert times[0].modes == ()
        assert times[0].median_ci == times[1].median_ci
    titles = {campaign_document(ReportInput(result)).title for result in (whole, brief)}
    assert len(titles) == 1


def test_each_kind_has_a_document_without_modes() -> None:
    for kind in kinds():
        result = kind.reported("").result
        if len(result.conditions) > 1:
            brief = tuple(
                replace(
                    condition,
                    metrics={
                        name: replace(summary, modes=())
                        for name, summary in condition.metrics.items()
                    },
                )
                for condition in result.conditions
            )
            document = campaign_document(ReportInput(replace(result, conditions=brief)))
            assert document.title, kind.name
