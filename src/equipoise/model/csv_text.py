"""Rows as CSV, as RFC 4180 quotes them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return a line for each row; ``None`` is an empty cell.

    A cell that has the end of a line in it, of any system, stands in quotes. Python's writer leaves
    a lone carriage return bare where lines end in a line feed, and a reader ends the row there.
    """
    text = io.StringIO()
    plain = csv.writer(text, lineterminator="\n")
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    for row in rows:
        returns = any(isinstance(cell, str) and "\r" in cell for cell in row)
        (quoting if returns else plain).writerow(row)
    return text.getvalue()
