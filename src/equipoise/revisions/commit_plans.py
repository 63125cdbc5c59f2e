"""What the user wants of commits, and the plan of a campaign over them.

Each command has one condition for each commit, built or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from equipoise.model.errors import UnusableInput
from equipoise.model.plan import (
    Condition,
    Judgement,
    Plan,
    Stopping,
)
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import BENCHMARK, BENCHMARK_SUFFIX, REVISION, Commit
from equipoise.revisions.benchmarks import Benchmark, BenchmarkTool
from equipoise.revisions.commit_builds import (
    BUDGET_S,
    CommitBuilds,
    NeededCommit,
    revision_of,
)
from equipoise.revisions.plan import (
    CheckedOut,
    RevisionsRequest,
    benchmarks_in_all,
    condition_in,
    metrics_of,
)
from equipoise.revisions.terms import CommitBenchmark, CommitsPlan
from equipoise.shared.spelling import option


class CommitsRequest(RevisionsRequest, frozen=True, kw_only=True):
    """What the user wants to run in each of several commits, and how."""

    commits: tuple[Commit, ...]
    metrics: str | None = None

    @property
    def every_commit(self) -> tuple[Commit, ...]:
        """The commit of each condition."""
        return self.commits

    @property
    def needed(self) -> tuple[NeededCommit, ...]:
        """The commits without which the campaign has no question."""
        raise NotImplementedError


def plan_of_commits(
    study: str, request: CommitsRequest, builds: CommitBuilds, scratch: Path
) -> tuple[Plan, CommitsPlan, tuple[CampaignWarning, ...]]:
    """Return a plan with one condition for each command and commit, without the terms of its kind.

    Beside it stand the terms that all such kinds have, and warnings of benchmarks that are left
    out. The needed commits are built.

    Raise `UnusableInput` if the program does not exist in a needed commit, or no benchmark has a
    name that is given. Raise `ConditionFailed` if the benchmarks of the tool failed when they were
    run to see what they report.
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


def _sides(request: CommitsRequest, builds: CommitBuilds) -> tuple[CheckedOut, ...]:
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

    Raise `UnusableInput` if a part of the text is no name.
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
