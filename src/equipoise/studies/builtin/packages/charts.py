"""The charts of the study."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.figures.gallery import Figure
from equipoise.model.result import ResultDocument
from equipoise.studies.builtin.packages.analysis import FACTOR, TASKS, TIME
from equipoise.studies.ranking import HOW_TO_READ, rank_chart
from equipoise.studies.study_data import StudyData


def figures(document: ResultDocument) -> Iterator[Figure]:
    """Yield the ratio to the best package on each task."""
    measured = StudyData(document)
    levels = measured.levels(FACTOR)
    if levels:
        chart = rank_chart(measured, TIME, TASKS, FACTOR, levels, "Packages by task")
        yield Figure("packages", HOW_TO_READ, chart)
