"""Choose the gap to explain: the extra wall time of the slower condition of a contrast."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks, primary_comparisons
from equipoise.campaign.washouts import analysed_blocks
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import PRIMARY_METRIC, Contrast
from equipoise.model.record import RunRecord, Trial
from equipoise.model.result import Comparison
from equipoise.why.evidence.sources import Runs
from equipoise.why.kind import why_kind

EXPLAINABLE_VERDICTS = ("faster", "slower")
"""Verdicts that name one slower condition."""


class Gap(Struct, frozen=True):
    """The gap of a contrast: the comparison of both conditions' wall times, and their trials."""

    contrast: Contrast
    comparison: Comparison
    """Comparison by wall time, whatever the campaign's primary metric is."""
    trials: Runs[Trial]
    """Trials of the complete blocks in which both conditions ran."""
    chosen_because: str | None = None
    """Reason for the choice among several gaps, as a sentence."""
    campaign_metric: str = PRIMARY_METRIC
    """Metric by which the campaign itself judged the contrast."""

    @property
    def is_explainable(self) -> bool:
        """Whether one condition is slower, according to the verdict."""
        return self.comparison.verdict in EXPLAINABLE_VERDICTS

    @property
    def ratio_nearest_to_1(self) -> float | None:
        """The value nearest to 1 among the ratio and its bounds; ``None`` if all are unknown."""
        comparison = self.comparison
        ratios = [ratio for ratio in (comparison.ratio, *comparison.ratio_ci) if ratio]
        return min(ratios, key=lambda ratio: abs(math.log(ratio)), default=None)

    @property
    def longest_trial_s(self) -> float:
        """Wall-clock seconds of the longest trial of either condition."""
        return max((trial.accounting.wall_s or 0.0 for trial in self.trials.all_runs), default=0.0)


def choose_gap(record: RunRecord, baseline: str | None = None, candidate: str | None = None) -> Gap:
    """Return the largest gap with the verdict faster or slower; if there is none, the largest gap.

    ``baseline`` and ``candidate`` are names of conditions, or ``None`` for any condition. Raise
    `UnusableInput` if the campaign cannot be explained, has no gap, or lacks this comparison.
    """
    plan = record.plan
    plan.rules.check_explainable(record)
    names = [condition.name for condition in plan.conditions]
    for name in (baseline, candidate):
        if name not in (None, *names):
            raise UnusableInput(
                f"there is no condition {name!r}", hint=f"choose one of {', '.join(names)}"
            )
    gaps = gaps_of(record)
    if not gaps:
        reason = why_kind(plan.terms).no_gap_reason
        raise UnusableInput(
            f"run {record.id} {reason}",
            hint=f"if it was interrupted, resume it: equipoise resume {record.id}",
        )
    matching_gaps = [
        gap
        for gap in gaps
        if baseline in (None, gap.comparison.baseline)
        and candidate in (None, gap.comparison.candidate)
    ]
    if not matching_gaps:
        pairs = [f"{gap.comparison.candidate} with {gap.comparison.baseline}" for gap in gaps]
        more_pairs = f" and {len(pairs) - 5} more pairs" if len(pairs) > 5 else ""
        raise UnusableInput(
            f"run {record.id} does not compare {candidate or 'anything'} with "
            f"{baseline or 'anything'}",
            hint=f"choose a pair of this run: {'; '.join(pairs[:5])}{more_pairs}",
        )
    return _select_largest(matching_gaps)


def gaps_of(record: RunRecord) -> tuple[Gap, ...]:
    """Return the gaps of a campaign, one for each contrast that its kind judges."""
    plan = record.plan
    blocks = analysed_blocks(record)
    if not blocks:
        return ()
    kind = why_kind(plan.terms)
    judged_contrasts = kind.judged_contrasts(record, blocks)
    if not judged_contrasts:
        return ()
    judgement = replace(plan.judgement, primary_metric=PRIMARY_METRIC)
    contrasts = tuple(judged.contrast for judged in judged_contrasts)
    plan_by_wall_time = replace(plan, judgement=judgement, chosen_contrasts=contrasts)
    comparisons = primary_comparisons(plan_by_wall_time, blocks)
    return tuple(
        Gap(
            judged.contrast,
            kind.with_campaign_verdict(judged, comparison),
            _trials_of(judged.contrast, blocks),
            campaign_metric=judged.metric,
        )
        for comparison, judged in zip(comparisons, judged_contrasts, strict=True)
        if comparison.blocks
    )


def largest_gap(record: RunRecord) -> Gap | None:
    """Return the gap that `choose_gap` would choose; ``None`` if nothing is compared."""
    gaps = gaps_of(record) if record.plan.rules.has_random_order else ()
    return _select_largest(gaps) if gaps else None


def gap_with_public_names(gap: Gap, record: RunRecord, public_record: RunRecord) -> Gap:
    """Return the gap with the names of its conditions in the public record (hidden values)."""
    if public_record is record:
        return gap
    pair = gap.contrast.pair
    public_gap = next(other for other in gaps_of(public_record) if other.contrast.pair == pair)
    return replace(public_gap, chosen_because=gap.chosen_because)


def explains_gap(experiment: RunRecord, record: RunRecord, contrast: Contrast) -> bool:
    """Return whether an experiment tested the gap of this contrast of a campaign."""
    conditions = record.plan.conditions
    pair = (conditions[contrast.baseline], conditions[contrast.candidate])
    return experiment.plan.conditions[:2] == pair


def nothing_to_explain_sentence(gap: Gap) -> str:
    """Return the sentence that says why a gap is not explained."""
    comparison = gap.comparison
    if comparison.verdict == "mixed":
        return f"which of the two is slower depends on what counts: {comparison.summary}"
    sentence = f"there is nothing to explain: {comparison.summary}"
    if gap.campaign_metric == PRIMARY_METRIC:
        return sentence
    return (
        f"{sentence} Equipoise explains wall time, not {gap.campaign_metric}: where trials run for "
        "a fixed time, give them a fixed amount of work instead"
    )


def _select_largest(gaps: Sequence[Gap]) -> Gap:
    """Return the largest explainable gap, or the largest gap if none is explainable."""
    if len(gaps) == 1:
        return gaps[0]
    explainable = [gap for gap in gaps if gap.is_explainable]
    gap_phrase = "the largest gap whose verdict is faster or slower"
    if not explainable:
        gap_phrase = "the largest gap; no verdict is faster or slower"
    reason = f"of {len(gaps)} comparisons this is {gap_phrase}"

    def distance(gap: Gap) -> float:
        ratio = gap.comparison.ratio
        return abs(math.log(ratio)) if ratio else math.inf

    return replace(max(explainable or gaps, key=distance), chosen_because=reason)


def _trials_of(contrast: Contrast, blocks: Blocks) -> Runs[Trial]:
    pair = contrast.pair
    shared_blocks = [
        block for block in blocks.values() if {*pair} <= {trial.condition for trial in block}
    ]
    trials = [trial for block in shared_blocks for trial in block]
    return Runs(*(tuple(trial for trial in trials if trial.condition == index) for index in pair))
