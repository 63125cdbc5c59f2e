"""``equipoise bisect``: find the commit that made a program slower."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import msgspec
from msgspec.structs import asdict, replace

from equipoise.analysis.levels import layout_spread
from equipoise.campaign import conduct
from equipoise.campaign.plans import PlanAndWarnings, plan_with_layouts
from equipoise.campaign.progress import ProgressListener
from equipoise.cli import options, revisions
from equipoise.cli.command_line import CommandRecorder, typed_command
from equipoise.cli.completion import complete_revisions
from equipoise.cli.conducting import analyse, explain_gap, measuring, show_result
from equipoise.cli.options import HostOptions, OutputOptions
from equipoise.cli.results import read_result
from equipoise.cli.revisions import CommitsOptions
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.bisect.judge import BisectionJudge, read_searches
from equipoise.kinds.bisect.terms import STUDY, BisectPlan, LayoutSpread, bisection_terms
from equipoise.ledger import Ledger
from equipoise.measure.scratch import scratch_folder
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import LAYOUT, Contrast
from equipoise.model.record import DIFF, INTERRUPTED, Observation, RunRecord
from equipoise.model.revisions import REVISION, Commit, Revision
from equipoise.revisions.benchmarks import Benchmark
from equipoise.revisions.build_cache import open_cache
from equipoise.revisions.checkout import find_revision, warnings_of_working_tree
from equipoise.revisions.commit_plans import (
    CommitBuilds,
    CommitsRequest,
    NeededCommit,
    plan_of_commits,
    repository_of,
)
from equipoise.revisions.commits import (
    MergedCommits,
    commits_between,
    diff_between,
    documentation_commits,
    merged_commits,
    weights_by_path,
)
from equipoise.revisions.git import Repository
from equipoise.revisions.judging import CommitsSegment
from equipoise.revisions.terms import CommitsPlan

if TYPE_CHECKING:
    from equipoise.why.gap import Gap


class BisectRequest(CommitsRequest, frozen=True, kw_only=True):
    """The user's request for a bisection: the commits to search, and how to measure them."""

    good: Revision
    bad: Revision
    likely: tuple[str, ...] = ()
    """Paths whose changes the user suspects."""
    prior: tuple[float, ...] = ()
    """Prior weight of each commit; empty for equal weights."""
    documentation_commits: tuple[int, ...] = ()
    """Indices of the commits that change only documentation."""
    merged: MergedCommits = MergedCommits()
    """Commits of branches that were merged between the good and the bad commit."""
    why: Literal["observe", "test"] | None = None
    """How a culprit is explained; ``None`` for no explanation."""
    layouts: int | None = None
    """Number of memory layouts; each block uses a random layout."""

    @property
    def commits_with_branches(self) -> tuple[Commit, ...]:
        """Commits in the order of the conditions: from good to bad, then on branches."""
        return (*self.commits, *self.merged.commits)

    @property
    def needed(self) -> tuple[NeededCommit, ...]:
        """The good and the bad commit, which must build and run."""
        return needed_commits(self.good, self.bad, len(self.commits))


def needed_commits(good: Revision, bad: Revision, count: int) -> tuple[NeededCommit, ...]:
    """Return the good and the bad commit, the first and the last of ``count`` commits."""
    return (
        NeededCommit(0, "good revision", good, "--good"),
        NeededCommit(count - 1, "bad revision", bad, "--bad"),
    )


def bisect_plan(
    request: BisectRequest,
    builds: CommitBuilds,
    scratch: Path,
    measured_spread: LayoutSpread | None = None,
) -> PlanAndWarnings:
    """Return the plan of a bisection, and warnings.

    The good and the bad commit must be built already.

    Raise `UnusableInput` if the program does not exist in one of both commits, or a named benchmark
    does not exist. Raise `ConditionFailed` if a benchmark fails in the run that lists the metrics.
    """
    plan, commits_terms, warnings = plan_of_commits(STUDY, request, builds, scratch)
    terms = BisectPlan(
        **asdict(commits_terms),
        good=request.good,
        bad=request.bad,
        likely=request.likely,
        prior=request.prior,
        documentation_commits=request.documentation_commits,
        branch_commits=request.merged.commits,
        branches=request.merged.branches,
        why=request.why,
        layout_spread=measured_spread,
    )
    contrasts: list[Contrast] = []
    # Each command has a condition for the good commit, then conditions for the later commits.
    for good_condition in range(0, len(plan.conditions), len(request.commits_with_branches)):
        levels = plan.conditions[good_condition].levels
        stratum = {factor: level for factor, level in levels.items() if factor != REVISION}
        bad_condition = good_condition + terms.bad_index
        contrasts.append(Contrast(good_condition, bad_condition, REVISION, stratum))
    layouts_plan, layout_warnings = plan_with_layouts(plan, request.layouts, None)
    # `plan_with_layouts` raises the minimum number of blocks. A search needs no such minimum.
    layouts_plan = replace(
        layouts_plan, stopping=plan.stopping, chosen_contrasts=tuple(contrasts), terms=terms
    )
    return layouts_plan, (*layout_warnings, *warnings)


