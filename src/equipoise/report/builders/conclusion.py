"""A conclusion of matching as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from equipoise.model.conclusion import Conclusion
from equipoise.report.document import (
    WRITTEN,
    Answer,
    Claim,
    Column,
    Command,
    Document,
    Facts,
    Figures,
    Paragraph,
    Section,
    Table,
    Warnings,
)

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure


def conclusion_document(conclusion: Conclusion, draw: Callable[[], Iterable[Figure]]) -> Document:
    """Build the document of a conclusion, with what draws its figures."""
    estimate, ends = conclusion.estimate or ("", "")
    claim = Claim(
        conclusion.badge,
        conclusion.tone,
        conclusion.words,
        estimate=estimate,
        interval=f"95 % interval {ends}" if ends else "",
        remarks=conclusion.beside,
    )
    tables = tuple(
        Table(
            (Column(one.headings[0], "name"), *(Column(two, "number") for two in one.headings[1:])),
            one.rows,
            one.title,
            notes=one.notes,
        )
        for one in conclusion.tables
    )
    return Document(
        name=conclusion.badge,
        title=conclusion.title,
        parts=(
            Answer("", claims=(claim,), warnings=len(conclusion.warnings)),
            Figures(draw),
            *tables,
            *([Warnings(conclusion.warnings)] if conclusion.warnings else []),
            Section("What it rests on", (Facts(conclusion.facts),), forms=WRITTEN),
            Section(
                "How it was computed",
                tuple(map(Paragraph, conclusion.method)),
                forms=WRITTEN,
            ),
            Section("Do it again", (Command(conclusion.again, "Again:"),), forms=WRITTEN),
        ),
        numbers=conclusion.numbers,
    )
