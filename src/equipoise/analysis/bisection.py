"""What a bisection found: its recorded blocks, read back into the search."""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.bisection_wording import (
    bisect_sentence,
    branch_sentence,
    culprit_sentence,
)
from equipoise.analysis.comparisons import Blocks, is_more_better
from equipoise.campaign.bisection import BenchmarkSearch, read_searches
from equipoise.campaign.blocks import cost_in, seconds_of_segments
from equipoise.campaign.commits import withdrawals_of
from equipoise.model.bisection import (
    BisectBlock,
    BisectBranch,
    BisectCommit,
    BisectGap,
    BisectResult,
    BisectVerdict,
    Culprit,
    GapStatus,
)
from equipoise.model.plan import BENCHMARK_SUFFIX, BisectPlan, Commit, Plan, short_name
from equipoise.model.record import CampaignWarning, RunRecord
from equipoise.stats.bisection import NamedStep, SegmentState
from equipoise.stats.bisection_branches import LineState
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


def bisect_results(record: RunRecord, blocks: Blocks) -> tuple[BisectResult, ...]:
    """Return what a bisection found of each benchmark; none if it is no bisection, or has no block.

    Parameters
    ----------
    blocks
        Complete blocks of the record.

    Raises
    ------
    UnusableInput
        A trial does not know the metric.
    """
    if record.plan.bisected is None or not blocks:
        return ()
    withdrawals = withdrawals_of(record)
    return tuple(
        _result(
            _Recorded(
                record,
                blocks,
                search,
                frozenset(one.commit for one in withdrawals if one.benchmark == place),
            ),
            {one.commit for one in withdrawals},
        )
        for place, search in enumerate(read_searches(record))
    )


def _result(of: _Recorded, not_built: Collection[int]) -> BisectResult:
    """Return what came of one search; some commits do not run for all benchmarks."""
    plan, terms = of.record.plan, of.terms
    metric = of.search.benchmark.metric
    more_is_better = is_more_better(of.blocks, metric)
    first, *others = (
        replace(
            line,
            culprits=tuple(
                replace(one, summary=culprit_sentence(one, metric, more_is_better=more_is_better))
                for one in line.culprits
            ),
        )
        for line in (_searched(of, state) for state in of.search.bisection.lines())
    )
    branches = [_branch(line) for line in others]
    ran = {terms.commit_of(trial.condition) for trial in of.record.trials}
    result = BisectResult(
        good=terms.good,
        bad=terms.bad,
        verdict=first.verdict,
        culprits=first.culprits,
        candidates=first.candidates,
        gap=first.gap,
        left_over=first.left_over,
        margin=first.margin,
        course=first.course,
        metric=metric,
        min_effect=plan.judgement.min_effect,
        alpha=plan.judgement.alpha,
        trials=of.trials.total(),
        builds=len(ran.union(not_built)),
        seconds=seconds_of_segments(of.record),
        blocks_to_go=next(
            (one.blocks_to_go for one in (*reversed(others), first) if one.blocks_to_go), None
        ),
        build=terms.build,
        summary="",
        again=terms.again,
        branches=tuple(
            replace(one, summary=branch_sentence(one, more_is_better=more_is_better))
            for one in branches
        ),
        benchmark=of.search.benchmark.name,
    )
    return replace(result, summary=bisect_sentence(result, more_is_better=more_is_better))


LAYOUT_SPREADS = 10.0
"""Spreads of layouts below which a step may be one of layouts (bisect.md §9)."""


def warnings_of_bisection(
    plan: Plan, blocks: Blocks, results: Sequence[BisectResult]
) -> Iterator[CampaignWarning]:
    """Yield warnings where steps are small beside layouts, or values are always the same."""
    if plan.bisected is None:
        return
    if not plan.layouts:
        for result in results:
            yield from _steps_of_layouts(plan.bisected, result)
    for benchmark in plan.commit_benchmarks:
        read, costs = cost_in(benchmark.metric), defaultdict[int, list[float | None]](list)
        for block in blocks.values():
            for trial in block:
                if plan.bisected.process_of(trial.condition) == benchmark.process:
                    costs[trial.condition].append(read(trial))
        repeated = [values for values in costs.values() if len(values) >= _FEWEST_REPEATED]
        if len(repeated) > 1 and all(len(set(values)) == 1 for values in repeated):
            metric = benchmark.metric
            if benchmark.name not in ("", metric.removesuffix(BENCHMARK_SUFFIX)):
                metric = f"{metric} of {benchmark.name}"
            yield CampaignWarning(
                "repeatable_metric",
                f"each commit gave the same {metric} in all of its runs",
                "git bisect run finds the commit with one run of each",
            )


