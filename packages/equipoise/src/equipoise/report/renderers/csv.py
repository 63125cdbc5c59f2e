"""Renderer that writes the CSV rows of documents as one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.report.document import Document
from equipoise.shared.safe_text import csv_text


def to_csv(documents: Sequence[Document]) -> str:
    """Return the rows of all documents as RFC 4180; the cell of an unknown value is empty."""
    rows = [row for document in documents for row in document.csv_rows]
    columns = _merged_columns(dict.fromkeys(tuple(row) for row in rows))
    return csv_text([columns, *([row.get(name) for name in columns] for row in rows)])


def _merged_columns(column_lists: Iterable[Sequence[str]]) -> list[str]:
    """Return each column once, in the order of the lists."""
    columns: list[str] = []
    for column_list in column_lists:
        index = len(columns)
        for name in reversed(column_list):
            if name in columns:
                index = columns.index(name)
            else:
                columns.insert(index, name)
    return columns
