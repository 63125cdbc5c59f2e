"""Rank the packages (R, Octave, NumPy, Equipoise's workloads) on each task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from equipoise.model.result import Findings
from equipoise_studies.ranking import Ranking, ranking_figures, ranking_findings
from equipoise_studies.study_data import StudyData

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure


def findings(data: StudyData) -> Findings:
    """Return the ranks and their reversals."""
    return ranking_findings([_ranking(data)])


def figures(data: StudyData) -> Iterator[Figure]:
    """Return the ratio to the best package on each task."""
    return ranking_figures([_ranking(data)])


def _ranking(data: StudyData) -> Ranking:
    levels = data.levels("package")
    return Ranking(data, "work_s", "task", factor="package", levels=levels, noun="packages")
