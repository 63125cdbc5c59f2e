"""The terms of campaigns whose conditions are commits, each built before its first block.

Searches and curves over commits also share pairs of commits, and what a build costs.
"""

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
CHEAP_BUILD = 2.0
"""Trials; a build that costs less hardly counts when a pair is chosen."""
NARROW = 0.5
"""Half-width of the interval of a named step, in steps, that is narrow enough."""


class CommitBenchmark(Struct, frozen=True):
    """One of the benchmarks that run in each commit."""

    name: str
    """Empty if it is the only one."""
    metric: str
    process: int = 0
    """Number of the command that measures it, from 0; one command may measure several."""


class CommitsPlan(Struct, Terms, frozen=True, kw_only=True):
    """A stretch of commits, and how each is built: what searches and curves over commits share."""

    noun: ClassVar[str] = "campaign"
    ranks: ClassVar[bool] = False
    describes_one: ClassVar[bool] = False
    runs_whole_blocks: ClassVar[bool] = False
    shows_every_condition: ClassVar[bool] = False
    restart_advice: ClassVar[str] = "measure again"
    """What a hint advises where the campaign cannot go on."""
    commits: tuple[Commit, ...]
    """Along first parents, the earliest first. Each command of a plan has one condition for each
    commit, in this order and followed by those of branches; the commands follow each other."""
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
        """Return the conditions of each command side by side."""
        return adjacent(order, self.process_of)

    def with_initial_conditions(self, plan: Plan) -> Plan:
        """Return the plan with the commits that are there before the first block.

        Each other commit is built before its own first block.
        """
        built = self.indispensable
        there = [place for place in range(len(plan.conditions)) if self.commit_of(place) in built]
        contrasts = tuple(
            Contrast(at, at + 1) for at in range(0, len(there), len(built)) if len(built) > 1
        )
        conditions = tuple(plan.conditions[place] for place in there)
        return replace(plan, conditions=conditions, chosen_contrasts=contrasts)


def commits_of(plan: Plan) -> CommitsPlan:
    """Return the commits that are the conditions of a plan."""
    assert isinstance(plan.terms, CommitsPlan), "its conditions are no commits"
    return plan.terms


def benchmarks_of(plan: Plan) -> tuple[CommitBenchmark, ...]:
    """Return the benchmarks that run in each commit: several, or one without a name."""
    terms = commits_of(plan)
    return terms.benchmarks or (CommitBenchmark("", plan.judgement.primary_metric),)


def adjacent(order: Sequence[int], group_of: Callable[[int], int]) -> list[int]:
    """Move the members of each group to the place of its first one.

    Which members are first says nothing of their order: two of a group that trade places leave the
    places of all groups as they are. So the order within each group stays a coin of its own.
    """
    groups: dict[int, list[int]] = {}
    for member in order:
        groups.setdefault(group_of(member), []).append(member)
    return [member for group in groups.values() for member in group]
