"""Commits that are the conditions of a campaign: their request, their builds, their conditions."""

from __future__ import annotations

import os
import statistics
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from msgspec import Struct

from equipoise.design.command_line import command_of_plan
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.revisions import Commit, Revision
from equipoise.revisions.benchmarks import TOOLS, BenchmarkTool
from equipoise.revisions.build_cache import Build, BuildCache, NoFolder, source_of
from equipoise.revisions.commits import trees_of
from equipoise.revisions.git import CheckoutFailed, Repository
from equipoise.revisions.terms import CommitsPlan, commits_of
from equipoise.shared.spelling import option

_POLL_S = 0.05
_FEWEST_AT_ONCE = 2
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
        most = max(_FEWEST_AT_ONCE, os.cpu_count() or 1)
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
                hint=f"{terms.anew}: {command_of_plan(plan)}",
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
