"""A bisection of a repository: its request and its plan."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from equipoise.model.plan import BISECT_STUDY, REVISION, BisectPlan, Contrast, Plan, Revision
from equipoise.revisions.commit_builds import (
    CommitBuilds,
    CommitsRequest,
    NeededCommit,
    ends_of,
    plan_of_commits,
    terms_of,
)


class BisectRequest(CommitsRequest, frozen=True, kw_only=True):
    """What the user wants to bisect, and how."""

    good: Revision
    bad: Revision
    likely: tuple[str, ...] = ()
    prior: tuple[float, ...] = ()

    @property
    def ends(self) -> tuple[NeededCommit, NeededCommit]:
        """The good and the bad commit."""
        return ends_of(self.good, self.bad, len(self.commits))


def bisect_plan(request: BisectRequest, builds: CommitBuilds, scratch: Path) -> Plan:
    """Return the plan of a bisection whose two ends are built.

    Raises
    ------
    UnusableInput
        The program does not exist in an end, or it is not known which benchmark is meant.
    ConditionFailed
        The benchmarks of the tool failed when they were run to see what they report.
    """
    terms = BisectPlan(
        **terms_of(request),
        good=request.good,
        bad=request.bad,
        likely=request.likely,
        prior=request.prior,
    )
    plan = plan_of_commits(BISECT_STUDY, request, builds, request.ends, scratch)
    gap = Contrast(0, len(plan.conditions) - 1, REVISION)
    return replace(plan, chosen_contrasts=(gap,), bisected=terms)
