"""The charts of the study."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.figures.gallery import Figure
from equipoise.model.result import ResultDocument
from equipoise.studies.builtin.packages.analysis import ranking
from equipoise.studies.ranking import ranking_figures


def figures(document: ResultDocument) -> Iterator[Figure]:
    """Return the ratio to the best package on each task."""
    return ranking_figures([ranking(document)])
