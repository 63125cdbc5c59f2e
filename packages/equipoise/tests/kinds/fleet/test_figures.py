"""The chart of a fleet: a row for each host, the mean, and one more host."""

from __future__ import annotations

from msgspec.structs import replace

from equipoise.analysis.result import analyse_campaign
from equipoise.figures.gallery import gallery
from equipoise.kinds.fleet.figures import MAX_DRAWN_HOSTS, hosts_chart
from equipoise.kinds.fleet.terms import FleetDocument
from packages.equipoise.tests.figures.charts import notes, tables
from packages.equipoise.tests.fleets import THREE, ScriptedHost, fleet_record
from packages.equipoise.tests.plans import plan_of


def document_of(*asked: ScriptedHost) -> FleetDocument:
    """The result of a fleet."""
    document = analyse_campaign(fleet_record(asked or THREE))
    assert isinstance(document, FleetDocument)
    return document


def test_each_host_has_a_bar_then_come_the_mean_and_one_more_host() -> None:
    (comparison,) = document_of().comparisons
    chart = hosts_chart(comparison)
    assert chart is not None
    bars = next(rows for rows in tables(chart, "rule") if len(rows) > 1)
    assert [bar["label"] for bar in bars] == [
        *("ada", "bea", "cleo", "mean over the asked hosts", "one more host (at least 45 %)")
    ]
    assert [bar["kind"] for bar in bars[:3]] == [*("host", "host", "differs from the others")]
    assert all(bar["low"] < bar["ratio"] < bar["high"] for bar in bars[:4])
    marks = tables(chart, "point")[0]
    assert len(marks) == 4


def test_of_very_many_hosts_some_are_drawn_with_a_note() -> None:
    (comparison,) = document_of().comparisons
    ratios = [1.0 + 0.001 * place for place in range(3 * MAX_DRAWN_HOSTS)]
    many = tuple(
        replace(comparison.hosts[0], host=f"h{place}", place=place, ratio=ratio)
        for place, ratio in enumerate(ratios)
    )
    chart = hosts_chart(replace(comparison, hosts=many))
    assert chart is not None
    drawn = tables(chart, "point")[0][:-1]
    assert len(drawn) == MAX_DRAWN_HOSTS
    assert {"h0", f"h{len(ratios) - 1}"} <= {row["label"] for row in drawn}
    assert f"{MAX_DRAWN_HOSTS} of {len(ratios)} hosts are drawn" in notes(chart)


def test_one_host_has_no_chart() -> None:
    (comparison,) = document_of(THREE[0]).comparisons
    assert hosts_chart(comparison) is None


def test_several_candidates_have_a_chart_each_and_one_of_their_means() -> None:
    document = analyse_campaign(fleet_record(plan=plan_of("a", "b", "c")))
    assert [figure.name for figure in gallery(document, {})] == ["ratios", "hosts", "hosts"]


def test_a_chart_of_values_has_the_ratios_of_values() -> None:
    document = document_of()
    inverse = replace(document, more_is_better=("wall_s",))
    (of_costs,), (of_values,) = (list(gallery(fleet, {})) for fleet in (document, inverse))
    cost, value = (tables(figure.chart, "point")[0][0]["ratio"] for figure in (of_costs, of_values))
    assert cost > 0.0 > value
