"""CSV: the numbers of documents as one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.report.document import Document
from equipoise.shared.safe_text import csv_text


def to_csv(documents: Sequence[Document]) -> str:
    """Write a header and the numbers of every document: RFC 4180 quoting, empty where unknown."""
    rows = [row for document in documents for row in document.numbers]
    columns = _columns(dict.fromkeys(tuple(row) for row in rows))
    return csv_text([columns, *([row.get(name) for name in columns] for row in rows)])


def _columns(kinds_of_row: Iterable[Sequence[str]]) -> list[str]:
    """Return the names of all kinds of rows, each before the one that follows it in its row."""
    columns: list[str] = []
    for names in kinds_of_row:
        place = len(columns)
        for name in reversed(names):
            if name in columns:
                place = columns.index(name)
            else:
                columns.insert(place, name)
    return columns
