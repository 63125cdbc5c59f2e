"""Compute the result of a bisection from its recorded blocks, and write its sentences."""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks
from equipoise.analysis.kind import KindResult
from equipoise.analysis.wording import change_clause, signed_change
from equipoise.campaign.blocks import cost_function, resolution_of, seconds_of_segments
from equipoise.kinds.bisect.judge import BenchmarkSearch, read_searches
from equipoise.kinds.bisect.search import LineState
from equipoise.kinds.bisect.stretch import MeasuredStep, StretchState, UnconfirmedStep
from equipoise.kinds.bisect.terms import (
    BisectBlock,
    BisectBranch,
    BisectCommit,
    BisectGap,
    BisectPlan,
    BisectResult,
    BisectVerdict,
    Culprit,
    GapStatus,
    SearchedLine,
    StepTrend,
    UnconfirmedCommit,
    UnconfirmedReason,
    bisection_terms,
)
from equipoise.model.inverse_ratios import inverse_interval
from equipoise.model.plan import Plan
from equipoise.model.quantities import counted, joined, names_of
from equipoise.model.record import CampaignWarning, RunRecord
from equipoise.model.revisions import BENCHMARK_SUFFIX, CHANGED_SUFFIX, Commit, short_name
from equipoise.revisions.commits import MAX_SUBJECT_LETTERS, commit_phrase
from equipoise.revisions.judging import CommitsAnalysis, withdrawals_of
from equipoise.revisions.terms import benchmarks_of
from equipoise.shared.safe_text import shortened
from equipoise.shared.spelling import option
from equipoise.stats.verdict import e_value_of

# The result of an unfinished search is a set: several commits may have made the difference.
_VERDICT_OF_STATE: dict[str, BisectVerdict] = {
    "confirming": "undecided",
    "no difference": "no difference",
    "searching": "set",
    "culprit": "culprit",
    "several": "several",
}
_DIVIDING_VERDICTS = ("culprit", "several")
"""Verdicts on a stretch after which parts of the stretch are searched."""
_MIN_EQUAL_RUNS = 5
"""Minimum number of equal runs of a commit for the warning that a metric is repeatable."""


class BisectAnalysis(CommitsAnalysis):
    """Analysis of a bisection: additions to the result of a comparison."""

    def result(self, record: RunRecord, blocks: Blocks) -> KindResult:
        """Return the result for each benchmark, and warnings."""
        results = bisect_results(record, blocks)
        return KindResult(
            {
                "bisect": results[0] if len(results) == 1 else None,
                "bisects": results if len(results) > 1 else (),
            },
            tuple(warnings_of_bisection(record.plan, blocks, results)),
            has_own_sentences=bool(results),
        )


def bisect_results(record: RunRecord, blocks: Blocks) -> tuple[BisectResult, ...]:
    """Return the result of a bisection for each benchmark; empty before the first block.

    Raise `UnusableInput` if a trial has no value for the metric.
    """
    if not blocks:
        return ()
    withdrawals = withdrawals_of(record)
    return tuple(
        _benchmark_result(
            _ResultInputs(
                record,
                blocks,
                search,
                frozenset(
                    withdrawal.commit for withdrawal in withdrawals if withdrawal.benchmark == index
                ),
                resolution_of(blocks, search.benchmark.metric).more_is_better,
            ),
            {withdrawal.commit for withdrawal in withdrawals},
        )
        for index, search in enumerate(read_searches(record))
    )


def _benchmark_result(inputs: _ResultInputs, not_built: Collection[int]) -> BisectResult:
    """Return the result for one benchmark; ``not_built`` has failed commits of any benchmark."""
    plan, terms = inputs.record.plan, inputs.terms
    lines = inputs.search.bisection.lines()
    main_line, *branches = (_result_of_line(inputs, line) for line in lines)
    measured_commits = {terms.commit_of(trial.condition) for trial in inputs.record.trials}
    result = BisectResult(
        **{name: getattr(main_line, name) for name in SearchedLine.__struct_fields__},
        good=terms.good,
        bad=terms.bad,
        metric=inputs.search.benchmark.metric,
        min_effect=plan.judgement.min_effect,
        alpha=plan.judgement.alpha,
        trials=inputs.trials.total(),
        tried_commits=len(measured_commits.union(not_built)),
        seconds=seconds_of_segments(inputs.record),
        blocks_to_go=_blocks_to_go(lines),
        build=terms.build,
        branches=tuple(
            replace(branch, summary=branch_sentence(branch, more_is_better=inputs.more_is_better))
            for branch in branches
        ),
        benchmark=inputs.search.benchmark.name,
    )
    return replace(result, summary=bisect_sentence(result, more_is_better=inputs.more_is_better))


