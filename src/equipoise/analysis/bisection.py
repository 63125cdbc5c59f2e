"""What a bisection found: its recorded blocks, read back into the search."""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.bisection_wording import bisect_sentence, culprit_sentence
from equipoise.analysis.comparisons import Blocks, is_more_better
from equipoise.campaign.bisection import read_search
from equipoise.campaign.blocks import cost_in, seconds_of_segments
from equipoise.campaign.commits import withdrawals_of
from equipoise.campaign.segment import fails
from equipoise.model.bisection import (
    BisectBlock,
    BisectCommit,
    BisectGap,
    BisectResult,
    BisectVerdict,
    Culprit,
    GapStatus,
)
from equipoise.model.plan import BisectPlan, Commit, Plan
from equipoise.model.record import CampaignWarning, RunRecord
from equipoise.stats.bisection import BisectionState, NamedStep, SegmentState
from equipoise.stats.verdict import e_value_of

_VERDICTS: dict[str, BisectVerdict] = {
    "confirming": "undecided",
    "no difference": "no difference",
    "searching": "set",
    "culprit": "culprit",
    "several": "several",
}
_EXPLAINED = ("culprit", "several")
"""Verdicts on a stretch of which nothing is left over: its own commits are named."""
_FEWEST_REPEATED = 5
"""Number of equal runs of a commit from which on its metric may be repeatable."""


def bisect_result(record: RunRecord, blocks: Blocks) -> BisectResult | None:
    """Return what a bisection found; ``None`` for what is no bisection, or has no block.

    Parameters
    ----------
    blocks
        Complete blocks of the record.

    Raises
    ------
    UnusableInput
        A trial does not know the metric.
    """
    plan, terms = record.plan, record.plan.bisected
    if terms is None or not blocks:
        return None
    state = read_search(record).state()
    course = tuple(_course(record, blocks, state))
    not_built = {one.commit for one in withdrawals_of(record)}
    metric = plan.judgement.primary_metric
    more_is_better = is_more_better(blocks, metric)
    named = sorted(state.named, key=lambda one: one.last)
    culprits = tuple(_culprit(terms.commits, one) for one in named)
    ran = {trial.condition for trial in record.trials}
    result = BisectResult(
        good=terms.good,
        bad=terms.bad,
        verdict=_VERDICTS[state.verdict],
        culprits=tuple(
            replace(one, summary=culprit_sentence(one, metric, more_is_better=more_is_better))
            for one in culprits
        ),
        candidates=tuple(_candidates(terms, state, course, not_built, blocks)),
        gap=_gap(terms.commits, state.segments[0]),
        left_over=tuple(
            _gap(terms.commits, one)
            for one in state.segments[1:]
            if one.blocks and one.verdict not in _EXPLAINED
        ),
        margin=None if state.margin is None else 100.0 * math.expm1(state.margin),
        course=course,
        metric=metric,
        min_effect=plan.judgement.min_effect,
        alpha=plan.judgement.alpha,
        trials=sum(map(len, blocks.values())),
        builds=len(ran | not_built),
        seconds=seconds_of_segments(record),
        blocks_to_go=state.segments[-1].blocks_to_go,
        build=terms.build,
        summary="",
        again=terms.again,
    )
    return replace(result, summary=bisect_sentence(result, more_is_better=more_is_better))


def warnings_of_bisection(plan: Plan, blocks: Blocks) -> Iterator[CampaignWarning]:
    """Yield a warning where each commit gave the same value in every run."""
    if plan.bisected is None:
        return
    metric = plan.judgement.primary_metric
    read, costs = cost_in(metric), defaultdict[int, list[float | None]](list)
    for block in blocks.values():
        for trial in block:
            costs[trial.condition].append(read(trial))
    repeated = [values for values in costs.values() if len(values) >= _FEWEST_REPEATED]
    if len(repeated) > 1 and all(len(set(values)) == 1 for values in repeated):
        yield CampaignWarning(
            "repeatable_metric",
            f"each commit gave the same {metric} in all of its runs",
            "git bisect run finds the commit with one run of each",
        )


def _course(record: RunRecord, blocks: Blocks, state: BisectionState) -> Iterator[BisectBlock]:
    """Yield the blocks that the search took; one in which a trial failed says nothing."""
    ends = list(itertools.accumulate(segment.blocks for segment in state.segments))
    count = 0
    for number, block in blocks.items():
        if not any(fails(record.plan, trial) for trial in block):
            count += 1
            earlier, later = sorted(trial.condition for trial in block)
            yield BisectBlock(number, earlier, later, bisect.bisect_left(ends, count) + 1)


class _Group(Struct, frozen=True):
    """Commits that stand or fall together: those that do not build, and the next one that does."""

    first: int
    last: int

    @property
    def members(self) -> range:
        """Places of the commits."""
        return range(self.first, self.last + 1)


def _groups(count: int, not_built: Collection[int]) -> Iterator[_Group]:
    first = 1
    for place in range(1, count + 1):
        if place not in not_built:
            yield _Group(first, place)
            first = place + 1


def _candidates(
    terms: BisectPlan,
    state: BisectionState,
    course: Sequence[BisectBlock],
    not_built: Collection[int],
    blocks: Blocks,
) -> Iterator[BisectCommit]:
    trials = Counter(trial.condition for block in blocks.values() for trial in block)
    culprits = {one.last for one in state.named}
    for group in _groups(len(terms.commits) - 1, not_built):
        # A group is excluded once each of its members is.
        excluded = [state.excluded_at[place - 1] for place in group.members]
        known = [one for one in excluded if one is not None]
        last = max(known) if len(known) == len(excluded) else None
        against = min(state.log_e_values[place - 1] for place in group.members)
        for place in group.members:
            commit = terms.commits[place]
            yield BisectCommit(
                commit=commit.name,
                subject=commit.subject,
                author=commit.author,
                date=commit.date,
                status="culprit"
                if group.last in culprits
                else ("left" if last is None else "excluded"),
                e_value=None if state.margin is None else e_value_of(against),
                excluded_at=None if last is None else course[last - 1].block,
                trials=trials[place],
                not_built=place in not_built,
            )


def _culprit(commits: Sequence[Commit], step: NamedStep) -> Culprit:
    commit = commits[step.last]
    return Culprit(
        commit=commit.name,
        subject=commit.subject,
        author=commit.author,
        date=commit.date,
        parent=commits[step.first - 1].name,
        not_built=tuple(one.name for one in commits[step.first : step.last]),
        is_merge=commit.is_merge,
        ratio=step.ratio,
        ratio_ci=step.ratio_ci,
        level=step.level,
        e_value=step.e_value,
        blocks=step.blocks,
        share_of_gap=step.share_of_gap,
        share_ci=step.share_ci,
        summary="",
    )


def _gap(commits: Sequence[Commit], segment: SegmentState) -> BisectGap:
    judged = segment.gap
    status: GapStatus = "undecided"
    if segment.verdict == "no difference":
        status = "equivalent"
    elif judged.low > 0.0:
        status = "slower"
    elif judged.high < 0.0:
        status = "faster"
    return BisectGap(
        after=commits[segment.first].name,
        until=commits[segment.last].name,
        ratio=judged.ratio,
        ratio_ci=judged.ratio_ci,
        level=judged.level,
        blocks=judged.blocks,
        status=status,
    )
