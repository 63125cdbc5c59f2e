"""The gate: a revision of a repository passes unless it is slower than another one.

terms      the terms of its plan, and its part of a result document
verdict    the decision, during the campaign and at its end, and a forecast of the needed blocks
analysis   from recorded blocks to the result
report     the answer, the summary for a pull request, and the question
command    ``equipoise gate``: two revisions as conditions, and the plan that compares them
"""

from __future__ import annotations

from equipoise.model.kinds import Command, Kind

KIND = Kind(
    "gate",
    terms="equipoise.kinds.gate.terms:GatePlan",
    document="equipoise.kinds.gate.terms:GateDocument",
    campaign="equipoise.kinds.gate.verdict:GateCampaign",
    analysis="equipoise.kinds.gate.analysis:GateAnalysis",
    report="equipoise.kinds.gate.report:GateReport",
    commands={
        "gate": Command(
            "equipoise.kinds.gate.command",
            "Compare two revisions of a repository; exit 1 if the later is slower.",
            group="Measure",
            after="layouts",
        )
    },
)