def _blocks_to_go(lines: Sequence[LineState]) -> int | None:
    """Return the forecast of the latest branch with a forecast, or else of the main line."""
    main_line, *branches = lines
    for line in (*reversed(branches), main_line):
        forecast = line.state.stretches[-1].blocks_to_go
        if forecast and not line.failed_ends:
            return forecast
    return None


MIN_LAYOUT_SPREADS = 10.0
"""Minimum step without a warning, as a multiple of the spread of memory layouts
(docs/reference/bisect.md#a-step-must-persist)."""


def warnings_of_bisection(
    plan: Plan, blocks: Blocks, results: Sequence[BisectResult]
) -> Iterator[CampaignWarning]:
    """Yield warnings about changing steps, small steps, and metrics without spread."""
    terms = bisection_terms(plan)
    for result in results:
        yield from _trend_warnings(
            result, more_is_better=resolution_of(blocks, result.metric).more_is_better
        )
    if not plan.layouts and terms.linker is None:
        for result in results:
            yield from _layout_warnings(terms, result)
    for benchmark in benchmarks_of(plan):
        cost_of, costs = cost_function(benchmark.metric), defaultdict[int, list[float | None]](list)
        for block in blocks.values():
            for trial in block:
                if terms.command_of(trial.condition) == benchmark.command_index:
                    costs[trial.condition].append(cost_of(trial))
        repeated_costs = [values for values in costs.values() if len(values) >= _MIN_EQUAL_RUNS]
        if len(repeated_costs) > 1 and all(len(set(values)) == 1 for values in repeated_costs):
            metric = benchmark.metric
            if benchmark.name not in ("", metric.removesuffix(BENCHMARK_SUFFIX)):
                metric = f"{metric} of {benchmark.name}"
            yield CampaignWarning(
                "repeatable_metric",
                f"each commit gave the same {metric} in all of its runs",
                "use git bisect run, which needs only one run of each commit",
            )


class _ResultInputs(Struct, frozen=True):
    """Inputs of the result of one benchmark."""

    record: RunRecord
    blocks: Blocks
    search: BenchmarkSearch
    not_built: frozenset[int]
    """Commits that do not build or run."""
    more_is_better: bool
    """Whether the compared cost is the inverse of the metric."""

    @property
    def terms(self) -> BisectPlan:
        """Terms of the bisection."""
        return bisection_terms(self.record.plan)

    @property
    def commits(self) -> tuple[Commit, ...]:
        """Commits of the main line, then commits of branches."""
        return self.terms.commits_with_branches

    @property
    def trials(self) -> Counter[int]:
        """Number of trials of each commit that measured the benchmark."""
        return Counter(
            self.terms.commit_of(trial.condition)
            for block in self.blocks.values()
            for trial in block
            if self.terms.command_of(trial.condition) == self.search.benchmark.command_index
        )


def _result_of_line(inputs: _ResultInputs, line: LineState) -> BisectBranch:
    """Return the result of a branch, or of the main line with an empty ``merge``."""
    state, all_commits = line.state, inputs.commits
    commits = tuple(all_commits[commit] for commit in line.commits)
    course = tuple(_course_blocks(inputs, line))
    return BisectBranch(
        merge="" if line.merge is None else all_commits[line.merge].name,
        fork_hash=commits[0].name,
        tip_hash=commits[-1].name,
        verdict=_VERDICT_OF_STATE[state.verdict],
        culprits=tuple(
            _culprit_of_step(inputs, commits, step, trend)
            for step, trend in sorted(
                zip(state.named_steps, line.trends, strict=True), key=lambda pair: pair[0].last
            )
        ),
        searched_commits=tuple(_searched_commits(inputs, line, course)),
        gap=_gap_of_stretch(commits, state.stretches[0]),
        remaining_gaps=tuple(
            _gap_of_stretch(commits, stretch)
            for stretch in state.stretches[1:]
            if stretch.blocks and stretch.verdict not in _DIVIDING_VERDICTS
        ),
        margin=None if state.margin is None else 100.0 * math.expm1(state.margin),
        failed_ends=tuple(all_commits[commit].name for commit in line.failed_ends),
        course=course,
        summary="",
        unconfirmed=tuple(
            _unconfirmed_commit(inputs, commits, unconfirmed)
            for unconfirmed in sorted(
                state.unconfirmed_steps, key=lambda unconfirmed: unconfirmed.step.last
            )
        ),
    )


