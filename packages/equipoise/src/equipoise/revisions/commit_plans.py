"""Commits as conditions: what the user wants, their builds, and the plan of a campaign.

Each command has one condition for each commit, built or not.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from equipoise.design.command_line import command_of_plan
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import (
    Condition,
    Judgement,
    Plan,
    Stopping,
)
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import BENCHMARK, BENCHMARK_SUFFIX, REVISION, Commit, Revision
from equipoise.revisions.benchmarks import TOOLS, Benchmark, BenchmarkTool
from equipoise.revisions.build_cache import Build, BuildCache, NoFolder, source_of
from equipoise.revisions.commits import trees_of
from equipoise.revisions.git import CheckoutFailed, Repository
from equipoise.revisions.plan import (
    CheckedOut,
    RevisionsRequest,
    benchmarks_in_all,
    condition_in,
    metrics_of,
)
from equipoise.revisions.terms import CommitBenchmark, CommitsPlan, commits_of
from equipoise.shared.spelling import option

_POLL_S = 0.05
_MIN_BUILDS_AT_ONCE = 2
"""Number of builds that always run side by side: both commits of a pair."""
BUDGET_S = 900.0
"""Default budget: a search runs some hundred trials, and builds about ten commits."""


class NeededCommit(Struct, frozen=True):
    """A commit without which a campaign has no question: it has to build and to run."""

    place: int
    role: str
    """``good revision``, ``baseline``."""
    revision: Revision
    option: str
    """Option that names it."""


class CommitBuilds:
    """The builds of the commits of a campaign (`equipoise.revisions.judging`), in an open cache."""

    def __init__(self, cache: BuildCache, commits: Sequence[Commit]) -> None:
        self._cache = cache
        self.recipe = cache.recipe
        self._commits = tuple(commits)
        repository = cache.recipe.repository
        trees = trees_of(repository, [commit.hash for commit in commits])
        self._sources = tuple(
            source_of(repository, revision_of(commit), trees) for commit in commits
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

        A commit that git cannot check out does not build either.

        Raise `UnusableInput` if the working tree has changed.
        """
        needed = [self._sources[commit] for commit in commits]
        # Commits of one tree are one build.
        first = {self.trees[commit]: commit for commit in reversed(commits)}
        most = max(_MIN_BUILDS_AT_ONCE, os.cpu_count() or 1)
        with ThreadPoolExecutor(max_workers=min(len(first), most)) as threads:
            builds: dict[Future[Build], Path] = {}
            for tree, commit in first.items():
                label = f"commit {self._commits[commit].short}"
                task = threads.submit(self._cache.get, self._sources[commit], label, needed)
                builds[task] = tree
            try:
                wait(builds)
            except BaseException:
                self._cache.stop()
                while wait(builds, _POLL_S).not_done:
                    self._cache.stop()
                raise
        reasons: dict[Path, str] = {}
        for build, tree in builds.items():
            error = build.exception()
            if isinstance(error, ConditionFailed | NoFolder | CheckoutFailed):
                reasons[tree] = error.what
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

    def make_needed(self, needed: Sequence[NeededCommit]) -> None:
        """Build the commits that a campaign cannot do without.

        Raise `ConditionFailed` if one does not build, so there is nothing to compare.
        """
        by_place = {one.place: one for one in needed}
        for commit, reason in self.make(tuple(by_place)).items():
            one = by_place[commit]
            raise ConditionFailed(
                f"the {one.role}: {reason}",
                hint=f"name another one as {one.option}, or correct {option('build')}: it runs in "
                "a fresh "
                "clone",
            )

    def _read_seconds(self) -> dict[int, float]:
        """Return the seconds of each commit that is built."""
        taken = map(self._cache.seconds_of, self._sources)
        return {commit: seconds for commit, seconds in enumerate(taken) if seconds is not None}


def builds_of_plan(plan: Plan, cache: BuildCache) -> CommitBuilds:
    """Return the builds of a recorded campaign, to go on with it.

    Raise `UnusableInput` if a commit is gone, or the same commits would now be built in another
    way: by another toolchain, in another environment, or from a working tree that has changed.
    """
    terms = commits_of(plan)
    builds = CommitBuilds(cache, terms.every_commit)
    # All commands run in the builds of the first one.
    conditions = plan.conditions[: len(terms.every_commit)]
    for commit, condition, tree in zip(terms.every_commit, conditions, builds.trees, strict=True):
        if condition.process.working_folder != str(tree / terms.folder):
            reason = (
                "the working tree has changed"
                if commit.uncommitted
                else "the toolchain or the environment of builds has changed"
            )
            raise UnusableInput(
                f"{reason} since the {terms.noun} began: its builds and new ones cannot be "
                "compared",
                hint=f"{terms.restart_advice}: {command_of_plan(plan)}",
            )
    return builds


def repository_of(terms: CommitsPlan) -> Repository:
    """Return the repository of a recorded campaign, to go on with it.

    Raise `UnusableInput` if it is not there any more.
    """
    top = Path(terms.repository)
    if not (top / ".git").exists():
        raise UnusableInput(
            f"the repository {top} of the {terms.noun} is gone",
            hint="put it back, then resume",
        )
    return Repository(top, terms.folder)


def tool_of(terms: CommitsPlan) -> BenchmarkTool | None:
    """Return the tool that reads the results of a recorded campaign."""
    return None if terms.tool is None else TOOLS[terms.tool]


def revision_of(commit: Commit) -> Revision:
    """Return a commit as a revision that nobody named."""
    return Revision(commit.short, commit.hash, commit.uncommitted)


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
