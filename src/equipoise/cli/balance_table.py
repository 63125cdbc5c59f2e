"""Balance as a document for other programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.matching.balance import Balance, SmallestP


def balance_document(balance: Balance) -> dict[str, Any]:
    """Return the balance as JSON has it: what is unknown or infinite is null."""
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
