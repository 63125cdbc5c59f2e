"""The history: measure revisions side by side, and find the commits that changed a metric.

terms       what a history adds to a plan and to a result document
statistics  the curve over the commits, and the changes, from the blocks of all campaigns
schedule    the choice of the commits that run in the next block
judge       the interim analysis of one campaign
analysis    the result, from recorded blocks; suspicions in series of other tools
report      the changes, the curve, the campaigns, and series of other tools
figures     the chart of the curve
command     ``equipoise history``, and its plan
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
