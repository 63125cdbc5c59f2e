"""Each candidate against its baseline, on the primary metric and on the others."""

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
from equipoise.campaign.blocks import CONTROLLED, BlockCosts, block_costs, resolution_of
from equipoise.design.coin import layout_of_block
from equipoise.measure.environment.covariates import RUN_DELAY
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import PRIMARY_METRIC, Condition, Contrast, Plan
from equipoise.model.record import CampaignWarning, Trial
from equipoise.model.result import Adjustment, CarryOver, Comparison, SlowRuns, TheseLayouts
from equipoise.stats.carry_over import carry_over
from equipoise.stats.changes import ratio_segments
from equipoise.stats.constancy import one_ratio_describes
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


class Pairing(Struct, frozen=True):
    """One candidate and its baseline on one metric."""

    metric: str
    contrast: Contrast
    costs: BlockCosts
    pairs: PairedBlocks
    more_is_better: bool = False
    """Whether a cost is the inverse of the metric."""


def primary_comparisons(plan: Plan, blocks: Blocks) -> tuple[Comparison, ...]:
    """Compare every candidate on the primary metric, at the whole alpha."""
    pairings = pairings_of(plan, blocks, plan.judgement.primary_metric) if blocks else ()
    judged = zip(pairings, judge_pairings(plan, pairings), strict=True)
    return tuple(
        _with_waiting(judgement, pairing.contrast, blocks) for pairing, judgement in judged
    )


def _with_waiting(comparison: Comparison, contrast: Contrast, blocks: Blocks) -> Comparison:
    """Add a clause to the summary if most of the extra time is waiting for a processor."""
    if comparison.metric != PRIMARY_METRIC or comparison.verdict not in ("faster", "slower"):
        return comparison
    pair = contrast.pair
    quicker, slower = pair if comparison.verdict == "slower" else pair[::-1]
    rows: list[tuple[float, float]] = []
    for block in blocks.values():
        by_condition = {trial.condition: trial for trial in block}
        if quicker in by_condition and slower in by_condition:
            less, more = map(_wall_and_waiting, (by_condition[quicker], by_condition[slower]))
            rows.append((more[0] - less[0], more[1] - less[1]))
    extra_s, waiting_s = np.array(rows, dtype=np.float64).reshape(-1, 2).T
    if np.isnan(waiting_s).any() or not is_mostly_waiting(extra_s, waiting_s):
        return comparison
    return replace(comparison, summary=waiting_sentence(comparison.summary))


def _wall_and_waiting(trial: Trial) -> tuple[float, float]:
    """Return the wall time and the run delay in seconds; both NaN if one is unknown."""
    wall_s, waiting_s = trial.accounting.wall_s, trial.covariates.get(RUN_DELAY)
    known = wall_s is not None and waiting_s is not None and not trial.timed_out
    return (wall_s or 0.0, waiting_s or 0.0) if known else (math.nan, math.nan)


def other_comparisons(
    plan: Plan, blocks: Blocks
) -> tuple[tuple[Comparison, ...], tuple[CampaignWarning, ...]]:
    """Compare every candidate on every other metric; all these comparisons share alpha.

    A metric that a trial does not have is named in a warning and left out.
    """
    pairings: list[Pairing] = []
    unknown: list[CampaignWarning] = []
    for metric in plan.judgement.other_metrics if blocks else ():
        try:
            pairings.extend(pairings_of(plan, blocks, metric))
        except UnusableInput as error:
            unknown.append(CampaignWarning("metric_unknown", error.what, error.hint or ""))
    return judge_pairings(plan, pairings), tuple(unknown)


def control_comparison(plan: Plan, blocks: Blocks) -> Comparison | None:
    """Compare the control with the baseline; this comparison has its own alpha."""
    if plan.control is None or not blocks:
        return None
    contrasts = (Contrast(CONTROLLED, plan.control),)
    control_plan = replace(plan, control=None, chosen_contrasts=contrasts)
    pairings = pairings_of(control_plan, blocks, plan.judgement.primary_metric)
    pairs = [pairing.pairs for pairing in pairings]
    # The control checks the tool, in the layouts that were drawn.
    return _judge_in_these_layouts(control_plan, pairings, pairs)[0]


