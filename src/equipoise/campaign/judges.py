"""Which judge a campaign has: what its plan wants to know decides."""

from __future__ import annotations

from equipoise.campaign.interim import Look
from equipoise.campaign.segment import Judge
from equipoise.model.plan import Plan, Stopping
from equipoise.why.experiment.judge import Experiment


def judge_of(plan: Plan, stopping: Stopping) -> Judge:
    """The judge of a plan, before its first block.

    Parameters
    ----------
    stopping
        The plan's, or later limits.
    """
    if plan.explains is None:
        return Look(plan, stopping)
    return Experiment(plan, plan.explains, stopping)
