"""What a study says beyond its verdicts, on the screen."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from equipoise.model.findings import Findings, FindingTable
from equipoise.report.safe_text import visible
from equipoise.report.terminal import console_for


def print_findings(findings: Findings, *, color: bool) -> None:
    """Print a study's own tables and paragraphs to stdout."""
    console = console_for(color)
    if findings.answer:
        console.print()
        console.print(Text(visible(findings.answer), style="bold"))
    for table in findings.tables:
        console.print()
        console.print(Text(visible(table.title), style="bold"))
        console.print(_table(table))
        for note in table.notes:
            console.print(Text(visible(note), style="dim"))
    for paragraph in findings.paragraphs:
        console.print()
        console.print(Text(visible(paragraph)))


def print_figure_files(files: list[Path], *, color: bool) -> None:
    """Say where a study's figures are."""
    console = console_for(color)
    console.print()
    for file in files:
        console.print(Text(f"figure: {visible(str(file))}"), soft_wrap=True)


def _table(table: FindingTable) -> Table:
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, heading in enumerate(table.headings):
        numbers = all(row[place][:1].isdigit() or row[place] in ("", "–") for row in table.rows)
        drawn.add_column(visible(heading), justify="right" if numbers else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(visible(cell)) for cell in row))
    return drawn