def pairings_of(plan: Plan, blocks: Blocks, metric: str) -> list[Pairing]:
    """Pair every candidate with its baseline on one metric.

    Raise `UnusableInput` if a trial does not have the metric.
    """
    costs = block_costs(plan, blocks, metric)
    resolution = resolution_of(blocks, metric)
    return [pairing_of(plan, metric, costs, contrast, resolution) for contrast in plan.contrasts]


def pairing_of(
    plan: Plan,
    metric: str,
    costs: BlockCosts,
    contrast: Contrast,
    resolution: Resolution,
) -> Pairing:
    """Pair a candidate with its baseline, and with the control if there is one."""
    pairs = costs.paired(
        contrast,
        resolution=resolution,
        control=plan.control if contrast.baseline == CONTROLLED else None,
    )
    return Pairing(metric, contrast, costs, pairs, resolution.more_is_better)


def judge_pairings(
    plan: Plan, pairings: Sequence[Pairing], *, unreported: int = 0
) -> tuple[Comparison, ...]:
    """Judge comparisons that share alpha.

    ``unreported`` comparisons share alpha without being reported: each counts as a comparison
    without evidence.
    """
    if not pairings:
        return ()
    nothing = (PairedBlocks() for _ in range(unreported))
    pairs = [*(pairing.pairs for pairing in pairings), *nothing]
    drawn = _judge_in_these_layouts(plan, pairings, pairs)
    return _judge_across_layouts(plan, pairings, pairs, drawn) if plan.layouts else drawn


def _judge_in_these_layouts(
    plan: Plan, pairings: Sequence[Pairing], pairs: Sequence[PairedBlocks]
) -> tuple[Comparison, ...]:
    effect, alpha = plan.judgement.min_effect, plan.judgement.alpha
    judged = judge(pairs, min_effect=effect, alpha=alpha)
    to_go = blocks_to_go(pairs, judged, min_effect=effect, alpha=alpha, seed=plan.seed)
    return tuple(
        replace(
            _comparison(plan, pairing, verdict, more, alpha / len(pairs)),
            adjusted_by=_adjustment(plan, pairing, verdict, len(pairs)),
        )
        for pairing, verdict, more in zip(pairings, judged, to_go, strict=False)
    )


def _judge_across_layouts(
    plan: Plan,
    pairings: Sequence[Pairing],
    pairs: Sequence[PairedBlocks],
    drawn: Sequence[Comparison],
) -> tuple[Comparison, ...]:
    """Return comparisons across layouts in general, each with its claim on these layouts."""
    layouts: list[list[int]] = [[] for _ in pairs]
    for places, pairing in zip(layouts, pairings, strict=False):
        numbers = pairing.costs.numbers[pairing.costs.both(pairing.contrast)].tolist()
        places += [layout_of_block(plan, "measured", number) for number in numbers]
    effect, alpha = plan.judgement.min_effect, plan.judgement.alpha
    count = len(plan.layouts)
    judged = judge_across_layouts(pairs, layouts, count=count, min_effect=effect, alpha=alpha)
    return tuple(
        _with_claim_on_these_layouts(
            _comparison(plan, pairing, judgement, None, alpha / len(pairs)),
            these,
            judgement.lost_analyses,
        )
        for pairing, judgement, these in zip(pairings, judged, drawn, strict=False)
    )


def _with_claim_on_these_layouts(
    across: Comparison, these: Comparison, lost_analyses: int
) -> Comparison:
    claim = TheseLayouts(these.verdict, these.ratio, these.ratio_ci, these.scope, these.summary)
    return replace(
        across,
        scope=SCOPE_ACROSS_LAYOUTS,
        summary=f"Across layouts: {across.summary}{lost_analyses_clause(lost_analyses)}",
        in_these_layouts=claim,
        # Layouts may differ, so a ratio that is not constant does no harm.
        ratio_is_constant=True,
        ratio_segments=(),
    )


