"""The charts of the study."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.figures.gallery import Figure
from equipoise.model.result import ResultDocument
from equipoise.studies.builtin.tasks.analysis import rankings
from equipoise.studies.ranking import ranking_figures


def figures(document: ResultDocument) -> Iterator[Figure]:
    """Return a chart of the libraries, and a chart of the allocators."""
    return ranking_figures(rankings(document))
