"""A result held against another one, on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from equipoise.model.result import EnvironmentDifference, ReferenceComparison, ReferenceRow
from equipoise.report.safe_text import visible
from equipoise.report.units import interval_words, percent_change, shower

UNKNOWN = "–"
HEADINGS = ("there", "here", "ratio", "interval", "")
DIFFERENCES_SHOWN = 20
LONGEST_VALUE = 60


def print_against(console: Console, held: ReferenceComparison) -> None:
    """Print every row against the other result, the mean with its caveat, and what differs."""
    console.print()
    console.print(Text(visible(title_words(held)), style="bold"))
    console.print(_table(held))
    console.print()
    for line in lines_below(held):
        console.print(Text(visible(line)))


def title_words(held: ReferenceComparison) -> str:
    """Which result this one is held against."""
    return f"against run {held.run} of {held.started}"


def row_words(one: ReferenceRow) -> tuple[str, ...]:
    """A row by the headings: there, here, ratio, interval, and what is to be said of it."""
    show = shower(one.metric)
    there, here = (UNKNOWN if each is None else show(each) for each in (one.there, one.here))
    ratio = UNKNOWN if one.ratio is None else percent_change(one.ratio)
    interval = UNKNOWN if one.ratio_ci == (None, None) else interval_words(*one.ratio_ci)
    return (there, here, ratio, interval, _said(one))


def lines_below(held: ReferenceComparison) -> tuple[str, ...]:
    """What changed, how sure that is, the mean with its caveat, the scope, and what differs."""
    return (*_sentences(held), *_environments(held))


def _said(one: ReferenceRow) -> str:
    if one.changed is None:
        return one.unknown or ""
    if not one.changed or one.ratio is None:
        return ""
    return "costs more" if one.ratio > 1.0 else "costs less"


def _table(held: ReferenceComparison) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("row", no_wrap=True)
    for heading in HEADINGS:
        right = heading in ("there", "here", "ratio")
        table.add_column(heading, justify="right" if right else "left", no_wrap=bool(heading))
    for one in held.rows:
        *cells, said = row_words(one)
        style = "yellow" if one.changed is None else "bold"
        table.add_row(visible(one.name), *map(Text, cells), Text(visible(said), style=style))
    return table


def _sentences(held: ReferenceComparison) -> Iterator[str]:
    known = [one for one in held.rows if one.changed is not None]
    changed = [one for one in known if one.changed]
    more = sum(1 for one in changed if one.ratio is not None and one.ratio > 1.0)
    without = len(held.rows) - len(known)
    yield (
        f"{len(changed)} of {len(known)} rows changed by more than {held.min_effect:g} %: "
        f"{more} cost more, {len(changed) - more} less"
        + (f"; {without} rows cannot be told" if without else "")
        + "."
    )
    if held.level is not None:
        yield (
            f"Ratios are of the cost, here over there; of the rows called changed at most "
            f"{100 * held.alpha:g} % are expected to be none, and the intervals hold at "
            f"{100 * (1 - held.level):.4g} % each."
        )
    if held.geometric_mean is not None:
        yield (
            f"Geometric mean over {held.geometric_mean_rows} rows: "
            f"{percent_change(held.geometric_mean)} ({interval_words(*held.geometric_mean_ci)}). "
            "It weighs every row alike, as no program does: it ranks no machine."
        )
    yield f"Scope: {held.scope}."


def _environments(held: ReferenceComparison) -> Iterator[str]:
    if not held.differences:
        yield "Environments: nothing that is known of both differs."
        return
    count = len(held.differences)
    differ = "1 thing differs" if count == 1 else f"{count} things differ"
    yield f"Environments: {differ} (there → here):"
    for one in held.differences[:DIFFERENCES_SHOWN]:
        yield f"  {_difference(one)}"
    more = len(held.differences) - DIFFERENCES_SHOWN
    if more > 0:
        yield f"  and {more} more; --json has all"


def _difference(one: EnvironmentDifference) -> str:
    return f"{one.name.replace('_', ' ')}: {_value(one.there)} → {_value(one.here)}"


def _value(value: Any) -> str:
    if value is None:
        return "unknown"
    words = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return words if len(words) <= LONGEST_VALUE else f"{words[: LONGEST_VALUE - 1]}…"
