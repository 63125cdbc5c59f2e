"""Reading and writing CSV with the standard library: text in, columns of one type each out.

A column is of whole numbers, numbers, truths, dates, moments or words: the first that all its
values fit. Cells are read in pieces, so a large file needs little more memory than its columns.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.safe_text import csv_text

Columns = dict[str, NDArray[Any]]

MISSING = frozenset(
    {"", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "NULL", "null", "NaN", "nan", "-NaN"}
    | {"-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
"""Cells that hold no value, as pandas and Arrow read them."""
_PIECE_ROWS = 50_000
"""Rows that are read before their cells become numbers."""
_SEPARATORS = (",", ";", "\t")
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(rf"{_DAY.pattern}([ T]\d\d:\d\d(:\d\d([.]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
"""A number as spreadsheets write it where the comma separates the decimals."""
_HINT = "correct the file, or save it again from the program that wrote it"


_BLANK: Mapping[str, NDArray[Any]] = {
    "text": np.array(None, dtype=object),
    "truth": np.array(None, dtype=object),
    "day": np.array("NaT", dtype="datetime64[D]"),
    "moment": np.array("NaT", dtype="datetime64[us]"),
}
"""Missing value among values of each kind; among numbers it is NaN."""


class _Piece(NamedTuple):
    """Values of one column in successive rows, and the kind of value that they have."""

    kind: str
    """``none`` (all missing), ``whole``, ``number``, ``truth``, ``day``, ``moment`` or ``text``."""
    values: NDArray[Any]


class _Unreadable(Exception):
    """The text is not a table."""


def read_csv(path: Path, as_text: Collection[str] = ()) -> Columns:
    """Read a whole file, compressed if its name ends in ``.gz``.

    The separator is the first of comma, semicolon and tab that the first line has. Between
    semicolons or tabs, 1,5 is a number.

    Raise `UnusableInput` if the file is not a table of this form; the error names the line.

    Parameters
    ----------
    as_text
        Columns that hold names: as numbers, the versions 1.1 and 1.10 would be one.
    """
    texts = frozenset(as_text)
    try:
        columns, mixed = _read(path, texts)
        if mixed:
            # A number further up may have been written as 1.10: its text is needed.
            columns, _ = _read(path, texts | mixed)
    except (_Unreadable, csv.Error, UnicodeError, EOFError, zlib.error, OSError) as error:
        fault = "it is not UTF-8 text" if isinstance(error, UnicodeError) else str(error)
        raise UnusableInput(f"{path}: {fault}", hint=_HINT) from error
    return columns


def to_csv(columns: Mapping[str, NDArray[Any]]) -> str:
    """Write columns as CSV; a missing value is an empty cell."""
    cells = ([_cell(value) for value in column.tolist()] for column in columns.values())
    return csv_text([[*columns], *zip(*cells, strict=True)])


def refuse_repeated(path: Path, names: Iterable[str]) -> None:
    """Refuse a table of which several columns have one name."""
    repeated = [name for name, number in Counter(names).items() if number > 1]
    if repeated:
        raise UnusableInput(
            f"{path}: more than one column {', '.join(repeated)}", hint="rename all but one"
        )


def _cell(value: Any) -> Any:
    if value is None or value != value:
        return ""
    return value.isoformat() if hasattr(value, "isoformat") else value


def _read(path: Path, texts: frozenset[str]) -> tuple[Columns, frozenset[str]]:
    """Return the columns, and the names of those whose pieces are of different kinds."""
    pieces: list[list[_Piece]] = []
    with _opened(path) as file:
        first = file.readline()
        file.seek(0)
        separator = next((sign for sign in _SEPARATORS if sign in first), ",")
        reader = csv.reader(file, delimiter=separator, strict=True)
        try:
            names = next(reader, [])
            rows = _rows(reader, len(names))
            while piece := list(islice(rows, _PIECE_ROWS)):
                cells = zip(*piece, strict=True)
                pieces.append(
                    [
                        _text(column) if name in texts else _values(column, separator)
                        for name, column in zip(names, cells, strict=True)
                    ]
                )
        except csv.Error as error:
            raise _Unreadable(f"line {reader.line_num}: {error}") from error
    refuse_repeated(path, sorted(names))
    columns: Columns = {}
    mixed = set[str]()
    for name, parts in zip(names, zip(*pieces, strict=True), strict=True) if pieces else ():
        kinds = {part.kind for part in parts} - {"none"}
        if len(kinds) > 1 and not kinds <= {"whole", "number"} and not kinds <= {"day", "moment"}:
            mixed.add(name)
        else:
            columns[name] = _joined(parts, kinds)
    return columns, frozenset(mixed)


def _opened(path: Path) -> Any:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _rows(reader: Any, width: int) -> Iterator[Sequence[str]]:
    """Yield the rows of a table of so many columns; lines without a cell are skipped."""
    for row in reader:
        if len(row) == width:
            yield row
        elif row:
            raise _Unreadable(
                f"line {reader.line_num} has {len(row)} cells, and the first line names {width} "
                "columns"
            )


def _values(cells: Sequence[str], separator: str) -> _Piece:
    """Return the cells of one column as the first kind of value that all of them fit."""
    present = [cell for cell in cells if cell not in MISSING]
    if not present:
        return _Piece("none", np.full(len(cells), np.nan))
    if separator != "," and _have_decimal_commas(present):
        cells = [cell.replace(",", ".") for cell in cells]
        present = [cell.replace(",", ".") for cell in present]
    joined = "".join(present)
    # Python reads 1_000 and the digits of other scripts as numbers; a table means words.
    if joined.isascii() and "_" not in joined:
        whole = _numbers(present, int)
        if whole is not None and len(present) == len(cells):
            return _Piece("whole", whole)
        numbers = _numbers(present, float) if whole is None else whole.astype(np.float64)
        if numbers is not None:
            return _Piece("number", _at_present_cells(numbers, cells, np.nan))
    if set(present) <= _TRUTHS.keys():
        truths = np.array([_TRUTHS[cell] for cell in present])
        if len(present) == len(cells):
            return _Piece("truth", truths)
        return _Piece("truth", _at_present_cells(truths.astype(object), cells, None))
    for kind, form, unit in (("day", _DAY, "D"), ("moment", _MOMENT, "us")):
        if form.fullmatch(present[0]):
            times = _times(present, form, unit)
            if times is not None:
                return _Piece(kind, _at_present_cells(times, cells, np.datetime64("NaT")))
    return _text(cells)


def _have_decimal_commas(cells: Sequence[str]) -> bool:
    """Return whether all cells are numbers once the comma of some is a point."""
    others = [cell for cell in cells if not _DECIMAL_COMMA.fullmatch(cell)]
    return len(others) < len(cells) and _numbers(others, float) is not None


def _text(cells: Sequence[str]) -> _Piece:
    return _Piece(
        "text", np.array([None if cell in MISSING else cell for cell in cells], dtype=object)
    )


def _numbers(cells: Sequence[str], read: Callable[[str], float]) -> NDArray[Any] | None:
    try:
        kind = np.int64 if read is int else np.float64
        return np.array([read(cell) for cell in cells], dtype=kind)
    except (ValueError, OverflowError):
        return None


def _times(cells: Sequence[str], form: re.Pattern[str], unit: str) -> NDArray[Any] | None:
    if not all(form.fullmatch(cell) for cell in cells):
        return None
    try:
        return np.array([_moment(cell) for cell in cells], dtype="datetime64[us]").astype(
            f"datetime64[{unit}]"
        )
    except (ValueError, OverflowError):
        return None


def _moment(cell: str) -> datetime:
    """Return a moment without a time zone, in UTC if it has one.

    Raise `ValueError` or `OverflowError` if the calendar has no such moment.
    """
    moment = datetime.fromisoformat(cell)
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _at_present_cells(values: NDArray[Any], cells: Sequence[str], missing: Any) -> NDArray[Any]:
    """Return the values at the places of their cells, and a blank for each missing one."""
    whole = np.full(len(cells), missing, dtype=values.dtype)
    whole[[cell not in MISSING for cell in cells]] = values
    return whole


def _joined(parts: Sequence[_Piece], kinds: set[str]) -> NDArray[Any]:
    """Return the pieces of a column as one array."""
    blank = _BLANK.get(min(kinds, default=""))
    return np.concatenate(
        [
            part.values
            if blank is None or part.kind != "none"
            else np.full(len(part.values), blank)
            for part in parts
        ]
    )
