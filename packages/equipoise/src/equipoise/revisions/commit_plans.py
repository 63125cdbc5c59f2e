"""Makes the plan of a campaign over commits, which runs each command in each commit.

The plan has one condition for each command and commit, whether the commit is built or not. The
index of a commit is its position among the commits of the campaign, from 0.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from equipoise.campaign.conduct import RunnerAdapter
from equipoise.design.command_line import command_of_plan
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import Condition, Judgement, Plan, Stopping
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import BENCHMARK, BENCHMARK_SUFFIX, REVISION, Commit, Revision
from equipoise.revisions.benchmarks import Benchmark
from equipoise.revisions.build_cache import Build, BuildCache, MissingFolder, source_of
from equipoise.revisions.commits import tree_hashes
from equipoise.revisions.git import CheckoutFailed, Repository
from equipoise.revisions.plan import (
    Checkout,
    RevisionsRequest,
    common_benchmarks,
    condition_in,
)
from equipoise.revisions.probing import metrics_of
from equipoise.revisions.relinking import Relinker
from equipoise.revisions.terms import CommitBenchmark, CommitsPlan, commits_terms
from equipoise.shared.spelling import option
from equipoise.suites import TOOLS
from equipoise.suites.tool import BenchmarkTool

_POLL_S = 0.05
_MIN_BUILDS_AT_ONCE = 2
"""Number of builds that run at once on any host: the commits of a commit pair."""
BUDGET_S = 900.0
"""Default budget in seconds: enough for some hundred trials and about ten builds."""


class NeededCommit(Struct, frozen=True):
    """A commit that a campaign needs: if the commit does not build or run, the campaign ends."""

    index: int
    role: str
    """Role of the commit for messages, such as ``good revision`` or ``baseline``."""
    revision: Revision
    option: str
    """Option with which the user names the commit."""


class CommitBuilds:
    """The builds of the commits of a campaign, in an open cache."""

    def __init__(self, cache: BuildCache, commits: Sequence[Commit]) -> None:
        self._cache = cache
        self.recipe = cache.recipe
        self._commits = tuple(commits)
        repository = cache.recipe.repository
        hashes = tree_hashes(repository, [commit.hash for commit in commits])
        self._sources = tuple(
            source_of(repository, revision_of(commit), hashes) for commit in commits
        )
        self.trees = tuple(map(cache.tree_of, self._sources))
        """Root of the working tree of each commit, built or not."""
        self._seconds = self._read_seconds()
        """Seconds of each complete build, by the index of the commit."""

    def built_commits(self) -> Collection[int]:
        """Return the indices of the built commits."""
        return self._seconds.keys()

    def typical_seconds(self) -> float:
        """Return the median seconds of a build; 0 before the first build."""
        return statistics.median(self._seconds.values()) if self._seconds else 0.0

    def build_commits(self, indices: tuple[int, ...]) -> Mapping[int, str]:
        """Build several commits at once; return the reason of each failure, by index.

        Raise `UnusableInput` if the working tree has changed.
        """
        needed_sources = [self._sources[index] for index in indices]
        # Commits with the same files share one build.
        first_indices = {self.trees[index]: index for index in reversed(indices)}
        max_builds = max(_MIN_BUILDS_AT_ONCE, os.cpu_count() or 1)
        with ThreadPoolExecutor(max_workers=min(len(first_indices), max_builds)) as threads:
            trees_of_builds: dict[Future[Build], Path] = {}
            for tree, index in first_indices.items():
                label = f"commit {self._commits[index].short}"
                build = threads.submit(self._cache.get, self._sources[index], label, needed_sources)
                trees_of_builds[build] = tree
            try:
                wait(trees_of_builds)
            except BaseException:
                self._cache.stop()
                while wait(trees_of_builds, _POLL_S).not_done:
                    self._cache.stop()
                raise
        reasons: dict[Path, str] = {}
        for build, tree in trees_of_builds.items():
            build_error = build.exception()
            if isinstance(build_error, ConditionFailed | MissingFolder | CheckoutFailed):
                reasons[tree] = build_error.what
            elif build_error is not None:
                raise build_error
        failures = {
            index: reasons[self.trees[index]] for index in indices if self.trees[index] in reasons
        }
        if any(index not in self._seconds for index in indices):
            self._seconds = self._read_seconds()
        return failures

    def build_needed(self, needed: Sequence[NeededCommit]) -> None:
        """Build the needed commits.

        Raise `ConditionFailed` if a commit does not build.
        """
        commits_by_index = {commit.index: commit for commit in needed}
        for index, reason in self.build_commits(tuple(commits_by_index)).items():
            commit = commits_by_index[index]
            raise ConditionFailed(
                f"the {commit.role}: {reason}",
                hint=f"name another commit as {commit.option}, or correct {option('build')}, which "
                "runs in a fresh clone",
            )

    @contextmanager
    def linking_again(self, plan: Plan) -> Iterator[RunnerAdapter]:
        """Yield the adapter of a campaign's runner, which links programs again if asked to."""
        recorder, terms = self.recipe.recorder, commits_terms(plan)
        if recorder is None:
            yield lambda runner: runner
            return
        commits = [terms.commit_of(condition) for condition in range(len(plan.conditions))]
        with Relinker(recorder, plan, self.trees, commits) as relinker:
            yield relinker.adapt

    def _read_seconds(self) -> dict[int, float]:
        all_seconds = map(self._cache.seconds_of, self._sources)
        return {index: seconds for index, seconds in enumerate(all_seconds) if seconds is not None}


