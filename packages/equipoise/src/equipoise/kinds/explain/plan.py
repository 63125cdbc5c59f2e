"""The plan of an experiment: a campaign that tests causes of another campaign's gap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from equipoise.campaign.verification import check_effects, mapped_by_condition
from equipoise.design.site import Site
from equipoise.kinds.explain.judge import BASELINE, CANDIDATE, attempts_of
from equipoise.kinds.explain.reach import Observe, UnalteredEvidence, reach_checks_of, reaches_any
from equipoise.kinds.explain.terms import (
    STUDY,
    ExperimentPlan,
    OmittedIntervention,
    PlannedIntervention,
    experiment_of,
)
from equipoise.measure.trials import own_environment
from equipoise.model.errors import ConditionFailed, TookNoEffect, UnusableInput
from equipoise.model.plan import Condition, Contrast, Judgement, Plan, Stopping
from equipoise.model.record import Observation, RunRecord
from equipoise.model.why import Explanation
from equipoise.shared.spelling import option
from equipoise.why.evidence.collect import EvidenceRun, collect
from equipoise.why.interventions.catalogue import proposed_interventions, relevant_interventions
from equipoise.why.interventions.intervention import Alter, Case, Intervention

ONLY_OPTION = "--only"

INTERVENTION_FACTOR = "intervention"
"""Factor whose level names the intervention of a condition."""

MAX_ATTEMPTS = 4
"""Largest number of attempts for causes. Each attempt widens all intervals and takes blocks."""


class NothingToTry(UnusableInput):
    """Error for a gap with no cause that an intervention can test on this host."""


class GapWithCauses(Struct, frozen=True):
    """A gap, and the causes that may explain it."""

    record: RunRecord
    """Campaign with the gap."""
    contrast: Contrast
    causes: tuple[Explanation, ...] = ()
    """Open causes that the evidence suggests; empty before there is evidence."""
    unaltered_evidence: UnalteredEvidence = UnalteredEvidence()
    longest_trial_s: float = 0.0
    """Seconds of the longest trial of the two conditions."""
    ratio: float | None = None
    """Ratio of the gap, or the end of its interval if that is nearer to 1."""

    @property
    def conditions(self) -> tuple[Condition, Condition]:
        """The baseline and the candidate."""
        conditions = self.record.plan.conditions
        return (conditions[self.contrast.baseline], conditions[self.contrast.candidate])

    def case(self, site: Site) -> Case:
        """Return the `Case` for which the catalogue chooses interventions."""
        output = self.record.plan.measure.output
        return Case(self.conditions, site, self.causes, output, ratio=self.ratio)


class ExperimentRequest(Struct, frozen=True):
    """The interventions to try, and the limits of the experiment."""

    stopping: Stopping
    alpha: float
    seed: int
    user_interventions: tuple[Intervention, ...] = ()
    only: tuple[str, ...] = ()
    """Names of the interventions of the catalogue to try; if empty, all that fit a cause."""
    max_attempts: int = MAX_ATTEMPTS
    """Largest number of attempts for causes; interventions in ``only`` always run."""
    command_line: tuple[str, ...] = ()
    """Arguments of the command line; empty if another command than ``why`` tests the causes."""


def check_names(gap: GapWithCauses, request: ExperimentRequest, site: Site) -> None:
    """Raise `UnusableInput` if a name in ``only`` is unknown, or two interventions share a name."""
    if not (request.only or request.user_interventions):
        # Do not examine this host for nothing: the campaign may be from another host.
        return
    offered_names = [intervention.name for intervention in relevant_interventions(gap.case(site))]
    for name in request.only:
        if name not in offered_names:
            raise UnusableInput(
                f"{ONLY_OPTION} {name}: there is no such intervention for these two conditions",
                hint=f"name one or more of {', '.join(offered_names)}",
            )
    name_counts = Counter({*(request.only or offered_names)})
    name_counts.update(intervention.name for intervention in request.user_interventions)
    name, count = name_counts.most_common(1)[0]
    if count > 1:
        raise UnusableInput(
            f"two interventions are called {name}",
            hint="give the intervention that you added another name",
        )


def plan_experiment(gap: GapWithCauses, request: ExperimentRequest, site: Site) -> Plan:
    """Plan the experiment that tests the causes of a gap.

    Some interventions need one observed run, which shows whether they change their cause. Raise
    `NothingToTry` if no intervention can test the causes on this host. Raise `UnusableInput` if the
    request names an unknown intervention, or two have the same name.
    """
    check_names(gap, request, site)
    case = gap.case(site)
    if request.only:
        by_name = {intervention.name: intervention for intervention in relevant_interventions(case)}
        interventions = [by_name[name] for name in dict.fromkeys(request.only)]
    else:
        interventions = list(proposed_interventions(case))
    return effective_plan(gap, [*interventions, *request.user_interventions], request)


def observe_once(gap: GapWithCauses) -> Observe:
    """Return a function that makes one observed run, with a limit from the longest trial."""

    def observe(plan: Plan, run: EvidenceRun) -> Observation | None:
        try:
            (observation,) = collect(plan, (run,), longest_trial_s=gap.longest_trial_s)
        except ConditionFailed:
            # The experiment reports the failure, and continues with the other interventions.
            return None
        return observation

    return observe


def effective_plan(
    gap: GapWithCauses,
    interventions: Sequence[Intervention],
    request: ExperimentRequest,
    observe: Observe | None = None,
) -> Plan:
    """Return the plan with the interventions that take effect on this host.

    An intervention without effect is omitted. An intervention that reaches no cause is an attempt
    without a block. In both cases the plan is made again, with the next intervention. ``observe``
    makes observed runs; its default is `observe_once`. Raise `NothingToTry` if no intervention is
    left. Raise `TookNoEffect` if a setting of the gap's own conditions takes no effect.
    """
    environment = own_environment()
    remaining = list(interventions)
    while True:
        plan = plan_of_interventions(gap, remaining, request)
        try:
            check_effects(plan, mapped_by_condition(plan, environment), environment)
        except TookNoEffect as error:
            name = _intervention_in(plan, error.condition)
            if name is None:
                raise
            remaining = [
                replace(intervention, impossible_because=error.what)
                if intervention.name == name
                else intervention
                for intervention in remaining
            ]
        else:
            reachable = [intervention.may_reach_cause for intervention in remaining]
            remaining = _with_reach_checks(plan, remaining, gap, observe or observe_once(gap))
            if reachable == [intervention.may_reach_cause for intervention in remaining]:
                return plan_of_interventions(gap, remaining, request)


def _with_reach_checks(
    plan: Plan, interventions: Sequence[Intervention], gap: GapWithCauses, observe: Observe
) -> list[Intervention]:
    """Return the interventions, with the reach checks of all attempts in the plan."""
    attempt_by_name = {attempt.intervention: attempt for attempt in experiment_of(plan).attempts}
    checked = list(interventions)
    for index, intervention in enumerate(checked):
        attempt = attempt_by_name.get(intervention.name)
        if attempt is not None and intervention.reach_checks is None:
            checks = reach_checks_of(
                plan, attempt, intervention.changed_property, gap.unaltered_evidence, observe
            )
            may_reach_cause = reaches_any(plan, attempt, checks)
            checked[index] = replace(
                intervention, reach_checks=checks, may_reach_cause=may_reach_cause
            )
    return checked


def _intervention_in(plan: Plan, condition: str) -> str | None:
    """Return the name of the intervention in a condition; ``None`` for the gap's two conditions."""
    index = [planned.name for planned in plan.conditions].index(condition)
    attempts = attempts_of(experiment_of(plan), plan.judgement)
    names = (attempt.planned.intervention for attempt in attempts if index in attempt.conditions)
    return next(names, None)


