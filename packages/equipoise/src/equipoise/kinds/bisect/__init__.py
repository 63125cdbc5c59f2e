"""The bisection: which of the commits between two revisions made a difference.

terms          the commits and their build; the culprits and the remaining commits in a document
search         the search on one line of commits and on the branches of merges
stretch        one stretch of a search: confirm the gap, then look for the culprit
shared_blocks  the searches of several benchmarks, which share the trials of their blocks
layout         whether memory layouts alone may explain a step
judge          the choice of the next pair, and the search as recorded blocks have it
analysis       from recorded blocks to the result, and its sentences
explained      why a culprit differs from its parent, and the lines of its diff
report         the answer, the commits and the cost
figures        the course of a search
command        ``equipoise bisect``, and the plan of it
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
    build_gap="equipoise.kinds.bisect.command:built_culprit",
    commands={
        "bisect": Command(
            "equipoise.kinds.bisect.command",
            "Find the commit between two revisions that made it slower.",
            group="Measure",
            after="gate",
        )
    },
)