def builds_of_plan(plan: Plan, cache: BuildCache) -> CommitBuilds:
    """Return the builds to resume a recorded campaign.

    Raise `UnusableInput` if a commit does not exist any more, or if the toolchain, the environment
    or the working tree has changed, because builds would then differ.
    """
    terms = commits_terms(plan)
    builds = CommitBuilds(cache, terms.commits_with_branches)
    # Commands have the same commits, so the conditions of the first command suffice.
    conditions = plan.conditions[: len(terms.commits_with_branches)]
    for commit, condition, tree in zip(
        terms.commits_with_branches, conditions, builds.trees, strict=True
    ):
        if condition.process.working_folder != str(tree / terms.folder):
            reason = (
                "the working tree has changed"
                if commit.uncommitted
                else "the toolchain or the environment of builds has changed"
            )
            raise UnusableInput(
                f"{reason} since the {terms.noun} began, so its builds and new builds cannot be "
                "compared",
                hint=f"{terms.restart_hint}: {command_of_plan(plan)}",
            )
    return builds


def repository_of(terms: CommitsPlan) -> Repository:
    """Return the repository of a recorded campaign.

    Raise `UnusableInput` if the repository does not exist any more.
    """
    root = Path(terms.repository)
    if not (root / ".git").exists():
        raise UnusableInput(
            f"the repository {root} of the {terms.noun} does not exist any more",
            hint="put the repository back, then resume",
        )
    return Repository(root, terms.folder)


def tool_of(terms: CommitsPlan) -> BenchmarkTool | None:
    """Return the benchmark tool of a recorded campaign; ``None`` if it has no tool."""
    return None if terms.tool is None else TOOLS[terms.tool]


def revision_of(commit: Commit) -> Revision:
    """Return a commit as a revision; its label is the short name of the commit."""
    return Revision(commit.short, commit.hash, commit.uncommitted)


class CommitsRequest(RevisionsRequest, frozen=True, kw_only=True):
    """The user's request to run commands in each of several commits."""

    commits: tuple[Commit, ...]
    metrics: str | None = None

    @property
    def commits_with_branches(self) -> tuple[Commit, ...]:
        """The commits; in a bisection, followed by the commits of merged branches."""
        return self.commits

    @property
    def needed(self) -> tuple[NeededCommit, ...]:
        """The commits that the campaign needs."""
        raise NotImplementedError


def plan_of_commits(
    study: str, request: CommitsRequest, builds: CommitBuilds, scratch: Path
) -> tuple[Plan, CommitsPlan, tuple[CampaignWarning, ...]]:
    """Return a plan without terms, its terms, and warnings about benchmarks that are left out.

    The caller completes the terms for its kind of campaign, and puts them into the plan. The
    needed commits must be built.

    Raise `UnusableInput` if a program does not exist in a needed commit, or if the request names a
    benchmark that does not exist. Raise `ConditionFailed` if a benchmark fails.
    """
    tool, checkouts = request.tool, _checkouts(request, builds)
    needed_indices = [commit.index for commit in request.needed]
    needed_checkouts = [checkouts[index] for index in needed_indices]
    commands, listing_warnings = common_benchmarks(request, needed_checkouts)
    if tool is not None and tool.listing is not None:
        all_names = [command.name for command in commands]
        names = chosen_benchmarks(tool, request.metrics, all_names)
        commands = tuple(command for command in commands if command.name in names)
    conditions = _conditions(request, commands, checkouts)
    needed_conditions = [conditions[index] for index in needed_indices]
    metrics, metric_warnings = _metrics(request, needed_checkouts, needed_conditions, scratch)
    plan = request.plan(
        study,
        conditions,
        metrics,
        folder=str(needed_checkouts[-1].folder),
        warmup=1,
        stopping=Stopping(min_seconds=0.0, budget_s=BUDGET_S),
        judgement=Judgement(),
    )
    terms = CommitsPlan(
        commits=request.commits,
        build=request.build,
        repository=str(request.repository.top),
        folder=request.repository.inside,
        tool=None if tool is None else tool.name,
        benchmarks=_named_benchmarks(commands, metrics),
        linker=None if request.recorder is None else request.recorder.version,
    )
    return replace(plan, ranking=False), terms, (*listing_warnings, *metric_warnings)