EXAMPLE = "equipoise bisect --good v1.4 --bad main --build make -- ./bench"


class BisectOptions(CommitsOptions, frozen=True, kw_only=True):
    """Parsed options of ``equipoise bisect``."""

    good: str
    bad: str | None
    likely: tuple[str, ...]
    layouts: int | None


@click.command("bisect", cls=CommandRecorder, epilog=f"Example: {EXAMPLE}")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGUMENT …]")
@click.option(
    "--good",
    required=True,
    metavar="REV",
    shell_complete=complete_revisions,
    help="A revision before the change.",
)
@click.option(
    "--bad",
    metavar="REV",
    shell_complete=complete_revisions,
    show_default="HEAD with the changes of tracked files",
    help="A later revision, after the change.",
)
@revisions.build_options
@click.option(
    "--likely",
    multiple=True,
    metavar="PATH",
    help="Suspect the commits that touch this file or folder, and run them first.",
)
@revisions.measuring_options("What has become slower")
@options.host_option
@options.number_option(
    "--layouts",
    metavar="K",
    help="Draw one of K memory layouts for each block; {layout} in CMD is its number.",
)
@options.flag("--why", help="Explain why the culprit differs from its parent, and show its diff.")
@options.no_test_option
@revisions.result_options
@options.pass_request(BisectOptions)
def command(bisect_options: BisectOptions) -> int:
    """Find the commit between a good revision and a bad one that made a program slower.

    Commits run in pairs, in random order, and are built when they are needed. A commit is named
    once it is certain that it differs from its parent; the chance of a wrong name is at most
    --alpha.
    """
    output = bisect_options.output.checked()
    request = _bisect_request(bisect_options)
    with scratch_folder() as scratch, measuring(output) as (ledger, listener):
        with open_cache(
            request.repository, request.build, request.tool, scratch, request.recorder
        ) as cache:
            builds = CommitBuilds(cache, request.commits_with_branches)
            listener.building((f"good {request.good.label}", f"bad {request.bad.label}"))
            builds.build_needed(request.needed)
            measured_spread = _latest_layout_spread(ledger, request.repository)
            plan, warnings = bisect_plan(request, builds, scratch, measured_spread)
            plan = replace(plan, command_line=_recorded_command(request, plan.seed))
            if bisect_options.bad is None:
                tree_warnings = warnings_of_working_tree(
                    request.repository, holder="no commit", owner="the program"
                )
                warnings = (*warnings, *tree_warnings)
            with builds.linking_again(plan) as adapt_runner:
                run_id = conduct.start(
                    plan,
                    ledger,
                    listener,
                    warnings=warnings,
                    judge_factory=partial(BisectionJudge, builds=builds),
                    adapt_runner=adapt_runner,
                    segment_factory=partial(CommitsSegment, builds=builds),
                )
            if request.why is not None:
                _explain_culprit(ledger.read_run(run_id), builds, ledger, listener, output)
            result = read_result(run_id, ledger, output)
    return show_result(result, output)


def resume(
    record: RunRecord, limits: CampaignLimits, hosts: HostOptions, output: OutputOptions
) -> int:
    """Resume a bisection and show its result; errors are those of `resume_bisection`."""
    with measuring(output) as (ledger, listener):
        run_id = resume_bisection(ledger.read_run(record.id), limits, ledger, listener, output)
        result = analyse(run_id, ledger, output)
    return show_result(result, output)


def resume_bisection(
    record: RunRecord,
    limits: CampaignLimits,
    ledger: Ledger,
    listener: ProgressListener,
    output: OutputOptions,
) -> str:
    """Resume a bisection and its explanation, unless both have ended; return the run id.

    Raise `UnusableInput` if the repository, a commit or the toolchain has changed. Raise
    `ConditionFailed` if the good or the bad commit no longer builds or runs.
    """
    terms = bisection_terms(record.plan)
    search_has_ended = not any(search.bisection.is_open for search in read_searches(record))
    if search_has_ended and (terms.why is None or _is_explained(record, ledger)):
        return record.id
    with revisions.builds_of_record(record) as builds:
        if not search_has_ended:
            builds.build_needed(needed_commits(terms.good, terms.bad, len(terms.commits)))
            with builds.linking_again(record.plan) as adapt_runner:
                conduct.resume(
                    record.id,
                    limits,
                    ledger,
                    listener,
                    judge_factory=partial(BisectionJudge, builds=builds),
                    adapt_runner=adapt_runner,
                    segment_factory=partial(CommitsSegment, builds=builds),
                )
        if terms.why is not None:
            _explain_culprit(ledger.read_run(record.id), builds, ledger, listener, output)
    return record.id


@contextmanager
def built_culprit(record: RunRecord, gap: Gap, ledger: Ledger) -> Iterator[None]:
    """Build a culprit and its parent, record their diff, and keep both builds for the context.

    Raise `UnusableInput` if the repository, a commit or the toolchain has changed. Raise
    `ConditionFailed` if one of the two commits no longer builds.
    """
    with revisions.builds_of_record(record) as builds:
        _build_both_commits(record, gap, builds, ledger)
        yield


