"""Checks whether carry-over, the effect of a trial on the next one, could explain a difference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks, pairings_of
from equipoise.analysis.wording import signed_change
from equipoise.campaign.blocks import read_block
from equipoise.campaign.interim import DIFFERENCE_VERDICTS
from equipoise.campaign.washouts import (
    MAX_CONDITIONS,
    CarryOverTrials,
    blocks_before_washouts,
    first_washout_block,
)
from equipoise.model.metrics import is_time
from equipoise.model.plan import Plan
from equipoise.model.result import CarryOverCheck, Comparison, Verdict
from equipoise.stats.carry_over import FittedDifference
from equipoise.stats.verdict import judge


def with_carry_over_checks(
    plan: Plan, complete: Blocks, comparisons: Sequence[Comparison]
) -> tuple[Comparison, ...]:
    """Return the comparisons, one for each contrast, with their checks for carry-over.

    Functions, campaigns under ``--washout``, experiments of `why` and campaigns with very many
    conditions have no checks.
    """
    blocks_before = blocks_before_washouts(plan, complete)
    has_no_checks = not plan.rules.checks_carry_over or plan.measure.washout
    if (
        has_no_checks
        or len(plan.conditions) > MAX_CONDITIONS
        or not (comparisons and blocks_before)
    ):
        return tuple(comparisons)
    trials = CarryOverTrials(plan)
    for number, block in blocks_before.items():
        order = (trial.condition for trial in block)
        trials.add(number, order, read_block(block, plan).costs)
    washout_start = first_washout_block(plan, complete)
    restarted = (
        set() if washout_start is None else {trial.condition for trial in complete[washout_start]}
    )
    verdicts_before = _verdicts_before_washouts(plan, blocks_before) if restarted else {}
    checked = []
    for contrast, comparison in zip(plan.contrasts, comparisons, strict=True):
        is_restarted = set(contrast.pair) <= restarted
        verdict, ratio = comparison.verdict, comparison.ratio
        if is_restarted:
            verdict, ratio = verdicts_before[contrast.pair]
        fitted = trials.fit(contrast) if verdict in DIFFERENCE_VERDICTS else None
        if fitted is not None:
            block_count = sum(
                {*contrast.pair} <= {trial.condition for trial in block}
                for block in blocks_before.values()
            )
            check = _check(
                fitted, comparison, verdict, ratio, block_count, is_restarted=is_restarted
            )
            comparison = replace(comparison, carry_over_check=check)
        # A simple estimate of carry-over would mix blocks with and without washouts.
        checked.append(replace(comparison, carry_over=None) if restarted else comparison)
    return tuple(checked)


def _verdicts_before_washouts(
    plan: Plan, blocks: Blocks
) -> Mapping[tuple[int, int], tuple[Verdict, float | None]]:
    pairings = pairings_of(plan, blocks, plan.judgement.primary_metric)
    min_effect, alpha = plan.judgement.min_effect, plan.judgement.alpha
    judged = judge([pairing.pairs for pairing in pairings], min_effect=min_effect, alpha=alpha)
    return {
        pairing.contrast.pair: (judgement.verdict, judgement.ratio)
        for pairing, judgement in zip(pairings, judged, strict=True)
    }


def _check(
    fitted: FittedDifference,
    comparison: Comparison,
    verdict: Verdict,
    ratio: float | None,
    blocks: int,
    *,
    is_restarted: bool,
) -> CarryOverCheck:
    is_slower = ratio is None or ratio > 1.0
    check = CarryOverCheck(
        could_make=fitted.could_make(1.0 if is_slower else -1.0),
        carry_over=math.exp(fitted.carry_over),
        carry_over_ci=fitted.carry_over_ci,
        ratio=math.exp(fitted.difference),
        ratio_ci=fitted.ratio_ci,
        blocks=blocks,
        went_on=is_restarted,
        verdict=verdict,
        called_ratio=ratio,
        summary="",
    )
    return replace(check, summary=_check_sentence(check, comparison))


def _check_sentence(check: CarryOverCheck, comparison: Comparison) -> str:
    baseline, candidate = comparison.baseline, comparison.candidate
    verb = "takes" if is_time(comparison.metric) else "costs"
    factor = _times_with_interval(check.carry_over, check.carry_over_ci)
    effect = f"after {candidate} a trial {verb} {factor} what it {verb} after {baseline}"
    if check.went_on:
        size = "" if check.called_ratio is None else f" by {signed_change(check.called_ratio)}"
        return (
            f"carry-over could explain the difference{size} that {candidate} showed in "
            f"{check.blocks} blocks: {effect}; so only the {comparison.blocks} blocks with "
            "washouts count"
        )
    explanation = (
        f"{effect}; without carry-over {candidate} {verb} "
        f"{_times_with_interval(check.ratio, check.ratio_ci)} what {baseline} {verb}"
    )
    match check.could_make:
        case "nothing":
            return f"carry-over cannot explain the difference: {explanation}"
        case "part":
            return f"carry-over could explain part of the difference: {explanation}"
        case "all":
            return f"carry-over could explain the whole difference: {explanation}"


def _times_with_interval(ratio: float, interval: tuple[float | None, float | None]) -> str:
    low, high = interval
    return f"{ratio:.3f} times ({low:.3f} to {high:.3f})"
