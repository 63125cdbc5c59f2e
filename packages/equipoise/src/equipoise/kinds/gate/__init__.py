"""The gate: compare two revisions of a repository, and fail if the later one is slower.

terms      what a gate adds to a plan and to a result document
schedule   forecasts of what each benchmark needs, and which benchmarks the next block runs
verdict    the decision, during the campaign and at its end, and a forecast of the needed blocks
earlier    the noise of benchmarks in earlier gates of the ledger
analysis   the result, computed from the recorded blocks
report     the question that a report answers, the answer, and the summary for a pull request
command    ``equipoise gate``, and the plan that compares two revisions
comment    ``equipoise comment``: the summary of a gate as a comment on the pull request
forges     the comments of GitHub and GitLab
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
        ),
        "comment": Command(
            "equipoise.kinds.gate.comment",
            "Write the summary of a gate as a comment on the pull request.",
            group="Team",
        ),
    },
)
