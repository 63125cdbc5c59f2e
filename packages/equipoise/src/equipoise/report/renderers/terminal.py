"""The screen: a document as lines and tables of a terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from equipoise.report.document import (
    Answer,
    Bullets,
    Cell,
    Claim,
    Column,
    Command,
    Document,
    Facts,
    Form,
    Histogram,
    Listing,
    Paragraph,
    Part,
    Section,
    Table,
    Warnings,
    parts_in,
    text_of,
)
from equipoise.shared.numbers import unbroken
from equipoise.shared.safe_text import visible
from equipoise.shared.spelling import option

STYLES = {
    "strong": "bold",
    "dim": "dim",
    "caution": "yellow",
    "faster": "bold green",
    "slower": "bold red",
    "equivalent": "bold blue",
    "mixed": "bold yellow",
    "undecided": "bold",
    "confirmed": "bold green",
    "refuted": "dim",
    "not reachable": "dim",
    "warning": "yellow",
    "disturbs": "bold red",
    "weakens": "yellow",
    "lacks": "dim",
}
BARS = " ▁▂▃▄▅▆▇█"
_TOGETHER = ((Paragraph, Bullets, Facts), (Warnings,))
"""Kinds of parts that follow one another without an empty line."""
_UNBOUNDED = 10_000
"""Width at which nothing is broken into lines or shortened."""
_INDENT = 2
_NO_BREAK, _LETTER = "\N{NO-BREAK SPACE}", "\ue000"
"""Space at which no line may end, and a letter in its place while rich breaks lines: rich would
break a line at the space."""
_INTERVAL = re.compile(r"\d.* to .*\d")


class _Layout(Struct, frozen=True):
    """How much of a table a terminal has room for."""

    name_width: int
    bins: int
    ends: bool
    """Whether the least and the greatest value are next to a histogram."""


_LAYOUTS = (
    _Layout(40, 20, ends=True),
    _Layout(24, 20, ends=True),
    _Layout(24, 16, ends=False),
    _Layout(14, 8, ends=False),
)
_MIN_NAME_WIDTH = 8


class _FittedTable(Struct, frozen=True):
    """The columns of a table that a terminal has room for."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    layout: _Layout


def print_document(document: Document, *, color: bool, form: Form = "screen") -> None:
    """Print a document to stdout, in a form of a terminal."""
    print_to(console_for(color), parts_in(document.parts, form))


def print_parts(
    parts: Iterable[Part], *, color: bool, stderr: bool = False, form: Form = "screen"
) -> None:
    """Print some parts of a document to stdout, or to stderr, in a form of a terminal."""
    print_to(console_for(color, stderr=stderr), parts_in(parts, form))


def print_to(console: Console, parts: Iterable[Part]) -> None:
    """Print the parts of a terminal's document to a console."""
    before: Part | None = None
    for part in parts:
        together = any(isinstance(before, kinds) and isinstance(part, kinds) for kinds in _TOGETHER)
        if before is not None and not together:
            console.print()
        _print_part(console, part)
        before = part


def console_for(color: bool, *, stderr: bool = False) -> Console:
    """Return a console that prints plain text to stdout, or to stderr."""
    plain: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
    console = Console(no_color=not color, stderr=stderr, **plain)
    # FORCE_COLOR makes rich take a pipe for a terminal of 80 columns; a pipe has no width.
    if not console.file.isatty():
        console.width = _UNBOUNDED
    return console


def text_histogram(values: Sequence[float], low: float, high: float, width: int = 20) -> str:
    """Draw how often values fall into ``width`` equal bins between ``low`` and ``high``.

    A bin that holds anything shows at least the lowest bar: a rare value is seen.
    """
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    places = (finite - low) / (high - low) if high > low else np.full(len(finite), 0.5)
    bins = np.clip((places * width).astype(np.int64), 0, width - 1)
    counts = np.bincount(bins, minlength=width).tolist()
    most = max(counts)
    if most == 0:
        return " " * width
    return "".join(
        BARS[math.ceil(count / most * (len(BARS) - 1))] if count else BARS[0] for count in counts
    )


def _print_part(console: Console, part: Part) -> None:
    match part:
        case Answer():
            _print_answer(console, part)
        case Section():
            if part.title:
                _print_prose(console, Text(visible(part.title), style="bold"))
            print_to(console, part.parts)
        case Table():
            _print_table(console, part)
        case Paragraph():
            # Each line is made visible alone: the end of a line is ours.
            for line in part.text.split("\n"):
                _print_prose(console, Text(visible(line), STYLES.get(part.style, "")))
        case Bullets():
            most = part.max_items or len(part.items)
            for item in part.items[:most]:
                _print_prose(console, Text(visible(item), STYLES.get(part.style, "")))
            _print_more(console, len(part.items) - most)
        case Facts():
            for name, value in part.texts("; "):
                _print_prose(console, Text(visible(f"{name}: {value}")))
        case Command():
            _print_command(console, part)
        case Listing():
            for line in part.lines:
                console.print(Text(f"  {visible(line)}"), soft_wrap=True)
        case Warnings():
            _print_warnings(console, part)
        case _:
            # Figures and what else only a page shows.
            return


def _print_answer(console: Console, answer: Answer) -> None:
    if answer.title:
        _print_prose(console, Text(visible(answer.title), style="bold"))
    for line in answer.lines:
        _print_prose(console, Text(visible(line)))
    for place, claim in enumerate(answer.claims):
        if place or answer.title:
            console.print()
        _print_claim(console, claim)


