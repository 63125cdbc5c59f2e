"""What the user wants to bisect, and the plan of it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec.structs import asdict, replace

from equipoise.campaign.plans import PlanAndWarnings, over_layouts
from equipoise.kinds.bisect.terms import STUDY, BisectPlan, LayoutSpread
from equipoise.model.plan import Contrast
from equipoise.model.revisions import REVISION, Commit, Revision
from equipoise.revisions.commit_builds import CommitBuilds, NeededCommit
from equipoise.revisions.commit_plans import CommitsRequest, plan_of_commits
from equipoise.revisions.commits import MergedCommits


class BisectRequest(CommitsRequest, frozen=True, kw_only=True):
    """What the user wants to bisect, and how."""

    good: Revision
    bad: Revision
    likely: tuple[str, ...] = ()
    prior: tuple[float, ...] = ()
    prose: tuple[int, ...] = ()
    """Places of the commits that change only files of prose."""
    merged: MergedCommits = MergedCommits()
    why: Literal["observe", "test"] | None = None
    layouts: int | None = None
    """Memory layouts, one of which is drawn for each block."""

    @property
    def every_commit(self) -> tuple[Commit, ...]:
        """The commit of each condition."""
        return (*self.commits, *self.merged.commits)

    @property
    def needed(self) -> tuple[NeededCommit, ...]:
        """The good and the bad commit."""
        return ends_of(self.good, self.bad, len(self.commits))


def ends_of(good: Revision, bad: Revision, count: int) -> tuple[NeededCommit, NeededCommit]:
    """Return what a bisection of so many commits needs."""
    return (
        NeededCommit(0, "good revision", good, "--good"),
        NeededCommit(count - 1, "bad revision", bad, "--bad"),
    )


def needed_of(terms: BisectPlan) -> tuple[NeededCommit, ...]:
    """Return what a recorded bisection needs."""
    return ends_of(terms.good, terms.bad, len(terms.commits))


def bisect_plan(
    request: BisectRequest,
    builds: CommitBuilds,
    scratch: Path,
    layout_spread: LayoutSpread | None = None,
) -> PlanAndWarnings:
    """Return the plan of a bisection whose two ends are built, and what limits it on this host.

    Raise `UnusableInput` if the program does not exist in an end, or no benchmark has a name that
    is given. Raise `ConditionFailed` if the benchmarks of the tool failed when they were run to see
    what they report.
    """
    plan, shared, warnings = plan_of_commits(STUDY, request, builds, scratch)
    terms = BisectPlan(
        **asdict(shared),
        good=request.good,
        bad=request.bad,
        likely=request.likely,
        prior=request.prior,
        prose=request.prose,
        branch_commits=request.merged.commits,
        branches=request.merged.branches,
        why=request.why,
        layout_spread=layout_spread,
    )
    gaps: list[Contrast] = []
    for first in range(0, len(plan.conditions), len(request.every_commit)):
        levels = plan.conditions[first].levels
        stratum = {factor: level for factor, level in levels.items() if factor != REVISION}
        gaps.append(Contrast(first, first + terms.last, REVISION, stratum))
    over, limits = over_layouts(plan, request.layouts, None)
    # A search ends when it knows the commit, after however few blocks of a layout.
    stopping = plan.stopping
    over = replace(over, stopping=stopping, chosen_contrasts=tuple(gaps), terms=terms)
    return over, (*limits, *warnings)