def _named_benchmarks(
    commands: Sequence[Benchmark], metrics: Sequence[str]
) -> tuple[CommitBenchmark, ...]:
    """Return the benchmark of each command or metric; empty if there is only one benchmark."""
    if len(commands) > 1:
        return tuple(
            CommitBenchmark(command.name, metrics[0], command_index=index)
            for index, command in enumerate(commands)
        )
    if len(metrics) > 1:
        return tuple(
            CommitBenchmark(metric.removesuffix(BENCHMARK_SUFFIX), metric) for metric in metrics
        )
    return ()


def _checkouts(request: CommitsRequest, builds: CommitBuilds) -> tuple[Checkout, ...]:
    needed_commits = {commit.index: (commit.role, commit.revision) for commit in request.needed}
    checkouts: list[Checkout] = []
    for index, (commit, tree) in enumerate(
        zip(request.commits_with_branches, builds.trees, strict=True)
    ):
        role, revision = needed_commits.get(index, ("commit", revision_of(commit)))
        is_built = index in needed_commits
        checkouts.append(Checkout(role, revision, tree, request.repository, is_built=is_built))
    return tuple(checkouts)


def _conditions(
    request: CommitsRequest, commands: Sequence[Benchmark], checkouts: Sequence[Checkout]
) -> tuple[Condition, ...]:
    """Return one condition for each command and commit.

    Raise `UnusableInput` if a built commit does not have the program of a command.
    """
    names = [commit.short for commit in request.commits_with_branches]
    if len(set(names)) < len(names):
        names = [commit.name for commit in request.commits_with_branches]
    conditions: list[Condition] = []
    for benchmark in commands:
        benchmark_level = {BENCHMARK: benchmark.name} if len(commands) > 1 else {}
        prefix = f"{benchmark.name}: " if benchmark_level else ""
        for name, checkout in zip(names, checkouts, strict=True):
            levels = {**benchmark_level, REVISION: name}
            full_name = prefix + name
            conditions.append(condition_in(checkout, benchmark, request.tool, full_name, levels))
    return tuple(conditions)


def _metrics(
    request: CommitsRequest,
    checkouts: Sequence[Checkout],
    conditions: Sequence[Condition],
    scratch: Path,
) -> tuple[tuple[str, ...], tuple[CampaignWarning, ...]]:
    tool = request.tool
    found = metrics_of(request, checkouts, conditions, scratch)
    if tool is None or tool.listing is not None:
        return found.metrics, found.warnings
    all_names = [metric.removesuffix(BENCHMARK_SUFFIX) for metric in found.metrics]
    names = chosen_benchmarks(tool, request.metrics, all_names)
    return tuple(name + BENCHMARK_SUFFIX for name in names), found.warnings


def chosen_benchmarks(
    tool: BenchmarkTool, text: str | None, names: Sequence[str]
) -> tuple[str, ...]:
    """Return the benchmarks that ``text``, the value of ``--metrics``, names; ``None`` means all.

    Commas separate the names, but names may contain commas. So the longest of ``names`` with which
    the rest of the text begins is the next benchmark.

    Raise `UnusableInput` if the text contains another name.
    """
    if text is None:
        return tuple(names)
    all_names = {name.replace(" ", ""): name for name in names}
    pieces = text.replace(" ", "").split(",")
    chosen_names: list[str] = []
    while pieces:
        counts = (
            count for count in range(len(pieces), 0, -1) if ",".join(pieces[:count]) in all_names
        )
        piece_count = next(counts, None)
        if piece_count is None:
            raise UnusableInput(
                f"{tool.name} has no benchmark {','.join(pieces)}; it has {', '.join(names[:20])}",
                hint=f"separate names of benchmarks by commas: {option('metrics', 'NAME,NAME')}",
            )
        chosen_names.append(all_names[",".join(pieces[:piece_count])])
        pieces = pieces[piece_count:]
    return tuple(dict.fromkeys(chosen_names))
