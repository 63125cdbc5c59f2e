"""The rank of the packages on each task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from equipoise.model.findings import Findings
from equipoise.model.result import ResultDocument
from equipoise.studies.measured import Measured
from equipoise.studies.ranking import (
    HOW_TO_READ,
    order_answer,
    rank_chart,
    rank_table,
    reversal_paragraph,
)

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure

TIME = "work_s"
TASKS, FACTOR = "task", "package"


def findings(document: ResultDocument) -> Findings:
    """Ranks, and where they reverse."""
    measured = Measured(document)
    levels = measured.levels(FACTOR)
    table = rank_table(measured, TIME, TASKS, FACTOR, levels, "Rank of the packages")
    if not table.rows:
        return Findings()
    order = reversal_paragraph(measured, TIME, TASKS, FACTOR, levels, "packages")
    answer = order_answer(measured, TIME, TASKS, FACTOR, levels, "packages")
    return Findings((table,), (order,), answer)


def figures(document: ResultDocument) -> Iterator[Figure]:
    """The ratio to the best package on each task."""
    from equipoise.figures.gallery import Figure

    measured = Measured(document)
    levels = measured.levels(FACTOR)
    if levels:
        chart = rank_chart(measured, TIME, TASKS, FACTOR, levels, "Packages by task")
        yield Figure("packages", HOW_TO_READ, chart)
