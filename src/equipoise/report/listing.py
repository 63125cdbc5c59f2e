"""What has a name, a line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from equipoise.report.safe_text import visible


@dataclass(frozen=True, slots=True)
class Listed:
    """One line."""

    name: str
    summary: str
    here: str | None = None
    """Whether it can be used on this host, where that is asked."""


def print_listing(headings: Sequence[str], lines: Sequence[Listed], *, color: bool) -> None:
    """Print a table to stdout."""
    console = Console(no_color=not color, highlight=False, markup=False, emoji=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading)
    for line in lines:
        cells = (line.name, line.summary, *(() if line.here is None else (line.here,)))
        table.add_row(*(Text(visible(cell)) for cell in cells))
    console.print(table)
