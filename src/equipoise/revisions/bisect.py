"""A bisection of a repository: its request, the builds of its commits, and its plan."""

from __future__ import annotations

import os
import statistics
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from msgspec import Struct

from equipoise.design.coin import fresh_seed
from equipoise.design.limits import CampaignLimits
from equipoise.measure.counters import counters_among
from equipoise.measure.installation import native_programs
from equipoise.measure.trials import own_environment
from equipoise.measure.workload_metrics import metrics_reported
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import (
    BENCHMARK_SUFFIX,
    BISECT_STUDY,
    PRIMARY_METRIC,
    REVISION,
    BisectPlan,
    Commit,
    Condition,
    Contrast,
    Judgement,
    Measure,
    Plan,
    Process,
    Revision,
    Stopping,
)
from equipoise.revisions.benchmarks import TOOLS, BenchmarkTool
from equipoise.revisions.build_cache import BuildCache, NoFolder
from equipoise.revisions.build_key import source_of
from equipoise.revisions.commits import MergedCommits, trees_of
from equipoise.revisions.git import Repository
from equipoise.revisions.plan import TIMEOUT_S, CheckedOut, program_in

_POLL_S = 0.05
BUDGET_S = 900.0
"""Default budget: a search runs some hundred trials, and builds about ten commits."""


class BisectRequest(Struct, frozen=True):
    """What the user wants to bisect, and how."""

    repository: Repository
    good: Revision
    bad: Revision
    commits: tuple[Commit, ...]
    """From the good revision to the bad one along first parents."""
    command: tuple[str, ...]
    """A program with a slash in its name is looked for in each commit."""
    build: str | None = None
    """Line for a shell that builds a commit."""
    tool: BenchmarkTool | None = None
    """Tool that reads the results of the command, if that reports them in its form."""
    metric: str | None = None
    """By default the wall time, or the one benchmark that both ends report to the tool."""
    likely: tuple[str, ...] = ()
    prior: tuple[float, ...] = ()
    limits: CampaignLimits = CampaignLimits()
    command_line: str = ""
    """Line for a shell that runs the bisection again."""
    merged: MergedCommits = MergedCommits()


class CommitBuilds:
    """The builds of the commits of a bisection, in the cache (`equipoise.campaign.bisection`).

    Parameters
    ----------
    cache
        Open while the bisection runs.
    """

    def __init__(self, cache: BuildCache, commits: Sequence[Commit]) -> None:
        self._cache = cache
        self._commits = tuple(commits)
        repository = cache.recipe.repository
        trees = trees_of(repository, [commit.hash for commit in commits])
        self._sources = tuple(
            source_of(repository, _revision_of(commit), trees) for commit in commits
        )
        self.trees = tuple(map(cache.tree_of, self._sources))
        """Root of the working tree of each commit, built or not."""
        self._seconds = self._read_seconds()

    def built(self) -> Collection[int]:
        """Return the commits that are built."""
        return self._seconds.keys()

    def seconds(self) -> float:
        """Return the median of the seconds that builds took; 0 before the first."""
        return statistics.median(self._seconds.values()) if self._seconds else 0.0

    def make(self, commits: tuple[int, ...]) -> Mapping[int, str]:
        """Build commits, side by side; return the reason for each that does not build.

        Raises
        ------
        UnusableInput
            git cannot check one out, or the working tree has changed.
        """
        needed = [self._sources[commit] for commit in commits]
        # Commits of one tree are one build.
        first = {self.trees[commit]: commit for commit in reversed(commits)}
        with ThreadPoolExecutor(max_workers=len(first)) as threads:
            builds: dict[Future[object], int] = {
                threads.submit(self._cache.get, self._sources[one], self._label(one), needed): one
                for one in first.values()
            }
            try:
                wait(builds)
            except BaseException:
                self._cache.stop()
                while wait(builds, _POLL_S).not_done:
                    self._cache.stop()
                raise
        reasons: dict[Path, str] = {}
        for build, commit in builds.items():
            error = build.exception()
            if isinstance(error, ConditionFailed | NoFolder):
                reasons[self.trees[commit]] = error.what
            elif error is not None:
                raise error
        failed = {
            commit: reasons[self.trees[commit]]
            for commit in commits
            if self.trees[commit] in reasons
        }
        if any(commit not in self._seconds for commit in commits):
            self._seconds = self._read_seconds()
        return failed

    def make_ends(self, last: int) -> None:
        """Build the good commit, which is the first one, and the bad one.

        Raises
        ------
        ConditionFailed
            One does not build, so there is nothing to bisect.
        """
        for commit, reason in self.make((0, last)).items():
            which = "bad" if commit else "good"
            raise ConditionFailed(
                f"the {which} revision: {reason}",
                hint=f"name another one as --{which}, or correct --build: it runs in a fresh clone",
            )

    def _read_seconds(self) -> dict[int, float]:
        """Return the seconds of each commit that is built."""
        taken = map(self._cache.seconds_of, self._sources)
        return {commit: seconds for commit, seconds in enumerate(taken) if seconds is not None}

    def _label(self, commit: int) -> str:
        return f"commit {self._commits[commit].short}"


