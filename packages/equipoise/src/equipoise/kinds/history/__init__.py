"""The history: revisions side by side, and the commits that changed a metric.

terms       the commits of one campaign and its series; the curve and the changes in a document
statistics  the curve and the changes, from the blocks of all campaigns of a series
course      the choice of the commits of the next block
judge       the judge of one campaign
analysis    from recorded blocks to the result; suspicions in series of other tools
report      the changes, the curve and its campaigns; series of other tools
figures     the curve over the commits
command     ``equipoise history``, and the plan of it
"""

from __future__ import annotations

from equipoise.model.kinds import Command, Kind

KIND = Kind(
    "history",
    terms="equipoise.kinds.history.terms:HistoryPlan",
    document="equipoise.kinds.history.terms:HistoryDocument",
    analysis="equipoise.kinds.history.analysis:HistoryAnalysis",
    report="equipoise.kinds.history.report:HistoryReport",
    figures="equipoise.kinds.history.figures:HistoryFigures",
    resume="equipoise.kinds.history.command:resume",
    commands={
        "history": Command(
            "equipoise.kinds.history.command",
            "Measure revisions side by side, and name the commits that changed it.",
            group="Measure",
            after="bisect",
        )
    },
)
