"""The sources of chance of one command, on the screen."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from equipoise.model.result import ResultDocument
from equipoise.model.why import Explanation
from equipoise.report.safe_text import visible
from equipoise.stats.spread import KIND, spread_words

_SOURCE = "source"


def print_sources(console: Console, document: ResultDocument) -> None:
    """Print what holding each source takes from the spread; nothing if none was held."""
    found = [one for one in document.why if one.kind == KIND]
    if not found:
        return
    console.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("held", "spread", "variance", "interval", "p", ""):
        table.add_column(heading, justify="left" if heading in ("held", "") else "right")
    table.add_row("nothing", spread_words(found[0].evidence["spread"]), "", "", "", "")
    for one in found:
        table.add_row(*_cells(one), style="bold" if one.status == _SOURCE else "")
    console.print(table)
    console.print(
        "spread: half the range of the middle 80 % of the runs; p: corrected for their number "
        "(docs/nondeterminism.md)",
        style="dim",
    )
    console.print()
    for line in _sentences(found):
        console.print(Text(visible(line)))


def _cells(one: Explanation) -> tuple[Text, ...]:
    evidence = one.evidence
    low, high = one.share_ci
    share = one.share_of_gap
    return tuple(
        Text(visible(cell))
        for cell in (
            one.cause,
            spread_words(evidence["spread_held"]),
            "–" if share is None else f"{-100 * share:+.0f} %",
            "–" if low is None or high is None else f"{-100 * high:+.0f} % to {-100 * low:+.0f} %",
            f"{evidence['p_value']:.2g}",
            "a source of the spread" if one.status == _SOURCE else "",
        )
    )


def _sentences(found: list[Explanation]) -> list[str]:
    sources = [one for one in found if one.status == _SOURCE]
    told = [one.summary for one in sources] or ["no source that was held makes the times spread"]
    told += [one.summary for one in found if one.status == "remainder"]
    return [f"{words[0].upper()}{words[1:]}." for words in told]