def _course_blocks(inputs: _ResultInputs, line: LineState) -> Iterator[BisectBlock]:
    """Yield the blocks of a line; the stretches of a line are searched one after the other."""
    block_counts = (stretch.blocks for stretch in line.state.stretches)
    last_block_of_search = list(itertools.accumulate(block_counts))
    # Only some blocks of the campaign count for the bisection of this benchmark.
    campaign_blocks = inputs.search.blocks
    for number_on_line, (bisection_number, (earlier, later)) in enumerate(line.course, start=1):
        search_number = bisect.bisect_left(last_block_of_search, number_on_line) + 1
        yield BisectBlock(campaign_blocks[bisection_number - 1], earlier, later, search_number)


def _trend_warnings(result: BisectResult, *, more_is_better: bool) -> Iterator[CampaignWarning]:
    benchmark_clause = f" in {result.benchmark}" if result.benchmark else ""
    for culprit in result.every_culprit:
        if culprit.trend is None:
            continue
        power = -1.0 if more_is_better else 1.0
        first_ratio, last_ratio = culprit.trend.first_ratio**power, culprit.trend.last_ratio**power
        verb = "grew" if abs(math.log(last_ratio)) > abs(math.log(first_ratio)) else "faded"
        commit = culprit.commit
        # The working tree is the default of --bad.
        bad = "" if commit.endswith(CHANGED_SUFFIX) else f" {option('bad', short_name(commit))}"
        yield CampaignWarning(
            "no_constant_ratio",
            f"the step of {short_name(commit)}{benchmark_clause} {verb} while the search "
            f"ran, from about {signed_change(first_ratio)} to {signed_change(last_ratio)}: no "
            "single ratio describes it",
            "to measure the step again, bisect with "
            f"{option('good', short_name(culprit.parent))}{bad}",
        )


def _layout_warnings(terms: BisectPlan, result: BisectResult) -> Iterator[CampaignWarning]:
    spread = terms.layout_spread
    if spread is None or spread.percent <= 0.0:
        return
    benchmark_clause = f" in {result.benchmark}" if result.benchmark else ""
    for culprit in result.every_culprit:
        if culprit.ratio is None:
            continue
        step_size = 100.0 * abs(math.log(culprit.ratio))
        if step_size < MIN_LAYOUT_SPREADS * spread.percent:
            yield CampaignWarning(
                "step_of_layout",
                f"the step of {short_name(culprit.commit)}{benchmark_clause}, {step_size:.2g} %, "
                f"is below ten times the spread of memory layouts, {spread.percent:.2g} % in "
                f"campaign {spread.run}: commits that change nothing differ by their layouts, too",
                f"link the commits of each block again: {option('relink')}, if they are "
                "linked (docs/how-to/link-again.md)",
            )


def _commit_groups(commit_count: int, not_built: Collection[int]) -> Iterator[range]:
    """Yield groups: each commit that builds, after the unbuildable commits just before it."""
    first_commit = 1
    for commit in range(1, commit_count + 1):
        if commit not in not_built:
            yield range(first_commit, commit + 1)
            first_commit = commit + 1


def _searched_commits(
    inputs: _ResultInputs, line: LineState, course: Sequence[BisectBlock]
) -> Iterator[BisectCommit]:
    state, all_commits, trials = line.state, inputs.commits, inputs.trials
    not_built = {index for index, commit in enumerate(line.commits) if commit in inputs.not_built}
    culprits = {step.last for step in state.named_steps}
    for group in _commit_groups(len(line.commits) - 1, not_built):
        # A group is excluded once all members are excluded.
        exclusion_blocks = [state.excluded_at[index - 1] for index in group]
        known_blocks = [number for number in exclusion_blocks if number is not None]
        excluded_at = max(known_blocks) if len(known_blocks) == len(group) else None
        log_e_value = min(state.log_e_values[index - 1] for index in group)
        for index in group:
            commit = all_commits[line.commits[index]]
            yield BisectCommit(
                commit=commit.name,
                subject=commit.subject,
                author=commit.author,
                date=commit.date,
                status="culprit"
                if group[-1] in culprits
                else ("suspect" if excluded_at is None else "excluded"),
                e_value=None if state.margin is None else e_value_of(log_e_value),
                excluded_at=None if excluded_at is None else course[excluded_at - 1].block,
                trials=trials[line.commits[index]],
                not_built=index in not_built,
            )


