"""The interim analysis of a gate: several metrics, and the decision in place of a verdict."""

from __future__ import annotations

from equipoise.campaign.interim import Interim, InterimAnalysis
from equipoise.campaign.kind import CampaignKind
from equipoise.kinds.gate.terms import GatePlan
from equipoise.kinds.gate.verdict import judge_gate
from equipoise.model.plan import Plan, Stopping
from equipoise.stats.verdict import ComparisonVerdict


class GateCampaign(CampaignKind):
    """How a gate is judged while it runs."""

    def interim(self, plan: Plan, stopping: Stopping) -> InterimAnalysis:
        """Return the analysis of its comparisons, which is its judge, too."""
        return GateJudge(plan, stopping)


class GateJudge(InterimAnalysis):
    """The judge of a gate: the same decision as in its result afterwards."""

    def compared_metrics(self, plan: Plan) -> tuple[str, ...]:
        """Return the metrics of which each counts."""
        assert isinstance(plan.terms, GatePlan)
        return plan.terms.metrics

    def judged(self) -> tuple[Interim, ...]:
        """Return the decision on each comparison."""
        judgement = self.plan.judgement
        decisions = judge_gate(self.pairs, min_effect=judgement.min_effect, alpha=judgement.alpha)
        return tuple(Interim(one.judged, one.outcome != "undecided") for one in decisions)

    def blocks_to_verdict(self) -> tuple[int, ...]:
        """Return no forecast: a gate is not patient."""
        return ()

    def measures_size(self, judged: ComparisonVerdict) -> bool:
        """Return that a gate ends at its decision, whatever the size of the effect."""
        return False
