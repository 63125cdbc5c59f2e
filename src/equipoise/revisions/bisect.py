"""A bisection of a repository: its request and its plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from equipoise.model.plan import BISECT_STUDY, REVISION, BisectPlan, Contrast, Plan, Revision
from equipoise.model.record import CampaignWarning
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


def bisect_plan(
    request: BisectRequest, builds: CommitBuilds, scratch: Path
) -> tuple[Plan, tuple[CampaignWarning, ...]]:
    """Return the plan of a bisection whose two ends are built, and warnings of its benchmarks.

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
        **{**terms_of(request), "benchmarks": benchmarks},
        good=request.good,
        bad=request.bad,
        likely=request.likely,
        prior=request.prior,
    )
    last = len(request.commits) - 1
    gaps = [
        Contrast(place, place + last, REVISION, _stratum(plan.conditions[place].levels))
        for place in range(0, len(plan.conditions), last + 1)
    ]
    return replace(plan, chosen_contrasts=tuple(gaps), bisected=terms), warnings


def _stratum(levels: Mapping[str, str]) -> dict[str, str]:
    return {factor: level for factor, level in levels.items() if factor != REVISION}
