"""The rank of BLAS libraries and of allocators on each task."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.model.findings import Findings
from equipoise.model.result import ResultDocument
from equipoise.studies.ranking import (
    of_each,
    order_answer,
    rank_table,
    reversal_paragraph,
)
from equipoise.studies.study_data import StudyData

TIME = "work_s"
TASKS, FACTOR = "task", "exchanged"
LIBRARIES = ("reference", "atlas", "openblas", "blis")


def findings(document: ResultDocument) -> Findings:
    """Ranks, and where they reverse."""
    measured = StudyData(document)
    chosen = groups_of(measured)
    return Findings(
        tuple(
            rank_table(measured, TIME, TASKS, FACTOR, levels, f"Rank of the {what}")
            for what, levels in chosen
        ),
        tuple(
            reversal_paragraph(measured, TIME, TASKS, FACTOR, levels, what)
            for what, levels in chosen
        ),
        " ".join(
            order_answer(measured, TIME, TASKS, FACTOR, levels, what) for what, levels in chosen
        ),
    )


def groups_of(measured: StudyData) -> list[tuple[str, Sequence[str]]]:
    """Return the groups of at least two levels that are ranked, each with its name."""
    levels = measured.levels(FACTOR)
    groups = [
        ("BLAS libraries", list(of_each(levels, LIBRARIES))),
        ("allocators", [level for level in levels if level not in LIBRARIES]),
    ]
    return [(what, found) for what, found in groups if len(found) > 1]
