"""The variance by level on the screen: a claim in two scopes, and where a minute is spent best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from equipoise.model.interval import Interval
from equipoise.model.plan import PRIMARY_METRIC
from equipoise.model.result import Component, ResultDocument, VarianceByLevel
from equipoise.report.safe_text import visible
from equipoise.report.units import byte_count, duration, interval_words, percent_change, significant

MOST_ROWS = 12
MOST_ADVISED = 3


@dataclass(frozen=True, slots=True)
class Levelled:
    """A comparison or a condition with its variance by level."""

    name: str
    compared: bool
    found: VarianceByLevel
    show: Callable[[float], str]
    interval: Callable[[Interval], str]


def levelled(document: ResultDocument) -> tuple[Levelled, ...]:
    """What has a variance by level: the comparisons first, then the conditions."""
    return (*_comparisons(document), *_conditions(document))


def print_levels(console: Console, rows: Sequence[Levelled]) -> None:
    """Print the table and the advice; nothing where there are no rows."""
    known = [row for row in rows if row.found.unknown_because is None]
    if known:
        console.print()
        console.print(_table(known[:MOST_ROWS]))
        if len(known) > MOST_ROWS:
            console.print(f"  and {len(known) - MOST_ROWS} more; --json has all", style="dim")
        console.print(
            "levels: the share of the variance of the logarithm, and the standard deviation that "
            "the level adds (docs/statistics.md)",
            style="dim",
        )
    for words in _advice(known):
        console.print(Text(visible(words)))
    for reason in dict.fromkeys(row.found.unknown_because for row in rows):
        if reason is not None:
            console.print(Text(f"variance by level: unknown: {visible(reason)}"))


def component_words(one: Component) -> str:
    """``78 % (±3.1 %; 2.2 to 5.4)``: the share, the standard deviation and its interval."""
    low, high = (_sd(bound) for bound in one.variance_ci)
    return f"{100 * one.share:.0f} % (±{_sd(one.variance)} %; {low} to {high})"


def scope_rows(found: VarianceByLevel) -> Iterator[tuple[str, str]]:
    """Each scope of a ratio with its interval, for a page."""
    if found.unknown_because is not None:
        yield "Variance by level", f"unknown: {found.unknown_because}"
        return
    yield _capital(found.these), interval_words(*found.these_ci)
    yield _capital(found.across), interval_words(*found.across_ci)
    for one in found.components:
        yield f"Variance: {one.level}", component_words(one)
    if found.advice_summary is not None:
        yield "More measuring", found.advice_summary


def levelled_ratio(name: str, found: VarianceByLevel) -> Levelled:
    """A ratio with its variance by level."""
    return Levelled(name, True, found, percent_change, lambda ends: interval_words(*ends))


def _comparisons(document: ResultDocument) -> Iterator[Levelled]:
    for one in document.comparisons:
        if one.by_level is not None:
            yield levelled_ratio(f"{one.candidate} against {one.baseline}", one.by_level)


def _conditions(document: ResultDocument) -> Iterator[Levelled]:
    metric = document.comparisons[0].metric if document.comparisons else PRIMARY_METRIC
    show: Callable[[float], str] = significant
    if metric.endswith("_s"):
        show = duration
    elif metric.endswith("_bytes"):
        show = byte_count
    for one in document.conditions:
        summary = one.metrics.get(metric)
        if summary is not None and summary.by_level is not None:
            yield Levelled(one.name, False, summary.by_level, show, _costs(show))


def _costs(show: Callable[[float], str]) -> Callable[[Interval], str]:
    return lambda ends: " to ".join("unlimited" if one is None else show(one) for one in ends)


def _table(rows: Sequence[Levelled]) -> Table:
    names = list(dict.fromkeys(one.level for row in rows for one in row.found.components))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("by level", overflow="ellipsis", no_wrap=True, max_width=40)
    table.add_column("mean", justify="right", no_wrap=True)
    these = {row.found.these for row in rows}
    across = rows[0].found.across
    # Conditions that ran in different numbers of trials have no number in common.
    heading = these.pop() if len(these) == 1 else across.replace("across", "these", 1)
    table.add_column(heading, no_wrap=True)
    table.add_column(across, no_wrap=True)
    for name in names:
        table.add_column(name, no_wrap=True)
    for row in rows:
        found = row.found
        parts = {one.level: component_words(one) for one in found.components}
        table.add_row(
            Text(visible(row.name)),
            Text("–" if found.mean is None else row.show(found.mean), style="bold"),
            Text(row.interval(found.these_ci)),
            Text(row.interval(found.across_ci)),
            *(Text(parts.get(name, "–")) for name in names),
        )
    return table


def _advice(rows: Sequence[Levelled]) -> Iterator[str]:
    """Of the comparisons; of the conditions where nothing was compared."""
    told = [row for row in rows if row.found.advice_summary is not None]
    compared = [row for row in told if row.compared] or told
    for row in compared[:MOST_ADVISED]:
        name = f"{visible(row.name)}: " if len(compared) > 1 else ""
        yield f"{name}{_capital(row.found.advice_summary or '')}"


def _sd(variance: float) -> str:
    """Of a logarithm, as a percentage."""
    return significant(100.0 * math.sqrt(max(0.0, variance)), 2)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