def plan_of_interventions(
    gap: GapWithCauses, interventions: Sequence[Intervention], request: ExperimentRequest
) -> Plan:
    """Plan an experiment with interventions; raise `NothingToTry` if none can test a cause."""
    max_attempts = max(request.max_attempts, len(request.only))
    attempted: list[Intervention] = []
    omitted: list[OmittedIntervention] = []
    for intervention in interventions:
        name, alter = intervention.name, intervention.alter
        reason = intervention.impossible_because
        if reason is None and all(alter(condition) == condition for condition in gap.conditions):
            reason = "both conditions already have this change"
        attempt_count = sum(bool(other.causes) and other.may_reach_cause for other in attempted)
        if reason is None and intervention.causes and attempt_count >= max_attempts:
            reason = f"{max_attempts} others came first; add {option('only', name)} to try this one"
        if reason is None:
            attempted.append(intervention)
        else:
            causes = _tested_causes(gap, intervention)
            omitted.append(OmittedIntervention(name, intervention.summary, causes, reason))
    if not attempted:
        clauses = "; ".join(f"{planned.summary}: {planned.because}" for planned in omitted)
        raise NothingToTry(
            "no intervention can test a cause of this gap" + (f" ({clauses})" if clauses else ""),
            hint=f"try a change of your own: {option('try')} 'NAME:KEY=VALUE' or "
            f"{option('try_command', 'NAME=CMD')}",
        )
    explained_plan = gap.record.plan
    conditions, attempts = _conditions_and_attempts(gap, attempted)
    return replace(
        explained_plan,
        study=STUDY,
        conditions=conditions,
        measure=replace(
            explained_plan.measure, warmup=max(1, explained_plan.measure.warmup), cpu_sets=()
        ),
        stopping=request.stopping,
        judgement=Judgement(alpha=request.alpha, min_effect=explained_plan.judgement.min_effect),
        seed=request.seed,
        control=None,
        chosen_contrasts=(replace(gap.contrast, baseline=BASELINE, candidate=CANDIDATE),),
        sizes=(),
        command_line=request.command_line
        or ("equipoise", "why", gap.record.id, "--again", "--seed", str(request.seed)),
        terms=ExperimentPlan(
            gap.record.id, gap.causes, attempts, tuple(omitted), gap.record.identity
        ),
    )


