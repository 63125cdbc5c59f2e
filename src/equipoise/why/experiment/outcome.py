"""The outcome of a campaign that tests causes, and its sentence: pure functions of its record."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from msgspec.structs import replace

from equipoise.analysis.comparisons import primary_comparisons
from equipoise.campaign.blocks import complete_blocks, read_block
from equipoise.campaign.segment import fails
from equipoise.model.plan import ExperimentPlan, OmittedIntervention, Plan, PlannedIntervention
from equipoise.model.record import RunRecord
from equipoise.model.result import Comparison
from equipoise.model.why import Explanation, InterventionOutcome, Status
from equipoise.stats.intervention import CONFIRMED_ABOVE, REFUTED_WITHIN, describe_fraction
from equipoise.why.causes.ranking import OBSERVED_ONLY
from equipoise.why.experiment.judge import (
    BASELINE,
    CANDIDATE,
    Attempt,
    attempts_of,
    take_failure,
)

TRIED_BY_USER = "tried_by_user"
"""Cause of an entry of ``why`` for an intervention of the user's own."""

CALLED = ("slower", "faster", "mixed")


def tested_causes(record: RunRecord) -> tuple[Explanation, ...]:
    """Return the causes that a campaign tested, with what each intervention closed of the gap.

    Returns
    -------
    The causes of its plan in their order, then the interventions of the user's own. A cause is
    ``confirmed`` if one of its interventions is, ``refuted`` if all that were tried are and one
    of them would have taken it away, else ``open``. Nothing for a campaign that explains none.
    """
    plan = record.plan
    if plan.explains is None:
        return ()
    blocks = complete_blocks(record.draws, record.trials)
    gap = primary_comparisons(plan, blocks)
    attempts = attempts_of(plan.explains, plan.judgement)
    for trial in record.trials:
        if fails(plan, trial):
            take_failure(attempts, trial)
    for block in blocks.values():
        read = read_block(block, plan)
        for attempt in attempts:
            attempt.take(read)
    outcomes = [_outcome(one, plan, gap[0] if gap else None) for one in attempts]
    return (*_of_causes(plan.explains, outcomes), *_of_the_user(plan.explains, outcomes))


def _why_no_fraction(plan: Plan, gap: Comparison | None) -> str | None:
    """Return why no fraction of the gap is given; ``None`` if it is called (verdict.md §7)."""
    if gap is not None and gap.verdict in CALLED:
        return None
    one, other = (plan.conditions[index].name for index in (BASELINE, CANDIDATE))
    if gap is None:
        return "no block was completed"
    if gap.verdict == "equivalent":
        return (
            f"there is no gap to close in this campaign: {other} and {one} take the same time, "
            f"within {gap.min_effect:g} %"
        )
    return (
        f"no fraction is given, because the gap between {one} and {other} is itself undecided "
        f"after {gap.blocks} {'block' if gap.blocks == 1 else 'blocks'} of this campaign"
    )


def _outcome(attempt: Attempt, plan: Plan, gap: Comparison | None) -> InterventionOutcome:
    effect = attempt.exact_effect()
    unknown = _why_no_fraction(plan, gap)
    if attempt.ended_because is not None:
        unknown = f"it cannot be run with it: {attempt.ended_because}"
    elif unknown is not None:
        pass
    elif not attempt.blocks:
        unknown = "no block was left to try it in"
    elif effect.logs.estimate is None:
        unknown = "half of its trials or more timed out, so no fraction is known"
    elif not effect.logs.pieces:
        unknown = "no constant fraction fits the blocks in which it was tried"
    if unknown is not None:
        return _unknown(attempt.planned, unknown, blocks=attempt.blocks, level=attempt.level)
    return InterventionOutcome(
        intervention=attempt.planned.intervention,
        summary=attempt.planned.words,
        outcome=effect.outcome,
        share=effect.logs.estimate,
        share_ci=(effect.logs.low, effect.logs.high),
        share_of_seconds=effect.seconds.estimate,
        share_of_seconds_ci=(effect.seconds.low, effect.seconds.high),
        from_candidate=effect.from_candidate,
        from_baseline=effect.from_baseline,
        blocks=attempt.blocks,
        level=attempt.level,
        advice=_advice(attempt.planned, plan, gap) if effect.outcome == "confirmed" else None,
    )


def _unknown(
    one: PlannedIntervention | OmittedIntervention, because: str, *, blocks: int, level: float
) -> InterventionOutcome:
    nothing = (None, None)
    return InterventionOutcome(
        intervention=one.intervention,
        summary=one.words,
        outcome="open",
        share=None,
        share_ci=nothing,
        share_of_seconds=None,
        share_of_seconds_ci=nothing,
        from_candidate=None,
        from_baseline=None,
        blocks=blocks,
        level=level,
        unknown_because=because,
    )


