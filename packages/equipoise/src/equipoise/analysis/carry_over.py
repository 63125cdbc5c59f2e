"""Whether carry-over could explain a difference that was called, for each comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks, pairings_of
from equipoise.analysis.wording import signed_change
from equipoise.campaign.blocks import read_block
from equipoise.campaign.interim import CALLS
from equipoise.campaign.washouts import (
    MAX_CONDITIONS,
    CarryOverTrials,
    first_washouts,
    ordinary_blocks,
)
from equipoise.model.metrics import is_time
from equipoise.model.plan import Contrast, Plan
from equipoise.model.result import CarryOverCheck, Comparison, Verdict
from equipoise.stats.carry_over import FittedDifference
from equipoise.stats.verdict import judge


def with_carry_over_checks(
    plan: Plan, complete: Blocks, comparisons: Sequence[Comparison]
) -> tuple[Comparison, ...]:
    """Return the comparisons, one for each contrast, with their checks for carry-over.

    There are no checks for functions, which share a process, for campaigns under ``--washout``, for
    experiments of `why`, and for very many conditions.
    """
    ordinary = ordinary_blocks(plan, complete)
    has_none = not plan.rules.checks_carry_over or plan.measure.washout
    if has_none or len(plan.conditions) > MAX_CONDITIONS or not (comparisons and ordinary):
        return tuple(comparisons)
    trials = CarryOverTrials(plan)
    for number, block in ordinary.items():
        order = (trial.condition for trial in block)
        trials.add(number, order, read_block(block, plan).costs)
    first = first_washouts(plan, complete)
    washed = set() if first is None else {trial.condition for trial in complete[first]}
    before = _verdicts_before_washouts(plan, ordinary) if washed else {}
    checked = []
    for contrast, comparison in zip(plan.contrasts, comparisons, strict=True):
        went_on = set(contrast.pair) <= washed
        verdict, ratio = comparison.verdict, comparison.ratio
        if went_on:
            verdict, ratio = before[contrast.pair]
        fit = trials.fit(contrast) if verdict in CALLS else None
        if fit is not None:
            both = sum(
                {*contrast.pair} <= {trial.condition for trial in block}
                for block in ordinary.values()
            )
            check = _check(fit, contrast, comparison, verdict, ratio, both, went_on=went_on)
            comparison = replace(comparison, carry_over_check=check)
        # That measure would mix trials of blocks with and without washouts.
        checked.append(replace(comparison, carry_over=None) if washed else comparison)
    return tuple(checked)


def _verdicts_before_washouts(
    plan: Plan, ordinary: Blocks
) -> Mapping[tuple[int, int], tuple[Verdict, float | None]]:
    """Return the verdict and the ratio of each contrast before the washouts."""
    pairings = pairings_of(plan, ordinary, plan.judgement.primary_metric)
    judgement = plan.judgement
    judged = judge(
        [pairing.pairs for pairing in pairings],
        min_effect=judgement.min_effect,
        alpha=judgement.alpha,
    )
    return {
        pairing.contrast.pair: (judgement.verdict, judgement.ratio)
        for pairing, judgement in zip(pairings, judged, strict=True)
    }


def _check(
    fit: FittedDifference,
    contrast: Contrast,
    comparison: Comparison,
    verdict: Verdict,
    ratio: float | None,
    blocks: int,
    *,
    went_on: bool,
) -> CarryOverCheck:
    is_slower = ratio is None or ratio > 1.0
    check = CarryOverCheck(
        could_make=fit.could_make(1.0 if is_slower else -1.0),
        carry_over=math.exp(fit.carry_over),
        carry_over_ci=fit.carry_over_ci,
        ratio=math.exp(fit.difference),
        ratio_ci=fit.ratio_ci,
        blocks=blocks,
        went_on=went_on,
        verdict=verdict,
        called_ratio=ratio,
        summary="",
    )
    return replace(check, summary=_sentence(check, comparison))


def _sentence(check: CarryOverCheck, comparison: Comparison) -> str:
    baseline, candidate = comparison.baseline, comparison.candidate
    verb = "takes" if is_time(comparison.metric) else "costs"
    carried = (
        f"after {candidate} a trial {verb} {_times(check.carry_over, check.carry_over_ci)} what it "
        f"{verb} after {baseline}"
    )
    if check.went_on:
        looked = "" if check.called_ratio is None else f" by {signed_change(check.called_ratio)}"
        return (
            f"carry-over could explain the difference{looked} that {candidate} showed in "
            f"{check.blocks} blocks: {carried}; so only the {comparison.blocks} blocks with "
            "washouts count"
        )
    left = (
        f"{carried}; without carry-over {candidate} {verb} "
        f"{_times(check.ratio, check.ratio_ci)} what {baseline} {verb}"
    )
    match check.could_make:
        case "nothing":
            return f"carry-over cannot explain the difference: {left}"
        case "part":
            return f"carry-over could explain part of the difference: {left}"
        case "all":
            return f"carry-over could explain the whole difference: {left}"


def _times(ratio: float, interval: tuple[float | None, float | None]) -> str:
    low, high = interval
    return f"{ratio:.3f} times ({low:.3f} to {high:.3f})"
