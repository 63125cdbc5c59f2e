"""What came of a campaign that tests explanations: a pure function of its record."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from equipoise.analysis.comparisons import Blocks, primary_comparisons
from equipoise.campaign.blocks import complete_blocks, read_block
from equipoise.campaign.segment import fails
from equipoise.model.plan import ExperimentPlan, OmittedIntervention, Plan, PlannedIntervention
from equipoise.model.record import RunRecord
from equipoise.model.result import Comparison
from equipoise.model.why import Explanation, Status, Tested
from equipoise.why.causes.ranking import OBSERVED_ONLY
from equipoise.why.experiment.tries import BASELINE, CANDIDATE, Tried, Tries
from equipoise.why.experiment.words import tested_words

TRIED_BY_USER = "tried_by_user"
"""The cause of an entry of ``why`` that an intervention of the user's own makes."""

CALLED = ("slower", "faster", "mixed")


def tested(record: RunRecord) -> tuple[Explanation, ...]:
    """The causes that a campaign tested, with what each intervention closed of the gap.

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
    unknown = _why_no_share(plan, gap[0] if gap else None)
    found = [
        _tested(one, unknown, plan, gap[0] if gap else None)
        for one in _tries(plan, plan.explains, record, blocks).each
    ]
    return (*_of_causes(plan.explains, found), *_of_the_user(plan.explains, found))


def _tries(plan: Plan, explains: ExperimentPlan, record: RunRecord, blocks: Blocks) -> Tries:
    tries = Tries(explains, plan.judgement)
    for trial in record.trials:
        if fails(plan, trial):
            tries.fail(trial)
    for block in blocks.values():
        tries.take(read_block(block, plan))
    return tries


def _why_no_share(plan: Plan, gap: Comparison | None) -> str | None:
    """Why no share is given of a gap; ``None`` if it is called (verdict.md §7)."""
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
        f"no share is given, since the gap between {one} and {other} is itself undecided after "
        f"{gap.blocks} {'block' if gap.blocks == 1 else 'blocks'} of this campaign"
    )


def _tested(one: Tried, unknown: str | None, plan: Plan, gap: Comparison | None) -> Tested:
    attempt = one.attempt
    if one.ended_because is not None:
        unknown = f"it cannot be run with it: {one.ended_because}"
    elif unknown is None and not one.blocks:
        unknown = "no block was left to try it in"
    found = one.exactly()
    if unknown is None and found.logs.estimate is None:
        unknown = "half of its trials or more timed out, so no share is known"
    elif unknown is None and not found.logs.pieces:
        unknown = "no constant share fits the blocks in which it was tried"
    if unknown is not None:
        return _not_known(attempt, unknown, blocks=one.blocks, level=one.level)
    return Tested(
        intervention=attempt.intervention,
        summary=attempt.words,
        outcome=found.outcome,
        share=found.logs.estimate,
        share_ci=(found.logs.low, found.logs.high),
        share_of_seconds=found.seconds.estimate,
        share_of_seconds_ci=(found.seconds.low, found.seconds.high),
        from_candidate=found.from_candidate,
        from_baseline=found.from_baseline,
        blocks=one.blocks,
        level=one.level,
        advice=_advice(attempt, plan, gap) if found.outcome == "confirmed" else None,
    )


def _not_known(
    one: PlannedIntervention | OmittedIntervention, because: str, *, blocks: int, level: float
) -> Tested:
    nothing = (None, None)
    return Tested(
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


def _advice(attempt: PlannedIntervention, plan: Plan, gap: Comparison | None) -> str | None:
    """The line with which the slower condition keeps it."""
    if attempt.advice is None:
        return None
    baseline_is_slower = gap is not None and gap.ratio is not None and gap.ratio < 1.0
    slower = plan.conditions[BASELINE if baseline_is_slower else CANDIDATE]
    return attempt.advice.replace("{command}", shlex.join(slower.command))


def _of_causes(explains: ExperimentPlan, found: Sequence[Tested]) -> tuple[Explanation, ...]:
    tried = list(zip(explains.attempts, found, strict=True))
    left_out = [
        (one, _not_known(one, f"not tried: {one.because}", blocks=0, level=_level(found)))
        for one in explains.not_tried
    ]
    may_refute = frozenset(one.intervention for one in explains.attempts if not one.only_confirms)
    return tuple(
        _with(
            cause,
            may_refute,
            [test for one, test in tried if cause.cause in one.causes],
            [test for one, test in left_out if cause.cause in one.causes],
        )
        for cause in explains.causes
    )


def _level(found: Sequence[Tested]) -> float:
    return found[0].level if found else 1.0


def _with(
    cause: Explanation,
    may_refute: frozenset[str],
    tried: list[Tested],
    left_out: list[Tested],
) -> Explanation:
    """A cause as its interventions show it; what no intervention decides stays as observed."""
    status = _status(tried, may_refute)
    observed = cause.summary.replace(OBSERVED_ONLY, "as observed") if tried else cause.summary
    words = " ".join(filter(None, (_sentence(observed), tested_words([*tried, *left_out]))))
    if not tried and not left_out:
        words = f"{words} Nothing here can be changed to test it."
    shown = replace(cause, status=status, summary=words, tested=(*tried, *left_out))
    if status == "open":
        return shown
    best = max(
        (one for one in tried if one.outcome == status),
        key=lambda one: float("-inf") if one.share is None else one.share,
    )
    return replace(shown, share_of_gap=best.share, share_ci=best.share_ci)


def _status(tried: Sequence[Tested], may_refute: frozenset[str]) -> Status:
    """What would leave the cause untouched cannot refute it, only close nothing."""
    outcomes = {one.outcome for one in tried}
    if "confirmed" in outcomes:
        return "confirmed"
    refutes = any(one.intervention in may_refute for one in tried)
    return "refuted" if refutes and outcomes == {"refuted"} else "open"


def _of_the_user(explains: ExperimentPlan, found: Sequence[Tested]) -> tuple[Explanation, ...]:
    return tuple(
        Explanation(
            cause=TRIED_BY_USER,
            kind="configuration",
            evidence={"intervention": test.intervention},
            status=test.outcome,
            share_of_gap=test.share,
            share_ci=test.share_ci,
            summary=tested_words([test]),
            tested=(test,),
        )
        for attempt, test in zip(explains.attempts, found, strict=True)
        if not attempt.causes
    )


def _sentence(words: str) -> str:
    return words if words.endswith(".") or not words else f"{words}."
