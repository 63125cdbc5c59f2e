"""Checks whether carry-over, the effect of a trial on the next trial, could explain a difference.

A check uses the blocks without washouts. If carry-over could explain a whole difference, the
campaign may continue with washouts. Then only the blocks with washouts decide.
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

    Some campaigns have no checks: Python functions, experiments of `why`, campaigns with
    ``--washout`` or ``--duet``, and campaigns with more than `MAX_CONDITIONS` conditions.
    """
    early_blocks = blocks_before_washouts(plan, complete)
    if (
        not plan.rules.checks_carry_over
        or plan.measure.washout
        or plan.measure.cpu_sets
        or len(plan.conditions) > MAX_CONDITIONS
        or not (comparisons and early_blocks)
    ):
        return tuple(comparisons)
    trials = CarryOverTrials(plan)
    for number, block in early_blocks.items():
        order = (trial.condition for trial in block)
        trials.add(number, order, read_block(block, plan).costs)
    first_block = first_washout_block(plan, complete)
    washout_conditions = (
        set() if first_block is None else {trial.condition for trial in complete[first_block]}
    )
    verdicts = _verdicts_without_washouts(plan, early_blocks) if washout_conditions else {}
    checked = []
    for contrast, comparison in zip(plan.contrasts, comparisons, strict=True):
        added_washouts = set(contrast.pair) <= washout_conditions
        verdict, ratio = comparison.verdict, comparison.ratio
        if added_washouts:
            verdict, ratio = verdicts[contrast.pair]
        fitted = trials.fit(contrast) if verdict in DIFFERENCE_VERDICTS else None
        if fitted is not None:
            block_count = sum(
                set(contrast.pair) <= {trial.condition for trial in block}
                for block in early_blocks.values()
            )
            check = _carry_over_check(
                fitted, comparison, verdict, ratio, block_count, added_washouts=added_washouts
            )
            comparison = replace(comparison, carry_over_check=check)
        # ``carry_over`` would mix blocks with and without washouts.
        checked.append(replace(comparison, carry_over=None) if washout_conditions else comparison)
    return tuple(checked)


def _verdicts_without_washouts(
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
    added_washouts: bool,
) -> CarryOverCheck:
    """Return the check; ``verdict`` and ``ratio`` are from the blocks without washouts."""
    side = 1.0 if ratio is None or ratio > 1.0 else -1.0
    check = CarryOverCheck(
        explainable_part=fitted.explainable_part(side),
        carry_over=math.exp(fitted.carry_over),
        carry_over_ci=fitted.carry_over_ci,
        ratio=math.exp(fitted.difference),
        ratio_ci=fitted.ratio_ci,
        blocks=block_count,
        added_washouts=added_washouts,
        verdict=verdict,
        ratio_without_washouts=ratio,
        summary="",
    )
    return replace(check, summary=_check_sentence(check, comparison))


def _check_sentence(check: CarryOverCheck, comparison: Comparison) -> str:
    baseline, candidate = comparison.baseline, comparison.candidate
    factor = _times_with_interval(check.carry_over, check.carry_over_ci)
    effect = carry_over_clause(comparison, factor)
    subject = "carry-over, the effect of a trial on the next one,"
    if check.added_washouts:
        ratio = check.ratio_without_washouts
        size = "" if ratio is None else f" ({signed_change(ratio)})"
        return (
            f"{subject} could explain the difference of {candidate}{size} in the {check.blocks} "
            f"blocks without washouts. There, {effect}. So only the {comparison.blocks} blocks "
            "with washouts count"
        )
    verb, adverb = ("takes", "long") if is_time(comparison.metric) else ("costs", "much")
    factor = _times_with_interval(check.ratio, check.ratio_ci)
    explanation = (
        f"Here, {effect}. Without carry-over, {candidate} {verb} {factor} as {adverb} as {baseline}"
    )
    match check.explainable_part:
        case "nothing":
            return f"{subject} cannot explain the difference. {explanation}"
        case "part":
            return f"{subject} could explain part of the difference. {explanation}"
        case "all":
            return f"{subject} could explain the whole difference. {explanation}"


def _times_with_interval(ratio: float, interval: tuple[float | None, float | None]) -> str:
    low, high = interval
    return f"{ratio:.3f} times ({low:.3f} to {high:.3f})"
