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
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import (
    BENCHMARK,
    BENCHMARK_SUFFIX,
    BISECT_STUDY,
    PRIMARY_METRIC,
    REVISION,
    BisectPlan,
    Commit,
    CommitBenchmark,
    Condition,
    Contrast,
    Judgement,
    Measure,
    Plan,
    Process,
    Revision,
    Stopping,
)
from equipoise.model.record import CampaignWarning
from equipoise.revisions.benchmarks import TOOLS, Benchmark, BenchmarkTool
from equipoise.revisions.build_cache import BuildCache, NoFolder
from equipoise.revisions.build_key import source_of
from equipoise.revisions.commits import trees_of
from equipoise.revisions.git import Repository
from equipoise.revisions.plan import (
    TIMEOUT_S,
    CheckedOut,
    Pair,
    benchmarks_in_both,
    metrics_in_both,
    program_in,
)

_POLL_S = 0.05
_FEWEST_BUILDS_AT_ONCE = 2
BUDGET_S = 900.0
"""Default budget: a search runs some hundred trials, and builds about ten commits."""


class BisectRequest(Struct, frozen=True):
    """What the user wants to bisect, and how."""

    repository: Repository
    good: Revision
    bad: Revision
    commits: tuple[Commit, ...]
    benchmarks: tuple[Benchmark, ...]
    build: str | None = None
    """Line for a shell that builds a commit."""
    tool: BenchmarkTool | None = None
    """Tool that reads the results of the benchmarks, if they report them in its form."""
    metrics: str | None = None
    """One metric, by default the wall time; with a tool the names of benchmarks with commas
    between, by default all that both ends have."""
    likely: tuple[str, ...] = ()
    prior: tuple[float, ...] = ()
    limits: CampaignLimits = CampaignLimits()
    command_line: str = ""
    """Line for a shell that runs the bisection again."""


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
        with ThreadPoolExecutor(max_workers=min(len(first), _most_builds())) as threads:
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

    def make_ends(self) -> None:
        """Build the good and the bad commit.

        Raises
        ------
        ConditionFailed
            One does not build, so there is nothing to bisect.
        """
        last = len(self._commits) - 1
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


def _most_builds() -> int:
    """Return how many commits are built side by side."""
    return max(_FEWEST_BUILDS_AT_ONCE, os.cpu_count() or 1)


def bisect_plan(
    request: BisectRequest, builds: CommitBuilds, scratch: Path
) -> tuple[Plan, tuple[CampaignWarning, ...]]:
    """Return the plan of a bisection whose two ends are built, and warnings of its benchmarks.

    Raises
    ------
    UnusableInput
        A program does not exist in an end, or no benchmark has the name that is given.
    ConditionFailed
        The benchmarks of the tool failed when they were run to see what they report.
    """
    limits, tool, sides = request.limits, request.tool, _sides(request, builds)
    timeout_s = TIMEOUT_S if limits.timeout is None else limits.timeout
    ends = (sides[0], sides[-1])
    given, unlisted = benchmarks_in_both(request.benchmarks, tool, ends, timeout_s)
    if tool is not None and tool.listing is not None:
        chosen = _chosen(tool, request.metrics, [one.name for one in given])
        given = tuple(one for one in given if one.name in chosen)
    conditions = _conditions(request, given, sides)
    metrics, unreported = _metrics(request, ends, conditions, scratch, timeout_s)
    count = len(request.commits)
    plan = Plan(
        study=BISECT_STUDY,
        conditions=conditions,
        measure=Measure(
            working_folder=ends[1].folder,
            timeout_s=timeout_s,
            warmup=1 if limits.warmup is None else limits.warmup,
            counters=counters_among(metrics),
        ),
        stopping=limits.stopping(Stopping(min_seconds=0.0, budget_s=BUDGET_S)),
        judgement=limits.judgement(metrics, Judgement()),
        seed=fresh_seed() if limits.seed is None else limits.seed,
        chosen_contrasts=tuple(
            Contrast(
                place * count,
                place * count + count - 1,
                REVISION,
                {BENCHMARK: benchmark.name} if len(given) > 1 else {},
            )
            for place, benchmark in enumerate(given)
        ),
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
            benchmarks=_searched(given, metrics),
        ),
    )
    return plan, (*unlisted, *unreported)