class _Recorded(Struct, frozen=True):
    """What a search was read from."""

    record: RunRecord
    blocks: Blocks
    """Complete blocks of the record."""
    search: BenchmarkSearch
    not_built: frozenset[int]
    """Commits that do not build or run."""

    @property
    def terms(self) -> BisectPlan:
        """The commits that are searched."""
        assert self.record.plan.bisected is not None, "only a bisection searches commits"
        return self.record.plan.bisected

    @property
    def commits(self) -> tuple[Commit, ...]:
        """The commits by their places in the whole bisection."""
        return self.terms.every_commit

    @property
    def trials(self) -> Counter[int]:
        """Measured trials of each commit."""
        return Counter(
            self.terms.commit_of(trial.condition)
            for block in self.blocks.values()
            for trial in block
            if self.terms.process_of(trial.condition) == self.search.benchmark.process
        )


class _Line(Struct, frozen=True):
    """What the search of one line of commits found."""

    merge: Commit | None
    commits: tuple[Commit, ...]
    missing: tuple[Commit, ...]
    verdict: BisectVerdict
    culprits: tuple[Culprit, ...]
    candidates: tuple[BisectCommit, ...]
    gap: BisectGap
    left_over: tuple[BisectGap, ...]
    margin: float | None
    course: tuple[BisectBlock, ...]
    blocks_to_go: int | None


def _searched(of: _Recorded, line: LineState) -> _Line:
    state, every = line.state, of.commits
    commits = tuple(every[one] for one in line.commits)
    course = tuple(_course(of, line))
    named = sorted(state.named, key=lambda one: one.last)
    return _Line(
        merge=None if line.merge is None else every[line.merge],
        commits=commits,
        missing=tuple(every[one] for one in line.missing),
        verdict=_VERDICTS[state.verdict],
        culprits=tuple(_culprit(commits, one) for one in named),
        candidates=tuple(_candidates(of, line, course)),
        gap=_gap(commits, state.segments[0]),
        left_over=tuple(
            _gap(commits, one)
            for one in state.segments[1:]
            if one.blocks and one.verdict not in _EXPLAINED
        ),
        margin=None if state.margin is None else 100.0 * math.expm1(state.margin),
        course=course,
        blocks_to_go=None if line.missing else state.segments[-1].blocks_to_go,
    )


def _branch(line: _Line) -> BisectBranch:
    assert line.merge is not None, "a branch came with a merge"
    return BisectBranch(
        merge=line.merge.name,
        after=line.commits[0].name,
        until=line.commits[-1].name,
        verdict=line.verdict,
        culprits=line.culprits,
        candidates=line.candidates,
        gap=line.gap,
        left_over=line.left_over,
        margin=line.margin,
        missing=tuple(one.name for one in line.missing),
        course=line.course,
        summary="",
    )


def _course(of: _Recorded, line: LineState) -> Iterator[BisectBlock]:
    ends = list(itertools.accumulate(segment.blocks for segment in line.state.segments))
    numbers = of.search.blocks
    for count, (number, (earlier, later)) in enumerate(line.course, start=1):
        yield BisectBlock(numbers[number - 1], earlier, later, bisect.bisect_left(ends, count) + 1)


class _Group(Struct, frozen=True):
    """Commits that stand or fall together: those that do not build, and the next one that does."""

    first: int
    last: int

    @property
    def members(self) -> range:
        """Places of the commits."""
        return range(self.first, self.last + 1)


def _steps_of_layouts(terms: BisectPlan, result: BisectResult) -> Iterator[CampaignWarning]:
    spread = terms.layout_spread
    if spread is None or spread.percent <= 0.0:
        return
    in_branches = (culprit for branch in result.branches for culprit in branch.culprits)
    of = f" in {result.benchmark}" if result.benchmark else ""
    for culprit in (*result.culprits, *in_branches):
        if culprit.ratio is None:
            continue
        step = 100.0 * abs(math.log(culprit.ratio))
        if step < LAYOUT_SPREADS * spread.percent:
            yield CampaignWarning(
                "step_of_layout",
                f"the step of {short_name(culprit.commit)}{of}, {step:.2g} %, is below ten times "
                f"the spread of memory layouts, {spread.percent:.2g} % in campaign {spread.run}: "
                "commits that change nothing differ by their layouts, too",
                "let the build link several layouts, and draw one for each block with --layouts "
                "12 (docs/bisect.md)",
            )


def _groups(count: int, not_built: Collection[int]) -> Iterator[_Group]:
    first = 1
    for place in range(1, count + 1):
        if place not in not_built:
            yield _Group(first, place)
            first = place + 1


def _candidates(
    of: _Recorded, line: LineState, course: Sequence[BisectBlock]
) -> Iterator[BisectCommit]:
    state, every, trials = line.state, of.commits, of.trials
    not_built = {place for place, one in enumerate(line.commits) if one in of.not_built}
    culprits = {one.last for one in state.named}
    for group in _groups(len(line.commits) - 1, not_built):
        # A group is excluded once each of its members is.
        excluded = [state.excluded_at[place - 1] for place in group.members]
        known = [one for one in excluded if one is not None]
        last = max(known) if len(known) == len(excluded) else None
        against = min(state.log_e_values[place - 1] for place in group.members)
        for place in group.members:
            commit = every[line.commits[place]]
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
                trials=trials[line.commits[place]],
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
