"""The rank of BLAS libraries and of allocators on each task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from equipoise.model.findings import Findings
from equipoise.model.result import ResultDocument
from equipoise.studies.measured import Measured
from equipoise.studies.ranking import (
    HOW_TO_READ,
    of_each,
    order_answer,
    rank_chart,
    rank_table,
    reversal_paragraph,
)

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure

TIME = "work_s"
TASKS, FACTOR = "task", "exchanged"
LIBRARIES = ("reference", "atlas", "openblas", "blis")


def findings(document: ResultDocument) -> Findings:
    """Ranks, and where they reverse."""
    measured = Measured(document)
    groups = _groups(measured)
    return Findings(
        tuple(
            rank_table(measured, TIME, TASKS, FACTOR, levels, f"Rank of the {what}")
            for what, levels in groups
        ),
        tuple(
            reversal_paragraph(measured, TIME, TASKS, FACTOR, levels, what)
            for what, levels in groups
        ),
        " ".join(
            order_answer(measured, TIME, TASKS, FACTOR, levels, what) for what, levels in groups
        ),
    )


def figures(document: ResultDocument) -> Iterator[Figure]:
    """One chart for the libraries, one for the allocators."""
    from equipoise.figures.gallery import Figure

    measured = Measured(document)
    for what, levels in _groups(measured):
        title = f"{what[:1].upper()}{what[1:]} by task"
        chart = rank_chart(measured, TIME, TASKS, FACTOR, levels, title)
        yield Figure(what.replace(" ", "_"), HOW_TO_READ, chart)


def _groups(measured: Measured) -> list[tuple[str, Sequence[str]]]:
    levels = measured.levels(FACTOR)
    groups = [
        ("BLAS libraries", list(of_each(levels, LIBRARIES))),
        ("allocators", [level for level in levels if level not in LIBRARIES]),
    ]
    return [(what, found) for what, found in groups if len(found) > 1]
