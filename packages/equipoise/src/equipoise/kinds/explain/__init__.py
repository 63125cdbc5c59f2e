"""The explanation: a campaign that tests the causes of a gap by interventions.

See docs/methods/fraction.md.

A block holds the two conditions of the gap and, for one intervention that the coin draws, the same
two with it; where the intervention has a sham, also with that. `equipoise.why` has the evidence,
the causes and the interventions.

terms       the gap, its suspected causes and the interventions that test them; its document
plan        from a gap and its causes to the plan of the campaign
reach       whether an intervention changes what the evidence of its cause names
judge       what the campaign tries next, and when it stops
outcome     what each intervention closed of the gap, and the sentence that says so
analysis    the causes as the campaign showed them, hidden values, and the question
command     ``equipoise why``
"""

from __future__ import annotations

from equipoise.model.kinds import Command, Kind

KIND = Kind(
    "explain",
    terms="equipoise.kinds.explain.terms:ExperimentPlan",
    document="equipoise.kinds.explain.terms:ExplainDocument",
    campaign="equipoise.kinds.explain.judge:ExplainCampaign",
    analysis="equipoise.kinds.explain.analysis:ExplainAnalysis",
    report="equipoise.kinds.explain.analysis:ExplainReport",
    why="equipoise.kinds.explain.analysis:ExplainWhy",
    explain_gap="equipoise.kinds.explain.command:explain_largest_gap",
    commands={
        "why": Command(
            "equipoise.kinds.explain.command",
            "Where the extra time of the slower condition is, and why.",
            group="Explain",
        )
    },
)
