"""The gap that is explained: between two conditions whose times surely differ."""

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

CALLED = ("faster", "slower")


class Gap(Struct, frozen=True):
    """Two conditions, and what the campaign says of their times."""

    contrast: Contrast
    comparison: Comparison
    """Comparison of the wall times, whatever the campaign's primary metric is."""
    trials: Runs[Trial]
    """Trials of the complete blocks in which both ran."""
    chosen_because: str | None = None
    """Sentence that says why this gap was chosen among several."""
    judged_by: str = PRIMARY_METRIC
    """The campaign's own primary metric."""

    @property
    def pair(self) -> tuple[int, int]:
        """Indices of the baseline and the candidate in the plan's conditions."""
        return self.contrast.baseline, self.contrast.candidate

    @property
    def is_called(self) -> bool:
        """Whether there is something to explain."""
        return self.comparison.verdict in CALLED

    @property
    def smallest_ratio(self) -> float | None:
        """Ratio that is nearest to 1 in its interval; ``None`` if no ratio is known."""
        comparison = self.comparison
        ratios = [one for one in (comparison.ratio, *comparison.ratio_ci) if one]
        return min(ratios, key=lambda ratio: abs(math.log(ratio)), default=None)

    @property
    def longest_s(self) -> float:
        """Seconds of the longest trial of the two."""
        return max((trial.accounting.wall_s or 0.0 for trial in self.trials.every), default=0.0)


def choose_gap(record: RunRecord, baseline: str | None = None, candidate: str | None = None) -> Gap:
    """Return the named gap, or the largest gap that was called.

    ``baseline`` and ``candidate`` are names of conditions, or ``None`` for any. Raise
    `UnusableInput` if the campaign was imported, is a fleet's, a gate or of a history, compares
    nothing, has no complete block, or does not compare the named conditions.
    """
    plan = record.plan
    plan.rules.check_explainable(record)
    names = [condition.name for condition in plan.conditions]
    for name in (baseline, candidate):
        if name not in (None, *names):
            raise UnusableInput(
                f"there is no condition {name!r}", hint=f"the conditions are {', '.join(names)}"
            )
    gaps = gaps_of(record)
    if not gaps:
        reason = why_kind(plan.terms).no_gap_reason
        raise UnusableInput(
            f"run {record.id} {reason}", hint=f"go on with it: equipoise resume {record.id}"
        )
    matching = [
        gap
        for gap in gaps
        if baseline in (None, gap.comparison.baseline)
        and candidate in (None, gap.comparison.candidate)
    ]
    if not matching:
        pairs = [f"{gap.comparison.candidate} with {gap.comparison.baseline}" for gap in gaps]
        more = f" and {len(pairs) - 5} more pairs" if len(pairs) > 5 else ""
        raise UnusableInput(
            f"run {record.id} does not compare {candidate or 'anything'} with "
            f"{baseline or 'anything'}",
            hint=f"it compares {'; '.join(pairs[:5])}{more}",
        )
    return _largest(matching)


def gaps_of(record: RunRecord) -> tuple[Gap, ...]:
    """Return all comparisons of wall times of the campaign, in the order of its contrasts.

    A kind of campaign may have others.
    """
    plan = record.plan
    blocks = analysed_blocks(record)
    if not blocks:
        return ()
    kind = why_kind(plan.terms)
    chosen = kind.gaps(record, blocks)
    if not chosen:
        return ()
    judgement = replace(plan.judgement, primary_metric=PRIMARY_METRIC)
    contrasts = tuple(one.contrast for one in chosen)
    by_time = replace(plan, judgement=judgement, chosen_contrasts=contrasts)
    compared = primary_comparisons(by_time, blocks)
    return tuple(
        Gap(
            one.contrast,
            kind.as_judged(one, comparison),
            _trials(one.contrast, blocks),
            judged_by=one.metric,
        )
        for comparison, one in zip(compared, chosen, strict=True)
        if comparison.blocks
    )


def largest_gap(record: RunRecord) -> Gap | None:
    """Return the gap that `choose_gap` returns without names; ``None`` if nothing is compared."""
    gaps = gaps_of(record) if record.plan.rules.has_random_order else ()
    return _largest(gaps) if gaps else None


def as_reported(gap: Gap, recorded: RunRecord, reported: RunRecord) -> Gap:
    """Return the same gap of the reported record, whose conditions may have other names."""
    if reported is recorded:
        return gap
    same = next(other for other in gaps_of(reported) if other.pair == gap.pair)
    return replace(same, chosen_because=gap.chosen_because)


def explains_gap(experiment: RunRecord, record: RunRecord, contrast: Contrast) -> bool:
    """Return whether an experiment tested the gap of this contrast of a campaign."""
    conditions = record.plan.conditions
    pair = (conditions[contrast.baseline], conditions[contrast.candidate])
    return experiment.plan.conditions[:2] == pair


def nothing_to_explain(gap: Gap) -> str:
    """Return the sentence that says why a gap that was not called is not explained."""
    comparison = gap.comparison
    if comparison.verdict == "mixed":
        return f"which of the two is slower depends on what counts: {comparison.summary}"
    sentence = f"there is nothing to explain: {comparison.summary}"
    if gap.judged_by == PRIMARY_METRIC:
        return sentence
    return (
        f"{sentence} Equipoise explains wall time, not {gap.judged_by}: where trials run for a "
        "fixed time, give them a fixed amount of work instead"
    )


def _largest(gaps: Sequence[Gap]) -> Gap:
    """Return the largest gap that was called, or else the largest; of several, with the reason."""
    if len(gaps) == 1:
        return gaps[0]
    called = [gap for gap in gaps if gap.is_called]
    which = "the largest gap that was called" if called else "the largest gap; none was called"
    because = f"of {len(gaps)} comparisons this is {which}"

    def size(gap: Gap) -> float:
        ratio = gap.comparison.ratio
        return abs(math.log(ratio)) if ratio else math.inf

    return replace(max(called or gaps, key=size), chosen_because=because)


def _trials(contrast: Contrast, blocks: Blocks) -> Runs[Trial]:
    pair = (contrast.baseline, contrast.candidate)
    both = [block for block in blocks.values() if {*pair} <= {trial.condition for trial in block}]
    trials = [trial for block in both for trial in block]
    return Runs(*(tuple(trial for trial in trials if trial.condition == side) for side in pair))
