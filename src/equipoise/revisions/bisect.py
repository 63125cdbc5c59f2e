"""A bisection of a repository: its request and its plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from equipoise.campaign.plans import PlanAndWarnings, over_layouts
from equipoise.model.plan import (
    BISECT_STUDY,
    REVISION,
    BisectPlan,
    Commit,
    Contrast,
    LayoutSpread,
    Revision,
)
from equipoise.revisions.commit_builds import (
    CommitBuilds,
    CommitsRequest,
    NeededCommit,
    ends_of,
    plan_of_commits,
    terms_of,
)
from equipoise.revisions.commits import MergedCommits


class BisectRequest(CommitsRequest, frozen=True, kw_only=True):
    """What the user wants to bisect, and how."""

    good: Revision
    bad: Revision
    likely: tuple[str, ...] = ()
    prior: tuple[float, ...] = ()
    merged: MergedCommits = MergedCommits()
    why: Literal["observe", "test"] | None = None
    layouts: int | None = None
    """Memory layouts, one of which is drawn for each block."""

    @property
    def every_commit(self) -> tuple[Commit, ...]:
        """The commit of each condition."""
        return (*self.commits, *self.merged.commits)

    @property
    def ends(self) -> tuple[NeededCommit, NeededCommit]:
        """The good and the bad commit."""
        return ends_of(self.good, self.bad, len(self.commits))


def bisect_plan(
    request: BisectRequest,
    builds: CommitBuilds,
    scratch: Path,
    layout_spread: LayoutSpread | None = None,
) -> PlanAndWarnings:
    """Return the plan of a bisection whose two ends are built, and what limits it on this host.

    Raises
    ------
    UnusableInput
        The program does not exist in an end, or no benchmark has a name that is given.
    ConditionFailed
        The benchmarks of the tool failed when they were run to see what they report.
    """
    plan, benchmarks, warnings = plan_of_commits(
        BISECT_STUDY, request, builds, request.ends, scratch
    )
    terms = BisectPlan(
        **terms_of(request),
        benchmarks=benchmarks,
        good=request.good,
        bad=request.bad,
        likely=request.likely,
        prior=request.prior,
        branch_commits=request.merged.commits,
        branches=request.merged.branches,
        why=request.why,
        layout_spread=layout_spread,
    )
    processes = range(len(plan.conditions) // len(request.every_commit))
    firsts = [terms.condition_of(process, 0) for process in processes]
    gaps = [
        Contrast(first, first + terms.last, REVISION, _stratum(plan.conditions[first].levels))
        for first in firsts
    ]
    over, limits = over_layouts(plan, request.layouts, None)
    # A search ends when it knows the commit, after however few blocks of a layout.
    stopping = plan.stopping
    over = replace(over, stopping=stopping, chosen_contrasts=tuple(gaps), bisected=terms)
    return over, (*limits, *warnings)


def _stratum(levels: Mapping[str, str]) -> dict[str, str]:
    return {factor: level for factor, level in levels.items() if factor != REVISION}
