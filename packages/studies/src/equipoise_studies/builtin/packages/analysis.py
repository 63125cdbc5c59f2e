"""The rank of the packages on each task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from equipoise.model.result import Findings
from equipoise_studies.ranking import Ranking, ranking_figures, ranking_findings
from equipoise_studies.study_data import StudyData

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure


def findings(measured: StudyData) -> Findings:
    """Return the ranks, and where they reverse."""
    return ranking_findings([_ranking(measured)])


def figures(measured: StudyData) -> Iterator[Figure]:
    """Return the ratio to the best package on each task."""
    return ranking_figures([_ranking(measured)])


def _ranking(measured: StudyData) -> Ranking:
    return Ranking(measured, "work_s", "task", "package", measured.levels("package"), "packages")
