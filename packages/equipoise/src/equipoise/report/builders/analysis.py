"""Parts of a page that say what `equipoise_matching` reports: answer, tables, method."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.report.document import Answer, Claim, Column, Part, Table, computation_parts
from equipoise_matching.report import Report, TextTable


def answer_of(report: Report, tone: str) -> Answer:
    """Build the answer; ``tone`` is the verdict whose colour it has."""
    claim = Claim(
        badge=report.badge,
        tone=tone,
        text=report.text,
        estimate=report.estimate,
        interval=report.interval,
        remarks=report.remarks,
    )
    return Answer("", claims=(claim,), warnings=len(report.warnings))


def table_of(table: TextTable) -> Table:
    """Build a table: names in the first column, numbers behind the labels."""
    name, *others = table.headings
    columns = [Column(name, "name")]
    for place, heading in enumerate(others, start=1):
        columns.append(Column(heading, "label" if place < table.labels else "number"))
    return Table(tuple(columns), table.rows, title=table.title, notes=table.notes)


def method_parts(report: Report, command: str) -> Iterator[Part]:
    """Build how the answer was computed, and the command that computes it again."""
    return computation_parts(report.method, command)