def _advice(planned: PlannedIntervention, plan: Plan, gap: Comparison | None) -> str | None:
    """Return the line with which the slower condition keeps the change."""
    if planned.advice is None:
        return None
    baseline_is_slower = gap is not None and gap.ratio is not None and gap.ratio < 1.0
    slower = plan.conditions[BASELINE if baseline_is_slower else CANDIDATE]
    return planned.advice.replace("{command}", shlex.join(slower.command))


def _of_causes(
    explains: ExperimentPlan, outcomes: Sequence[InterventionOutcome]
) -> tuple[Explanation, ...]:
    tried = list(zip(explains.attempts, outcomes, strict=True))
    level = outcomes[0].level if outcomes else 1.0
    omitted = [
        (one, _unknown(one, f"not tried: {one.because}", blocks=0, level=level))
        for one in explains.not_tried
    ]
    may_refute = frozenset(one.intervention for one in explains.attempts if not one.only_confirms)
    return tuple(
        _with(
            cause,
            may_refute,
            [test for one, test in tried if cause.cause in one.causes],
            [test for one, test in omitted if cause.cause in one.causes],
        )
        for cause in explains.causes
    )


def _with(
    cause: Explanation,
    may_refute: frozenset[str],
    tried: list[InterventionOutcome],
    omitted: list[InterventionOutcome],
) -> Explanation:
    """Return a cause as its interventions show it; if they decide nothing, as observed."""
    status = _status(tried, may_refute)
    observed = cause.summary.replace(OBSERVED_ONLY, "as observed") if tried else cause.summary
    both = (*tried, *omitted)
    test = outcomes_sentence(both) if both else "Nothing here can be changed to test it."
    tested = replace(
        cause, status=status, summary=f"{_sentence(observed)} {test}".strip(), tested=both
    )
    if status == "open":
        return tested
    best = max(
        (one for one in tried if one.outcome == status),
        key=lambda one: float("-inf") if one.share is None else one.share,
    )
    return replace(tested, share_of_gap=best.share, share_ci=best.share_ci)


def _status(tried: Sequence[InterventionOutcome], may_refute: frozenset[str]) -> Status:
    """Return the status of a cause: what may leave it untouched cannot refute it."""
    outcomes = {one.outcome for one in tried}
    if "confirmed" in outcomes:
        return "confirmed"
    refutes = any(one.intervention in may_refute for one in tried)
    return "refuted" if refutes and outcomes == {"refuted"} else "open"


def _of_the_user(
    explains: ExperimentPlan, outcomes: Sequence[InterventionOutcome]
) -> tuple[Explanation, ...]:
    return tuple(
        Explanation(
            cause=TRIED_BY_USER,
            kind="configuration",
            evidence={"intervention": test.intervention},
            status=test.outcome,
            share_of_gap=test.share,
            share_ci=test.share_ci,
            summary=outcomes_sentence([test]),
            tested=(test,),
        )
        for attempt, test in zip(explains.attempts, outcomes, strict=True)
        if not attempt.causes
    )


def _sentence(words: str) -> str:
    return words if words.endswith(".") or not words else f"{words}."


def outcomes_sentence(outcomes: Sequence[InterventionOutcome]) -> str:
    """Return what interventions did: ``Jemalloc closes 96 % [91, 101] of the gap; …``."""
    clauses = "; ".join(map(_clause, outcomes))
    return f"{clauses[:1].upper()}{clauses[1:]}." if clauses else ""


def _clause(one: InterventionOutcome) -> str:
    if one.unknown_because is not None:
        return f"{one.summary}: {one.unknown_because}"
    closes = describe_fraction(one.share, one.share_ci)
    if _scales_disagree(one):
        seconds = describe_fraction(one.share_of_seconds, one.share_of_seconds_ci)
        return (
            f"{one.summary} closes {closes} of the gap as a ratio, but {seconds} of it in seconds"
        )
    by_the_faster = " by slowing the faster one" if _is_closed_by_the_faster(one) else ""
    return f"{one.summary} closes {closes} of the gap{by_the_faster}"


def _scales_disagree(one: InterventionOutcome) -> bool:
    """Return whether only one of the ratio and the difference in seconds shrinks.

    This is so for an intervention that costs both conditions the same.
    """
    if one.share is None or one.share_of_seconds is None:
        return False
    return abs(one.share - one.share_of_seconds) > REFUTED_WITHIN


def _is_closed_by_the_faster(one: InterventionOutcome) -> bool:
    """Return whether a gap was closed, but not by making the slower one faster (verdict.md §7)."""
    low, _ = one.share_ci
    return one.outcome == "open" and low is not None and low >= CONFIRMED_ABOVE
