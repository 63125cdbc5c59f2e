"""Rank BLAS libraries and allocators on each task.

Each condition exchanges either the library or the allocator of one program. A reversal is a pair
of levels whose order differs between two tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from equipoise.model.result import Findings
from equipoise_studies.ranking import Ranking, ranking_figures, ranking_findings
from equipoise_studies.study_data import StudyData

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure

EXCHANGED = "exchanged"
"""Factor whose levels are the exchanged libraries and allocators."""
LIBRARIES = ("reference", "atlas", "openblas", "blis")
"""Levels that are BLAS libraries; all other levels are allocators."""


def findings(data: StudyData) -> Findings:
    """Return the ranks and their reversals."""
    return ranking_findings(_rankings(data))


def figures(data: StudyData) -> Iterator[Figure]:
    """Return a chart of the libraries, and a chart of the allocators."""
    return ranking_figures(_rankings(data))


def _rankings(data: StudyData) -> list[Ranking]:
    """Return a ranking of the libraries and a ranking of the allocators, each if two levels ran."""
    levels = data.levels(EXCHANGED)
    groups = {
        "BLAS libraries": [level for level in levels if level in LIBRARIES],
        "allocators": [level for level in levels if level not in LIBRARIES],
    }
    return [
        Ranking(data, "work_s", "task", factor=EXCHANGED, levels=group, noun=noun)
        for noun, group in groups.items()
        if len(group) > 1
    ]
