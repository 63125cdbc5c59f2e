"""Compares and judges each candidate with its baseline, on the primary metric and on others.

A contrast has the indices of a baseline and a candidate in the plan. The drawn layouts are the
memory layouts that the coin drew for the campaign. With layouts, a comparison is about layouts in
general, and has another verdict for the drawn layouts.
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
    cpus_clause,
    disagreement_sentence,
    lost_analyses_clause,
    slow_runs_sentence,
    verdict_sentence,
    waiting_sentence,
)
from equipoise.campaign.blocks import CONTROLLED_CONDITION, CostTable, cost_table, resolution_of
from equipoise.design.coin import layout_of_block
from equipoise.measure.environment.covariates import RUN_DELAY
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import PRIMARY_METRIC, Condition, Contrast, CpuSets, Plan
from equipoise.model.record import CampaignWarning, Trial
from equipoise.model.result import Adjustment, CarryOver, Comparison, DrawnLayouts, SlowRuns
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
"""Quantity that a comparison estimates."""
SCOPE = "across processes, in this campaign on this host"
SCOPE_ACROSS_LAYOUTS = "across processes and memory layouts, in this campaign on this host"
SCOPE_OF_INTERVALS = "across intervals of one life of each server, in this campaign on this host"

Blocks = dict[int, tuple[Trial, ...]]
"""Trials of each complete block in the order in which they ran, by the number of the block."""


class ContrastCosts(Struct, frozen=True):
    """Costs of a candidate and its baseline on one metric."""

    metric: str
    contrast: Contrast
    all_conditions: CostTable
    """Costs of all conditions of the plan."""
    paired_blocks: PairedBlocks
    """Costs of the candidate and its baseline in the blocks in which both ran."""
    more_is_better: bool = False
    """Whether a cost is the inverse of the metric."""


def primary_comparisons(plan: Plan, blocks: Blocks) -> tuple[Comparison, ...]:
    """Compare every candidate on the primary metric; the comparisons share alpha."""
    metric = plan.judgement.primary_metric
    contrast_costs = costs_of_contrasts(plan, blocks, metric) if blocks else ()
    comparisons = judge_contrasts(plan, contrast_costs)
    return tuple(
        _with_waiting_clause(comparison, costs.contrast, blocks)
        for comparison, costs in zip(comparisons, contrast_costs, strict=True)
    )


def _with_waiting_clause(comparison: Comparison, contrast: Contrast, blocks: Blocks) -> Comparison:
    """Add a clause to the summary if most of the extra time was waiting for a processor."""
    if comparison.metric != PRIMARY_METRIC or comparison.verdict not in ("faster", "slower"):
        return comparison
    faster, slower = contrast.baseline, contrast.candidate
    if comparison.verdict == "faster":
        faster, slower = slower, faster
    differences: list[tuple[float, float]] = []
    for block in blocks.values():
        trial_by_condition = {trial.condition: trial for trial in block}
        if faster in trial_by_condition and slower in trial_by_condition:
            times = (_wall_and_waiting_s(trial_by_condition[index]) for index in (faster, slower))
            (faster_wall_s, faster_waiting_s), (slower_wall_s, slower_waiting_s) = times
            differences.append((slower_wall_s - faster_wall_s, slower_waiting_s - faster_waiting_s))
    extra_s, waiting_s = np.array(differences, dtype=np.float64).reshape(-1, 2).T
    if np.isnan(waiting_s).any() or not is_mostly_waiting(extra_s, waiting_s):
        return comparison
    return replace(comparison, summary=waiting_sentence(comparison.summary))


def _wall_and_waiting_s(trial: Trial) -> tuple[float, float]:
    """Return the seconds of a trial, and its seconds of waiting for a processor; NaN if unknown."""
    wall_s, waiting_s = trial.accounting.wall_s, trial.covariates.get(RUN_DELAY)
    is_known = wall_s is not None and waiting_s is not None and not trial.timed_out
    return (wall_s or 0.0, waiting_s or 0.0) if is_known else (math.nan, math.nan)


def other_comparisons(
    plan: Plan, blocks: Blocks
) -> tuple[tuple[Comparison, ...], tuple[CampaignWarning, ...]]:
    """Compare every candidate on every other metric; the comparisons share alpha.

    If a trial lacks a metric, the metric is left out, with a warning.
    """
    contrast_costs: list[ContrastCosts] = []
    warnings: list[CampaignWarning] = []
    for metric in plan.judgement.other_metrics if blocks else ():
        try:
            contrast_costs.extend(costs_of_contrasts(plan, blocks, metric))
        except UnusableInput as error:
            problem = f"{metric} is not compared: {error.what}"
            warnings.append(CampaignWarning("metric_unknown", problem, error.hint or ""))
    return judge_contrasts(plan, contrast_costs), tuple(warnings)


def control_comparison(plan: Plan, blocks: Blocks) -> Comparison | None:
    """Compare the control with the baseline; this comparison does not share alpha."""
    if plan.control is None or not blocks:
        return None
    contrasts = (Contrast(CONTROLLED_CONDITION, plan.control),)
    control_plan = replace(plan, control=None, chosen_contrasts=contrasts)
    contrast_costs = costs_of_contrasts(control_plan, blocks, plan.judgement.primary_metric)
    paired_blocks = [costs.paired_blocks for costs in contrast_costs]
    # The control only checks the tool, so no verdict on other layouts is needed.
    return _compare_in_drawn_layouts(control_plan, contrast_costs, paired_blocks)[0]


def costs_of_contrasts(plan: Plan, blocks: Blocks, metric: str) -> list[ContrastCosts]:
    """Return the costs of each contrast; raise `UnusableInput` if a trial lacks the metric."""
    all_costs = cost_table(plan, blocks, metric)
    resolution = resolution_of(blocks, metric)
    return [
        costs_of_contrast(plan, metric, all_costs, contrast, resolution)
        for contrast in plan.contrasts
    ]


def costs_of_contrast(
    plan: Plan, metric: str, all_costs: CostTable, contrast: Contrast, resolution: Resolution
) -> ContrastCosts:
    """Return the costs of a contrast on a metric, including the costs of a control."""
    paired_blocks = all_costs.paired_blocks(
        contrast,
        resolution=resolution,
        control=plan.control if contrast.baseline == CONTROLLED_CONDITION else None,
    )
    return ContrastCosts(metric, contrast, all_costs, paired_blocks, resolution.more_is_better)


def judge_contrasts(
    plan: Plan, contrast_costs: Sequence[ContrastCosts], *, unreported_count: int = 0
) -> tuple[Comparison, ...]:
    """Judge comparisons that share alpha.

    ``unreported_count`` is the number of comparisons that share alpha but are not reported. They
    count as comparisons without evidence.
    """
    if not contrast_costs:
        return ()
    no_blocks = (PairedBlocks() for _ in range(unreported_count))
    paired_blocks = [*(costs.paired_blocks for costs in contrast_costs), *no_blocks]
    comparisons = _compare_in_drawn_layouts(plan, contrast_costs, paired_blocks)
    if not plan.layouts:
        return comparisons
    return _compare_across_layouts(plan, contrast_costs, paired_blocks, comparisons)


def _compare_in_drawn_layouts(
    plan: Plan, contrast_costs: Sequence[ContrastCosts], paired_blocks: Sequence[PairedBlocks]
) -> tuple[Comparison, ...]:
    """Compare each candidate; ``paired_blocks`` includes the unreported comparisons."""
    min_effect, alpha = plan.judgement.min_effect, plan.judgement.alpha
    verdicts = judge(paired_blocks, min_effect=min_effect, alpha=alpha)
    forecasts = blocks_to_go(
        paired_blocks, verdicts, min_effect=min_effect, alpha=alpha, seed=plan.seed
    )
    comparison_count = len(paired_blocks)
    return tuple(
        replace(
            _comparison(plan, costs, verdict, forecast, alpha / comparison_count),
            adjusted_by=_describe_adjustment(plan, costs, verdict, comparison_count),
        )
        for costs, verdict, forecast in zip(contrast_costs, verdicts, forecasts, strict=False)
    )


def _compare_across_layouts(
    plan: Plan,
    contrast_costs: Sequence[ContrastCosts],
    paired_blocks: Sequence[PairedBlocks],
    drawn_comparisons: Sequence[Comparison],
) -> tuple[Comparison, ...]:
    """Return comparisons across layouts in general, with verdicts in the drawn layouts."""
    layouts_of_blocks: list[list[int]] = [[] for _ in paired_blocks]
    for layouts, costs in zip(layouts_of_blocks, contrast_costs, strict=False):
        both_ran = costs.all_conditions.has_both(costs.contrast)
        numbers = costs.all_conditions.numbers[both_ran].tolist()
        layouts += [layout_of_block(plan, "measured", number) for number in numbers]
    min_effect, alpha, count = plan.judgement.min_effect, plan.judgement.alpha, len(plan.layouts)
    verdicts = judge_across_layouts(
        paired_blocks, layouts_of_blocks, layout_count=count, min_effect=min_effect, alpha=alpha
    )
    return tuple(
        _with_verdict_in_drawn_layouts(
            _comparison(
                plan, costs, verdict, forecast=None, share_of_alpha=alpha / len(paired_blocks)
            ),
            drawn,
            verdict.lost_analyses,
        )
        for costs, verdict, drawn in zip(contrast_costs, verdicts, drawn_comparisons, strict=False)
    )


def _with_verdict_in_drawn_layouts(
    comparison: Comparison, drawn: Comparison, lost_analyses: int
) -> Comparison:
    """Add the comparison ``drawn``, in the drawn layouts, to a comparison across layouts."""
    inner = DrawnLayouts(drawn.verdict, drawn.ratio, drawn.ratio_ci, drawn.scope, drawn.summary)
    return replace(
        comparison,
        scope=SCOPE_ACROSS_LAYOUTS,
        summary=f"Across layouts: {comparison.summary}{lost_analyses_clause(lost_analyses)}",
        in_drawn_layouts=inner,
        # Ratios may differ between layouts, so no constant ratio is expected.
        ratio_is_constant=True,
        ratio_segments=(),
    )


def _comparison(
    plan: Plan,
    costs: ContrastCosts,
    verdict: ComparisonVerdict,
    forecast: int | None,
    share_of_alpha: float,
) -> Comparison:
    """Return the comparison: its verdict, estimates, checks and sentences.

    ``forecast`` is the number of further blocks that would probably decide; ``None`` if unknown.
    """
    if not verdict.blocks:
        return _comparison_without_blocks(plan, costs, verdict)
    judgement, paired_blocks, contrast = plan.judgement, costs.paired_blocks, costs.contrast
    baseline, candidate = (plan.conditions[index] for index in contrast.pair)
    mean_ratio = ratio_of_means(paired_blocks.baseline, paired_blocks.candidate, seed=plan.seed)
    slower_probability = probability_slower(paired_blocks, level=judgement.alpha)
    all_costs = costs.all_conditions
    both_ran = all_costs.has_both(contrast)
    numbers = all_costs.numbers[both_ran]
    baseline_costs = all_costs.costs[both_ran, contrast.baseline]
    candidate_costs = paired_blocks.candidate
    _, is_constant = running_interval(paired_blocks.engine, share_of_alpha)
    is_constant = is_constant and verdict.ratio_is_constant
    if is_constant:
        is_constant = may_have_one_ratio(paired_blocks, verdict.low, verdict.high, share_of_alpha)
    answers = statistic_answers(
        baseline_costs, candidate_costs, min_effect=judgement.min_effect, level=share_of_alpha
    )
    comparison = Comparison(
        baseline=baseline.name,
        candidate=candidate.name,
        metric=costs.metric,
        estimand=ESTIMAND,
        ratio=verdict.ratio,
        ratio_ci=verdict.ratio_ci,
        equivalence_ci=verdict.equivalence_ci,
        equivalence_level=verdict.equivalence_level,
        means_forbid_equivalence=verdict.means_forbid_equivalence,
        ratio_is_constant=is_constant,
        ratio_segments=() if is_constant else ratio_segments(paired_blocks, numbers),
        e_value=verdict.e_value,
        verdict=verdict.verdict,
        min_effect=judgement.min_effect,
        alpha=judgement.alpha,
        blocks=verdict.blocks,
        mean_ratio=mean_ratio.ratio,
        mean_ratio_ci=mean_ratio.ratio_ci,
        probability_slower=slower_probability.share,
        probability_slower_ci=slower_probability.interval,
        minimum_misleads=minimum_misleads(
            float(np.min(baseline_costs)),
            float(np.min(candidate_costs)),
            typical=verdict.typical,
            verdict=verdict.verdict,
            min_effect=judgement.min_effect,
        ),
        scope=scope_of(plan),
        summary="",
        significance_level=verdict.level,
        blocks_to_go=forecast,
        carry_over=_estimate_carry_over(plan, costs),
        slow_runs=_compare_slow_runs(plan, costs, verdict, share_of_alpha),
        answers=answers,
        disagreement=disagreement_sentence(
            answers,
            baseline.name,
            candidate.name,
            verdict=verdict.verdict,
            metric=costs.metric,
            more_is_better=costs.more_is_better,
        ),
        stratum=contrast.stratum,
    )
    names = _names_in_sentence(contrast, baseline, candidate)
    summary = verdict_sentence(comparison, *names, more_is_better=costs.more_is_better)
    return replace(comparison, summary=summary)


def _comparison_without_blocks(
    plan: Plan, costs: ContrastCosts, verdict: ComparisonVerdict
) -> Comparison:
    """Return an undecided comparison: the budget ended before its first block."""
    contrast = costs.contrast
    baseline, candidate = (plan.conditions[index] for index in contrast.pair)
    comparison = Comparison(
        baseline=baseline.name,
        candidate=candidate.name,
        metric=costs.metric,
        estimand=ESTIMAND,
        ratio=None,
        ratio_ci=(None, None),
        equivalence_ci=verdict.equivalence_ci,
        equivalence_level=verdict.equivalence_level,
        e_value=verdict.e_value,
        verdict=verdict.verdict,
        min_effect=plan.judgement.min_effect,
        alpha=plan.judgement.alpha,
        blocks=0,
        mean_ratio=None,
        mean_ratio_ci=(None, None),
        probability_slower=None,
        probability_slower_ci=(None, None),
        minimum_misleads=False,
        scope=scope_of(plan),
        summary="",
        significance_level=verdict.level,
        stratum=contrast.stratum,
    )
    names = _names_in_sentence(contrast, baseline, candidate)
    return replace(comparison, summary=verdict_sentence(comparison, *names))


def _names_in_sentence(
    contrast: Contrast, baseline: Condition, candidate: Condition
) -> tuple[str, str]:
    factor = contrast.factor or ""
    return baseline.levels.get(factor, baseline.name), candidate.levels.get(factor, candidate.name)


def _compare_slow_runs(
    plan: Plan, costs: ContrastCosts, verdict: ComparisonVerdict, share_of_alpha: float
) -> SlowRuns:
    """Return the slow runs of a comparison, and test which condition has more slow runs.

    The test has one threshold for both conditions, so both must have equal typical runs.
    """
    judgement, paired_blocks = plan.judgement, costs.paired_blocks
    margin = margin_of(judgement.min_effect)
    baseline, candidate = (plan.conditions[index] for index in costs.contrast.pair)
    counts = slow_run_counts(paired_blocks.own_baseline, paired_blocks.candidate, margin)
    slow_runs = SlowRuns(
        factor=counts.factor,
        baseline_count=counts.baseline,
        candidate_count=counts.candidate,
        run_count=counts.runs,
        unseen_share=unseen_share(counts.runs, judgement.alpha),
    )
    if verdict.verdict == "equivalent" or verdict.means_forbid_equivalence:
        test = slow_run_test(
            paired_blocks.own_baseline, paired_blocks.candidate, margin=margin, alpha=share_of_alpha
        )
        role_by_side: dict[int, Literal["baseline", "candidate"]]
        role_by_side = {-1: "baseline", 1: "candidate"}
        role = role_by_side.get(test.side)
        slow_runs = replace(
            slow_runs, more_often=role, e_value=test.e_value, significance_level=test.level
        )
    sentence = slow_runs_sentence(
        slow_runs,
        *_names_in_sentence(costs.contrast, baseline, candidate),
        metric=costs.metric,
        more_is_better=costs.more_is_better,
    )
    return replace(slow_runs, summary=sentence)


def _describe_adjustment(
    plan: Plan, costs: ContrastCosts, verdict: ComparisonVerdict, count: int
) -> Adjustment | None:
    """Return the effect of the adjustment by a covariate; ``None`` if no block was adjusted.

    ``count`` is the number of comparisons that share alpha.
    """
    paired_blocks, min_effect = costs.paired_blocks, plan.judgement.min_effect
    fitted_adjustment = paired_blocks.engine.adjustment()
    if fitted_adjustment is None:
        return None
    covariate_index, adjusted_blocks, spread_ratio = fitted_adjustment
    unadjusted = judge_unadjusted(paired_blocks, verdict, min_effect=min_effect, compared=count)
    adjustment = Adjustment(
        covariate=plan.adjust_by[covariate_index],
        blocks=adjusted_blocks,
        spread_ratio=spread_ratio,
        unadjusted_ratio=unadjusted.ratio,
        unadjusted_ratio_ci=unadjusted.ratio_ci,
        summary="",
    )
    sentence = adjustment_sentence(
        adjustment, len(paired_blocks), verdict.ratio, more_is_better=costs.more_is_better
    )
    return replace(adjustment, summary=sentence)


def scope_of(plan: Plan) -> str:
    """Return a phrase for the runs to which verdicts generalise (rule 2)."""
    if any(
        condition.server is not None and condition.server.trial == "interval"
        for condition in plan.conditions
    ):
        return SCOPE_OF_INTERVALS
    if plan.measure.cpu_sets:
        return scope_at_once(plan.measure.cpu_sets)
    if not plan.layouts:
        return SCOPE
    return f"across processes, in these {len(plan.layouts)} layouts, in this campaign on this host"


def scope_at_once(cpu_sets: CpuSets) -> str:
    """Return the scope of comparisons whose two trials ran at once."""
    return (
        f"across pairs of processes that run at once on {cpus_clause(cpu_sets)}, "
        "in this campaign on this host"
    )


def _estimate_carry_over(plan: Plan, costs: ContrastCosts) -> CarryOver | None:
    """Return the carry-over; ``None`` if it is unknown, or if trials do not follow each other."""
    all_costs = costs.all_conditions
    # Functions run in turns within one process, and the trials of ``--duet`` at once.
    if plan.rules.shares_processes or plan.measure.washout or plan.measure.cpu_sets:
        return None
    if np.isnan(all_costs.end_costs).any():
        return None
    return carry_over(
        all_costs.end_conditions,
        all_costs.end_costs,
        candidate=costs.contrast.candidate,
        baseline=costs.contrast.baseline,
        follows=all_costs.is_consecutive,
    )
