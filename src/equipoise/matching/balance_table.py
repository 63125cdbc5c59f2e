"""The columns by which balance is read first, in words, for whoever shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.matching.balance import Balance, SmallestP

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
HEADINGS = ("", "", *(title for title, _ in _COLUMNS))
"""Of the rows of ``cells``: the variable and when, then figures."""


def cells(balance: Balance) -> list[tuple[str, ...]]:
    """A row for each variable before, with its name, and one after, without."""
    rows = []
    for row in balance.rows():
        boot = row["ks_boot_p_value"]
        row["ks_p"] = row["ks_p_value"] if boot is None else boot
        name = str(row["variable"]) if row["when"] == "before" else ""
        rows.append((name, str(row["when"]), *(_shown(row[key]) for _, key in _COLUMNS)))
    return rows


def smallest_words(balance: Balance) -> list[str]:
    """The smallest p-value before and, where something was matched, after, and of what."""
    words = [f"smallest p-value before: {_where(balance.smallest_before)}"]
    if balance.smallest_after is not None:
        words.append(f"smallest p-value after:  {_where(balance.smallest_after)}")
    return words


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def _where(smallest: SmallestP) -> str:
    if not smallest.where:
        return "unknown"
    where = ", ".join(f"{name} ({test})" for name, test in smallest.where)
    return f"{smallest.value:.4g}, of {where}"
