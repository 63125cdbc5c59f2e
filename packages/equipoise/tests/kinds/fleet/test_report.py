"""The screen and the tables of unusual fleets."""

from __future__ import annotations

from msgspec.structs import replace

from equipoise.analysis.result import analyse_campaign
from equipoise.kinds.fleet.terms import FleetPlan
from equipoise.model.record import RunRecord
from equipoise.report.builders.result import ReportInput, campaign_document
from equipoise.report.document import MAX_STATEMENTS, Section, Table, parts_in
from packages.equipoise.tests.fleets import THREE, fleet_record
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.report.forms import answer_of, to_csv, to_markdown


def headings_of(record: RunRecord) -> list[str]:
    """Headings of the table of hosts on the screen."""
    document = campaign_document(ReportInput(analyse_campaign(record)))
    hosts = next(
        part
        for part in parts_in(document.parts, "brief")
        if isinstance(part, Section) and part.title == "Hosts"
    )
    (table,) = hosts.parts
    assert isinstance(table, Table)
    return list(table.headings)


def test_one_command_has_the_states_of_the_hosts_and_medians_below() -> None:
    result = analyse_campaign(fleet_record(plan=plan_of("a")))
    document = campaign_document(ReportInput(result))
    assert answer_of(document).title == "3 of 3 asked hosts delivered: 120 blocks."
    assert answer_of(document).lines == ()
    assert "| ada | 2" in to_markdown(result)


def test_many_candidates_have_their_means_first_and_written_host_tables() -> None:
    result = analyse_campaign(fleet_record(plan=plan_of(*"abcdef")))
    assert len(result.comparisons) > MAX_STATEMENTS
    document = campaign_document(ReportInput(result))
    screen, page = (parts_in(document.parts, form) for form in ("brief", "page"))
    titles = [part.title for part in screen if isinstance(part, Section)]
    assert titles[:2] == ["Hosts", "Means over the asked hosts"]
    assert "f against a" not in titles
    folded = [part.title for part in page if isinstance(part, Section) and part.folded]
    assert {f"{name} against a" for name in "bcdef"} <= set(folded)
    # A row for each host of each comparison, and one for its mean.
    assert len(to_csv([result]).splitlines()) == 1 + 5 * 4


def test_weights_are_in_the_table_if_they_differ() -> None:
    record = fleet_record()
    assert isinstance(record.plan.terms, FleetPlan)
    assert "weight" not in headings_of(record)
    fleet = replace(record.plan.terms, weights=(0.5, 0.3, 0.2))
    assert "weight" in headings_of(replace(record, plan=replace(record.plan, terms=fleet)))


def test_the_controls_of_the_hosts_have_a_line() -> None:
    plan = replace(plan_of("a", "control", "b"), control=1)
    result = analyse_campaign(fleet_record(THREE[:2], plan=plan))
    assert "the baseline against itself differs on 0 of 2 hosts." in to_markdown(result)
