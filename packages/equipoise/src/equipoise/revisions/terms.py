"""The terms of campaigns whose conditions are commits, each built before its first block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.kinds import Terms
from equipoise.model.plan import Contrast, Plan
from equipoise.model.revisions import Commit

Pair = tuple[int, int]
"""Two commits by index, the earlier one first."""
CHEAP_BUILD_TRIALS = 2.0
"""Cost of a build, in trials, below which it hardly counts in the choice of a pair."""
MAX_STEP_HALF_WIDTH = 0.5
"""Largest half-width of the interval of a reported step, as a fraction of the step."""


class CommitBenchmark(Struct, frozen=True):
    """A benchmark that runs in each commit."""

    name: str
    """Name; empty if there is only one benchmark."""
    metric: str
    process: int = 0
    """Number of the command that measures it, from 0; a command may measure several benchmarks."""


class CommitsPlan(Struct, Terms, frozen=True, kw_only=True):
    """A stretch of commits, and their build: the common terms of searches and curves."""

    noun: ClassVar[str] = "campaign"
    ranks: ClassVar[bool] = False
    describes_one: ClassVar[bool] = False
    runs_whole_blocks: ClassVar[bool] = False
    shows_every_condition: ClassVar[bool] = False
    restart_hint: ClassVar[str] = "measure again"
    """Advice if the campaign cannot go on."""
    commits: tuple[Commit, ...]
    """Commits along first parents, the earliest first. Each command of a plan has one condition for
    each commit, in this order, followed by the commits of branches. The commands follow each
    other."""
    build: str | None = None
    """Line for a shell that builds a commit."""
    repository: str = ""
    """Root of the working tree in which the commits are."""
    folder: str = ""
    """Folder below ``repository`` in which builds and trials run; empty for the root."""
    tool: str | None = None
    """Tool that reads the results of the benchmark, by its name in `equipoise.revisions`."""
    benchmarks: tuple[CommitBenchmark, ...] = ()
    """Benchmarks, if there are several."""

    @property
    def indispensable(self) -> tuple[int, ...]:
        """Commits that are built before the first block, and whose failure ends the campaign."""
        return (0,)

    def condition_of(self, process: int, commit: int) -> int:
        """Return the condition that runs a command in a commit."""
        return process * len(self.every_commit) + commit

    def process_of(self, condition: int) -> int:
        """Return the number of the command that a condition runs, from 0."""
        return condition // len(self.every_commit)

    def commit_of(self, condition: int) -> int:
        """Return the place of the commit in which a condition runs."""
        return condition % len(self.every_commit)

    @property
    def every_commit(self) -> tuple[Commit, ...]:
        """The commit of each condition."""
        return self.commits

    def execution_order(self, order: list[int]) -> list[int]:
        """Return the order with the conditions of each command next to each other."""
        return adjacent(order, self.process_of)

    def with_initial_conditions(self, plan: Plan) -> Plan:
        """Return the plan with the commits that exist before the first block.

        Each other commit is built before its own first block.
        """
        built = self.indispensable
        places = [place for place in range(len(plan.conditions)) if self.commit_of(place) in built]
        firsts = range(0, len(places), len(built)) if len(built) > 1 else ()
        contrasts = tuple(Contrast(first, first + 1) for first in firsts)
        conditions = tuple(plan.conditions[place] for place in places)
        return replace(plan, conditions=conditions, chosen_contrasts=contrasts)


def commits_of(plan: Plan) -> CommitsPlan:
    """Return the commits that are the conditions of a plan."""
    assert isinstance(plan.terms, CommitsPlan), "its conditions are not commits"
    return plan.terms


def benchmarks_of(plan: Plan) -> tuple[CommitBenchmark, ...]:
    """Return the benchmarks that run in each commit; a single benchmark has no name."""
    terms = commits_of(plan)
    return terms.benchmarks or (CommitBenchmark("", plan.judgement.primary_metric),)


def adjacent(order: Sequence[int], group_of: Callable[[int], int]) -> list[int]:
    """Move the members of each group to the place of its first member.

    If two members of a group exchange their places, the places of all groups stay the same. So the
    order within each group remains a separate coin.
    """
    groups: dict[int, list[int]] = {}
    for member in order:
        groups.setdefault(group_of(member), []).append(member)
    return [member for group in groups.values() for member in group]
