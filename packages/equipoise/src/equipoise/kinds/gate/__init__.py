"""The gate: compare two revisions of a repository, and fail if the later one is slower.

terms           what a gate adds to a plan and to a result document
schedule        forecasts of what each benchmark needs, and the benchmarks of the next block
verdict         the decision, during the campaign and at its end, and a forecast of its blocks
counts          the words for counts in place of times
earlier         the noise of benchmarks in earlier gates of the ledger
functions       the functions of a library of both revisions: their names, and trial runs
function_processes  the processes that time a function of both revisions
touched         the benchmarks that run no file of the diff, which are measured last
analysis        the result, computed from the recorded blocks
slices          the gate of one of several runners, as a file
joined_verdict  the decision over several runners
joined          the result of a join
join            ``equipoise gate --join``
report          the question that a report answers, the answer, and the summary for a pull request
command         ``equipoise gate``, and the plan that compares two revisions
comment         ``equipoise comment``: the summary of a gate on the pull request
annotations     the lines of slower benchmarks, for a check and a Code Quality report
forges          the comments of GitHub and GitLab, and the checks of GitHub
"""

from __future__ import annotations

from equipoise.model.kinds import Command, Kind

KIND = Kind(
    "gate",
    terms="equipoise.kinds.gate.terms:GatePlan",
    document="equipoise.kinds.gate.terms:GateDocument",
    campaign="equipoise.kinds.gate.verdict:GateCampaign",
    analysis="equipoise.kinds.gate.joined:GateOrJoinAnalysis",
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