def _conditions_and_attempts(
    gap: GapWithCauses, interventions: Sequence[Intervention]
) -> tuple[tuple[Condition, ...], tuple[PlannedIntervention, ...]]:
    conditions = list(gap.conditions)
    attempts: list[PlannedIntervention] = []

    def add_altered_conditions(level: str, alter: Alter) -> tuple[int, int]:
        """Add both altered conditions, and return their indexes."""
        baseline_index = len(conditions)
        conditions.extend(_altered(condition, level, alter) for condition in gap.conditions)
        return (baseline_index, baseline_index + 1)

    seconds = {
        intervention.name: _seconds_of_causes(gap, intervention) for intervention in interventions
    }
    max_seconds = max(seconds.values())
    for intervention in interventions:
        level, indexes_without = intervention.name.replace("_", " "), (BASELINE, CANDIDATE)
        if intervention.sham is not None:
            indexes_without = add_altered_conditions(f"a sham of {level}", intervention.sham)
        baseline_without, candidate_without = indexes_without
        baseline_with, candidate_with = add_altered_conditions(level, intervention.alter)
        # The user's own interventions have the weight of the largest cause.
        weight = seconds[intervention.name] if intervention.causes else max_seconds
        attempts.append(
            PlannedIntervention(
                intervention=intervention.name,
                summary=intervention.summary,
                causes=_tested_causes(gap, intervention),
                baseline_with=baseline_with,
                candidate_with=candidate_with,
                baseline_without=baseline_without,
                candidate_without=candidate_without,
                weight=weight if max_seconds > 0.0 else 1.0,
                advice=intervention.advice,
                cannot_refute=intervention.cannot_refute,
                reach_checks=intervention.reach_checks or (),
                may_reach_cause=intervention.may_reach_cause,
            )
        )
    return tuple(conditions), tuple(attempts)


def _altered(condition: Condition, level: str, alter: Alter) -> Condition:
    changed_condition = alter(condition)
    return replace(
        changed_condition,
        name=f"{condition.name}, with {level}",
        # Conditions with levels must differ in at least one level.
        levels={**changed_condition.levels, INTERVENTION_FACTOR: level},
    )


def _tested_causes(gap: GapWithCauses, intervention: Intervention) -> tuple[str, ...]:
    names = dict.fromkeys(cause.cause for cause in gap.causes)
    return tuple(name for name in names if name in intervention.causes)


def _seconds_of_causes(gap: GapWithCauses, intervention: Intervention) -> float:
    causes = (cause for cause in gap.causes if cause.cause in intervention.causes)
    return sum(max(0.0, cause.seconds or 0.0) for cause in causes)