def _culprit_of_step(
    inputs: _ResultInputs, commits: Sequence[Commit], step: MeasuredStep, trend: StepTrend | None
) -> Culprit:
    culprit = Culprit(
        **_step_fields(commits, step),
        is_merge=commits[step.last].is_merge,
        e_value=step.e_value,
        share_of_gap=step.share_of_gap,
        share_ci=step.share_ci,
        trend=None if step.ratio is None else trend,
    )
    metric, more_is_better = inputs.search.benchmark.metric, inputs.more_is_better
    sentence = culprit_sentence(culprit, metric, more_is_better=more_is_better)
    return replace(culprit, summary=sentence)


def _unconfirmed_commit(
    inputs: _ResultInputs, commits: Sequence[Commit], unconfirmed: UnconfirmedStep
) -> UnconfirmedCommit:
    fields = _step_fields(commits, unconfirmed.step)
    commit = UnconfirmedCommit(**fields, reason=unconfirmed.reason)
    summary = unconfirmed_sentence(
        commit,
        inputs.search.benchmark.metric,
        inputs.record.plan.judgement.min_effect,
        more_is_better=inputs.more_is_better,
    )
    return replace(commit, summary=summary)


def _step_fields(commits: Sequence[Commit], step: MeasuredStep) -> dict[str, Any]:
    """Return the fields that a culprit and an unconfirmed commit share."""
    commit = commits[step.last]
    return {
        "commit": commit.name,
        "subject": commit.subject,
        "author": commit.author,
        "date": commit.date,
        "parent": commits[step.first - 1].name,
        "not_built": tuple(commit.name for commit in commits[step.first : step.last]),
        "ratio": step.ratio,
        "ratio_ci": step.ratio_ci,
        "significance_level": step.significance_level,
        "blocks": step.blocks,
        "summary": "",
    }


def _gap_of_stretch(commits: Sequence[Commit], stretch: StretchState) -> BisectGap:
    verdict = stretch.gap
    status: GapStatus = "undecided"
    if stretch.verdict == "no difference":
        status = "equivalent"
    elif verdict.low > 0.0:
        status = "slower"
    elif verdict.high < 0.0:
        status = "faster"
    return BisectGap(
        earlier_hash=commits[stretch.first].name,
        later_hash=commits[stretch.last].name,
        ratio=verdict.ratio,
        ratio_ci=verdict.ratio_ci,
        significance_level=verdict.level,
        blocks=verdict.blocks,
        status=status,
    )


def culprit_sentence(culprit: Culprit, metric: str, *, more_is_better: bool = False) -> str:
    """Return the sentence about a culprit: ``1a2b3c4d5e (Sort) made it 3.10 % slower``."""
    phrase = commit_phrase(culprit.commit, culprit.subject, culprit.not_built)
    if culprit.ratio is None:
        return f"{phrase} made a difference whose size is not known."
    change = change_clause(metric, culprit.ratio, culprit.ratio_ci, more_is_better=more_is_better)
    return f"{phrase} made {change}."


def unconfirmed_sentence(
    commit: UnconfirmedCommit, metric: str, min_effect: float, *, more_is_better: bool = False
) -> str:
    """Return the sentence with the difference of an unnamed commit, and why it is not named."""
    phrase = commit_phrase(commit.commit, commit.subject, commit.not_built)
    if commit.ratio is None:
        change = "a difference whose size is not known"
    else:
        change = change_clause(metric, commit.ratio, commit.ratio_ci, more_is_better=more_is_better)
    reasons: dict[UnconfirmedReason, str] = {
        "min_effect": f"that is not certainly over {min_effect:g} %",
        "layouts": "the memory layouts of single commits may explain it",
        "documentation": "it changes only documentation, so it is a difference of memory layouts",
    }
    return f"{phrase} is not named. Its build made {change}, but {reasons[commit.reason]}."


