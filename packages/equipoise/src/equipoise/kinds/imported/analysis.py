"""Intervals for a run that another tool measured: no e-value and no verdict.

A verdict needs trials in an order that the coin of Equipoise drew. An imported run has only
intervals that are valid for one analysis, and a warning about the order of its trials.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from equipoise.analysis.comparisons import Blocks
from equipoise.analysis.kind import AnalysisKind, KindResult
from equipoise.analysis.wording import ratio_clause
from equipoise.campaign.blocks import cost_function
from equipoise.kinds.imported.terms import IN_BLOCKS, ImportedResult, ImportSource
from equipoise.model.plan import Contrast, Plan
from equipoise.model.quantities import counted
from equipoise.model.record import CampaignWarning, RunRecord
from equipoise.model.result import SampleComparison
from equipoise.stats.two_samples import ESTIMAND, SampleRatio, sample_ratio

MEANING_OF_INTERVALS = (
    "the intervals are valid for one analysis, if the trials are independent; there is no verdict "
    "and no e-value, because no coin of Equipoise ordered these trials"
)
"""Sentence about the intervals of every imported run."""


class ImportedAnalysis(AnalysisKind):
    """The analysis of an imported run."""

    def result(self, record: RunRecord, blocks: Blocks) -> KindResult:
        """Return the comparisons of samples, and the warning about the order of the trials."""
        imported = imported_result(record.plan, blocks)
        return KindResult({"imported": imported}, order_warnings(imported))


def imported_result(plan: Plan, blocks: Blocks) -> ImportedResult:
    """Compare the conditions of an imported run."""
    source = plan.terms
    assert isinstance(source, ImportSource)
    metric = plan.judgement.primary_metric
    cost_of = cost_function(metric)
    costs: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trial in itertools.chain.from_iterable(blocks.values()):
        cost = cost_of(trial)
        if cost is not None:
            costs[trial.condition][trial.block].append(cost)
    comparisons = tuple(
        _sample_comparison(plan, source, contrast, costs) for contrast in plan.contrasts
    )
    return ImportedResult(
        source=source,
        metric=metric,
        comparisons=comparisons,
        summary=MEANING_OF_INTERVALS + _multiplicity_clause(comparisons, plan.judgement.alpha),
    )


def order_warnings(imported: ImportedResult) -> tuple[CampaignWarning, ...]:
    """Return the warning about the order of the trials, which the intervals ignore."""
    if not imported.comparisons:
        return ()
    problem = {
        "one after the other": "the conditions ran one after the other: every change of the host "
        "between them is in the ratio",
        "mixed": "no coin of Equipoise drew the order of the conditions: a pattern in time may "
        "favour one of them",
        IN_BLOCKS: "the order within the blocks is not known to be random: a pattern in time may "
        "favour one condition",
    }[imported.source.order]
    hint = "measure with equipoise compare A B, which runs both in random blocks"
    return (CampaignWarning("not_randomised", problem, hint),)


def _multiplicity_clause(comparisons: Sequence[SampleComparison], alpha: float) -> str:
    count = sum(comparison.unknown is None for comparison in comparisons)
    if count < 2:
        return ""
    return (
        f"; the intervals are not adjusted for their number: by chance about {count * alpha:.1f} "
        f"of {count} miss the true ratio"
    )


def _sample_comparison(
    plan: Plan,
    source: ImportSource,
    contrast: Contrast,
    costs: Mapping[int, Mapping[int, list[float]]],
) -> SampleComparison:
    """Compare two conditions, within blocks if possible; ``costs`` are by condition and block."""
    baseline_blocks, candidate_blocks = (costs.get(index, {}) for index in contrast.pair)
    baseline_name, candidate_name = plan.names_of(contrast)
    metric, alpha = plan.judgement.primary_metric, plan.judgement.alpha
    is_paired = source.order == IN_BLOCKS
    if is_paired:
        # Only blocks with one cost of each condition count.
        paired_blocks = [
            block
            for block, block_costs in baseline_blocks.items()
            if len(block_costs) == len(candidate_blocks.get(block, ())) == 1
        ]
        baseline_blocks, candidate_blocks = (
            {block: costs_by_block[block] for block in paired_blocks}
            for costs_by_block in (baseline_blocks, candidate_blocks)
        )
    baseline_costs, candidate_costs = (
        np.fromiter(itertools.chain.from_iterable(costs_by_block.values()), np.float64)
        for costs_by_block in (baseline_blocks, candidate_blocks)
    )
    estimate = sample_ratio(baseline_costs, candidate_costs, paired=is_paired, level=alpha)
    return SampleComparison(
        baseline=baseline_name,
        candidate=candidate_name,
        metric=metric,
        method="paired" if is_paired else "Welch",
        estimand=ESTIMAND,
        ratio=estimate.ratio,
        ratio_ci=estimate.ratio_ci,
        unknown=estimate.unknown,
        significance_level=alpha,
        baseline_trials=len(baseline_costs),
        candidate_trials=len(candidate_costs),
        scope=_scope(len(baseline_costs), len(candidate_costs), paired=is_paired),
        summary=_summary(candidate_name, baseline_name, metric, estimate),
        stratum=contrast.stratum,
    )


def _scope(baseline_count: int, candidate_count: int, *, paired: bool) -> str:
    if paired:
        return f"only {counted(baseline_count, 'block')} of these files"
    if min(baseline_count, candidate_count) < 2:
        return "only these processes"
    return (
        f"{baseline_count} processes against {candidate_count} processes of these files, "
        "and similar ones only if nothing else changed between the two"
    )


def _summary(candidate: str, baseline: str, metric: str, estimate: SampleRatio) -> str:
    if estimate.ratio is None:
        return f"{candidate} against {baseline}: no ratio of {metric}, because {estimate.unknown}."
    clause = ratio_clause(metric, baseline, candidate, estimate.ratio)
    low, high = estimate.ratio_ci
    if low is None or high is None:
        return f"{clause}; {estimate.unknown}."
    if low <= 1.0 <= high:
        return f"{clause}, but the interval also allows for no difference."
    return f"{clause} in these trials; other changes between them are not ruled out."
