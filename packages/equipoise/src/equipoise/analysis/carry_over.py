"""Checks whether carry-over, the effect of a trial on the next one, could explain a difference.

A check uses the blocks without washouts. If carry-over could explain a whole difference, the
campaign may continue with washouts. Then only blocks with washouts decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks, costs_of_contrasts
from equipoise.analysis.wording import carry_over_clause, signed_change
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
    """Return the comparison of each contrast with its check for carry-over.

    There are no checks for functions, experiments of `why`, with ``--washout``, or with more than
    `MAX_CONDITIONS` conditions.
    """
    blocks_before = blocks_before_washouts(plan, complete)
    if (
        not plan.rules.checks_carry_over
        or plan.measure.washout
        or len(plan.conditions) > MAX_CONDITIONS
        or not (comparisons and blocks_before)
    ):
        return tuple(comparisons)
    trials = CarryOverTrials(plan)
    for number, block in blocks_before.items():
        order = (trial.condition for trial in block)
        trials.add(number, order, read_block(block, plan).costs)
    washout_start = first_washout_block(plan, complete)
    conditions_after = (
        set() if washout_start is None else {trial.condition for trial in complete[washout_start]}
    )
    verdicts_before = _verdicts_before_washouts(plan, blocks_before) if conditions_after else {}
    checked = []
    for contrast, comparison in zip(plan.contrasts, comparisons, strict=True):
        has_restarted = set(contrast.pair) <= conditions_after
        verdict, ratio = comparison.verdict, comparison.ratio
        if has_restarted:
            verdict, ratio = verdicts_before[contrast.pair]
        fitted = trials.fit(contrast) if verdict in DIFFERENCE_VERDICTS else None
        if fitted is not None:
            block_count = sum(
                set(contrast.pair) <= {trial.condition for trial in block}
                for block in blocks_before.values()
            )
            check = _carry_over_check(
                fitted, comparison, verdict, ratio, block_count, has_restarted=has_restarted
            )
            comparison = replace(comparison, carry_over_check=check)
        # The simple estimate of carry-over would mix blocks with and without washouts.
        checked.append(replace(comparison, carry_over=None) if conditions_after else comparison)
    return tuple(checked)


def _verdicts_before_washouts(
    plan: Plan, blocks: Blocks
) -> Mapping[tuple[int, int], tuple[Verdict, float | None]]:
    """Return the verdict and the ratio of each contrast, by the indices of its conditions."""
    contrast_costs = costs_of_contrasts(plan, blocks, plan.judgement.primary_metric)
    min_effect, alpha = plan.judgement.min_effect, plan.judgement.alpha
    paired_blocks = [costs.paired_blocks for costs in contrast_costs]
    verdicts = judge(paired_blocks, min_effect=min_effect, alpha=alpha)
    return {
        costs.contrast.pair: (verdict.verdict, verdict.ratio)
        for costs, verdict in zip(contrast_costs, verdicts, strict=True)
    }


def _carry_over_check(
    fitted: FittedDifference,
    comparison: Comparison,
    verdict: Verdict,
    ratio: float | None,
    block_count: int,
    *,
    has_restarted: bool,
) -> CarryOverCheck:
    """Return the check; ``verdict`` and ``ratio`` are from the blocks without washouts."""
    is_slower = ratio is None or ratio > 1.0
    check = CarryOverCheck(
        could_make=fitted.explainable_part(1.0 if is_slower else -1.0),
        carry_over=math.exp(fitted.carry_over),
        carry_over_ci=fitted.carry_over_ci,
        ratio=math.exp(fitted.difference),
        ratio_ci=fitted.ratio_ci,
        blocks=block_count,
        went_on=has_restarted,
        verdict=verdict,
        called_ratio=ratio,
        summary="",
    )
    return replace(check, summary=_check_sentence(check, comparison))


def _check_sentence(check: CarryOverCheck, comparison: Comparison) -> str:
    baseline, candidate = comparison.baseline, comparison.candidate
    factor = _times_with_interval(check.carry_over, check.carry_over_ci)
    effect = carry_over_clause(comparison, factor)
    carry_over = "carry-over, the effect of a trial on the next one,"
    if check.went_on:
        size = "" if check.called_ratio is None else f" ({signed_change(check.called_ratio)})"
        return (
            f"{carry_over} could explain the difference of {candidate}{size} in the {check.blocks} "
            f"blocks without washouts. There, {effect}. So only the {comparison.blocks} blocks "
            "with washouts count"
        )
    verb, adverb = ("takes", "long") if is_time(comparison.metric) else ("costs", "much")
    factor = _times_with_interval(check.ratio, check.ratio_ci)
    explanation = (
        f"Here, {effect}. Without carry-over, {candidate} {verb} {factor} as {adverb} as {baseline}"
    )
    match check.could_make:
        case "nothing":
            return f"{carry_over} cannot explain the difference. {explanation}"
        case "part":
            return f"{carry_over} could explain part of the difference. {explanation}"
        case "all":
            return f"{carry_over} could explain the whole difference. {explanation}"


def _times_with_interval(ratio: float, interval: tuple[float | None, float | None]) -> str:
    low, high = interval
    return f"{ratio:.3f} times ({low:.3f} to {high:.3f})"
