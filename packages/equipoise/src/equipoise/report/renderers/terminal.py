"""Renderer that prints a document as lines and tables of a terminal."""

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
    Statement,
    Table,
    Warnings,
    parts_in,
    text_of,
)
from equipoise.shared.numbers import unbroken
from equipoise.shared.safe_text import visible
from equipoise.shared.spelling import option

RICH_STYLES = {
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
"""Styles of rich, by the style of a text, a verdict, a status, or the badge of warnings."""
BARS = " ▁▂▃▄▅▆▇█"
"""Characters for the bars of a histogram, from the lowest to the highest bar."""
_ADJACENT_PARTS = ((Paragraph, Bullets, Facts), (Warnings,))
"""Groups of types of parts; no empty line separates two parts of one group."""
_UNLIMITED_WIDTH = 10_000
"""Width that every table fits."""
_INDENT = 2
"""Number of spaces before a line that belongs to the line above."""
_NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
_SPACE_STAND_IN = "\ue000"
"""Character that replaces a no-break space while rich breaks lines: rich would break there."""
_INTERVAL_PATTERN = re.compile(r"\d.* to .*\d")
"""Text with two ends, such as ``1.2 ms to 1.4 ms``."""


class _Layout(Struct, frozen=True):
    name_width: int
    bin_count: int
    """Number of bars of a histogram."""
    has_end_labels: bool
    """Whether the smallest and the largest value are shown at the ends of a histogram."""


_LAYOUTS = (
    _Layout(40, 20, has_end_labels=True),
    _Layout(24, 20, has_end_labels=True),
    _Layout(24, 16, has_end_labels=False),
    _Layout(14, 8, has_end_labels=False),
)
"""Layouts of a table with histograms, the widest first."""
_MIN_NAME_WIDTH = 8
"""Width of names in the narrowest layout."""


class _FittedTable(Struct, frozen=True):
    """Version of a table for a narrow terminal: with fewer columns, and a layout."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    layout: _Layout


def print_document(document: Document, *, color: bool, form: Form = "brief") -> None:
    """Print a document to stdout; ``form`` is ``brief`` or ``verbose``."""
    print_to(console_for(color), parts_in(document.parts, form))


def print_parts(
    parts: Iterable[Part], *, color: bool, stderr: bool = False, form: Form = "brief"
) -> None:
    """Print parts of a document to stdout or stderr, as `print_document` does."""
    print_to(console_for(color, stderr=stderr), parts_in(parts, form))


def print_to(console: Console, parts: Iterable[Part]) -> None:
    """Print parts of a document to a console, with empty lines between them."""
    previous: Part | None = None
    for part in parts:
        are_adjacent = any(
            isinstance(previous, group) and isinstance(part, group) for group in _ADJACENT_PARTS
        )
        if previous is not None and not are_adjacent:
            console.print()
        _print_part(console, part)
        previous = part


def console_for(color: bool, *, stderr: bool = False) -> Console:
    """Return a console that prints text unchanged to stdout or stderr."""
    plain_settings: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
    console = Console(no_color=not color, stderr=stderr, **plain_settings)
    # With FORCE_COLOR, rich assumes that a pipe has 80 columns.
    if not console.file.isatty():
        console.width = _UNLIMITED_WIDTH
    return console


def text_histogram(values: Sequence[float], low: float, high: float, width: int = 20) -> str:
    """Return a histogram of values with ``width`` equal bins between ``low`` and ``high``.

    A bin with any value has at least the lowest bar, so that rare values are visible.
    """
    all_values = np.asarray(values, dtype=np.float64)
    finite = all_values[np.isfinite(all_values)]
    fractions = (finite - low) / (high - low) if high > low else np.full(len(finite), 0.5)
    bin_indexes = np.clip((fractions * width).astype(np.int64), 0, width - 1)
    counts = np.bincount(bin_indexes, minlength=width).tolist()
    max_count = max(counts)
    if max_count == 0:
        return " " * width
    return "".join(
        BARS[math.ceil(count / max_count * (len(BARS) - 1))] if count else BARS[0]
        for count in counts
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
            # Print each line alone, because `visible` escapes line ends.
            for line in part.text.split("\n"):
                _print_prose(console, Text(visible(line), RICH_STYLES.get(part.style, "")))
        case Bullets():
            shown_count = part.max_items or len(part.items)
            for item in part.items[:shown_count]:
                _print_prose(console, Text(visible(item), RICH_STYLES.get(part.style, "")))
            _print_hidden_count(console, len(part.items) - shown_count)
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
            # A terminal shows no figures.
            return


def _print_answer(console: Console, answer: Answer) -> None:
    if answer.title:
        _print_prose(console, Text(visible(answer.title), style="bold"))
    for line in answer.lines:
        _print_prose(console, Text(visible(line)))
    for index, statement in enumerate(answer.statements):
        if index or answer.title:
            console.print()
        _print_statement(console, statement)


def _print_statement(console: Console, statement: Statement) -> None:
    badge = (f"{statement.badge}: ", RICH_STYLES.get(statement.color_verdict, "bold"))
    _print_prose(console, Text.assemble(badge, visible(statement.text)))
    lines = [*statement.certainty_lines, *statement.remarks]
    if statement.estimate and statement.interval:
        subject = f"{statement.subject}: " if statement.subject else ""
        lines.insert(0, f"{subject}{statement.estimate}, {statement.interval}")
    for line in lines:
        _print_prose(console, Text(visible(line)), _INDENT)


def _print_prose(console: Console, text: Text, indent: int = 0) -> None:
    """Print text in lines that fit the console; a number and its unit stay together."""
    text.plain = unbroken(text.plain).replace(_NO_BREAK_SPACE, _SPACE_STAND_IN)
    for line in text.wrap(console, max(console.width - indent, 1)):
        line.plain = line.plain.replace(_SPACE_STAND_IN, " ")
        console.print(Text.assemble(" " * indent, line), soft_wrap=True)


def _print_command(console: Console, part: Command) -> None:
    """Print a command in one line, because a reader copies it."""
    line = f"{part.purpose} {part.line}"
    if len(line) <= console.width:
        console.print(Text(visible(line)), soft_wrap=True)
        return
    _print_prose(console, Text(visible(part.purpose)))
    console.print(Text(f"{' ' * _INDENT}{visible(part.line)}"), soft_wrap=True)


def _print_warnings(console: Console, part: Warnings) -> None:
    for warning in part.shown_warnings:
        badge = (f"{part.badge}: ", RICH_STYLES[part.badge])
        _print_prose(console, Text.assemble(badge, visible(warning.summary)))
        if warning.hint:
            # Do not break the line, because a reader may copy a command in the hint.
            console.print(Text(f"  hint: {visible(warning.hint)}"), soft_wrap=True)
    _print_hidden_count(console, part.hidden_count)


def _print_hidden_count(console: Console, hidden_count: int) -> None:
    if hidden_count > 0:
        text = f"  and {hidden_count} more like these; {option('json')} has all"
        console.print(text, style="dim")


def _print_table(console: Console, table: Table) -> None:
    columns = table.columns
    if table.title and not columns[0].heading:
        columns = (replace(columns[0], heading=table.title), *columns[1:])
    elif table.title:
        console.print(Text(visible(table.title), style="bold"))
    shown_count = table.max_rows or len(table.rows)
    rows = table.rows[:shown_count]
    unlimited_options = console.options.update(max_width=_UNLIMITED_WIDTH)
    # If no version of the table fits, print the last and narrowest version.
    for fitted_table in _fitted_tables(columns, rows):
        rich_table = _rich_table(fitted_table)
        if console.measure(rich_table, options=unlimited_options).maximum <= console.width:
            break
    console.print(rich_table)
    if headings := [column.heading for column in columns if column not in fitted_table.columns]:
        note = f"not shown at this width: {', '.join(headings)}"
        _print_prose(console, Text(visible(note), style="dim"))
    _print_hidden_count(console, len(table.rows) - shown_count)
    for note in table.notes:
        _print_prose(console, Text(visible(note), style="dim"))


def _fitted_tables(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]]
) -> Iterator[_FittedTable]:
    """Yield versions of a table, the widest first; the narrowest versions lack intervals."""
    has_histogram = any(isinstance(cell, Histogram) for row in rows for cell in row)
    layouts = _LAYOUTS if has_histogram else _LAYOUTS[:1]
    for layout in layouts:
        yield _FittedTable(columns, rows, layout)
    indexes = range(len(columns))
    interval_indexes = [index for index in indexes if _has_interval(columns, rows, index)]
    # rich breaks the cells of a `words` column into lines, so a table with such a column fits.
    if not interval_indexes or any(column.kind == "text" for column in columns):
        return
    # Keep the names, the intervals, and the estimates to the left of the intervals.
    needed_indexes = {0, *interval_indexes, *(index - 1 for index in interval_indexes)}
    kept_indexes = list(indexes)
    for index in reversed(indexes):
        if index not in needed_indexes:
            kept_indexes.remove(index)
            yield _with_columns(columns, rows, kept_indexes, layouts[-1])
    narrow_layout = replace(layouts[-1], name_width=_MIN_NAME_WIDTH)
    yield _with_columns(columns, rows, kept_indexes, narrow_layout)
    # If necessary, leave out intervals, but not the names of the rows.
    for last_index in reversed(interval_indexes[:-1]):
        left_indexes = [index for index in kept_indexes if index <= last_index]
        yield _with_columns(columns, rows, left_indexes, narrow_layout)


def _with_columns(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], indexes: list[int], layout: _Layout
) -> _FittedTable:
    return _FittedTable(
        [columns[index] for index in indexes],
        [[row[index] for index in indexes if index < len(row)] for row in rows],
        layout,
    )


def _has_interval(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], index: int) -> bool:
    if columns[index].kind in ("name", "text"):
        return False
    cells = [row[index] for row in rows if index < len(row)]
    return any(
        not isinstance(cell, Histogram) and _INTERVAL_PATTERN.search(text_of(cell))
        for cell in cells
    )


def _rich_table(fitted: _FittedTable) -> RichTable:
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for index, column in enumerate(fitted.columns):
        table.add_column(
            Text(visible(column.heading), no_wrap=column.kind != "text"),
            justify="right" if column.kind == "number" else "left",
            overflow="fold" if column.kind == "text" else "ellipsis",
            max_width=fitted.layout.name_width if column.kind == "name" else None,
            no_wrap=column.kind == "id" or _has_interval(fitted.columns, fitted.rows, index),
        )
    for row in fitted.rows:
        cells = [_cell_text(cell, fitted.layout) for cell in row]
        for column, cell in zip(fitted.columns, cells, strict=False):
            # Set this for cells: for a column, rich would also shorten run ids in other columns.
            cell.no_wrap = column.kind != "text"
        table.add_row(*cells)
    return table


def _cell_text(cell: Cell, layout: _Layout) -> Text:
    if isinstance(cell, Histogram):
        drawing = text_histogram(cell.values, cell.minimum, cell.maximum, layout.bin_count)
        low_label, high_label = cell.end_labels
        return Text(f"{low_label} {drawing} {high_label}" if layout.has_end_labels else drawing)
    style = RICH_STYLES.get(cell.style, "") if hasattr(cell, "style") else ""
    return Text(visible(text_of(cell)), style=style)
