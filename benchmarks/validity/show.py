"""Tables on a screen and in a document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

from benchmarks.validity.tables import TextTable

BEGIN = "<!-- validity: begin (python -m benchmarks.validity writes this) -->"
END = "<!-- validity: end -->"
FINDINGS_BEGIN = "<!-- findings: begin (python -m benchmarks.validity writes this) -->"
FINDINGS_END = "<!-- findings: end -->"

MIN_WIDTH = 180


class NoMarkers(Exception):
    """The document has no place for the tables."""


def on_screen(tables: Sequence[TextTable]) -> None:
    """Print them, however narrow the terminal is said to be."""
    console = Console()
    console = Console(width=max(console.width, MIN_WIDTH))
    for text in tables:
        table = Table(title=text.title, caption=text.reading, title_justify="left")
        for index, name in enumerate(text.header):
            justify: Literal["left", "right"] = "right" if text.holds_numbers(index) else "left"
            table.add_column(name, justify=justify, no_wrap=index == 0)
        for row in text.rows:
            table.add_row(*row)
        console.print(table)


def into_document(path: Path, tables: Sequence[TextTable], heading: str) -> None:
    """Replace the tables between their two markers of a Markdown document.

    Raise `NoMarkers` if the document does not hold both, in their order.
    """
    _replace(path, BEGIN, END, "\n\n".join([heading, *(as_markdown(table) for table in tables)]))


def findings_into_document(path: Path, findings: str) -> None:
    """Replace the findings between their two markers; errors as for ``into_document``."""
    _replace(path, FINDINGS_BEGIN, FINDINGS_END, findings)


def _replace(path: Path, begin: str, end: str, body: str) -> None:
    before, found_begin, rest = path.read_text(encoding="utf-8").partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise NoMarkers(f"{path} has no lines {begin} and {end}")
    path.write_text(f"{before}{begin}\n{body}\n{end}{after}", encoding="utf-8")


def as_markdown(text: TextTable) -> str:
    """A heading, how to read it, and a table."""
    lines = [
        f"## {text.title}",
        "",
        text.reading,
        "",
        _row(text.header),
        _row(["--:" if text.holds_numbers(i) else ":--" for i in range(len(text.header))]),
        *(_row(row) for row in text.rows),
    ]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
