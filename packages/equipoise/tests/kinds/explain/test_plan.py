"""The plan of a campaign that tests explanations."""

from __future__ import annotations

import sys

import msgspec.structs
import pytest

from equipoise.kinds.explain.plan import (
    ExperimentRequest,
    GapWithCauses,
    effective_plan,
    plan_of_interventions,
)
from equipoise.kinds.explain.terms import experiment_of
from equipoise.model.errors import TookNoEffect, UnusableInput
from equipoise.model.plan import Condition, Contrast, Judgement, Measure, Plan, Stopping
from equipoise.model.record import RunRecord
from equipoise.why.interventions.intervention import Alter, Intervention
from packages.equipoise.tests.kinds.explain.simulated import cause_of
from packages.equipoise.tests.plans import plan_of


def setting(**environment: str) -> Alter:
    """Return a function that sets variables of a condition."""
    return lambda condition: msgspec.structs.replace(
        condition, environment={**condition.environment, **environment}
    )


def intervention(name: str, *causes: str, **more: object) -> Intervention:
    """Return an intervention that sets a variable of its own name."""
    made = Intervention(name, f"setting {name}", frozenset(causes), setting(**{name: "1"}))
    return msgspec.structs.replace(made, **more)


def gap(
    *seconds: float, plan: Plan | None = None, contrast: Contrast | None = None
) -> GapWithCauses:
    """Return a gap with causes ``cause 0``, ``cause 1`` … of these seconds."""
    record = RunRecord("20260301-101500-ab12", plan or plan_of(), 1.7e9, (), (), (), ())
    causes = tuple(
        msgspec.structs.replace(cause_of(f"cause {place}"), seconds=second)
        for place, second in enumerate(seconds)
    )
    return GapWithCauses(record, contrast or Contrast(0, 1), causes)


def planned_experiment(
    gap_with_causes: GapWithCauses, *interventions: Intervention, most: int = 4
) -> Plan:
    request = ExperimentRequest(Stopping(blocks=50), alpha=0.05, seed=3, max_attempts=most)
    return plan_of_interventions(gap_with_causes, interventions, request)


def test_the_gap_comes_first_and_each_intervention_is_made_to_both() -> None:
    plan = planned_experiment(gap(0.01), intervention("never_mmap", "cause 0"))
    assert [condition.name for condition in plan.conditions] == [
        "a",
        "b",
        "a, with never mmap",
        "b, with never mmap",
    ]
    assert [condition.environment for condition in plan.conditions] == [{}, {}] + [
        {"never_mmap": "1"}
    ] * 2
    assert plan.contrasts == (Contrast(0, 1),)
    assert plan.study == "why"
    assert experiment_of(plan).run == "20260301-101500-ab12"
    (attempt,) = experiment_of(plan).attempts
    assert (attempt.baseline_without, attempt.candidate_without) == (0, 1)
    assert (attempt.baseline_with, attempt.candidate_with) == (2, 3)
    assert attempt.causes == ("cause 0",)


def test_a_sham_has_conditions_of_its_own() -> None:
    plan = planned_experiment(
        gap(0.01),
        intervention("other", "cause 0"),
        intervention("preload", "cause 0", sham=setting(nothing="1")),
    )
    assert [condition.name for condition in plan.conditions[4:]] == [
        "a, with a sham of preload",
        "b, with a sham of preload",
        "a, with preload",
        "b, with preload",
    ]
    attempt = experiment_of(plan).attempts[1]
    assert (attempt.baseline_without, attempt.candidate_without) == (4, 5)
    assert (attempt.baseline_with, attempt.candidate_with) == (6, 7)


def test_the_pair_may_stand_anywhere_in_the_campaign_that_is_explained() -> None:
    explained = msgspec.structs.replace(
        plan_of("a", "b", "c", judgement=Judgement(min_effect=2.0, other_metrics=("user_s",))),
        control=0,
    )
    contrast = Contrast(2, 1, "allocator", {"rows": "445"})
    plan = planned_experiment(
        gap(0.01, plan=explained, contrast=contrast), intervention("x", "cause 0")
    )
    assert [condition.name for condition in plan.conditions[:2]] == ["c", "b"]
    assert plan.contrasts == (Contrast(0, 1, "allocator", {"rows": "445"}),)
    assert plan.judgement == Judgement(alpha=0.05, min_effect=2.0)
    assert plan.control is None


