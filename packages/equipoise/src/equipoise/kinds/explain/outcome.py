"""Compute the outcomes of an experiment from its record, and write the sentences about them.

The outcome of an attempt is the fraction of the gap that its intervention closes.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from equipoise.analysis.comparisons import primary_comparisons
from equipoise.campaign.blocks import complete_blocks, read_block
from equipoise.campaign.segment import ends_campaign
from equipoise.kinds.explain.judge import BASELINE, CANDIDATE, Attempt, attempts_of, end_attempts
from equipoise.kinds.explain.reach import unchanged_count_sentence
from equipoise.kinds.explain.terms import OmittedIntervention, PlannedIntervention, experiment_of
from equipoise.model.plan import Plan
from equipoise.model.quantities import counted
from equipoise.model.record import RunRecord
from equipoise.model.result import Comparison
from equipoise.model.why import Explanation, InterventionOutcome, Status
from equipoise.stats.intervention import (
    CONFIRMED_ABOVE,
    REFUTED_WITHIN,
    InterventionEffect,
    describe_fraction,
)
from equipoise.why.causes.ranking import OBSERVED_ONLY
from equipoise.why.evidence.sources import Side

TRIED_BY_USER = "tried_by_user"
"""Id that replaces the id of a cause, for an intervention that the user added."""

NOT_REACHABLE: Final = "not reachable"
"""Status of a cause that no intervention changed, and outcome of such an intervention."""

VERDICTS_WITH_GAP = ("slower", "faster", "mixed")


def tested_causes(record: RunRecord) -> tuple[Explanation, ...]:
    """Return the causes that an experiment tested, with the outcomes of their interventions.

    The causes of the plan come first, then the interventions that the user added. A cause is
    ``confirmed`` if one of its interventions is confirmed, and ``not reachable`` if no intervention
    reached it. A cause is ``refuted`` if all interventions that reached it are refuted, and one of
    them can refute a cause. In all other cases the cause is ``open``.
    """
    plan = record.plan
    blocks = complete_blocks(record.draws, record.trials)
    comparison = next(iter(primary_comparisons(plan, blocks)), None)
    attempts = attempts_of(experiment_of(plan), plan.judgement)
    for trial in record.trials:
        if ends_campaign(plan, trial):
            end_attempts(attempts, trial)
    for block in blocks.values():
        block_costs = read_block(block, plan)
        for attempt in attempts:
            attempt.add_block(block_costs)
    outcomes = [_outcome_of(attempt, plan, comparison) for attempt in attempts]
    attempted_outcomes = list(zip(experiment_of(plan).attempts, outcomes, strict=True))
    level = outcomes[0].significance_level if outcomes else 1.0
    omitted_outcomes = [
        (planned, _open_outcome(planned, f"not tried: {planned.because}", blocks=0, level=level))
        for planned in experiment_of(plan).omitted
    ]

    def outcome_for_cause(
        cause_index: int, planned: PlannedIntervention, outcome: InterventionOutcome
    ) -> InterventionOutcome:
        """Return the outcome for one cause: ``not reachable`` if the cause stayed unchanged."""
        sentence = None
        for check in planned.reach_checks:
            if check.cause_index != cause_index:
                continue
            if check.unchanged_sentence is not None and outcome.outcome != "confirmed":
                sentence = check.unchanged_sentence
            elif check.decreasing_value is not None and outcome.outcome == "refuted":
                sentence = unchanged_count_sentence(
                    check.decreasing_value, planned, blocks.values(), _slower_side(comparison)
                )
        if sentence is None:
            return outcome
        return replace(
            outcome, outcome=NOT_REACHABLE, unchanged_sentence=sentence, unknown_because=None
        )

    causes = (
        _cause_with_outcomes(
            cause,
            [
                (planned, outcome_for_cause(cause_index, planned, outcome))
                for planned, outcome in attempted_outcomes
                if cause.cause in planned.causes
            ],
            [outcome for planned, outcome in omitted_outcomes if cause.cause in planned.causes],
        )
        for cause_index, cause in enumerate(experiment_of(plan).causes)
    )
    return (
        *causes,
        *(
            _explanation_of_user_intervention(outcome)
            for planned, outcome in attempted_outcomes
            if not planned.causes
        ),
    )


def _outcome_of(attempt: Attempt, plan: Plan, comparison: Comparison | None) -> InterventionOutcome:
    effect = attempt.blocks.exact_effect()
    reason = _reason_unknown(attempt, effect, plan, comparison)
    open_outcome = _open_outcome(
        attempt.planned, reason, blocks=len(attempt.blocks), level=attempt.level
    )
    if reason is not None:
        return open_outcome
    return replace(
        open_outcome,
        outcome=effect.outcome,
        share=effect.log_fraction.estimate,
        share_ci=(effect.log_fraction.low, effect.log_fraction.high),
        share_of_seconds=effect.seconds_fraction.estimate,
        share_of_seconds_ci=(effect.seconds_fraction.low, effect.seconds_fraction.high),
        from_candidate=effect.from_candidate,
        from_baseline=effect.from_baseline,
        advice=_advice(attempt.planned, plan, comparison)
        if effect.outcome == "confirmed"
        else None,
    )


def _reason_unknown(
    attempt: Attempt, effect: InterventionEffect, plan: Plan, comparison: Comparison | None
) -> str | None:
    """Return the reason why no fraction is known (docs/methods/fraction.md), or ``None``."""
    baseline, candidate = (plan.conditions[index].name for index in (BASELINE, CANDIDATE))
    if attempt.ended_because is not None:
        return f"a condition with this change failed: {attempt.ended_because}"
    if comparison is None:
        return "no block was completed"
    if comparison.verdict == "equivalent":
        return (
            f"there is no gap to close in this campaign: {candidate} and {baseline} take the same "
            f"time, within {comparison.min_effect:g} %"
        )
    if comparison.verdict not in VERDICTS_WITH_GAP:
        return (
            f"no fraction is given, because the gap between {baseline} and {candidate} is itself "
            f"undecided after {counted(comparison.blocks, 'block')} of this campaign"
        )
    if not attempt.blocks:
        return "no block was left for this change"
    if effect.log_fraction.estimate is None:
        return "at least half of the trials with this change timed out, so no fraction is known"
    if not effect.log_fraction.intervals:
        return "no constant fraction fits the blocks with this change"
    return None


def _open_outcome(
    planned: PlannedIntervention | OmittedIntervention,
    reason: str | None,
    *,
    blocks: int,
    level: float,
) -> InterventionOutcome:
    return InterventionOutcome(
        intervention=planned.intervention,
        summary=planned.summary,
        outcome="open",
        share=None,
        share_ci=(None, None),
        share_of_seconds=None,
        share_of_seconds_ci=(None, None),
        from_candidate=None,
        from_baseline=None,
        blocks=blocks,
        significance_level=level,
        unknown_because=reason,
    )


def _advice(planned: PlannedIntervention, plan: Plan, comparison: Comparison | None) -> str | None:
    """Return the shell line that runs the slower condition with the intervention."""
    if planned.advice is None:
        return None
    slower = plan.conditions[BASELINE if _slower_side(comparison) == "baseline" else CANDIDATE]
    return planned.advice.replace("{command}", shlex.join(slower.command))


def _slower_side(comparison: Comparison | None) -> Side:
    is_baseline = comparison is not None and comparison.ratio is not None and comparison.ratio < 1.0
    return "baseline" if is_baseline else "candidate"


def _cause_with_outcomes(
    cause: Explanation,
    attempted_outcomes: Sequence[tuple[PlannedIntervention, InterventionOutcome]],
    omitted_outcomes: Sequence[InterventionOutcome],
) -> Explanation:
    """Return a cause with the outcomes of its interventions, and the resulting status."""
    outcomes = [outcome for _, outcome in attempted_outcomes]
    outcome_names = {outcome.outcome for outcome in outcomes}
    # An intervention that left its cause unchanged, or may have done so, cannot refute the cause.
    may_refute = any(
        outcome.outcome == "refuted" and not planned.cannot_refute
        for planned, outcome in attempted_outcomes
    )
    status: Status = "open"
    if "confirmed" in outcome_names:
        status = "confirmed"
    elif outcome_names == {NOT_REACHABLE}:
        status = NOT_REACHABLE
    elif may_refute and outcome_names <= {"refuted", NOT_REACHABLE}:
        status = "refuted"
    sentence = cause.summary.replace(OBSERVED_ONLY, "as observed") if outcomes else cause.summary
    if sentence and not sentence.endswith("."):
        sentence += "."
    all_outcomes = (*outcomes, *omitted_outcomes)
    next_sentence = outcomes_sentence(all_outcomes) or "No intervention can test this cause here."
    tested_cause = replace(
        cause, status=status, summary=f"{sentence} {next_sentence}".strip(), tested=all_outcomes
    )
    if status in ("open", NOT_REACHABLE):
        return tested_cause
    largest = max(
        (outcome for outcome in outcomes if outcome.outcome == status),
        key=lambda outcome: -math.inf if outcome.share is None else outcome.share,
    )
    return replace(tested_cause, share_of_gap=largest.share, share_ci=largest.share_ci)


def _explanation_of_user_intervention(outcome: InterventionOutcome) -> Explanation:
    return Explanation(
        cause=TRIED_BY_USER,
        kind="configuration",
        evidence={"intervention": outcome.intervention},
        status=outcome.outcome,
        share_of_gap=outcome.share,
        share_ci=outcome.share_ci,
        summary=outcomes_sentence([outcome]),
        tested=(outcome,),
    )


def outcomes_sentence(outcomes: Sequence[InterventionOutcome]) -> str:
    """Return a sentence about outcomes: ``Jemalloc closes 96 % [91, 101] of the gap; …``."""
    clauses = "; ".join(map(_outcome_clause, outcomes))
    return f"{clauses[:1].upper()}{clauses[1:]}." if clauses else ""


def _outcome_clause(outcome: InterventionOutcome) -> str:
    if outcome.unchanged_sentence is not None:
        return f"{outcome.summary} cannot reach the cause ({outcome.unchanged_sentence})"
    if outcome.unknown_because is not None:
        return f"{outcome.summary}: {outcome.unknown_because}"
    fraction = describe_fraction(outcome.share, outcome.share_ci)
    sentence = f"{outcome.summary} closes {fraction} of the gap"
    # An intervention that adds the same cost to both conditions changes the ratio, not the seconds.
    fraction_difference = 0.0
    if outcome.share is not None and outcome.share_of_seconds is not None:
        fraction_difference = abs(outcome.share - outcome.share_of_seconds)
    if fraction_difference > REFUTED_WITHIN:
        seconds_fraction = describe_fraction(outcome.share_of_seconds, outcome.share_of_seconds_ci)
        return f"{sentence} as a ratio, but {seconds_fraction} of it in seconds"
    # If the gap closed because the faster condition became slower, the outcome stays open.
    low, _ = outcome.share_ci
    is_slowed = outcome.outcome == "open" and low is not None and low >= CONFIRMED_ABOVE
    return f"{sentence}{' by slowing the faster condition' if is_slowed else ''}"
