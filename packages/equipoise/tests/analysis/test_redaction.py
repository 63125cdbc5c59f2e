"""Reports of a campaign hold values of variables only if these are known tuning variables."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from equipoise.analysis.redaction import (
    hide_document_values,
    hide_values,
    hide_variables,
    value_replacements,
)
from equipoise.analysis.result import analyse_campaign
from equipoise.design.command_line import command_of_plan
from equipoise.kinds.bisect.terms import BisectPlan
from equipoise.kinds.explain.terms import ExperimentPlan, PlannedIntervention, experiment_of
from equipoise.model.plan import Condition, Contrast, Hooks, Plan, Server
from equipoise.model.record import Draw, RecordedWarning, RunRecord, Segment, Trial
from equipoise.model.revisions import Revision
from equipoise.model.why import Explanation, ReachCheck
from equipoise.revisions.terms import commits_terms
from equipoise.why.gap import explains_gap
from packages.equipoise.tests.plans import plan_of, trial_of
from packages.equipoise.tests.schema import validated

CANARY = "s3cr3t-canary"
OTHER = "0ther-canary"


def record_of(*conditions: Condition, **changes: Any) -> RunRecord:
    """A campaign of six blocks of these conditions."""
    plan = replace(plan_of("a", "b"), conditions=conditions or plan_of("a", "b").conditions)
    draws = tuple(Draw("measured", block, (0, 1), 0) for block in range(1, 7))
    trials = tuple(trial_of(draw, place, 0.01 + place / 1000) for draw in draws for place in (0, 1))
    environment = changes.pop("environment", {"kernel": "6.18"})
    return RunRecord(
        id="20260301-101500-ab12",
        plan=replace(plan, **changes),
        started_at=1.7e9,
        segments=(Segment(1.7e9, environment, 1.7e9 + 1, "blocks"),),
        draws=draws,
        trials=trials,
        warnings=(),
    )


def shown(record: RunRecord) -> RunRecord:
    return hide_values([record])[0]


def conditions_of(record: RunRecord) -> tuple[Condition, ...]:
    return shown(record).plan.conditions


SECRET = Condition("a", ("/bin/a",), environment={"TOKEN": CANARY})
PLAIN = Condition("b", ("/bin/b",))


@pytest.mark.parametrize(
    "changed",
    [
        replace(SECRET, environment={"TOKEN": CANARY}),
        replace(SECRET, environment={}, hooks=Hooks(setup=f"export TOKEN={CANARY}")),
        replace(SECRET, environment={}, hooks=Hooks(prepare=f"TOKEN={CANARY} x")),
        replace(SECRET, environment={}, hooks=Hooks(conclude=f"env TOKEN={CANARY} x")),
        replace(SECRET, environment={}, hooks=Hooks(cleanup=f"x; TOKEN={CANARY} y")),
        replace(SECRET, environment={}, command=("/usr/bin/env", f"TOKEN={CANARY}", "a")),
        replace(SECRET, environment={}, command=("/bin/sh", "-c", f"TOKEN={CANARY} a")),
        replace(SECRET, environment={}, server=Server(("s",), {"TOKEN": CANARY})),
        replace(SECRET, environment={}, server=Server(("env", f"TOKEN={CANARY}", "s"))),
        replace(
            SECRET,
            environment={},
            server=Server(("s",), prepare=("sh", "-c", f"TOKEN={CANARY} x")),
        ),
        replace(SECRET, name=f"a with TOKEN={CANARY}"),
        replace(SECRET, name=f"a with {CANARY}", levels={"token": CANARY}),
    ],
)
def test_a_value_is_hidden_by_whichever_door_it_came(changed: Condition) -> None:
    record = record_of(changed, PLAIN)
    assert CANARY in repr(record)
    assert CANARY not in repr(shown(record))
    assert "$TOKEN" in repr(shown(record))


def test_the_values_of_tuning_variables_stay() -> None:
    tuned = replace(SECRET, environment={"MALLOC_ARENA_MAX": CANARY, "LD_PRELOAD": OTHER})
    record = record_of(tuned, PLAIN)
    assert shown(record) is record


def test_a_longer_name_is_not_that_of_a_tuning_variable() -> None:
    record = record_of(replace(SECRET, environment={"LC_API_TOKEN": CANARY}), PLAIN)
    assert conditions_of(record)[0].environment == {"LC_API_TOKEN": "$LC_API_TOKEN"}


def test_a_record_without_such_variables_is_unchanged() -> None:
    record = record_of()
    assert shown(record) is record


def test_different_values_of_a_variable_have_different_numbers() -> None:
    record = record_of(SECRET, replace(PLAIN, environment={"TOKEN": OTHER}))
    assert [condition.environment["TOKEN"] for condition in conditions_of(record)] == [
        "$TOKEN",
        "$TOKEN_2",
    ]


def test_names_that_differ_in_a_value_alone_stay_different() -> None:
    pair = tuple(
        Condition(f"env TOKEN={value} a", ("/usr/bin/env", f"TOKEN={value}", "a"))
        for value in (CANARY, OTHER)
    )
    names = [condition.name for condition in conditions_of(record_of(*pair))]
    assert names == ['env TOKEN="$TOKEN" a', 'env TOKEN="$TOKEN_2" a']


def test_names_keep_ordinary_words_and_numbers() -> None:
    """The name of a level is often the value that it sets."""
    record = record_of(
        Condition("best effort", ("/bin/a",), environment={"MODE": "best effort"}),
        Condition("1048576", ("/bin/a",), {"rows": "1048576"}, environment={"ROWS": "1048576"}),
    )
    assert [condition.name for condition in conditions_of(record)] == ["best effort", "1048576"]


def test_a_command_keeps_its_own_text() -> None:
    command = ("/bin/a", "--token", CANARY)
    assert conditions_of(record_of(replace(SECRET, command=command), PLAIN))[0].command == command


def test_messages_and_mapped_files_lose_the_values_too() -> None:
    name = f"env TOKEN='{CANARY} x' a"
    condition = Condition(name, ("/usr/bin/env", f"TOKEN={CANARY} x", "a"))
    record = record_of(condition, PLAIN, environment={"mapped": {name: {"program": "/bin/a"}}})
    failed = replace(record.trials[0], failure="exit status 1", error_tail=f"bad TOKEN={CANARY} x")
    record = replace(
        record,
        trials=(failed, *record.trials[1:]),
        warnings=(RecordedWarning("spread", f"{name} spreads widely", f"look at {name}"),),
    )
    assert CANARY not in repr(shown(record))
    assert list(shown(record).segments[0].environment["mapped"]) == ['env TOKEN="$TOKEN" a']


def test_the_variables_of_an_imported_file_are_hidden() -> None:
    facts = {"variables": {"sleep 1": {"TOKEN": CANARY, "LANG": "C"}}, "cpus": 2}
    hidden = hide_variables({"as_the_file_says": {"a.json": facts}})
    assert hidden["as_the_file_says"]["a.json"] == {
        "variables": {"sleep 1": {"TOKEN": "$TOKEN", "LANG": "C"}},
        "cpus": 2,
    }


def test_the_words_of_a_command_line_are_shown_without_hidden_values() -> None:
    program = f"env TOKEN={CANARY} ./x"
    words = ("equipoise", "run", "allocators", "--command", program, "--seed", "1")
    secret = replace(SECRET, environment={}, command=("env", f"TOKEN={CANARY}", "./x"))
    plan = shown(record_of(secret, PLAIN, command_line=words)).plan
    assert command_of_plan(plan) == (
        'equipoise run allocators --command "env TOKEN=$TOKEN ./x" --seed 1'
    )


@pytest.mark.parametrize("command", ["gate", "bisect", "history"])
def test_revisions_are_measured_again_with_the_variables_of_their_build(command: str) -> None:
    words = ("equipoise", command, "--build", f"TOKEN={CANARY} make", "--", "./bench")
    plan = shown(record_of(command_line=words)).plan
    line = f"equipoise {command} --build 'TOKEN=\"$TOKEN\" make' -- ./bench"
    assert command_of_plan(plan) == line


def test_the_terms_of_commits_have_no_values_of_their_build() -> None:
    revision, build = Revision("main", "1" * 40), f"TOKEN={CANARY} make"
    terms = BisectPlan(good=revision, bad=revision, commits=(), build=build)
    assert commits_terms(shown(record_of(terms=terms)).plan).build == 'TOKEN="$TOKEN" make'


def attempts_of(*names: str, advice: str = "") -> ExperimentPlan:
    attempts = (
        PlannedIntervention(name, name, (), 0, 1, 0, 1, 1.0, advice=advice) for name in names
    )
    return ExperimentPlan("20260301-101500-ab12", (), tuple(attempts))


def test_an_intervention_of_the_user_s_own_names_its_variable() -> None:
    words = ("--try", f"mine:TOKEN={CANARY}", "--try-command", f"near=env TOKEN={CANARY} numactl")
    explains = attempts_of("mine", "near", advice=f"TOKEN={CANARY} {{command}}")
    plan = shown(record_of(terms=explains, command_line=("equipoise", "why", *words))).plan
    assert [attempt.advice for attempt in experiment_of(plan).attempts] == [
        'TOKEN="$TOKEN" {command}'
    ] * 2
    assert plan.command_line[2:] == (
        *("--try", "mine:TOKEN=$TOKEN", "--try-command", "near=env 'TOKEN=$TOKEN' numactl"),
    )


def test_an_unchanged_output_of_an_intervention_has_no_hidden_value() -> None:
    explains = attempts_of("output_to_file")
    missed = ReachCheck(
        0, unchanged_sentence=f"/{CANARY} was written to as often as before: 9 times"
    )
    (attempt,) = explains.attempts
    explains = replace(explains, attempts=(replace(attempt, reach_checks=(missed,)),))
    hiding = Condition("a", ("/bin/a",), environment={"TOKEN": CANARY})
    plan = shown(record_of(hiding, replace(hiding, name="b"), terms=explains)).plan
    assert CANARY not in str(experiment_of(plan).attempts)


def test_the_evidence_of_a_planned_cause_names_no_hidden_value() -> None:
    cause = Explanation(
        "many_small_writes", "system_call", {"file": f"/{CANARY}"}, "open", 0.5, (None, None),
        f"/{CANARY} is written to in small pieces",
    )  # fmt: skip
    explains = replace(attempts_of("output_to_file"), causes=(cause,))
    hiding = Condition("a", ("/bin/a",), environment={"TOKEN": CANARY})
    plan = shown(record_of(hiding, replace(hiding, name="b"), terms=explains)).plan
    assert experiment_of(plan).causes[0].evidence == {"file": "/$TOKEN"}
    assert CANARY not in str(experiment_of(plan))


def test_a_gap_and_the_campaign_that_tested_it_still_belong_together() -> None:
    """The second campaign tests two of three values, so its first value has another number."""
    three = tuple(
        Condition(value, ("/bin/a",), environment={"TOKEN": value}) for value in ("x1", "x2", "x3")
    )
    record = record_of(*three)
    experiment = record_of(three[0], three[2])
    together = hide_values([record, experiment])
    assert explains_gap(together[1], together[0], Contrast(0, 2))


def document(record: RunRecord) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(validated(analyse_campaign(record)))
    return fields


def test_the_numbers_are_those_of_the_recorded_campaign() -> None:
    conditions = (SECRET, replace(PLAIN, environment={"TOKEN": OTHER}))
    record = record_of(*conditions)
    assert document(shown(record)) == document(record)


def test_a_document_with_values_in_its_commands_loses_them() -> None:
    name = f"env TOKEN={CANARY} a"
    record = record_of(
        Condition(name, ("/usr/bin/env", f"TOKEN={CANARY}", "a")),
        PLAIN,
        environment={"variables": {"LC_TOKEN": CANARY}},
    )
    assigned = hide_document_values(analyse_campaign(record))
    assert CANARY not in repr(assigned)
    assert validated(assigned).conditions[0].command == ("/usr/bin/env", "TOKEN=$TOKEN", "a")
    assert assigned.comparisons[0].baseline == assigned.conditions[0].name == 'env TOKEN="$TOKEN" a'
    assert hide_document_values(assigned) == assigned


def test_a_document_without_values_comes_back_as_it_is() -> None:
    assigned = analyse_campaign(record_of())
    assert hide_document_values(assigned) is assigned


def test_a_short_value_is_replaced_behind_its_name_alone() -> None:
    hidden = value_replacements([("N", "1"), ("N", "12")])
    assert (
        hidden.replace_in_text("N=1 and N=12, MAN=1, 1 of 12") == "N=$N and N=$N_2, MAN=1, 1 of 12"
    )


def trial_names(record: RunRecord) -> set[str]:
    return {row.condition for row in analyse_campaign(record).trials}


def test_every_part_of_a_document_calls_a_condition_the_same() -> None:
    record = record_of(replace(SECRET, name=f"a {CANARY}"), PLAIN)
    assert trial_names(shown(record)) == {"a $TOKEN", "b"}


def test_a_trial_is_kept_but_for_its_messages() -> None:
    record = record_of(SECRET, PLAIN)
    assert shown(record).trials == record.trials
    assert all(isinstance(trial, Trial) for trial in shown(record).trials)
    assert isinstance(shown(record).plan, Plan)
