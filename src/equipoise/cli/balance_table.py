"""Balance as a table for the terminal and as a document for other programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from equipoise.report.safe_text import visible

if TYPE_CHECKING:
    from equipoise.matching.balance_result import Balance, SmallestP

_COLUMNS = (
    ("treated", "mean_treated"),
    ("control", "mean_control"),
    ("sdiff %", "sdiff"),
    ("var ratio", "variance_ratio"),
    ("t p", "t_p_value"),
    ("KS p", "ks_p"),
    ("eCDF max", "ecdf_max"),
    ("QQ mean", "qq_mean"),
)


def balance_lines(balance: Balance) -> list[str]:
    """The table, a line for each variable before and one after, and the smallest p-values."""
    header = ["", "", *(title for title, _ in _COLUMNS)]
    cells = [header]
    for row in balance.rows():
        boot = row["ks_boot_p_value"]
        row["ks_p"] = row["ks_p_value"] if boot is None else boot
        name = visible(str(row["variable"])) if row["when"] == "before" else ""
        cells.append([name, str(row["when"]), *(_shown(row[key]) for _, key in _COLUMNS)])
    widths = [max(len(line[place]) for line in cells) for place in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    lines += ["", f"smallest p-value before: {_where(balance.smallest_before)}"]
    if balance.smallest_after is not None:
        lines.append(f"smallest p-value after:  {_where(balance.smallest_after)}")
    return lines


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


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}"


def _where(smallest: SmallestP) -> str:
    if not smallest.where:
        return "unknown"
    where = ", ".join(f"{visible(name)} ({test})" for name, test in smallest.where)
    return f"{smallest.value:.4g}, of {where}"
