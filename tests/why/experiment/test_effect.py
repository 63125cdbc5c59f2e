"""An intervention that takes no effect is left out with its reason, and the others are tried."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence

import pytest

from equipoise.model.errors import TookNoEffect, UnusableInput
from equipoise.model.plan import Condition, Plan, Stopping
from equipoise.why.experiment.effect import plan_that_takes_effect
from equipoise.why.experiment.plan import plan_of_interventions
from equipoise.why.interventions.intervention import Intervention
from tests.plans import plan_of
from tests.why.experiment.test_plan import gap, intervention, setting

MISSING = setting(LD_PRELOAD="/nowhere/libmissing.so")


def made(*interventions: Intervention, preloads: str | None = None) -> Plan:
    """The plan over a real program, of which the second may preload something itself."""
    own = {} if preloads is None else {"LD_PRELOAD": preloads}
    conditions = (
        Condition("a", (sys.executable, "-c", "")),
        Condition("b", (sys.executable, "-c", ""), environment=own),
    )
    explained = dataclasses.replace(plan_of(), conditions=conditions)

    def make(left: Sequence[Intervention]) -> Plan:
        return plan_of_interventions(
            gap(0.01, plan=explained), left, stopping=Stopping(), alpha=0.05, seed=1
        )

    return plan_that_takes_effect(make, interventions)


def test_a_preload_that_is_not_mapped_is_told_and_the_others_are_tried() -> None:
    plan = made(intervention("missing", "cause 0", alter=MISSING), intervention("seen", "cause 0"))
    assert plan.explains is not None
    assert [one.intervention for one in plan.explains.attempts] == ["seen"]
    (left_out,) = plan.explains.not_tried
    assert left_out.intervention == "missing"
    assert "libmissing.so is not mapped" in left_out.because


def test_a_sham_that_takes_no_effect_leaves_its_intervention_out() -> None:
    plan = made(intervention("odd", "cause 0", sham=MISSING), intervention("seen", "cause 0"))
    assert plan.explains is not None
    assert [one.intervention for one in plan.explains.attempts] == ["seen"]


def test_with_nothing_left_it_says_why() -> None:
    with pytest.raises(UnusableInput, match="libmissing.so is not mapped"):
        made(intervention("missing", "cause 0", alter=MISSING))


def test_a_condition_of_the_gap_that_took_no_effect_is_an_error() -> None:
    with pytest.raises(TookNoEffect, match="b did not take effect"):
        made(intervention("seen", "cause 0"), preloads="/nowhere/libmissing.so")
