"""Leaving out the interventions that take no effect here, before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from equipoise.campaign.verification import check_that_each_took_effect, mapped_by_condition
from equipoise.measure.trials import own_environment
from equipoise.model.errors import TookNoEffect
from equipoise.model.plan import Plan
from equipoise.why.experiment.tries import BASELINE, CANDIDATE
from equipoise.why.interventions.intervention import Intervention

MakePlan = Callable[[Sequence[Intervention]], Plan]


def plan_that_takes_effect(make: MakePlan, interventions: Sequence[Intervention]) -> Plan:
    """The plan without those interventions that would be a condition under another name.

    What takes no effect is among what the plan did not try, with the reason.

    Raises
    ------
    TookNoEffect
        One of the two conditions of the gap itself is not what its name says.
    NothingToTry
        None is left.
    """
    environment = own_environment()
    left = list(interventions)
    while True:
        plan = make(left)
        try:
            check_that_each_took_effect(plan, mapped_by_condition(plan, environment), environment)
        except TookNoEffect as error:
            name = _whose(plan, error.condition)
            if name is None:
                raise
            left = [
                replace(one, impossible_because=error.what) if one.name == name else one
                for one in left
            ]
        else:
            return plan


def _whose(plan: Plan, condition: str) -> str | None:
    """The intervention that made this condition; ``None`` for one of the gap's own."""
    place = [one.name for one in plan.conditions].index(condition)
    if place in (BASELINE, CANDIDATE) or plan.explains is None:
        return None
    for one in plan.explains.attempts:
        own = {one.baseline_without, one.candidate_without, one.baseline_with, one.candidate_with}
        if place in own:
            return one.intervention
    return None
