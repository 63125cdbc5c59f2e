"""Bisections and histories: what the user wants of commits, and the plan of a campaign over them.

Each command has one condition for each commit, built or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec.structs import asdict, replace

from equipoise.campaign.commits import history_of
from equipoise.campaign.plans import PlanAndWarnings, over_layouts
from equipoise.design.coin import seed_of_campaign
from equipoise.measure.environment import snapshot
from equipoise.measure.trials import own_environment
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import (
    BENCHMARK,
    BENCHMARK_SUFFIX,
    BISECT_STUDY,
    HISTORY_STUDY,
    REVISION,
    BisectPlan,
    Commit,
    CommitBenchmark,
    CommitsPlan,
    Condition,
    Contrast,
    HistoryPlan,
    Judgement,
    LayoutSpread,
    Plan,
    Revision,
    Stopping,
)
from equipoise.model.record import CampaignWarning
from equipoise.revisions.benchmarks import Benchmark, BenchmarkTool
from equipoise.revisions.build_cache import digest, digest_of_toolchain
from equipoise.revisions.commit_builds import (
    BUDGET_S,
    CommitBuilds,
    NeededCommit,
    baseline_of,
    ends_of,
    revision_of,
)
from equipoise.revisions.commits import MergedCommits
from equipoise.revisions.plan import (
    CheckedOut,
    RevisionsRequest,
    benchmarks_in_all,
    condition_in,
    metrics_of,
)
from equipoise.shared.spelling import option

_FORM = 1


class CommitsRequest(RevisionsRequest, frozen=True, kw_only=True):
    """What the user wants to run in each of several commits, and how."""

    commits: tuple[Commit, ...]
    metrics: str | None = None

    @property
    def every_commit(self) -> tuple[Commit, ...]:
        """The commit of each condition."""
        return self.commits


class BisectRequest(CommitsRequest, frozen=True, kw_only=True):
    """What the user wants to bisect, and how."""

    good: Revision
    bad: Revision
    likely: tuple[str, ...] = ()
    prior: tuple[float, ...] = ()
    prose: tuple[int, ...] = ()
    """Places of the commits that change only files of prose."""
    merged: MergedCommits = MergedCommits()
    why: Literal["observe", "test"] | None = None
    layouts: int | None = None
    """Memory layouts, one of which is drawn for each block."""

    @property
    def every_commit(self) -> tuple[Commit, ...]:
        """The commit of each condition."""
        return (*self.commits, *self.merged.commits)

    @property
    def needed(self) -> tuple[NeededCommit, ...]:
        """The good and the bad commit."""
        return ends_of(self.good, self.bad, len(self.commits))


class HistoryRequest(CommitsRequest, frozen=True, kw_only=True):
    """The commits whose history the user wants, and how they are measured."""

    baseline: Revision
    latest: Revision
    selected: tuple[int, ...]
    """Places of the commits that the curve shows."""
    only_new: bool = False
    host: str
    """Name of the host: campaigns of one host are one history."""

    @property
    def needed(self) -> tuple[NeededCommit, ...]:
        """The baseline."""
        return (baseline_of(self.baseline),)


def bisect_plan(
    request: BisectRequest,
    builds: CommitBuilds,
    scratch: Path,
    layout_spread: LayoutSpread | None = None,
) -> PlanAndWarnings:
    """Return the plan of a bisection whose two ends are built, and what limits it on this host.

    Raises
    ------
    UnusableInput
        The program does not exist in an end, or no benchmark has a name that is given.
    ConditionFailed
        The benchmarks of the tool failed when they were run to see what they report.
    """
    plan, shared, warnings = _plan_of_commits(BISECT_STUDY, request, builds, scratch)
    terms = BisectPlan(
        **asdict(shared),
        good=request.good,
        bad=request.bad,
        likely=request.likely,
        prior=request.prior,
        prose=request.prose,
        branch_commits=request.merged.commits,
        branches=request.merged.branches,
        why=request.why,
        layout_spread=layout_spread,
    )
    gaps: list[Contrast] = []
    for first in range(0, len(plan.conditions), len(request.every_commit)):
        levels = plan.conditions[first].levels
        stratum = {factor: level for factor, level in levels.items() if factor != REVISION}
        gaps.append(Contrast(first, first + terms.last, REVISION, stratum))
    over, limits = over_layouts(plan, request.layouts, None)
    # A search ends when it knows the commit, after however few blocks of a layout.
    stopping = plan.stopping
    over = replace(over, stopping=stopping, chosen_contrasts=tuple(gaps), bisected=terms)
    return over, (*limits, *warnings)


def history_plan(request: HistoryRequest, builds: CommitBuilds, scratch: Path) -> PlanAndWarnings:
    """Return the plan of the first campaign of a history whose baseline is built, and warnings.

    Raises
    ------
    UnusableInput
        The program does not exist in the baseline, or several benchmarks are meant.
    ConditionFailed
        The benchmarks of the tool failed when they were run to see what they report.
    """
    plan, shared, warnings = _plan_of_commits(HISTORY_STUDY, request, builds, scratch)
    if shared.benchmarks:
        names = ", ".join(one.name for one in shared.benchmarks[:20])
        raise UnusableInput(
            f"a history is of one benchmark, and these are {len(shared.benchmarks)}: {names}",
            hint=f"run one for each: with {option('kind')}, {option('metrics')} names it; else "
            "its command behind --",
        )
    terms = HistoryPlan(
        **asdict(shared),
        baseline=request.baseline,
        latest=request.latest,
        selected=request.selected,
        series=_series(request, plan.judgement),
        era=_era(request, builds),
        only_new=request.only_new,
    )
    return replace(plan, history=terms), warnings


def following(plan: Plan, earlier: Sequence[str]) -> Plan:
    """Return the plan of a campaign that follows others of its series."""
    return replace(
        plan,
        seed=seed_of_campaign(plan.seed, len(earlier)),
        history=replace(history_of(plan), earlier=tuple(earlier)),
    )


def _series(request: HistoryRequest, judgement: Judgement) -> str:
    """Return the digest of what makes campaigns one history.

    The baseline's name stands for the repository: clones of it may lie anywhere.
    """
    return digest(
        [
            _FORM,
            request.host,
            request.baseline.commit,
            request.repository.inside,
            _command(request),
            # A tool that runs each benchmark in a process of its own calls all their metrics alike.
            request.metrics if request.tool is not None and request.tool.listing else None,
            request.build,
            None if request.tool is None else request.tool.name,
            judgement.primary_metric,
            judgement.min_effect,
            judgement.alpha,
        ]
    )


def _era(request: HistoryRequest, builds: CommitBuilds) -> str:
    """Return the digest of what has to be the same for numbers to be comparable."""
    # The command may be a program of the toolchain, such as an interpreter.
    line = " ".join([request.build or "", *_command(request)])
    tools = digest_of_toolchain(line, own_environment(), request.repository)
    recipe = builds.recipe
    return digest([_FORM, tools, recipe.environment, recipe.submodules, snapshot().get("kernel")])


def _command(request: HistoryRequest) -> tuple[str, ...]:
    (command,) = request.benchmarks
    return command.command


def _plan_of_commits(
    study: str, request: BisectRequest | HistoryRequest, builds: CommitBuilds, scratch: Path
) -> tuple[Plan, CommitsPlan, tuple[CampaignWarning, ...]]:
    """Return a plan with one condition for each command and commit, without the terms of its study.

    Beside it stand the terms that both studies have, and warnings of benchmarks that are left out.
    The needed commits are built.

    Raises
    ------
    UnusableInput
        The program does not exist in a needed commit, or no benchmark has a name that is given.
    ConditionFailed
        The benchmarks of the tool failed when they were run to see what they report.
    """
    tool, sides = request.tool, _sides(request, builds)
    places = [one.place for one in request.needed]
    of_needed = [sides[place] for place in places]
    commands, unlisted = benchmarks_in_all(request, of_needed)
    if tool is not None and tool.listing is not None:
        chosen = chosen_benchmarks(tool, request.metrics, [one.name for one in commands])
        commands = tuple(one for one in commands if one.name in chosen)
    conditions = _conditions(request, commands, sides)
    run_once = [conditions[place] for place in places]
    metrics, unreported = _metrics(request, of_needed, run_once, scratch)
    plan = request.plan(
        study,
        conditions,
        metrics,
        folder=str(of_needed[-1].folder),
        warmup=1,
        stopping=Stopping(min_seconds=0.0, budget_s=BUDGET_S),
        judgement=Judgement(),
    )
    shared = CommitsPlan(
        commits=request.commits,
        build=request.build,
        repository=str(request.repository.top),
        folder=request.repository.inside,
        tool=None if tool is None else tool.name,
        again=request.command_line,
        benchmarks=_several(commands, metrics),
    )
    return replace(plan, ranking=False), shared, (*unlisted, *unreported)


def _several(commands: Sequence[Benchmark], metrics: Sequence[str]) -> tuple[CommitBenchmark, ...]:
    """Return the benchmarks if there are several: a command each, or metrics of one command."""
    if len(commands) > 1:
        return tuple(
            CommitBenchmark(one.name, metrics[0], process) for process, one in enumerate(commands)
        )
    if len(metrics) > 1:
        return tuple(CommitBenchmark(one.removesuffix(BENCHMARK_SUFFIX), one) for one in metrics)
    return ()


def _sides(request: BisectRequest | HistoryRequest, builds: CommitBuilds) -> tuple[CheckedOut, ...]:
    """Return where each commit is, or will be, checked out and built."""
    named = {one.place: (one.role, one.revision) for one in request.needed}
    sides: list[CheckedOut] = []
    for place, (commit, tree) in enumerate(zip(request.every_commit, builds.trees, strict=True)):
        role, revision = named.get(place, ("commit", revision_of(commit)))
        sides.append(CheckedOut(role, revision, tree, request.repository, is_built=place in named))
    return tuple(sides)


def _conditions(
    request: CommitsRequest, commands: Sequence[Benchmark], sides: Sequence[CheckedOut]
) -> tuple[Condition, ...]:
    """Return one condition for each command and commit; built ones have to have the programs."""
    names = [commit.short for commit in request.every_commit]
    if len(set(names)) < len(names):
        names = [commit.name for commit in request.every_commit]
    conditions: list[Condition] = []
    for benchmark in commands:
        stratum = {BENCHMARK: benchmark.name} if len(commands) > 1 else {}
        prefix = f"{benchmark.name}: " if stratum else ""
        for name, side in zip(names, sides, strict=True):
            levels = {**stratum, REVISION: name}
            conditions.append(condition_in(side, benchmark, request.tool, prefix + name, levels))
    return tuple(conditions)


def _metrics(
    request: CommitsRequest,
    sides: Sequence[CheckedOut],
    conditions: Sequence[Condition],
    scratch: Path,
) -> tuple[tuple[str, ...], tuple[CampaignWarning, ...]]:
    """Return the metric that is named, or the benchmarks that needed commits report to a tool."""
    tool = request.tool
    reported, warnings = metrics_of(request, sides, conditions, scratch)
    if tool is None or tool.listing is not None:
        return reported, warnings
    names = [one.removesuffix(BENCHMARK_SUFFIX) for one in reported]
    chosen = chosen_benchmarks(tool, request.metrics, names)
    return tuple(name + BENCHMARK_SUFFIX for name in chosen), warnings


def chosen_benchmarks(
    tool: BenchmarkTool, text: str | None, names: Sequence[str]
) -> tuple[str, ...]:
    """Return the benchmarks that ``--metrics`` names; all without it.

    A name may have commas in it: the longest stretch of the text that is a name is one.

    Raises
    ------
    UnusableInput
        A part of the text is no name.
    """
    if text is None:
        return tuple(names)
    known = {name.replace(" ", ""): name for name in names}
    words = text.replace(" ", "").split(",")
    chosen: list[str] = []
    while words:
        ends = (end for end in range(len(words), 0, -1) if ",".join(words[:end]) in known)
        end = next(ends, None)
        if end is None:
            raise UnusableInput(
                f"{tool.name} has no benchmark {','.join(words)}; it has {', '.join(names[:20])}",
                hint="name those to be searched, with commas between: "
                f"{option('metrics', 'NAME,NAME')}",
            )
        chosen.append(known[",".join(words[:end])])
        words = words[end:]
    return tuple(dict.fromkeys(chosen))
