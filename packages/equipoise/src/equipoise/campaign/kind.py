"""How a campaign of each kind is judged while it runs: what a kind may do instead of the usual."""

from __future__ import annotations

from equipoise.campaign.interim import DescribingAnalysis, InterimAnalysis
from equipoise.campaign.segment import Judge
from equipoise.model.plan import Plan, Stopping


class CampaignKind:
    """How an ordinary comparison is conducted; a kind overrides what it does instead."""

    def judge(self, plan: Plan, stopping: Stopping) -> Judge:
        """Return the judge of a plan under its own or later limits."""
        if plan.describes_one:
            return DescribingAnalysis(plan, stopping)
        return self.interim(plan, stopping)

    def interim(self, plan: Plan, stopping: Stopping) -> InterimAnalysis:
        """Return the analysis of the comparisons of a plan, after as many blocks as are added."""
        return InterimAnalysis(plan, stopping)


def interim_for(plan: Plan, stopping: Stopping) -> InterimAnalysis:
    """Return the analysis of the comparisons of a plan of any kind."""
    return plan.kind.part("campaign", CampaignKind).interim(plan, stopping)


def judge_for(plan: Plan, stopping: Stopping) -> Judge:
    """Return the judge of a plan of any kind under its own or later limits."""
    return plan.kind.part("campaign", CampaignKind).judge(plan, stopping)
