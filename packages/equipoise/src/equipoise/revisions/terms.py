"""The terms of campaigns over commits: the part of a plan that all such campaigns have.

Methods identify conditions, commits and commands by their indices, from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.kinds import Terms
from equipoise.model.plan import Contrast, Plan
from equipoise.model.revisions import Commit

IndexPair = tuple[int, int]
"""Commit pair: the indices of an earlier and of a later commit."""
CHEAP_BUILD_TRIALS = 2.0
"""Time of a cheap build, in trials. The choice of commits hardly depends on cheap builds."""
MAX_STEP_HALF_WIDTH = 0.5
"""Maximum half-width of the interval of a reported step, as a fraction of the step."""


class CommitBenchmark(Struct, frozen=True):
    """A benchmark that runs in each commit."""

    name: str
    """Name; empty for the only benchmark of a campaign."""
    metric: str
    command_index: int = 0
    """Index of the command that measures the benchmark, and maybe other benchmarks."""


class CommitsPlan(Struct, Terms, frozen=True, kw_only=True):
    """Consecutive commits, their build and benchmarks. `Terms` explains the class variables."""

    noun: ClassVar[str] = "campaign"
    can_rank: ClassVar[bool] = False
    describes_single_condition: ClassVar[bool] = False
    runs_whole_blocks: ClassVar[bool] = False
    shows_every_condition: ClassVar[bool] = False
    restart_hint: ClassVar[str] = "measure again"
    commits: tuple[Commit, ...]
    """Commits along first parents, the earliest first. In a plan, each command has a condition for
    each of these commits and then for each commit of a branch."""
    build: str | None = None
    """Shell line that builds a commit."""
    repository: str = ""
    """Root of the user's working tree."""
    folder: str = ""
    """Folder in ``repository`` in which builds and trials run; empty for the root."""
    tool: str | None = None
    """Name of the tool in `TOOLS` that reads the results of the benchmark."""
    benchmarks: tuple[CommitBenchmark, ...] = ()
    """Benchmarks; empty if there is only one benchmark."""
    linker: str | None = None
    """Version of the linker that links the programs again for each block; ``None`` if none does."""

    @property
    def needed_commits(self) -> tuple[int, ...]:
        """Commits that are built before the first block; their failure ends the campaign."""
        return (0,)

    def condition_of(self, command: int, commit: int) -> int:
        """Return the condition that runs a command in a commit."""
        return command * len(self.commits_with_branches) + commit

    def command_of(self, condition: int) -> int:
        """Return the command that a condition runs."""
        return condition // len(self.commits_with_branches)

    def commit_of(self, condition: int) -> int:
        """Return the commit in which a condition runs."""
        return condition % len(self.commits_with_branches)

    @property
    def commits_with_branches(self) -> tuple[Commit, ...]:
        """The commits; in a bisection, followed by the commits of merged branches."""
        return self.commits

    def execution_order(self, order: list[int]) -> list[int]:
        """Return an order in which the conditions of each command are next to each other."""
        return group_adjacent(order, self.command_of)

    def with_initial_conditions(self, plan: Plan) -> Plan:
        """Return the plan with only the commits that are built before the first block."""
        commits = self.needed_commits
        indices = range(len(plan.conditions))
        initial = [index for index in indices if self.commit_of(index) in commits]
        baselines = range(0, len(initial), len(commits)) if len(commits) > 1 else ()
        contrasts = tuple(Contrast(baseline, baseline + 1) for baseline in baselines)
        conditions = tuple(plan.conditions[index] for index in initial)
        return replace(plan, conditions=conditions, chosen_contrasts=contrasts)


def commits_terms(plan: Plan) -> CommitsPlan:
    """Return the terms of the plan of a campaign over commits."""
    assert isinstance(plan.terms, CommitsPlan), "the conditions of the plan are not commits"
    return plan.terms


def benchmarks_of(plan: Plan) -> tuple[CommitBenchmark, ...]:
    """Return the benchmarks of a plan; a single benchmark has no name."""
    terms = commits_terms(plan)
    return terms.benchmarks or (CommitBenchmark("", plan.judgement.primary_metric),)


def group_adjacent(members: Sequence[int], group_of: Callable[[int], int]) -> list[int]:
    """Return the members, each group at the position of its first member.

    The order within each group stays random, because it does not affect the positions of groups.
    """
    groups: dict[int, list[int]] = {}
    for member in members:
        groups.setdefault(group_of(member), []).append(member)
    return [member for group in groups.values() for member in group]
