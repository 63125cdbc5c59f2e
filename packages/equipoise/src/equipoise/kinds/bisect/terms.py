"""The terms of a bisection: the commits among which it looks for those that made a difference."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from equipoise.model.kinds import TAG
from equipoise.model.plan import Contrast, Plan
from equipoise.model.revisions import Commit, Revision
from equipoise.revisions.commits import MergedBranch
from equipoise.revisions.terms import CommitsPlan

STUDY = "bisect"
"""The study of every plan of a bisection."""


class LayoutSpread(Struct, frozen=True):
    """How far memory layouts alone move the cost of a program."""

    percent: float
    """Standard deviation over layouts."""
    run: str
    """Campaign over layouts that measured it."""


class BisectPlan(CommitsPlan, frozen=True, kw_only=True, tag_field=TAG, tag="bisect"):
    """Terms of a bisection: the commits among which it looks for those that made a difference.

    Its commits begin with the good revision and end with the bad one.
    """

    noun: ClassVar[str] = "bisection"
    not_adjustable_because: ClassVar[str | None] = "a bisection is never adjusted"
    anew: ClassVar[str] = "bisect anew"
    good: Revision
    bad: Revision
    likely: tuple[str, ...] = ()
    """Paths that the user suspects."""
    prior: tuple[float, ...] = ()
    """Weight of each commit after the good one before the first block; empty for equal weights.
    Weights only choose which commits run, and never make a commit a culprit."""
    branch_commits: tuple[Commit, ...] = ()
    """Further commits, those of branches: the conditions after those of ``commits``."""
    branches: tuple[MergedBranch, ...] = ()
    """Branches of the merges among all commits."""
    why: Literal["observe", "test"] | None = None
    """Whether the culprit is explained once it is named: by what is observed, or by interventions
    that test the causes, too."""
    layout_spread: LayoutSpread | None = None
    """How far layouts alone move this project's programs, if an earlier campaign measured it."""
    prose: tuple[int, ...] = ()
    """Places of the commits whose difference from their first parent is only in files of prose."""

    @property
    def last(self) -> int:
        """Condition of the bad revision; the good one has condition 0."""
        return len(self.commits) - 1

    @property
    def indispensable(self) -> tuple[int, ...]:
        """Both ends."""
        return (0, self.last)

    @property
    def every_commit(self) -> tuple[Commit, ...]:
        """The commit of each condition."""
        return (*self.commits, *self.branch_commits)

    def contrasts(self, plan: Plan) -> tuple[Contrast, ...]:
        """Return the bad commit against the good one."""
        return (Contrast(0, self.last),)


def bisection_of(plan: Plan) -> BisectPlan:
    """Return the terms of a bisection."""
    assert isinstance(plan.terms, BisectPlan), "only a bisection has a search and culprits"
    return plan.terms