def _print_claim(console: Console, claim: Claim) -> None:
    badge = (f"{claim.badge}: ", STYLES.get(claim.tone, "bold"))
    _print_prose(console, Text.assemble(badge, visible(claim.text)))
    lines = [*claim.certainty, *claim.remarks]
    if claim.estimate and claim.interval:
        subject = f"{claim.subject}: " if claim.subject else ""
        lines.insert(0, f"{subject}{claim.estimate}, {claim.interval}")
    for line in lines:
        _print_prose(console, Text(visible(line)), _INDENT)


def _print_prose(console: Console, text: Text, indent: int = 0) -> None:
    """Print text in lines that fit; none ends between a number and its unit."""
    text.plain = unbroken(text.plain).replace(_NO_BREAK, _LETTER)
    for line in text.wrap(console, max(console.width - indent, 1)):
        line.plain = line.plain.replace(_LETTER, " ")
        console.print(Text.assemble(" " * indent, line), soft_wrap=True)


def _print_command(console: Console, part: Command) -> None:
    """Print a command line, never broken into lines: it is copied."""
    line = f"{part.purpose} {part.line}"
    if len(line) <= console.width:
        console.print(Text(visible(line)), soft_wrap=True)
        return
    _print_prose(console, Text(visible(part.purpose)))
    console.print(Text(f"{' ' * _INDENT}{visible(part.line)}"), soft_wrap=True)


def _print_warnings(console: Console, part: Warnings) -> None:
    for warning in part.first_of_each_code:
        badge = (f"{part.badge}: ", STYLES[part.badge])
        _print_prose(console, Text.assemble(badge, visible(warning.summary)))
        if warning.hint:
            # A command to copy must not be broken into lines.
            console.print(Text(f"  hint: {visible(warning.hint)}"), soft_wrap=True)
    _print_more(console, part.hidden_count)


def _print_more(console: Console, more: int) -> None:
    if more > 0:
        console.print(f"  and {more} more like these; {option('json')} has all", style="dim")


def _print_table(console: Console, table: Table) -> None:
    columns = table.columns
    if table.title and not columns[0].heading:
        columns = (replace(columns[0], heading=table.title), *columns[1:])
    elif table.title:
        console.print(Text(visible(table.title), style="bold"))
    most = table.max_rows or len(table.rows)
    rows = table.rows[:most]
    for fitted in _narrower(columns, rows):
        drawn = _rich_table(fitted)
        unbounded = console.options.update(max_width=_UNBOUNDED)
        if console.measure(drawn, options=unbounded).maximum <= console.width:
            break
    console.print(drawn)
    if left_out := [column.heading for column in columns if column not in fitted.columns]:
        note = f"not shown at this width: {', '.join(left_out)}"
        _print_prose(console, Text(visible(note), style="dim"))
    _print_more(console, len(table.rows) - most)
    for note in table.notes:
        _print_prose(console, Text(visible(note), style="dim"))


def _narrower(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> Iterator[_FittedTable]:
    """Yield a table in narrower and narrower forms, each with its intervals whole."""
    has_histogram = any(isinstance(cell, Histogram) for row in rows for cell in row)
    layouts = _LAYOUTS if has_histogram else _LAYOUTS[:1]
    for layout in layouts:
        yield _FittedTable(columns, rows, layout)
    intervals = [place for place in range(len(columns)) if _is_interval(columns, rows, place)]
    # Columns of words are broken into lines: they give way by themselves.
    if not intervals or any(column.kind == "words" for column in columns):
        return
    needed = {0, *intervals, *(place - 1 for place in intervals)}
    kept = list(range(len(columns)))
    for place in reversed(range(len(columns))):
        if place not in needed:
            kept.remove(place)
            yield _columns_of(columns, rows, kept, layouts[-1])
    narrow = replace(layouts[-1], name_width=_MIN_NAME_WIDTH)
    yield _columns_of(columns, rows, kept, narrow)
    # Fewer intervals are better than rows without names.
    for last in reversed(intervals[:-1]):
        yield _columns_of(columns, rows, [place for place in kept if place <= last], narrow)


def _columns_of(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], kept: list[int], layout: _Layout
) -> _FittedTable:
    return _FittedTable(
        [columns[place] for place in kept],
        [[row[place] for place in kept if place < len(row)] for row in rows],
        layout,
    )


def _is_interval(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], place: int) -> bool:
    """Return whether a column has an interval in any row."""
    if columns[place].kind in ("name", "words"):
        return False
    cells = [row[place] for row in rows if place < len(row)]
    return any(
        not isinstance(cell, Histogram) and _INTERVAL.search(text_of(cell)) for cell in cells
    )


def _rich_table(fitted: _FittedTable) -> RichTable:
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, column in enumerate(fitted.columns):
        table.add_column(
            Text(visible(column.heading), no_wrap=column.kind != "words"),
            justify="right" if column.kind == "number" else "left",
            overflow="fold" if column.kind == "words" else "ellipsis",
            max_width=fitted.layout.name_width if column.kind == "name" else None,
            no_wrap=column.kind == "id" or _is_interval(fitted.columns, fitted.rows, place),
        )
    for row in fitted.rows:
        cells = [_cell(cell, fitted.layout) for cell in row]
        for column, cell in zip(fitted.columns, cells, strict=False):
            # The cell's, not its column's: so the widest column gives way, and no run id is cut.
            cell.no_wrap = column.kind != "words"
        table.add_row(*cells)
    return table


def _cell(cell: Cell, layout: _Layout) -> Text:
    if isinstance(cell, Histogram):
        drawing = text_histogram(cell.values, cell.low, cell.high, layout.bins)
        return Text(f"{cell.ends[0]} {drawing} {cell.ends[1]}" if layout.ends else drawing)
    style = STYLES.get(cell.style, "") if hasattr(cell, "style") else ""
    return Text(visible(text_of(cell)), style=style)
