"""The rank of the packages on each task."""

from __future__ import annotations

from equipoise.model.findings import Findings
from equipoise.model.result import ResultDocument
from equipoise.studies.ranking import (
    order_answer,
    rank_table,
    reversal_paragraph,
)
from equipoise.studies.study_data import StudyData

TIME = "work_s"
TASKS, FACTOR = "task", "package"


def findings(document: ResultDocument) -> Findings:
    """Ranks, and where they reverse."""
    measured = StudyData(document)
    levels = measured.levels(FACTOR)
    table = rank_table(measured, TIME, TASKS, FACTOR, levels, "Rank of the packages")
    if not table.rows:
        return Findings()
    order = reversal_paragraph(measured, TIME, TASKS, FACTOR, levels, "packages")
    answer = order_answer(measured, TIME, TASKS, FACTOR, levels, "packages")
    return Findings((table,), (order,), answer)