def test_the_first_are_tried_and_the_user_s_own_always() -> None:
    plan = planned_experiment(
        gap(0.01),
        *(intervention(name, "cause 0") for name in "pqr"),
        intervention("mine"),
        most=2,
    )
    assert [attempt.intervention for attempt in experiment_of(plan).attempts] == ["p", "q", "mine"]
    assert experiment_of(plan).attempts[2].causes == ()
    (left_out,) = experiment_of(plan).omitted
    assert (left_out.intervention, left_out.causes) == ("r", ("cause 0",))
    assert left_out.because == "2 others came first; add --only r to try this one"


def test_an_impossible_intervention_is_left_out_with_its_reason() -> None:
    plan = planned_experiment(
        gap(0.01),
        intervention("jemalloc", "cause 0", impossible_because="libjemalloc2 is not installed"),
        intervention("nothing", "cause 0", alter=setting()),
        intervention("x", "cause 0"),
    )
    assert {
        omission.intervention: omission.because for omission in experiment_of(plan).omitted
    } == {
        "jemalloc": "libjemalloc2 is not installed",
        "nothing": "both conditions already have this change",
    }
    assert len(plan.conditions) == 4


def test_an_intervention_for_more_seconds_is_drawn_more_often() -> None:
    plan = planned_experiment(
        gap(0.03, 0.01),
        intervention("both", "cause 0", "cause 1"),
        intervention("second", "cause 1"),
        intervention("mine"),
    )
    weights = [attempt.weight for attempt in experiment_of(plan).attempts]
    assert weights == pytest.approx([0.04, 0.01, 0.04])


def test_causes_of_unknown_seconds_are_drawn_equally_often() -> None:
    plan = planned_experiment(gap(0.0), intervention("x", "cause 0"), intervention("mine"))
    assert [attempt.weight for attempt in experiment_of(plan).attempts] == [1.0, 1.0]


def test_every_condition_warms_up_so_that_one_that_cannot_run_is_found_there() -> None:
    plan = planned_experiment(
        gap(0.01, plan=plan_of(measure=Measure("/", warmup=0))), intervention("x", "cause 0")
    )
    assert plan.measure.warmup == 1


def test_with_nothing_to_try_the_error_has_the_reasons() -> None:
    with pytest.raises(UnusableInput, match="setting x: no such library") as caught:
        planned_experiment(
            gap(0.01), intervention("x", "cause 0", impossible_because="no such library")
        )
    assert caught.value.hint is not None
    assert "--try" in caught.value.hint


def test_conditions_with_levels_differ_in_one_more_level() -> None:
    leveled = Condition("a", ("/bin/a",), levels={"allocator": "glibc"})
    plan = msgspec.structs.replace(plan_of(), conditions=(leveled, leveled))
    result = planned_experiment(gap(0.01, plan=plan), intervention("never_mmap", "cause 0"))
    assert result.conditions[2].levels == {"allocator": "glibc", "intervention": "never mmap"}


MISSING = setting(LD_PRELOAD="/nowhere/libmissing.so")


def effective_experiment(*interventions: Intervention, preloads: str | None = None) -> Plan:
    """The plan over a real program, of which the second may preload something itself."""
    user_interventions = {} if preloads is None else {"LD_PRELOAD": preloads}
    conditions = (
        Condition("a", (sys.executable, "-c", "")),
        Condition("b", (sys.executable, "-c", ""), environment=user_interventions),
    )
    explained = msgspec.structs.replace(plan_of(), conditions=conditions)

    request = ExperimentRequest(Stopping(), alpha=0.05, seed=1)
    return effective_plan(gap(0.01, plan=explained), interventions, request)


def test_a_preload_that_is_not_mapped_is_reported_and_the_others_are_tried() -> None:
    plan = effective_experiment(
        intervention("missing", "cause 0", alter=MISSING), intervention("seen", "cause 0")
    )
    assert [attempt.intervention for attempt in experiment_of(plan).attempts] == ["seen"]
    (left_out,) = experiment_of(plan).omitted
    assert left_out.intervention == "missing"
    assert "does not load /nowhere/libmissing.so" in left_out.because


def test_a_sham_that_takes_no_effect_leaves_its_intervention_out() -> None:
    plan = effective_experiment(
        intervention("odd", "cause 0", sham=MISSING), intervention("seen", "cause 0")
    )
    assert [attempt.intervention for attempt in experiment_of(plan).attempts] == ["seen"]


def test_with_nothing_left_the_error_has_the_reasons() -> None:
    with pytest.raises(UnusableInput, match="does not load /nowhere/libmissing.so"):
        effective_experiment(intervention("missing", "cause 0", alter=MISSING))


def test_a_condition_of_the_gap_that_took_no_effect_is_an_error() -> None:
    with pytest.raises(TookNoEffect, match="b did not take effect"):
        effective_experiment(intervention("seen", "cause 0"), preloads="/nowhere/libmissing.so")
