"""Intervals for a run that another tool measured: no e-value and no verdict.

The martingale of rule 1 rests on our coin, which ordered nothing here. What is left is an ordinary
interval for one look, and what threatens it, in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from equipoise.analysis.wording import ratio_clause
from equipoise.campaign.blocks import cost_in
from equipoise.model.plan import Contrast, ImportSource, Plan
from equipoise.model.record import CampaignWarning, Trial
from equipoise.model.result import ImportedResult, SampleComparison
from equipoise.stats.arrays import FloatArray
from equipoise.stats.two_samples import ESTIMAND, SampleRatio, paired_ratio, welch_ratio

Blocks = Mapping[int, tuple[Trial, ...]]

IN_BLOCKS = "in blocks"
WORTH = (
    "an ordinary fixed-n interval for one look, if the trials are independent; no verdict and no "
    "e-value, because no coin of Equipoise ordered these trials"
)


def imported_result(plan: Plan, blocks: Blocks) -> ImportedResult | None:
    """Compare the conditions of an imported run; ``None`` for a campaign of our own."""
    source = plan.imported
    if source is None:
        return None
    metric = plan.judgement.primary_metric
    read = cost_in(metric)
    costs: dict[int, dict[int, list[float]]] = {}
    for block, trials in blocks.items():
        for trial in trials:
            cost = read(trial)
            if cost is not None:
                costs.setdefault(trial.condition, {}).setdefault(block, []).append(cost)
    comparisons = tuple(_compared(plan, source, one, costs) for one in plan.contrasts)
    return ImportedResult(
        source=source,
        metric=metric,
        comparisons=comparisons,
        summary=WORTH + _several(comparisons, plan.judgement.alpha),
    )


def threats(imported: ImportedResult | None) -> tuple[CampaignWarning, ...]:
    """Return the warnings about what the interval of an imported run leaves out."""
    if imported is None or not imported.comparisons:
        return ()
    words = {
        "one after the other": "the conditions ran one after the other: whatever drifted or "
        "changed on the host meanwhile is in the ratio",
        "mixed": "the conditions ran in an order that no coin of ours drew: a pattern in time may "
        "favour one of them",
        IN_BLOCKS: "the order within the blocks is not known to be random: a pattern in time may "
        "favour one condition",
    }[imported.source.order]
    return (
        CampaignWarning(
            "not_randomised", words, "equipoise compare A B runs both in random blocks: measure so"
        ),
    )


def _several(comparisons: Sequence[SampleComparison], alpha: float) -> str:
    count = sum(one.unknown is None for one in comparisons)
    if count < 2:
        return ""
    return (
        f"; each interval is for itself, so that of {count} about {count * alpha:.1f} miss by "
        "chance alone"
    )


def _compared(
    plan: Plan,
    source: ImportSource,
    contrast: Contrast,
    costs: Mapping[int, Mapping[int, list[float]]],
) -> SampleComparison:
    baseline, candidate = (costs.get(one, {}) for one in (contrast.baseline, contrast.candidate))
    names = tuple(plan.conditions[one].name for one in (contrast.baseline, contrast.candidate))
    level = plan.judgement.alpha
    paired = source.order == IN_BLOCKS
    if paired:
        single = [block for block in baseline if len(baseline[block]) == 1]
        both = [block for block in single if len(candidate.get(block, ())) == 1]
        baseline, candidate = (
            {block: one[block] for block in both} for one in (baseline, candidate)
        )
    below, above = (_array(one.values()) for one in (baseline, candidate))
    found = (paired_ratio if paired else welch_ratio)(below, above, level=level)
    return SampleComparison(
        baseline=names[0],
        candidate=names[1],
        metric=plan.judgement.primary_metric,
        method="paired" if paired else "Welch",
        estimand=ESTIMAND,
        ratio=found.ratio,
        ratio_ci=found.ratio_ci,
        unknown=found.unknown,
        level=level,
        baseline_trials=len(below),
        candidate_trials=len(above),
        scope=_scope(len(below), len(above), paired=paired),
        summary=_summary(names[1], names[0], plan.judgement.primary_metric, found),
        stratum=contrast.stratum,
    )


def _array(values: Iterable[Sequence[float]]) -> FloatArray:
    return np.array([value for one in values for value in one], dtype=np.float64)


def _scope(baseline: int, candidate: int, *, paired: bool) -> str:
    if paired:
        blocks = "1 block" if baseline == 1 else f"{baseline} blocks"
        return f"{blocks} of these files, and nothing beyond"
    if min(baseline, candidate) < 2:
        return "these very processes, and no other ones"
    return (
        f"{baseline} processes against {candidate} processes of these files, "
        "and others like them only if nothing else changed between the two"
    )


def _summary(candidate: str, baseline: str, metric: str, found: SampleRatio) -> str:
    if found.ratio is None:
        return f"{candidate} against {baseline}: no ratio of {metric}, because {found.unknown}."
    clause = ratio_clause(metric, baseline, candidate, found.ratio)
    low, high = found.ratio_ci
    if low is None or high is None:
        return f"{clause}; {found.unknown}."
    if low <= 1.0 <= high:
        return f"{clause}, but the interval also allows for no difference."
    return f"{clause} in these trials; other changes between them are not ruled out."
