"""The charts of the study."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.figures.gallery import Figure
from equipoise.model.result import ResultDocument
from equipoise.studies.builtin.tasks.analysis import FACTOR, TASKS, TIME, groups_of
from equipoise.studies.ranking import HOW_TO_READ, rank_chart
from equipoise.studies.study_data import StudyData


def figures(document: ResultDocument) -> Iterator[Figure]:
    """One chart for the libraries, one for the allocators."""
    measured = StudyData(document)
    for what, levels in groups_of(measured):
        title = f"{what[:1].upper()}{what[1:]} by task"
        chart = rank_chart(measured, TIME, TASKS, FACTOR, levels, title)
        yield Figure(what.replace(" ", "_"), HOW_TO_READ, chart)
