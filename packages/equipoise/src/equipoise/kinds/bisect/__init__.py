"""The bisection: find the commit between two revisions that made a difference, the culprit.

terms          additions of a bisection to a plan and to a result document
search         the search on a line of commits, and on the branches of merges
stretch        one stretch of a search: confirm the gap, then look for the culprit
shared_blocks  searches of several benchmarks that share their blocks
layout         the test that memory layouts alone do not explain a step
judge          the interim analysis, which chooses the next pair of commits
analysis       the result, from recorded blocks, and its sentences
explained      the explanation of a culprit: causes, and the diff from the parent
report         the answer, the commits and the cost
figures        the chart of a search
command        ``equipoise bisect``, and its plan
"""

from __future__ import annotations

from equipoise.model.kinds import Command, Kind

KIND = Kind(
    "bisect",
    terms="equipoise.kinds.bisect.terms:BisectPlan",
    document="equipoise.kinds.bisect.terms:BisectDocument",
    analysis="equipoise.kinds.bisect.analysis:BisectAnalysis",
    report="equipoise.kinds.bisect.report:BisectReport",
    figures="equipoise.kinds.bisect.figures:BisectFigures",
    why="equipoise.kinds.bisect.explained:BisectWhy",
    resume="equipoise.kinds.bisect.command:resume",
    build_commits_of_gap="equipoise.kinds.bisect.command:built_culprit",
    commands={
        "bisect": Command(
            "equipoise.kinds.bisect.command",
            "Find the commit between two revisions that made it slower.",
            group="Measure",
            after="gate",
        )
    },
)