def _explain_culprit(
    record: RunRecord,
    builds: CommitBuilds,
    ledger: Ledger,
    listener: ProgressListener,
    output: OutputOptions,
) -> None:
    """Explain the culprit with the largest gap, or resume the interrupted test of its causes."""
    from equipoise.why.gap import largest_gap
    from equipoise.why.result import latest_experiment

    terms, gap = bisection_terms(record.plan), largest_gap(record)
    experiment = None
    if gap is not None and gap.is_explainable:
        _build_both_commits(record, gap, builds, ledger)
        experiment = latest_experiment(record, ledger, gap.contrast)
    if experiment is None:
        explain_gap(record, ledger, replace(output, tests_causes=terms.why == "test"))
    elif _is_interrupted(experiment):
        conduct.resume(experiment.id, CampaignLimits(), ledger, listener)


def _is_explained(record: RunRecord, ledger: Ledger) -> bool:
    """Return whether nothing is left to explain."""
    from equipoise.why.evidence.collect import EvidenceRequest, missing_runs
    from equipoise.why.gap import largest_gap
    from equipoise.why.result import latest_experiment

    terms, gap = bisection_terms(record.plan), largest_gap(record)
    if gap is None or not gap.is_explainable:
        return True
    if missing_runs(record, gap, EvidenceRequest()):
        return False
    if terms.why == "observe":
        return True
    experiment = latest_experiment(record, ledger, gap.contrast)
    return experiment is not None and not _is_interrupted(experiment)


def _is_interrupted(record: RunRecord) -> bool:
    """Return whether the last segment of a campaign was killed or interrupted."""
    return record.segments[-1].stopped_because in (None, INTERRUPTED)


def _build_both_commits(record: RunRecord, gap: Gap, builds: CommitBuilds, ledger: Ledger) -> None:
    """Build a culprit and its parent; record their diff, unless it is already recorded."""
    terms, culprit_condition = bisection_terms(record.plan), gap.contrast.candidate
    parent_index, commit_index = map(terms.commit_of, gap.contrast.pair)
    for reason in builds.build_commits((parent_index, commit_index)).values():
        raise ConditionFailed(reason, hint="repair the build of this commit, then try again")
    if any(
        (observation.source, observation.condition) == (DIFF, culprit_condition)
        for observation in record.observations
    ):
        return
    diff = diff_between(
        repository_of(terms),
        terms.commits_with_branches[parent_index],
        terms.commits_with_branches[commit_index],
    )
    if diff is not None:
        encoded_diff = msgspec.json.encode(diff)
        ledger.record_observation(
            record.id,
            Observation(
                source=DIFF,
                condition=culprit_condition,
                repetition=1,
                position=0,
                observed_at=time.time(),
                document=encoded_diff,
                failure=None,
            ),
        )


def _bisect_request(bisect_options: BisectOptions) -> BisectRequest:
    commits_request = bisect_options.request("bisection", EXAMPLE)
    repository = commits_request.repository
    good = find_revision(repository, bisect_options.good, "--good")
    bad = revisions.revision_of(repository, bisect_options.bad, "--bad")
    if bisect_options.layouts is None:
        _require_no_layout_placeholder(commits_request.benchmarks)
    commits = commits_between(repository, good, bad)
    merged = merged_commits(repository, commits)
    suspected_paths = bisect_options.likely
    why: Literal["observe", "test"] | None = None
    if bisect_options.output.why:
        why = "test" if bisect_options.output.tests_causes else "observe"
    return BisectRequest(
        **asdict(commits_request),
        good=good,
        bad=bad,
        commits=commits,
        merged=merged,
        documentation_commits=documentation_commits(repository, (*commits, *merged.commits)),
        layouts=bisect_options.layouts,
        why=why,
        likely=suspected_paths,
        prior=weights_by_path(repository, commits, suspected_paths) if suspected_paths else (),
    )


def _recorded_command(request: BisectRequest, seed: int) -> tuple[str, ...]:
    bad = request.bad
    return typed_command(
        good=request.good.commit, bad=None if bad.uncommitted else bad.commit, seed=seed
    )


def _latest_layout_spread(ledger: Ledger, repository: Repository) -> LayoutSpread | None:
    """Return the spread from the latest campaign over memory layouts of this repository."""
    for run_id in ledger.runs_over_layouts():
        record = ledger.read_run(run_id)
        terms = record.plan.terms
        measured_folder = record.plan.measure.working_folder
        if isinstance(terms, CommitsPlan):
            measured_folder = terms.repository
        if Path(measured_folder).is_relative_to(repository.top):
            percent = layout_spread(record)
            if percent is not None:
                return LayoutSpread(percent, run_id)
    return None


def _require_no_layout_placeholder(benchmarks: Sequence[Benchmark]) -> None:
    if any(LAYOUT in word for benchmark in benchmarks for word in benchmark.command):
        raise UnusableInput(
            f"{LAYOUT} in the command is the number of a memory layout, but --layouts is missing",
            hint="add --layouts 12, and let --build link the program in 12 layouts",
        )
