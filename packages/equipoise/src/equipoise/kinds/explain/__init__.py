"""Explain a gap by an experiment: a campaign that tests the causes of the gap by interventions.

A gap is the extra wall time of the slower of two conditions. An intervention changes both
conditions; its sham is the same change doing nothing. An attempt is one intervention of an
experiment, with its blocks. A block runs both conditions, both with an intervention, and both with
its sham if it has one. The coin draws the intervention of each block. See docs/methods/fraction.md.

terms       the gap, its suspected causes and the interventions that test them; the document
plan        from a gap and its causes to the plan of the experiment
reach       whether an intervention changes the calls, faults or functions of its cause
judge       the choice of the next intervention, and the stop
outcome     the fraction of the gap that each intervention closes, and the sentences about it
analysis    the tested causes, hidden values, and the question of the report
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
