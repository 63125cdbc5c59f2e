"""The comparisons of an imported run on the screen: intervals, and what they are worth."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from equipoise.model.plan import ImportSource
from equipoise.model.result import ImportedResult, SampleComparison
from equipoise.report.safe_text import visible
from equipoise.report.units import interval_words, percent_change

FEW = 3
SHOWN = 60


def print_imported(console: Console, imported: ImportedResult) -> None:
    """Print each comparison in words, or many in a table, and what they are worth."""
    compared = imported.comparisons
    if not compared:
        console.print("nothing was compared; equipoise import --baseline NAME compares with one")
        return
    if len(compared) <= FEW:
        for one in compared:
            console.print(_in_words(one))
    else:
        console.print(_table(compared))
    console.print(Text(f"  {visible(imported.summary)}", style="dim"))


def imported_words(imported: ImportedResult, run_id: str, ledger: Path) -> str:
    """Where the trials come from."""
    source: ImportSource = imported.source
    tool = "a tool that the file does not name" if source.tool is None else visible(source.tool)
    return (
        f"imported from {visible(', '.join(source.files))}, measured by {tool}; "
        f"order: {source.order}\nrun {run_id}, ledger {visible(str(ledger))}"
    )


def _in_words(one: SampleComparison) -> Text:
    text = Text.assemble(("imported: ", "bold"), visible(one.summary))
    if one.ratio is not None:
        text.append(f"\n  {one.estimand}: {percent_change(one.ratio)}{_interval(one, ', ')}")
    text.append(f"\n  scope: {visible(one.scope)}")
    return text


def _interval(one: SampleComparison, before: str) -> str:
    low, high = one.ratio_ci
    if low is None and high is None:
        return ""
    return (
        f"{before}ordinary {100 * (1 - one.level):g} % interval {interval_words(low, high)} "
        f"({one.method})"
    )


def _table(compared: tuple[SampleComparison, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("imported", "against", "ratio", "interval", "trials"):
        table.add_column(heading, justify="right" if heading == "ratio" else "left")
    for one in compared[:SHOWN]:
        table.add_row(
            Text(visible(one.candidate)),
            Text(visible(one.baseline)),
            Text("–" if one.ratio is None else percent_change(one.ratio)),
            Text(_interval(one, "") or f"none: {visible(one.unknown or '')}"),
            Text(f"{one.baseline_trials} : {one.candidate_trials}"),
        )
    if len(compared) > SHOWN:
        table.add_row(Text(f"and {len(compared) - SHOWN} more; --json has all", style="dim"))
    return table
