"""A result held against another one, on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from equipoise.model.against import Against, EnvironmentDifference, RowAgainst
from equipoise.report.safe_text import visible
from equipoise.report.units import interval_words, percent_change, shower

UNKNOWN = "–"
DIFFERENCES_SHOWN = 20
LONGEST_VALUE = 60


def print_against(console: Console, held: Against) -> None:
    """Print every row against the other result, the mean with its caveat, and what differs."""
    console.print()
    console.print(Text(visible(f"against run {held.run} of {held.started}"), style="bold"))
    console.print(_rows(held))
    console.print()
    for line in (*_sentences(held), *_environments(held)):
        console.print(Text(visible(line)))


def _rows(held: Against) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("row", no_wrap=True)
    for heading in ("there", "here", "ratio", "interval", ""):
        right = heading in ("there", "here", "ratio")
        table.add_column(heading, justify="right" if right else "left", no_wrap=bool(heading))
    for one in held.rows:
        table.add_row(Text(visible(one.name)), *_cells(one))
    return table


def _cells(one: RowAgainst) -> Iterator[Text]:
    show = shower(one.metric)
    for median in (one.there, one.here):
        yield Text(UNKNOWN if median is None else show(median))
    yield Text(UNKNOWN if one.ratio is None else percent_change(one.ratio), style="bold")
    open_ended = one.ratio_ci == (None, None)
    yield Text(UNKNOWN if open_ended else interval_words(*one.ratio_ci))
    if one.changed is None:
        yield Text(visible(one.unknown or ""), style="yellow")
    elif one.changed and one.ratio is not None:
        more = one.ratio > 1.0
        yield Text("costs more" if more else "costs less", style="red" if more else "green")
    else:
        yield Text()


def _sentences(held: Against) -> Iterator[str]:
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


def _environments(held: Against) -> Iterator[str]:
    if not held.differences:
        yield "Environments: nothing that is known of both differs."
        return
    yield f"Environments: {len(held.differences)} things differ (there → here):"
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
