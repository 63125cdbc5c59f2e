"""The plan of a campaign that tests explanations of another one's gap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from equipoise.model.errors import UnusableInput
from equipoise.model.plan import (
    WHY_STUDY,
    Condition,
    Contrast,
    ExperimentPlan,
    Judgement,
    OmittedIntervention,
    Plan,
    PlannedIntervention,
    Stopping,
)
from equipoise.model.record import RunRecord
from equipoise.model.why import Explanation
from equipoise.why.experiment.tries import BASELINE, CANDIDATE
from equipoise.why.interventions.intervention import Alter, Intervention

INTERVENTION = "intervention"
"""The factor whose level says what a condition is changed by."""

MOST_ATTEMPTS = 4
"""Each one more makes every interval wider and every block rarer."""


class NothingToTry(UnusableInput):
    """No intervention can test here what was found."""


@dataclass(frozen=True, slots=True)
class OpenGap:
    """What is to be explained."""

    record: RunRecord
    contrast: Contrast
    """Whose gap it is, in the plan of the record."""
    causes: tuple[Explanation, ...] = ()
    """What evidence suggests, all open; none before there is evidence."""

    @property
    def pair(self) -> tuple[Condition, Condition]:
        """The baseline and the candidate."""
        conditions = self.record.plan.conditions
        return (conditions[self.contrast.baseline], conditions[self.contrast.candidate])


def plan_of_interventions(
    gap: OpenGap,
    interventions: Sequence[Intervention],
    *,
    stopping: Stopping,
    alpha: float,
    seed: int,
    most: int = MOST_ATTEMPTS,
) -> Plan:
    """Plan a campaign that tries interventions on both conditions of a gap.

    Parameters
    ----------
    interventions
        The first for the cause with the most seconds. Of those that test a cause, so many are
        tried; the user's own always.
    alpha
        Shared by all that are tried.

    Raises
    ------
    NothingToTry
        No intervention can test it here.
    """
    tried, left_out = _chosen(gap, interventions, most)
    if not tried:
        reasons = "; ".join(f"{one.words}: {one.because}" for one in left_out)
        raise NothingToTry(
            "no intervention can test what was found" + (f" ({reasons})" if reasons else ""),
            hint="try a change of your own: --try 'NAME:KEY=VALUE' or --try-command NAME=CMD",
        )
    explained = gap.record.plan
    conditions, attempts = _conditions_and_attempts(gap, tried)
    return replace(
        explained,
        study=WHY_STUDY,
        conditions=conditions,
        measure=replace(explained.measure, warmup=max(1, explained.measure.warmup)),
        stopping=stopping,
        judgement=Judgement(alpha=alpha, min_effect=explained.judgement.min_effect),
        seed=seed,
        control=None,
        chosen_contrasts=(replace(gap.contrast, baseline=BASELINE, candidate=CANDIDATE),),
        sizes=(),
        explains=ExperimentPlan(gap.record.id, gap.causes, attempts, left_out),
    )


def _chosen(
    gap: OpenGap, interventions: Sequence[Intervention], most: int
) -> tuple[list[Intervention], tuple[OmittedIntervention, ...]]:
    """Those that are tried, and the others with the reason."""
    tried: list[Intervention] = []
    left_out: list[OmittedIntervention] = []
    for one in interventions:
        because = _impossible(gap, one)
        if because is None and one.causes and sum(bool(other.causes) for other in tried) >= most:
            because = f"{most} others came first; --only {one.name} tries it"
        if because is None:
            tried.append(one)
        else:
            omitted = OmittedIntervention(one.name, one.summary, _causes(gap, one), because)
            left_out.append(omitted)
    return tried, tuple(left_out)


def _impossible(gap: OpenGap, one: Intervention) -> str | None:
    if one.impossible_because is not None:
        return one.impossible_because
    if all(one.alter(condition) == condition for condition in gap.pair):
        return "both conditions are so already"
    return None


def _conditions_and_attempts(
    gap: OpenGap, interventions: Iterable[Intervention]
) -> tuple[tuple[Condition, ...], tuple[PlannedIntervention, ...]]:
    baseline, candidate = gap.pair
    conditions = [baseline, candidate]
    attempts: list[PlannedIntervention] = []

    def both(level: str, alter: Alter) -> tuple[int, int]:
        first = len(conditions)
        conditions.extend(_altered(each, level, alter) for each in (baseline, candidate))
        return (first, first + 1)

    tried = list(interventions)
    most_seconds = max((_seconds(gap, one) for one in tried), default=0.0)
    for one in tried:
        without = (BASELINE, CANDIDATE)
        if one.sham is not None:
            without = both(f"a sham of {_spoken(one)}", one.sham)
        changed = both(_spoken(one), one.alter)
        # What the user asks for is as urgent as the largest cause.
        seconds = _seconds(gap, one) if one.causes else most_seconds
        attempts.append(
            PlannedIntervention(
                intervention=one.name,
                words=one.summary,
                causes=_causes(gap, one),
                baseline_with=changed[0],
                candidate_with=changed[1],
                baseline_without=without[0],
                candidate_without=without[1],
                weight=seconds if most_seconds > 0.0 else 1.0,
                advice=one.advice,
                only_confirms=one.only_confirms,
                asked_by=one.asked_by,
            )
        )
    return tuple(conditions), tuple(attempts)


def _altered(condition: Condition, level: str, alter: Alter) -> Condition:
    changed = alter(condition)
    return replace(
        changed,
        name=f"{condition.name}, with {level}",
        # What tells it from the others where conditions are checked level by level.
        levels={**changed.levels, INTERVENTION: level},
    )


def _spoken(one: Intervention) -> str:
    return one.name.replace("_", " ")


def _causes(gap: OpenGap, one: Intervention) -> tuple[str, ...]:
    return tuple(dict.fromkeys(c.cause for c in gap.causes if c.cause in one.causes))


def _seconds(gap: OpenGap, one: Intervention) -> float:
    return sum(max(0.0, c.seconds or 0.0) for c in gap.causes if c.cause in one.causes)