def bisect_plan(request: BisectRequest, builds: CommitBuilds, scratch: Path) -> Plan:
    """Return the plan of a bisection whose two ends are built.

    Raises
    ------
    UnusableInput
        The program does not exist in an end, or it is not known which benchmark is meant.
    ConditionFailed
        The benchmarks of the tool failed when they were run to see what they report.
    """
    limits, tool = request.limits, request.tool
    timeout_s = TIMEOUT_S if limits.timeout is None else limits.timeout
    conditions = _conditions(request, builds)
    last = len(request.commits) - 1
    ends = (conditions[0], conditions[last])
    metric = _metric(request, ends, scratch, timeout_s)
    return Plan(
        study=BISECT_STUDY,
        conditions=conditions,
        measure=Measure(
            working_folder=str(ends[1].process.working_folder),
            timeout_s=timeout_s,
            warmup=1 if limits.warmup is None else limits.warmup,
            counters=counters_among((metric,)),
        ),
        stopping=limits.stopping(Stopping(min_seconds=0.0, budget_s=BUDGET_S)),
        judgement=limits.judgement((metric,), Judgement()),
        seed=fresh_seed() if limits.seed is None else limits.seed,
        chosen_contrasts=(Contrast(0, last, REVISION),),
        ranking=False,
        bisected=BisectPlan(
            good=request.good,
            bad=request.bad,
            commits=request.commits,
            build=request.build,
            likely=request.likely,
            prior=request.prior,
            repository=str(request.repository.top),
            folder=request.repository.inside,
            tool=None if tool is None else tool.name,
            again=request.command_line,
            branch_commits=request.merged.commits,
            branches=request.merged.branches,
        ),
    )


def builds_of_plan(plan: Plan, cache: BuildCache) -> CommitBuilds:
    """Return the builds of a bisection that is resumed.

    Raises
    ------
    UnusableInput
        A commit is gone, or the same commits would now be built in another way: by another
        toolchain, in another environment, or from a working tree that has changed.
    """
    terms = plan.bisected
    assert terms is not None, "only a bisection has builds of commits"
    builds = CommitBuilds(cache, terms.every_commit)
    for commit, condition, tree in zip(
        terms.every_commit, plan.conditions, builds.trees, strict=True
    ):
        if condition.process.working_folder != str(_folder(tree, terms.folder)):
            reason = (
                "the working tree has changed"
                if commit.uncommitted
                else "the toolchain or the environment of builds has changed"
            )
            raise UnusableInput(
                f"{reason} since the bisection began: its builds and new ones cannot be compared",
                hint=f"bisect anew: {terms.again}",
            )
    return builds


def repository_of(terms: BisectPlan) -> Repository:
    """Return the repository of a bisection that is resumed.

    Raises
    ------
    UnusableInput
        It is not there any more.
    """
    top = Path(terms.repository)
    if not (top / ".git").exists():
        raise UnusableInput(
            f"the repository {top} of the bisection is gone", hint="put it back, then resume"
        )
    return Repository(top, terms.folder)


def tool_of(terms: BisectPlan) -> BenchmarkTool | None:
    """Return the tool of a bisection that is resumed."""
    return None if terms.tool is None else TOOLS[terms.tool]


def _revision_of(commit: Commit) -> Revision:
    return Revision(commit.short, commit.hash, commit.uncommitted)


def _folder(tree: Path, inside: str) -> Path:
    return Path(os.path.join(tree, inside)) if inside else tree


def _conditions(request: BisectRequest, builds: CommitBuilds) -> tuple[Condition, ...]:
    """Return one condition for each commit; the programs of the two ends have to be there."""
    repository, tool = request.repository, request.tool
    commits = (*request.commits, *request.merged.commits)
    names = [commit.short for commit in commits]
    if len(set(names)) < len(names):
        names = [commit.name for commit in commits]
    last = len(request.commits) - 1
    environment = own_environment()
    ends = {0: ("good revision", request.good), last: ("bad revision", request.bad)}
    conditions: list[Condition] = []
    for index, (name, tree) in enumerate(zip(names, builds.trees, strict=True)):
        role, revision = ends.get(index, ("commit", _revision_of(commits[index])))
        side = CheckedOut(
            role=role,
            revision=revision,
            tree=str(tree),
            folder=str(_folder(tree, repository.inside)),
            instead_of=str(repository.top),
        )
        program = program_in(
            side, request.command[0], native_programs(), environment, built=index in ends
        )
        command = (program, *request.command[1:])
        conditions.append(
            Condition(
                name=name,
                command=command if tool is None else tool.reading(command),
                levels={REVISION: name},
                environment=side.variables(tool),
                process=Process(working_folder=side.folder),
            )
        )
    return tuple(conditions)


def _metric(
    request: BisectRequest, ends: tuple[Condition, Condition], scratch: Path, timeout_s: float
) -> str:
    """Return the metric that is named, or the one benchmark that both ends report."""
    tool = request.tool
    if tool is None:
        return request.metric or PRIMARY_METRIC
    good, bad = (
        [
            reported.metric
            for reported in metrics_reported(end, own_environment(), scratch, timeout_s)
        ]
        for end in ends
    )
    both = [metric for metric in dict.fromkeys(good) if metric in bad]
    benchmarks = [one.removesuffix(BENCHMARK_SUFFIX) for one in both]
    if request.metric in both:
        return str(request.metric)
    if request.metric in benchmarks:
        return f"{request.metric}{BENCHMARK_SUFFIX}"
    if request.metric is None and len(both) == 1:
        return both[0]
    wanted = "" if request.metric is None else f", and none is called {request.metric}"
    raise UnusableInput(
        f"{tool.name} reports {len(both)} benchmarks in both ends{wanted}: "
        f"{', '.join(benchmarks[:20])}",
        hint="name the one to be searched by: --metrics NAME",
    )
