"""The rank of BLAS libraries and of allocators on each task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from equipoise.model.result import Findings
from equipoise_studies.ranking import Ranking, ranking_figures, ranking_findings
from equipoise_studies.study_data import StudyData

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure

FACTOR = "exchanged"
LIBRARIES = ("reference", "atlas", "openblas", "blis")


def findings(data: StudyData) -> Findings:
    """Return the ranks and their reversals."""
    return ranking_findings(_rankings(data))


def figures(data: StudyData) -> Iterator[Figure]:
    """Return a chart of the libraries, and a chart of the allocators."""
    return ranking_figures(_rankings(data))


def _rankings(data: StudyData) -> list[Ranking]:
    """Return the rankings of the groups with at least two levels."""
    levels = data.levels(FACTOR)
    groups = {
        "BLAS libraries": [level for level in levels if level in LIBRARIES],
        "allocators": [level for level in levels if level not in LIBRARIES],
    }
    return [
        Ranking(data, "work_s", "task", FACTOR, group, group_name)
        for group_name, group in groups.items()
        if len(group) > 1
    ]
