"""From the campaigns of a fleet's hosts to its result document."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from equipoise.analysis.redaction import hide_values
from equipoise.analysis.result import analyse_campaign
from equipoise.kinds.fleet.terms import FleetComparison, FleetDocument, FleetPlan
from equipoise.model.plan import Condition, Judgement, Plan
from equipoise.model.result import ResultDocument
from equipoise.report.json_document import decode, encode
from packages.equipoise.tests.fleets import THREE, ScriptedHost, fleet_record, identity_of
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.schema import validated


def result_of(*hosts: ScriptedHost, plan: Plan | None = None) -> FleetDocument:
    """The result of a fleet, held against the schema."""
    return of_fleet(validated(analyse_campaign(fleet_record(hosts or THREE, plan=plan))))


def of_fleet(document: ResultDocument) -> FleetDocument:
    """The same document, which is that of a fleet."""
    assert isinstance(document, FleetDocument)
    return document


def only(document: FleetDocument) -> FleetComparison:
    """The one comparison."""
    (comparison,) = document.comparisons
    return comparison


def test_a_comparison_is_the_mean_over_the_asked_hosts_and_names_each_of_them() -> None:
    document = result_of()
    comparison = only(document)
    low, high = comparison.ratio_ci
    assert low is not None and high is not None
    assert low < math.exp(0.05) < high
    assert comparison.verdict == "slower"
    assert comparison.blocks == document.run.blocks == 120
    assert comparison.summary.startswith("Over the 3 asked hosts: b is slower than a")
    assert "3 asked hosts and no other" in comparison.scope
    assert [(host.host, host.blocks) for host in comparison.hosts] == [
        ("ada", 40),
        ("bea", 40),
        ("cleo", 40),
    ]
    for effect, host in zip(comparison.hosts, THREE, strict=True):
        below, above = effect.ratio_ci
        assert below is not None and above is not None
        assert below < math.exp(host.effect) < above
        assert effect.environment["kernel"] == host.environment["kernel"]


def test_each_answer_stands_with_its_question() -> None:
    answers = only(result_of()).fleet
    assert answers is not None
    assert len({answer.question for answer in answers.all}) == len(answers.all) == 7
    assert all(
        answer.question.endswith("?") and answer.answer.endswith(".") for answer in answers.all
    )
    assert answers.new_host.chance == pytest.approx(0.5 - 0.05)
    assert answers.median_of_hosts.chance == pytest.approx(0.75 - 0.05)
    assert "at least 45 %" in answers.new_host.answer
    assert answers.mean.hosts == ("ada", "bea", "cleo")


def test_opposite_effects_differ_though_their_mean_is_nothing() -> None:
    hosts = [
        ScriptedHost(name, 0.03 * side) for name, side in zip("pqrs", (1, -1, 1, -1), strict=True)
    ]
    comparison = only(result_of(*hosts))
    answers = comparison.fleet
    assert answers is not None
    low, high = comparison.ratio_ci
    assert low is not None and high is not None and low < 1.0 < high
    assert comparison.verdict not in ("faster", "slower")
    assert answers.no_difference.rejected
    assert [host.host for host in answers.differences.hosts if host.differs] == ["p", "q", "r", "s"]


def test_a_host_that_never_delivered_leaves_the_mean_over_the_asked_hosts_unknown() -> None:
    first, second, third = THREE
    document = result_of(
        first, replace(second, stopped_because="interrupted"), replace(third, is_absent=True)
    )
    comparison, fleet = only(document), document.fleet
    assert fleet is not None and comparison.fleet is not None
    assert [host.state for host in fleet.hosts] == ["ended", "stopped early", "absent"]
    assert comparison.ratio_ci == (None, None)
    assert comparison.fleet.mean.unknown_because is not None
    assert "cleo" in comparison.fleet.mean.unknown_because
    assert comparison.fleet.mean_of_remaining is not None
    assert comparison.fleet.mean_of_remaining.hosts == ("ada",)
    assert comparison.fleet.new_host.unknown_because is not None
    assert [host.host for host in comparison.hosts] == ["ada", "bea"]
    warnings = {warning.code: warning for warning in document.warnings}
    assert warnings["host_absent"].summary.startswith("cleo: ")
    assert warnings["host_stopped_early"].summary.startswith(
        "bea stopped early, after 40 blocks (interr"
    )
    assert all(
        f"equipoise resume {document.run.id}" in warning.hint for warning in warnings.values()
    )


def test_a_host_that_is_still_measuring_is_named_and_its_blocks_count() -> None:
    first, second, third = THREE
    document = result_of(first, second, replace(third, stopped_because=None, blocks=25))
    assert document.fleet is not None
    assert document.fleet.hosts[2].state == "not ended"
    assert only(document).blocks == 105
    assert only(document).ratio is not None
    assert [warning.code for warning in document.warnings] == ["host_not_ended"]


def test_campaigns_on_one_host_have_no_claims_between_hosts() -> None:
    identity = identity_of("ada")
    document = result_of(*(ScriptedHost("ada", 0.05, identity=identity) for _ in range(3)))
    comparison, fleet = only(document), document.fleet
    assert fleet is not None and comparison.fleet is not None
    assert fleet.is_one_host
    assert [host.host for host in fleet.hosts] == ["ada (1)", "ada (2)", "ada (3)"]
    assert comparison.verdict == "slower"
    assert comparison.summary.startswith("Over the 3 campaigns on ada: ")
    answers = comparison.fleet
    between = (
        answers.differences,
        answers.new_host,
        answers.median_of_hosts,
        answers.new_host_if_normal,
    )
    for answer in (*between, answers.variances):
        assert answer.unknown_because is not None and "one host" in answer.unknown_because
    assert answers.by_property == ()


def test_effects_are_listed_by_the_properties_that_hosts_differ_by() -> None:
    answers = only(result_of()).fleet
    assert answers is not None
    by_name = {effect.name: effect for effect in answers.by_property}
    assert set(by_name) == {"kernel", "cpu_model"}
    values = {value.value: value.hosts for value in by_name["kernel"].values}
    assert values == {"6.1.0": ("ada", "bea"), "5.10.0": ("cleo",)}
    assert "not a claim" in answers.by_property_note


def test_with_enough_hosts_the_note_on_properties_names_observe() -> None:
    hosts = [
        ScriptedHost(f"h{place}", 0.02, 8, environment={"kernel": f"6.{place % 2}"})
        for place in range(20)
    ]
    answers = only(result_of(*hosts)).fleet
    assert answers is not None
    assert "equipoise observe" in answers.by_property_note


def test_several_candidates_share_alpha() -> None:
    document = result_of(plan=plan_of("a", "b", "c"))
    assert [comparison.candidate for comparison in document.comparisons] == ["b", "c"]
    assert {comparison.significance_level for comparison in document.comparisons} == {0.025}
    assert document.comparisons[1].verdict == "slower"
    assert document.comparisons[0].verdict != "slower"


def test_a_metric_without_values_is_named_with_the_hosts() -> None:
    plan = plan_of(judgement=Judgement(other_metrics=("requests_per_s",)))
    document = result_of(plan=plan)
    assert [comparison.metric for comparison in document.comparisons] == ["wall_s"]
    unknown = [warning for warning in document.warnings if warning.code == "metric_unknown"]
    # Hosts whose first trial is of the same condition share a warning.
    hosts = [warning.summary.partition(": ")[0] for warning in unknown]
    assert hosts == ["ada", "bea and cleo"]


def test_one_command_has_a_median_for_each_host_and_no_comparison() -> None:
    document = result_of(plan=plan_of("a"))
    assert document.comparisons == ()
    assert document.fleet is not None
    medians = [host.conditions[0].median for host in document.fleet.hosts]
    assert all(median is not None and 0.015 < median < 0.03 for median in medians)


def test_primitives_have_a_median_for_each_row_and_host() -> None:
    plan = plan_of("fork", "exec")
    conditions = tuple(replace(condition, reports=("user_s",)) for condition in plan.conditions)
    plan = replace(plan, study="os", conditions=conditions, chosen_contrasts=())
    document = result_of(plan=plan)
    assert document.fleet is not None and document.comparisons == ()
    described = [condition.metric for host in document.fleet.hosts for condition in host.conditions]
    assert described == ["user_s"] * 6


def test_trials_have_their_host_and_no_distribution_mixes_hosts() -> None:
    document = result_of()
    assert len(document.trials) == 240
    assert {row.host for row in document.trials} == {"ada", "bea", "cleo"}
    assert [condition.metrics for condition in document.conditions] == [{}, {}]
    assert [condition.trials for condition in document.conditions] == [120, 120]


def test_the_environment_has_the_facts_that_all_hosts_share() -> None:
    environment = result_of().environment
    assert environment["governor"] == "performance"
    assert "kernel" not in environment and "cpu_model" not in environment


def test_the_control_of_each_host_checks_its_host() -> None:
    plan = replace(plan_of("a", "control", "b"), control=1)
    document = result_of(*THREE[:2], plan=plan)
    assert [comparison.candidate for comparison in document.comparisons] == ["b"]
    assert document.fleet is not None
    assert [host.control_excludes_one for host in document.fleet.hosts] == [False] * 2
    assert [condition.name for condition in document.conditions] == ["a", "b"]


def test_the_document_comes_back_from_its_json() -> None:
    document = result_of()
    assert decode(encode(document), "result.json") == document


def test_weights_are_those_that_were_declared() -> None:
    record = fleet_record()
    assert isinstance(record.plan.terms, FleetPlan)
    fleet = replace(record.plan.terms, weights=(0.8, 0.1, 0.1))
    weighted = of_fleet(analyse_campaign(replace(record, plan=replace(record.plan, terms=fleet))))
    comparison = only(weighted)
    logs = [math.log(host.ratio) for host in comparison.hosts if host.ratio is not None]
    assert comparison.ratio == pytest.approx(
        math.exp(0.8 * logs[0] + 0.1 * (logs[1] + logs[2])), rel=1e-12
    )
    assert [host.weight for host in comparison.hosts] == [0.8, 0.1, 0.1]


def test_values_of_variables_are_hidden_in_the_campaigns_of_all_hosts() -> None:
    conditions = tuple(
        Condition(name, (f"/bin/{name}",), environment={"TOKEN": "s3cret-value-9"}) for name in "ab"
    )
    record = fleet_record(plan=replace(plan_of(), conditions=conditions))
    assert isinstance(record.plan.terms, FleetPlan)
    words = ("equipoise", "compare", "TOKEN=s3cret-value-9 a", "b")
    record = replace(record, plan=replace(record.plan, command_line=words))
    (hidden,) = hide_values([record])
    assert len(hidden.members) == 3
    assert "s3cret-value-9" not in repr(hidden)