def _comparison(
    plan: Plan,
    pairing: Pairing,
    judged: ComparisonVerdict,
    to_go: int | None,
    share_of_alpha: float,
) -> Comparison:
    judgement, pairs, contrast = plan.judgement, pairing.pairs, pairing.contrast
    baseline, candidate = (plan.conditions[place] for place in contrast.pair)
    means = ratio_of_means(pairs.baseline, pairs.candidate, seed=plan.seed)
    slower = probability_slower(pairs, level=judgement.alpha)
    both = pairing.costs.both(contrast)
    baseline_costs = pairing.costs.costs[both, contrast.baseline]
    _, is_constant = running_interval(pairs.engine, share_of_alpha)
    is_constant = is_constant and judged.ratio_is_constant
    if is_constant:
        is_constant = one_ratio_describes(pairs, judged.low, judged.high, share_of_alpha)
    statistics = statistic_answers(
        baseline_costs,
        pairs.candidate,
        min_effect=judgement.min_effect,
        level=share_of_alpha,
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
        ratio_segments=() if is_constant else ratio_segments(pairs, pairing.costs.numbers[both]),
        e_value=judged.e_value,
        verdict=judged.verdict,
        min_effect=judgement.min_effect,
        alpha=judgement.alpha,
        blocks=judged.blocks,
        mean_ratio=means.ratio,
        mean_ratio_ci=means.ratio_ci,
        probability_slower=slower.share,
        probability_slower_ci=slower.interval,
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
        blocks_to_go=to_go,
        carry_over=_carry_over(plan, pairing),
        slow_runs=_slow_runs(plan, pairing, judged, share_of_alpha),
        answers=statistics,
        disagreement=disagreement_sentence(
            statistics,
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
    """Return the names of two conditions in a sentence: their levels if a factor is compared."""
    factor = contrast.factor or ""
    return baseline.levels.get(factor, baseline.name), candidate.levels.get(factor, candidate.name)


def _slow_runs(
    plan: Plan, pairing: Pairing, judged: ComparisonVerdict, share_of_alpha: float
) -> SlowRuns:
    """Return the slow runs of a comparison, and the test of which condition has more.

    The test is made only if the typical runs do not differ: otherwise a common threshold for both
    conditions would not separate slow runs.
    """
    judgement, pairs = plan.judgement, pairing.pairs
    margin, (baseline, candidate) = (
        margin_of(judgement.min_effect),
        (plan.conditions[place] for place in pairing.contrast.pair),
    )
    counts = slow_run_counts(pairs.own_baseline, pairs.candidate, margin)
    slow = SlowRuns(
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
        named: dict[int, Literal["baseline", "candidate"]] = {-1: "baseline", 1: "candidate"}
        slow = replace(
            slow, more_often=named.get(test.side), e_value=test.e_value, level=test.level
        )
    sentence = slow_runs_sentence(
        slow,
        *_names_in_sentence(pairing.contrast, baseline, candidate),
        metric=pairing.metric,
        more_is_better=pairing.more_is_better,
    )
    return replace(slow, summary=sentence)


def _adjustment(
    plan: Plan, pairing: Pairing, judged: ComparisonVerdict, compared: int
) -> Adjustment | None:
    """Return the effect of adjusting by a covariate; ``None`` if no block was adjusted.

    ``compared`` is the number of comparisons that were judged together.
    """
    pairs, effect = pairing.pairs, plan.judgement.min_effect
    adjusted = pairs.engine.adjustment()
    if adjusted is None:
        return None
    place, blocks, spread_ratio = adjusted
    without = judge_unadjusted(pairs, judged, min_effect=effect, compared=compared)
    adjustment = Adjustment(
        covariate=plan.adjust_by[place],
        blocks=blocks,
        spread_ratio=spread_ratio,
        unadjusted_ratio=without.ratio,
        unadjusted_ratio_ci=without.ratio_ci,
        summary="",
    )
    sentence = adjustment_sentence(
        adjustment, len(pairs), judged.ratio, more_is_better=pairing.more_is_better
    )
    return replace(adjustment, summary=sentence)


def scope_of(plan: Plan) -> str:
    """Return the scope of a plan's verdicts, by what its trials replicate."""
    if any(
        condition.server is not None and condition.server.trial == "interval"
        for condition in plan.conditions
    ):
        return SCOPE_OF_INTERVALS
    if not plan.layouts:
        return SCOPE
    return f"across processes, in these {len(plan.layouts)} layouts, in this campaign on this host"


def _carry_over(plan: Plan, pairing: Pairing) -> CarryOver | None:
    """Return the carry-over; ``None`` if each condition ran before itself, or it is unknown."""
    costs = pairing.costs
    # Functions share a process, in which their batches alternate: none runs before another.
    if plan.rules.shares_processes or plan.measure.washout or np.isnan(costs.end_costs).any():
        return None
    return carry_over(
        costs.ends,
        costs.end_costs,
        candidate=pairing.contrast.candidate,
        baseline=pairing.contrast.baseline,
        follows=costs.follows,
    )
