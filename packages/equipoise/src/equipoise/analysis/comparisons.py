"""Compares and judges each candidate with its baseline, on the primary metric and on the others.

A contrast names a baseline and a candidate by their indices in the plan. A pairing has the costs of
one contrast on one metric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.wording import (
    adjustment_sentence,
    disagreement_sentence,
    lost_analyses_clause,
    slow_runs_sentence,
    verdict_sentence,
    waiting_sentence,
)
from equipoise.campaign.blocks import CONTROLLED_CONDITION, BlockCosts, block_costs, resolution_of
from equipoise.design.coin import layout_of_block
from equipoise.measure.environment.covariates import RUN_DELAY
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import PRIMARY_METRIC, Condition, Contrast, Plan
from equipoise.model.record import CampaignWarning, Trial
from equipoise.model.result import Adjustment, CarryOver, Comparison, SlowRuns, TheseLayouts
from equipoise.stats.carry_over import carry_over
from equipoise.stats.changes import ratio_segments
from equipoise.stats.constancy import may_have_one_ratio
from equipoise.stats.describe import ratio_of_means
from equipoise.stats.layouts import judge_across_layouts
from equipoise.stats.resolution import Resolution
from equipoise.stats.sequence import PairedBlocks, probability_slower
from equipoise.stats.shift import is_mostly_waiting, minimum_misleads, statistic_answers
from equipoise.stats.slow_runs import slow_run_counts, slow_run_test, unseen_share
from equipoise.stats.verdict import (
    ComparisonVerdict,
    blocks_to_go,
    judge,
    judge_unadjusted,
    margin_of,
    running_interval,
)

ESTIMAND = "typical ratio: e to the robust centre of the log ratios within blocks"
SCOPE = "across processes, in this campaign on this host"
SCOPE_ACROSS_LAYOUTS = "across processes and memory layouts, in this campaign on this host"
SCOPE_OF_INTERVALS = "across intervals of one life of each server, in this campaign on this host"

Blocks = dict[int, tuple[Trial, ...]]
"""Trials of each complete block in the order in which they ran, by the number of the block."""


class Pairing(Struct, frozen=True):
    """A candidate and its baseline on one metric."""

    metric: str
    contrast: Contrast
    costs: BlockCosts
    pairs: PairedBlocks
    more_is_better: bool = False
    """Whether a cost is the inverse of the metric."""


def primary_comparisons(plan: Plan, blocks: Blocks) -> tuple[Comparison, ...]:
    """Compare every candidate on the primary metric; all these comparisons share alpha."""
    pairings = pairings_of(plan, blocks, plan.judgement.primary_metric) if blocks else ()
    comparisons = judge_pairings(plan, pairings)
    return tuple(
        _with_waiting(comparison, pairing.contrast, blocks)
        for comparison, pairing in zip(comparisons, pairings, strict=True)
    )


def _with_waiting(comparison: Comparison, contrast: Contrast, blocks: Blocks) -> Comparison:
    """Add a clause to the summary if most of the extra time was waiting for a processor."""
    if comparison.metric != PRIMARY_METRIC or comparison.verdict not in ("faster", "slower"):
        return comparison
    pair = contrast.pair
    faster, slower = pair if comparison.verdict == "slower" else pair[::-1]
    differences: list[tuple[float, float]] = []
    for block in blocks.values():
        by_condition = {trial.condition: trial for trial in block}
        if faster in by_condition and slower in by_condition:
            times = (_wall_and_waiting_s(by_condition[index]) for index in (faster, slower))
            (faster_wall_s, faster_waiting_s), (slower_wall_s, slower_waiting_s) = times
            differences.append((slower_wall_s - faster_wall_s, slower_waiting_s - faster_waiting_s))
    extra_s, waiting_s = np.array(differences, dtype=np.float64).reshape(-1, 2).T
    if np.isnan(waiting_s).any() or not is_mostly_waiting(extra_s, waiting_s):
        return comparison
    return replace(comparison, summary=waiting_sentence(comparison.summary))


def _wall_and_waiting_s(trial: Trial) -> tuple[float, float]:
    wall_s, waiting_s = trial.accounting.wall_s, trial.covariates.get(RUN_DELAY)
    is_known = wall_s is not None and waiting_s is not None and not trial.timed_out
    return (wall_s or 0.0, waiting_s or 0.0) if is_known else (math.nan, math.nan)


def other_comparisons(
    plan: Plan, blocks: Blocks
) -> tuple[tuple[Comparison, ...], tuple[CampaignWarning, ...]]:
    """Compare every candidate on every other metric; all these comparisons share alpha.

    A metric without a value in some trial is left out, with a warning.
    """
    pairings: list[Pairing] = []
    warnings: list[CampaignWarning] = []
    for metric in plan.judgement.other_metrics if blocks else ():
        try:
            pairings.extend(pairings_of(plan, blocks, metric))
        except UnusableInput as error:
            warnings.append(CampaignWarning("metric_unknown", error.what, error.hint or ""))
    return judge_pairings(plan, pairings), tuple(warnings)


def control_comparison(plan: Plan, blocks: Blocks) -> Comparison | None:
    """Compare the control with the baseline, at a separate alpha."""
    if plan.control is None or not blocks:
        return None
    contrasts = (Contrast(CONTROLLED_CONDITION, plan.control),)
    control_plan = replace(plan, control=None, chosen_contrasts=contrasts)
    pairings = pairings_of(control_plan, blocks, plan.judgement.primary_metric)
    pairs = [pairing.pairs for pairing in pairings]
    # The control checks Equipoise, so it needs no claim about other layouts.
    return _compare_in_drawn_layouts(control_plan, pairings, pairs)[0]


def pairings_of(plan: Plan, blocks: Blocks, metric: str) -> list[Pairing]:
    """Pair every candidate with its baseline on one metric.

    Raise `UnusableInput` if a trial does not have the metric.
    """
    costs = block_costs(plan, blocks, metric)
    resolution = resolution_of(blocks, metric)
    return [pairing_of(plan, metric, costs, contrast, resolution) for contrast in plan.contrasts]


def pairing_of(
    plan: Plan, metric: str, costs: BlockCosts, contrast: Contrast, resolution: Resolution
) -> Pairing:
    """Pair a candidate with its baseline, and with the control if there is one."""
    pairs = costs.paired(
        contrast,
        resolution=resolution,
        control=plan.control if contrast.baseline == CONTROLLED_CONDITION else None,
    )
    return Pairing(metric, contrast, costs, pairs, resolution.more_is_better)


def judge_pairings(
    plan: Plan, pairings: Sequence[Pairing], *, unreported_count: int = 0
) -> tuple[Comparison, ...]:
    """Judge comparisons that share alpha.

    ``unreported_count`` is the number of comparisons that share alpha but are not reported. Each
    counts as a comparison without evidence.
    """
    if not pairings:
        return ()
    empty_pairs = (PairedBlocks() for _ in range(unreported_count))
    pairs = [*(pairing.pairs for pairing in pairings), *empty_pairs]
    comparisons = _compare_in_drawn_layouts(plan, pairings, pairs)
    if not plan.layouts:
        return comparisons
    return _compare_across_layouts(plan, pairings, pairs, comparisons)


def _compare_in_drawn_layouts(
    plan: Plan, pairings: Sequence[Pairing], pairs: Sequence[PairedBlocks]
) -> tuple[Comparison, ...]:
    min_effect, alpha = plan.judgement.min_effect, plan.judgement.alpha
    verdicts = judge(pairs, min_effect=min_effect, alpha=alpha)
    forecasts = blocks_to_go(pairs, verdicts, min_effect=min_effect, alpha=alpha, seed=plan.seed)
    return tuple(
        replace(
            _comparison(plan, pairing, verdict, more_blocks, alpha / len(pairs)),
            adjusted_by=_describe_adjustment(plan, pairing, verdict, len(pairs)),
        )
        for pairing, verdict, more_blocks in zip(pairings, verdicts, forecasts, strict=False)
    )


def _compare_across_layouts(
    plan: Plan,
    pairings: Sequence[Pairing],
    pairs: Sequence[PairedBlocks],
    drawn_comparisons: Sequence[Comparison],
) -> tuple[Comparison, ...]:
    """Return comparisons across layouts in general, each with its claim on the drawn layouts."""
    layouts: list[list[int]] = [[] for _ in pairs]
    for layouts_of_blocks, pairing in zip(layouts, pairings, strict=False):
        numbers = pairing.costs.numbers[pairing.costs.has_both(pairing.contrast)].tolist()
        layouts_of_blocks += [layout_of_block(plan, "measured", number) for number in numbers]
    min_effect, alpha = plan.judgement.min_effect, plan.judgement.alpha
    count = len(plan.layouts)
    verdicts = judge_across_layouts(pairs, layouts, count=count, min_effect=min_effect, alpha=alpha)
    return tuple(
        _with_claim_on_drawn_layouts(
            _comparison(plan, pairing, verdict, None, alpha / len(pairs)),
            drawn,
            verdict.lost_analyses,
        )
        for pairing, verdict, drawn in zip(pairings, verdicts, drawn_comparisons, strict=False)
    )


def _with_claim_on_drawn_layouts(
    comparison: Comparison, drawn: Comparison, lost_analyses: int
) -> Comparison:
    claim = TheseLayouts(drawn.verdict, drawn.ratio, drawn.ratio_ci, drawn.scope, drawn.summary)
    return replace(
        comparison,
        scope=SCOPE_ACROSS_LAYOUTS,
        summary=f"Across layouts: {comparison.summary}{lost_analyses_clause(lost_analyses)}",
        in_these_layouts=claim,
        # The ratio may differ between layouts, so it need not be constant.
        ratio_is_constant=True,
        ratio_segments=(),
    )


def _comparison(
    plan: Plan,
    pairing: Pairing,
    judged: ComparisonVerdict,
    blocks_to_decide: int | None,
    share_of_alpha: float,
) -> Comparison:
    judgement, pairs, contrast = plan.judgement, pairing.pairs, pairing.contrast
    baseline, candidate = (plan.conditions[index] for index in contrast.pair)
    mean_ratio = ratio_of_means(pairs.baseline, pairs.candidate, seed=plan.seed)
    slower_probability = probability_slower(pairs, level=judgement.alpha)
    costs = pairing.costs
    both_ran = costs.has_both(contrast)
    baseline_costs = costs.costs[both_ran, contrast.baseline]
    _, is_constant = running_interval(pairs.engine, share_of_alpha)
    is_constant = is_constant and judged.ratio_is_constant
    if is_constant:
        is_constant = may_have_one_ratio(pairs, judged.low, judged.high, share_of_alpha)
    answers = statistic_answers(
        baseline_costs, pairs.candidate, min_effect=judgement.min_effect, level=share_of_alpha
    )
    comparison = Comparison(
        baseline=baseline.name,
        candidate=candidate.name,
        metric=pairing.metric,
        estimand=ESTIMAND,
        ratio=judged.ratio,
        ratio_ci=judged.ratio_ci,
        equivalence_ci=judged.equivalence_ci,
        equivalence_level=judged.equivalence_level,
        means_veto=judged.means_veto,
        ratio_is_constant=is_constant,
        ratio_segments=() if is_constant else ratio_segments(pairs, costs.numbers[both_ran]),
        e_value=judged.e_value,
        verdict=judged.verdict,
        min_effect=judgement.min_effect,
        alpha=judgement.alpha,
        blocks=judged.blocks,
        mean_ratio=mean_ratio.ratio,
        mean_ratio_ci=mean_ratio.ratio_ci,
        probability_slower=slower_probability.share,
        probability_slower_ci=slower_probability.interval,
        minimum_misleads=minimum_misleads(
            float(np.min(baseline_costs)),
            float(np.min(pairs.candidate)),
            typical=judged.typical,
            verdict=judged.verdict,
            min_effect=judgement.min_effect,
        ),
        scope=scope_of(plan),
        summary="",
        level=judged.level,
        blocks_to_go=blocks_to_decide,
        carry_over=_estimate_carry_over(plan, pairing),
        slow_runs=_compare_slow_runs(plan, pairing, judged, share_of_alpha),
        answers=answers,
        disagreement=disagreement_sentence(
            answers,
            baseline.name,
            candidate.name,
            verdict=judged.verdict,
            metric=pairing.metric,
            more_is_better=pairing.more_is_better,
        ),
        stratum=contrast.stratum,
    )
    names = _names_in_sentence(contrast, baseline, candidate)
    summary = verdict_sentence(comparison, *names, more_is_better=pairing.more_is_better)
    return replace(comparison, summary=summary)


def _names_in_sentence(
    contrast: Contrast, baseline: Condition, candidate: Condition
) -> tuple[str, str]:
    factor = contrast.factor or ""
    return baseline.levels.get(factor, baseline.name), candidate.levels.get(factor, candidate.name)


def _compare_slow_runs(
    plan: Plan, pairing: Pairing, judged: ComparisonVerdict, share_of_alpha: float
) -> SlowRuns:
    """Return the slow runs of a comparison, and test which condition has more slow runs.

    The test needs typical runs that do not differ: only then does one threshold for both conditions
    separate the slow runs.
    """
    judgement, pairs = plan.judgement, pairing.pairs
    margin = margin_of(judgement.min_effect)
    baseline, candidate = (plan.conditions[index] for index in pairing.contrast.pair)
    counts = slow_run_counts(pairs.own_baseline, pairs.candidate, margin)
    slow_runs = SlowRuns(
        factor=counts.factor,
        baseline=counts.baseline,
        candidate=counts.candidate,
        runs=counts.runs,
        unseen_share=unseen_share(counts.runs, judgement.alpha),
    )
    if judged.verdict == "equivalent" or judged.means_veto:
        test = slow_run_test(
            pairs.own_baseline, pairs.candidate, margin=margin, alpha=share_of_alpha
        )
        roles: dict[int, Literal["baseline", "candidate"]] = {-1: "baseline", 1: "candidate"}
        role = roles.get(test.side)
        slow_runs = replace(slow_runs, more_often=role, e_value=test.e_value, level=test.level)
    sentence = slow_runs_sentence(
        slow_runs,
        *_names_in_sentence(pairing.contrast, baseline, candidate),
        metric=pairing.metric,
        more_is_better=pairing.more_is_better,
    )
    return replace(slow_runs, summary=sentence)


def _describe_adjustment(
    plan: Plan, pairing: Pairing, judged: ComparisonVerdict, comparison_count: int
) -> Adjustment | None:
    """Return the effect of adjusting by a covariate; ``None`` if no block was adjusted.

    ``comparison_count`` is the number of comparisons that share alpha.
    """
    pairs, min_effect = pairing.pairs, plan.judgement.min_effect
    fitted = pairs.engine.adjustment()
    if fitted is None:
        return None
    index, blocks, spread_ratio = fitted
    unadjusted = judge_unadjusted(pairs, judged, min_effect=min_effect, compared=comparison_count)
    adjustment = Adjustment(
        covariate=plan.adjust_by[index],
        blocks=blocks,
        spread_ratio=spread_ratio,
        unadjusted_ratio=unadjusted.ratio,
        unadjusted_ratio_ci=unadjusted.ratio_ci,
        summary="",
    )
    sentence = adjustment_sentence(
        adjustment, len(pairs), judged.ratio, more_is_better=pairing.more_is_better
    )
    return replace(adjustment, summary=sentence)


def scope_of(plan: Plan) -> str:
    """Return the scope of the verdicts of a plan: across processes, intervals or layouts."""
    if any(
        condition.server is not None and condition.server.trial == "interval"
        for condition in plan.conditions
    ):
        return SCOPE_OF_INTERVALS
    if not plan.layouts:
        return SCOPE
    return f"across processes, in these {len(plan.layouts)} layouts, in this campaign on this host"


def _estimate_carry_over(plan: Plan, pairing: Pairing) -> CarryOver | None:
    """Return the carry-over; ``None`` if it is unknown, or if washouts remove it."""
    costs = pairing.costs
    # Functions alternate within a process, so no function runs before another.
    if plan.rules.shares_processes or plan.measure.washout or np.isnan(costs.end_costs).any():
        return None
    return carry_over(
        costs.end_conditions,
        costs.end_costs,
        candidate=pairing.contrast.candidate,
        baseline=pairing.contrast.baseline,
        follows=costs.is_consecutive,
    )
