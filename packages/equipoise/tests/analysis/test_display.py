"""Long names and failures are complete in the ledger and shortened in output."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from equipoise.analysis.display import document_for_display, records_for_display
from equipoise.analysis.result import analyse_campaign
from equipoise.design.command_line import command_of_plan
from equipoise.kinds.gate.terms import GatePlan
from equipoise.kinds.history.terms import HistoryChange
from equipoise.model.plan import Condition, Contrast
from equipoise.model.record import ENDED_BY_FAILURE, Draw, RecordedWarning, RunRecord, Segment
from equipoise.model.revisions import Commit, NamedCommit, Revision, ShortTexts
from equipoise.report.builders.result import ReportInput, campaign_document
from equipoise.report.document import Command
from equipoise.shared.safe_text import MAX_LINE_LETTERS, MAX_NAME_LETTERS
from packages.equipoise.tests.documents import document_of
from packages.equipoise.tests.fleets import fleet_record
from packages.equipoise.tests.plans import plan_of, trial_of

LONG = "command " * 1000
CUT = (LONG[: MAX_NAME_LETTERS - 1]) + "…"


def record_of(*names: str, failure: str | None = None, **changes: Any) -> RunRecord:
    """A campaign of one block of conditions with these names."""
    draw = Draw("measured", 1, tuple(range(len(names))), 0)
    trials = [trial_of(draw, place, 0.01) for place in draw.order]
    if failure is not None:
        trials[-1] = replace(trials[-1], failure=failure, failure_kind="failed")
    return RunRecord(
        id="20260301-101500-ab12",
        plan=replace(plan_of(*names), **changes),
        started_at=1.7e9,
        segments=(Segment(1.7e9, {}, 1.7e9 + 1, ENDED_BY_FAILURE if failure else "blocks"),),
        draws=(draw,),
        trials=tuple(trials),
        warnings=(RecordedWarning("code", f"{names[0]} is slow", "wait"),),
    )


def longest_text(part: Any) -> int:
    """Length of the longest text in data, except the words of commands."""
    match part:
        case str():
            return len(part)
        case dict():
            return max((longest_text(part[key]) for key in part if key != "command"), default=0)
        case list():
            return max(map(longest_text, part), default=0)
    return 0


def for_display(record: RunRecord, *, show_env: bool = False) -> RunRecord:
    return records_for_display([record], show_env=show_env)[0]


@pytest.mark.parametrize("show_env", [False, True])
def test_long_names_are_cut_and_stay_apart(show_env: bool) -> None:
    record = record_of(LONG + "a", "short", LONG + "b")
    shown = for_display(record, show_env=show_env)
    first, second, third = (condition.name for condition in shown.plan.conditions)
    assert (first, second) == (CUT, "short")
    assert third.startswith("command ") and third.endswith("… (2)")
    assert len(third) <= MAX_NAME_LETTERS
    assert shown.warnings[0].summary == f"{CUT} is slow"
    document = analyse_campaign(shown)
    assert [row.condition for row in document.trials] == [first, second, third]
    assert longest_text(msgspec.to_builtins(document)) < 1000
    assert [comparison.baseline for comparison in document.comparisons] == [first, first]


def test_a_number_behind_a_cut_name_takes_no_name_of_another_condition() -> None:
    names = (LONG + "a", CUT, LONG + "b")
    shown = for_display(record_of(*names))
    assert len({condition.name for condition in shown.plan.conditions}) == 3
    assert shown.plan.conditions[1].name == CUT


def test_the_line_that_runs_it_again_has_the_complete_names() -> None:
    typed = ("equipoise", "compare", "-n", LONG, "a", "b")
    shown = for_display(record_of(LONG, "b", command_line=typed))
    assert LONG in str(command_of_plan(shown.plan))


def test_a_hidden_value_at_the_cut_is_hidden() -> None:
    name = "x" * (MAX_NAME_LETTERS - 12) + " TOKEN=s3cr3t-canary-value" + "y" * 100
    record = record_of(name, "b")
    condition = Condition(name, ("a",), environment={"TOKEN": "s3cr3t-canary-value"})
    plan = replace(record.plan, conditions=(condition, record.plan.conditions[1]))
    assert "s3cr" not in repr(for_display(replace(record, plan=plan)).plan)


def test_a_long_failure_is_shortened_in_output() -> None:
    record = for_display(record_of("a", "b", failure="no luck " * 1000))
    failure = record.trials[-1].failure
    assert failure is not None
    assert len(failure) == MAX_LINE_LETTERS and failure.endswith("…")
    document = analyse_campaign(record)
    assert longest_text(msgspec.to_builtins(document)) < 1000
    assert failure in repr(campaign_document(ReportInput(document)))


def test_a_long_benchmark_has_one_name_in_the_levels_the_contrasts_and_the_terms() -> None:
    first, second = LONG + "a", LONG + "b"
    levels = tuple(
        {"benchmark": benchmark, "revision": side} for benchmark in (first, second) for side in "xy"
    )
    record = record_of(*(f"{row['benchmark']}: {row['revision']}" for row in levels))
    conditions = zip(record.plan.conditions, levels, strict=True)
    plan = replace(
        record.plan,
        conditions=tuple(replace(condition, levels=row) for condition, row in conditions),
        chosen_contrasts=tuple(
            Contrast(place, place + 1, "revision", {"benchmark": levels[place]["benchmark"]})
            for place in (0, 2)
        ),
        terms=GatePlan(
            Revision("x", ""), Revision("y", ""), ("wall_s",), bisect_argvs={second: ("line",)}
        ),
    )
    shown = for_display(replace(record, plan=plan)).plan
    benchmarks = [condition.levels["benchmark"] for condition in shown.conditions]
    assert len(set(benchmarks)) == 2
    assert max(map(len, benchmarks)) <= MAX_NAME_LETTERS
    assert [contrast.stratum["benchmark"] for contrast in shown.contrasts] == [
        benchmarks[0],
        benchmarks[2],
    ]
    assert isinstance(shown.terms, GatePlan)
    assert shown.terms.bisect_argvs == {benchmarks[2]: ("line",)}


def test_the_hosts_of_a_fleet_call_a_condition_as_the_fleet_does() -> None:
    plan = plan_of(LONG + "a", LONG + "b")
    shown = for_display(fleet_record(plan=plan))
    names = [condition.name for condition in shown.plan.conditions]
    assert len(set(names)) == 2
    for member in shown.members:
        assert [condition.name for condition in member.plan.conditions] == names


@pytest.mark.parametrize("show_env", [False, True])
def test_a_read_document_has_short_names_and_complete_commands(show_env: bool) -> None:
    document = document_of(LONG + "a", LONG + "b", blocks=3)
    (first, second) = document.conditions
    document = replace(
        document, conditions=(replace(first, command=("sh", "-c", first.name)), second)
    )
    shown = document_for_display(document, show_env=show_env)
    names = [condition.name for condition in shown.conditions]
    assert len(set(names)) == 2 and max(map(len, names)) <= MAX_NAME_LETTERS
    assert [shown.comparisons[0].baseline, shown.comparisons[0].candidate] == names
    assert {row.condition for row in shown.trials} == set(names)
    assert shown.conditions[0].command == ("sh", "-c", LONG + "a")
    assert document_for_display(shown, show_env=show_env) is shown


def test_subjects_and_authors_of_commits_are_cut() -> None:
    commit = Commit("1a2b", LONG, LONG, "2026-01-01", ())
    assert (commit.subject, commit.author) == (CUT, CUT)
    named = NamedCommit("1a2b", LONG, LONG, "2026-01-01")
    assert msgspec.json.decode(msgspec.json.encode(named), type=NamedCommit) == named
    assert replace(named, subject=LONG).subject == CUT
    assert issubclass(HistoryChange, ShortTexts)


def test_the_purpose_of_a_line_is_cut_and_the_line_is_not() -> None:
    command = Command(LONG, LONG)
    assert len(command.purpose) == MAX_LINE_LETTERS
    assert command.line == LONG