def branch_sentence(branch: BisectBranch, *, more_is_better: bool = False) -> str:
    """Return the sentence about the branch of a merge."""
    merge, culprits = short_name(branch.merge), branch.culprits
    if branch.failed_ends:
        commits = joined(list(map(short_name, branch.failed_ends)))
        verb = "does" if len(branch.failed_ends) == 1 else "do"
        return f"The branch of {merge} cannot be searched: {commits} {verb} not build or run."
    match branch.verdict:
        case "culprit":
            return f"In the branch of {merge}, {_summary_inside_sentence(culprits[0])}"
        case "several" if culprits:
            return f"In the branch of {merge}, {_parts_clause(culprits)}."
        case "several":
            return f"No single commit of the branch of {merge} made the whole difference."
        case "set":
            parts = f"; {_parts_clause(culprits)}" if culprits else ""
            return (
                f"If one commit of the branch of {merge} made the whole difference, it is "
                f"{_suspects_clause(branch.suspects)}{parts}."
            )
        case "no difference":
            excluded = _exclusion_clause(branch.gap, more_is_better=more_is_better)
            return (
                f"The branch of {merge} alone makes no difference{excluded}: the merge itself made "
                "it."
            )
        case "undecided":
            blocks = counted(len(branch.course), "block")
            return (
                f"Whether the branch of {merge} alone makes a difference is not known after "
                f"{blocks}."
            )


def bisect_sentence(result: BisectResult, *, more_is_better: bool = False) -> str:
    """Return the answer of a search, and the sentences about the branches."""
    answer = _answer_sentence(result, more_is_better=more_is_better)
    return " ".join((answer, *(branch.summary for branch in result.branches)))


def _answer_sentence(result: BisectResult, *, more_is_better: bool) -> str:
    certainty = f"{100.0 * (1.0 - result.alpha):g} %"
    culprits = result.culprits
    match result.verdict:
        case "culprit":
            pronoun = "one of these" if culprits[0].not_built else "this one"
            return (
                f"{culprits[0].summary} If one commit made the whole difference, it is {pronoun} "
                f"({certainty})."
            )
        case "several" if culprits:
            return f"No single commit made the whole difference: {_parts_clause(culprits)}."
        case "several":
            return (
                "No single commit made the whole difference; no part of it could be found in "
                f"{counted(len(result.course), 'block')}."
            )
        case "set":
            parts = f"; {_parts_clause(culprits)}" if culprits else ""
            return (
                "If one commit made the whole difference, it is "
                f"{_suspects_clause(result.suspects)} ({certainty}){parts}."
            )
        case "no difference":
            return (
                f"There is no difference to search for: {_end_names(result)} are the same, "
                f"within {result.min_effect:g} %"
                f"{_exclusion_clause(result.gap, more_is_better=more_is_better)}."
            )
        case "undecided":
            blocks = counted(len(result.course), "block")
            return (
                f"Whether {_end_names(result)} differ is not known after {blocks}"
                f"{_exclusion_clause(result.gap, more_is_better=more_is_better)}."
            )


def _summary_inside_sentence(culprit: Culprit) -> str:
    """Return a culprit's summary for the middle of a sentence: ``either 1a2b3c4d5e or …``."""
    sentence = culprit.summary
    return sentence[0].lower() + sentence[1:] if culprit.not_built else sentence


def _end_names(result: BisectResult) -> str:
    return f"{result.good.label} and {result.bad.label}"


def _parts_clause(culprits: Sequence[Culprit]) -> str:
    names = names_of([short_name(culprit.commit) for culprit in culprits])
    return f"{names} {'each made' if len(culprits) > 1 else 'made'} a part of it"


def _suspects_clause(suspects: Sequence[BisectCommit]) -> str:
    """Return the suspects, or the ends of their range if there are many."""
    names = [short_name(suspect.commit) for suspect in suspects]
    if len(names) == 1:
        return f"{names[0]} ({shortened(suspects[0].subject, MAX_SUBJECT_LETTERS)})"
    if len(names) == 2:
        return joined(names, "or")
    return f"one of {len(names)} commits, {names[0]} to {names[-1]}"


def _exclusion_clause(gap: BisectGap, *, more_is_better: bool) -> str:
    """Return the clause ``; a difference above +2.10 % is excluded``, or an empty text."""
    low, high = inverse_interval(gap.ratio_ci) if more_is_better else gap.ratio_ci
    bounds = [f"below {signed_change(low)}"] if low else []
    bounds += [f"above {signed_change(high)}"] if high else []
    if not bounds:
        return ""
    return f"; a difference {joined(bounds, 'or')} is excluded"
