"""Balance as a table for the terminal and as a document for other programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from equipoise.model.safe_text import visible

if TYPE_CHECKING:
    from equipoise.matching.balance import Balance, SmallestP


def balance_lines(balance: Balance) -> list[str]:
    """The table, a line for each variable before and one after, and the smallest p-values."""
    from equipoise.matching.balance_table import HEADINGS, cells, smallest_words

    rows = [HEADINGS, *(tuple(map(visible, row)) for row in cells(balance))]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADINGS))]
    lines = [
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return [*lines, "", *map(visible, smallest_words(balance))]


def balance_document(balance: Balance) -> dict[str, Any]:
    """The same as JSON has it: what is unknown or infinite is null."""
    rows = [{name: _json(value) for name, value in row.items()} for row in balance.rows()]
    return {
        "balance": rows,
        "smallest_p_before": _smallest(balance.smallest_before),
        "smallest_p_after": (
            None if balance.smallest_after is None else _smallest(balance.smallest_after)
        ),
    }


def _json(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _smallest(smallest: SmallestP) -> dict[str, Any]:
    return {
        "value": _json(smallest.value),
        "where": [{"variable": name, "test": test} for name, test in smallest.where],
    }
