"""The rank of the packages on each task."""

from __future__ import annotations

from equipoise.model.result import Findings, ResultDocument
from equipoise.studies.ranking import Ranking, ranking_findings
from equipoise.studies.study_data import StudyData


def findings(document: ResultDocument) -> Findings:
    """Return the ranks, and where they reverse."""
    return ranking_findings([ranking(document)])


def ranking(document: ResultDocument) -> Ranking:
    """Return the packages as they are ranked."""
    measured = StudyData(document)
    return Ranking(measured, "work_s", "task", "package", measured.levels("package"), "packages")
