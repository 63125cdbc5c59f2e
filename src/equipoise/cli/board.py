"""The live table of a study: where each comparison stands, the open ones first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from equipoise.campaign.progress import ComparisonStatus
from equipoise.model.safe_text import visible
from equipoise.report.renderers.terminal import STYLES
from equipoise.report.units import interval_text, percent_change

OPEN = ("undecided", "open")
STYLE: dict[str, str] = {
    **STYLES,
    "confirmed": "bold",
    "refuted": "",
    "open": "dim",
}
"""Of the verdict on a pair, or the outcome of an intervention."""


def board(statuses: Sequence[ComparisonStatus], rows: int) -> Table:
    """At most so many rows; what does not fit is counted in the last one."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("candidate", no_wrap=True, overflow="ellipsis", max_width=48)
    for heading in ("blocks", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("interval", "so far"):
        table.add_column(heading, no_wrap=True)
    # Stable: within each kind they stand in the order of the plan.
    ordered = sorted(statuses, key=lambda one: one.verdict not in OPEN)
    shown = ordered if len(ordered) <= rows else ordered[: max(rows - 1, 0)]
    for one in shown:
        table.add_row(
            Text(visible(one.candidate)),
            Text(str(one.blocks)),
            Text("" if one.ratio is None else percent_change(one.ratio)),
            Text(_interval(one)),
            Text(one.verdict, style=STYLE[one.verdict]),
        )
    hidden = ordered[len(shown) :]
    if hidden:
        still_open = sum(one.verdict in OPEN for one in hidden)
        table.add_row(Text(f"and {len(hidden)} more, {still_open} of them open", style="dim"))
    return table


def _interval(one: ComparisonStatus) -> str:
    if one.closes:
        return f"closes {one.closes}"
    return "open" if one.ratio_ci == (None, None) else interval_text(*one.ratio_ci)