def _searched(given: Sequence[Benchmark], metrics: Sequence[str]) -> tuple[CommitBenchmark, ...]:
    """Return the benchmarks if there are several: of a process each, or metrics of one process."""
    if len(given) > 1:
        return tuple(
            CommitBenchmark(one.name, metrics[0], place) for place, one in enumerate(given)
        )
    if len(metrics) > 1:
        return tuple(CommitBenchmark(one.removesuffix(BENCHMARK_SUFFIX), one) for one in metrics)
    return ()


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
    builds = CommitBuilds(cache, terms.commits)
    # Commands share the builds.
    conditions = plan.conditions[: len(terms.commits)]
    for commit, condition, tree in zip(terms.commits, conditions, builds.trees, strict=True):
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


def _sides(request: BisectRequest, builds: CommitBuilds) -> tuple[CheckedOut, ...]:
    """Return where each commit is, or will be, checked out and built."""
    repository, last = request.repository, len(request.commits) - 1
    ends = {0: ("good revision", request.good), last: ("bad revision", request.bad)}
    sides: list[CheckedOut] = []
    for index, (commit, tree) in enumerate(zip(request.commits, builds.trees, strict=True)):
        role, revision = ends.get(index, ("commit", _revision_of(commit)))
        sides.append(
            CheckedOut(
                role=role,
                revision=revision,
                tree=str(tree),
                folder=str(_folder(tree, repository.inside)),
                instead_of=str(repository.top),
            )
        )
    return tuple(sides)


def _conditions(
    request: BisectRequest, benchmarks: Sequence[Benchmark], sides: Sequence[CheckedOut]
) -> tuple[Condition, ...]:
    """Return one condition for each benchmark and commit; the ends have to have the programs."""
    tool = request.tool
    names = [commit.short for commit in request.commits]
    if len(set(names)) < len(names):
        names = [commit.hash + ("+" if commit.uncommitted else "") for commit in request.commits]
    environment = own_environment()
    conditions: list[Condition] = []
    for benchmark in benchmarks:
        stratum = {BENCHMARK: benchmark.name} if len(benchmarks) > 1 else {}
        for name, side in zip(names, sides, strict=True):
            program = program_in(
                side,
                benchmark.command[0],
                native_programs(),
                environment,
                built=side in (sides[0], sides[-1]),
            )
            command = (program, *benchmark.command[1:])
            conditions.append(
                Condition(
                    name=f"{benchmark.name}: {name}" if stratum else name,
                    command=command if tool is None else tool.reading(command),
                    levels={**stratum, REVISION: name},
                    environment=side.variables(tool),
                    process=Process(working_folder=side.folder),
                )
            )
    return tuple(conditions)


def _metrics(
    request: BisectRequest,
    ends: Pair,
    conditions: Sequence[Condition],
    scratch: Path,
    timeout_s: float,
) -> tuple[tuple[str, ...], tuple[CampaignWarning, ...]]:
    """Return the metric that is named, or the benchmarks of one command that both ends report."""
    tool = request.tool
    if tool is None:
        return (request.metrics or PRIMARY_METRIC,), ()
    if tool.listing is not None:
        return (BENCHMARK_SUFFIX.strip(),), ()
    reported, warnings = metrics_in_both(
        tool, ends, (conditions[0], conditions[-1]), scratch, timeout_s
    )
    names = [one.removesuffix(BENCHMARK_SUFFIX) for one in reported]
    chosen = _chosen(tool, request.metrics, names)
    return tuple(name + BENCHMARK_SUFFIX for name in chosen), warnings


def _chosen(tool: BenchmarkTool, text: str | None, names: Sequence[str]) -> tuple[str, ...]:
    """Return the benchmarks that ``--metrics`` names; all without it.

    A name may have commas in it, so the longest stretch of the text that is a name is one.
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
                f"{tool.name} reports {len(names)} benchmarks in both ends, and none is called "
                f"{','.join(words)}: {', '.join(names[:20])}",
                hint="name those to be searched, with commas between: --metrics NAME,NAME",
            )
        chosen.append(known[",".join(words[:end])])
        words = words[end:]
    return tuple(dict.fromkeys(chosen))
