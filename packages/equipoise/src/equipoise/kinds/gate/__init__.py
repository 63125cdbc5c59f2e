"""The gate: a revision of a repository passes unless it is slower than another one.

terms      what its plan has beyond others
plan       two revisions as conditions, and the plan that compares them
verdict    its decision, and how many more blocks would decide what it left open
judge      the interim analysis of a gate
result     its result, and the document that holds it
analysis   its blocks as a result
report     the answer, the summary for a pull request, and the question
command    ``equipoise gate``
"""

from __future__ import annotations

from equipoise.model.kinds import Command, Kind

KIND = Kind(
    "gate",
    terms="equipoise.kinds.gate.terms:GatePlan",
    document="equipoise.kinds.gate.result:GateDocument",
    campaign="equipoise.kinds.gate.judge:GateCampaign",
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
