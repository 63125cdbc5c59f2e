"""Where the extra time is, and why: on the screen, and as words for the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from equipoise.model.interval import Interval
from equipoise.model.result import Comparison, ResultDocument
from equipoise.model.why import Explanation, ExtraTime, TimePart
from equipoise.report.safe_text import visible
from equipoise.report.units import duration
from equipoise.stats.intervention import describe_fraction
from equipoise.stats.spread import KIND

SHOWN = 12
"""Causes on the screen; the document has all."""
UNSEEN_SHOWN = 2
"""Remarks for each source."""
NAME_WIDTH = 32
UNKNOWN = "–"
_BECAUSE = {"open": "not tested by changing it, or not decided"}
_PART_WORDS = {"queueing": "waiting for a processor"}


@dataclass(frozen=True, slots=True)
class WhyView:
    """The section of a page."""

    title: str
    words: str
    """What the extra time consists of."""
    columns: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...]
    """User, system and waiting time, in the order of the columns."""
    causes: tuple[tuple[str, ...], ...]
    """Seconds, share of the gap, status, and words."""
    unseen: tuple[str, ...]


def why_view(document: ResultDocument) -> WhyView | None:
    """What the page says of the gap that was observed; ``None`` if none was."""
    extra = document.extra_time
    if extra is None:
        return None
    return WhyView(
        title=f"Where the extra {_seconds(extra.gap_s)} of {extra.slower} are",
        words=extra.summary,
        columns=("", extra.baseline, extra.candidate, "extra", "95 % interval", "share"),
        parts=tuple(_part_cells(one) for one in extra.parts),
        causes=tuple(_cause_cells(one) for one in document.why if is_of_gap(one)),
        unseen=tuple(_unseen(extra)),
    )


def print_why(console: Console, document: ResultDocument) -> None:
    """Print where the extra time is, and the causes; nothing for what was not observed."""
    view = why_view(document)
    if view is None:
        return
    console.print()
    console.print(Text(visible(f"{view.title}: {view.words}."), style="bold"))
    console.print(_parts_table(view))
    console.print()
    if view.causes:
        console.print(_causes_table(view))
        if len(view.causes) > SHOWN:
            more = len(view.causes) - SHOWN
            console.print(f"  and {more} more like these; --json has all", style="dim")
    else:
        console.print("No rule finds a cause in what was observed (docs/why.md).")
    for line in view.unseen:
        console.print(Text(visible(line), style="dim"))


def is_of_gap(one: Explanation) -> bool:
    """Whether an entry is about the gap of two conditions; others are about the spread of one."""
    return one.kind != KIND


def because_words(document: ResultDocument, comparison: Comparison) -> str:
    """The first cause of a gap and what closes it; empty where none was looked for."""
    extra = document.extra_time
    pair = (comparison.baseline, comparison.candidate)
    if extra is None or (extra.baseline, extra.candidate) != pair:
        return ""
    causes = [one for one in document.why if is_of_gap(one)]
    confirmed = [one for one in causes if one.status == "confirmed"]
    if not causes:
        return f"Why: {extra.summary}; no rule finds a cause in it."
    first = (confirmed or causes)[0]
    found, *_ = first.summary.partition(". ")
    said = f"Why ({_BECAUSE.get(first.status, first.status)}): {found.rstrip('.')}."
    closing = [one for one in first.tested if one.outcome == "confirmed"]
    if closing:
        words = closing[0].summary
        share = describe_fraction(closing[0].share, closing[0].share_ci)
        said += f" {words[:1].upper()}{words[1:]} closes {share} of the gap."
    return said


def _parts_table(view: WhyView) -> Table:
    table = _table()
    for heading in view.columns:
        table.add_column(
            visible(heading),
            justify="right" if heading else "left",
            no_wrap=True,
            overflow="ellipsis",
            max_width=NAME_WIDTH,
        )
    _add_rows(table, view.parts)
    return table


def _causes_table(view: WhyView) -> Table:
    table = _table()
    for heading in ("extra", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("why")
    _add_rows(table, view.causes[:SHOWN])
    return table


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))


def _add_rows(table: Table, rows: tuple[tuple[str, ...], ...]) -> None:
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))


def _part_cells(one: TimePart) -> tuple[str, ...]:
    return (
        _PART_WORDS.get(one.part, one.part),
        _seconds(one.baseline_s),
        _seconds(one.candidate_s),
        _seconds(one.extra_s),
        _interval(one.extra_s_ci),
        _percent(one.share_of_gap),
    )


def _cause_cells(one: Explanation) -> tuple[str, ...]:
    return (_seconds(one.seconds), _percent(one.share_of_gap), one.status, one.summary)


def _interval(interval: Interval) -> str:
    low, high = interval
    return UNKNOWN if low is None or high is None else f"{_seconds(low)} to {_seconds(high)}"


def _seconds(value: float | None) -> str:
    return UNKNOWN if value is None else duration(value)


def _percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{round(100 * share)} %"


def _unseen(extra: ExtraTime) -> Iterator[str]:
    for source, remarks in extra.unseen.items():
        shown = "; ".join(remarks[:UNSEEN_SHOWN])
        more = f"; and {len(remarks) - UNSEEN_SHOWN} more" if len(remarks) > UNSEEN_SHOWN else ""
        yield f"not seen by {source}: {shown}{more}"
