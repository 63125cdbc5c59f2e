"""Read and write CSV with the standard library.

A column has the first of these types that fits all its cells: integers, numbers, truth values,
dates, times, texts. A file is read in blocks of rows, which need little memory.
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
"""The columns of a table by their names."""

MISSING_CELLS = frozenset(
    {"", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "NULL", "null", "NaN", "nan", "-NaN"}
    | {"-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
"""Cells that pandas and Arrow read as missing values."""
_ROWS_PER_BLOCK = 50_000
"""Number of rows whose cells are read at once."""
_SEPARATORS = (",", ";", "\t")
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
"""Truth values by the cells that stand for them."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(rf"{_DATE.pattern}([ T]\d\d:\d\d(:\d\d([.]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
"""A number with a decimal comma, as spreadsheets write it in many languages."""
_HINT = "correct the file, or write it again with the program that made it"


_MISSING_VALUES: Mapping[str, NDArray[Any]] = {
    "text": np.array(None, dtype=object),
    "truth": np.array(None, dtype=object),
    "date": np.array("NaT", dtype="datetime64[D]"),
    "time": np.array("NaT", dtype="datetime64[us]"),
}
"""Missing value by the name of the type. For numbers, which are not here, it is NaN."""


class _ColumnBlock(NamedTuple):
    """Values of one column in successive rows, and their type."""

    type_name: str
    """``none`` (all missing), ``integer``, ``number``, ``truth``, ``date``, ``time``, ``text``."""
    values: NDArray[Any]


class _NotATable(Exception):
    """The content of a file is not a table; the message is the reason."""


def read_csv(path: Path, as_text: Collection[str] = ()) -> Columns:
    """Read a whole file, compressed if its name ends in ``.gz``.

    The separator is a comma, semicolon or tab: the first of these that the first line contains.
    With semicolons or tabs, 1,5 is a number.

    ``as_text`` names columns to read as text, such as versions: as numbers, 1.1 and 1.10 are equal.

    Raise `UnusableInput` if the file is not such a table; the error names the line.
    """
    text_columns = frozenset(as_text)
    try:
        columns, mixed_columns = _read_blocks(path, text_columns)
        if mixed_columns:
            # A later block has texts, so numbers such as 1.10 in earlier blocks become texts too.
            columns, _ = _read_blocks(path, text_columns | mixed_columns)
    except (_NotATable, csv.Error, UnicodeError, EOFError, zlib.error, OSError) as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeError) else str(error)
        raise UnusableInput(f"{path}: {reason}", hint=_HINT) from error
    return columns


def to_csv(columns: Mapping[str, NDArray[Any]]) -> str:
    """Write columns as CSV; a missing value is an empty cell."""
    cells = ([_cell_text(value) for value in column.tolist()] for column in columns.values())
    return csv_text([[*columns], *zip(*cells, strict=True)])


def refuse_repeated(path: Path, names: Iterable[str]) -> None:
    """Raise `UnusableInput` if several columns have the same name."""
    repeated = [name for name, number in Counter(names).items() if number > 1]
    if repeated:
        raise UnusableInput(
            f"{path}: more than one column {', '.join(repeated)}",
            hint=f"rename all but one of the columns {repeated[0]}",
        )


def _cell_text(value: Any) -> Any:
    if value is None or value != value:
        return ""
    return value.isoformat() if hasattr(value, "isoformat") else value


def _read_blocks(path: Path, as_text: frozenset[str]) -> tuple[Columns, frozenset[str]]:
    """Return the columns, and the names of mixed columns, whose blocks have different types."""
    blocks: list[list[_ColumnBlock]] = []
    with _open_text(path) as file:
        first_line = file.readline()
        file.seek(0)
        separator = next((candidate for candidate in _SEPARATORS if candidate in first_line), ",")
        reader = csv.reader(file, delimiter=separator, strict=True)
        try:
            names = next(reader, [])
            rows = _checked_rows(reader, len(names))
            while block_rows := list(islice(rows, _ROWS_PER_BLOCK)):
                cells = zip(*block_rows, strict=True)
                blocks.append(
                    [
                        _text_block(column) if name in as_text else _typed_block(column, separator)
                        for name, column in zip(names, cells, strict=True)
                    ]
                )
        except csv.Error as error:
            raise _NotATable(f"line {reader.line_num}: {error}") from error
    refuse_repeated(path, sorted(names))
    columns: Columns = {}
    mixed_columns = set[str]()
    for name, column_blocks in zip(names, zip(*blocks, strict=True), strict=True) if blocks else ():
        types = {block.type_name for block in column_blocks} - {"none"}
        if len(types) > 1 and not types <= {"integer", "number"} and not types <= {"date", "time"}:
            mixed_columns.add(name)
        else:
            columns[name] = _concatenate(column_blocks, types)
    return columns, frozenset(mixed_columns)


def _open_text(path: Path) -> Any:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _checked_rows(reader: Any, width: int) -> Iterator[Sequence[str]]:
    """Yield the rows, which must have ``width`` cells; empty lines are skipped."""
    for row in reader:
        if len(row) == width:
            yield row
        elif row:
            raise _NotATable(
                f"line {reader.line_num} has {len(row)} cells, but the first line names {width} "
                "columns"
            )


def _typed_block(cells: Sequence[str], separator: str) -> _ColumnBlock:
    """Return the cells of one column as the first type that fits all of them."""
    texts = [cell for cell in cells if cell not in MISSING_CELLS]
    if not texts:
        return _ColumnBlock("none", np.full(len(cells), np.nan))
    if separator != "," and _have_decimal_commas(texts):
        cells = [cell.replace(",", ".") for cell in cells]
        texts = [cell.replace(",", ".") for cell in texts]
    joined = "".join(texts)
    # Python would read 1_000 and digits of other scripts as numbers. In a table, they are texts.
    if joined.isascii() and "_" not in joined:
        integers = _to_numbers(texts, int)
        if integers is not None and len(texts) == len(cells):
            return _ColumnBlock("integer", integers)
        numbers = _to_numbers(texts, float) if integers is None else integers.astype(np.float64)
        if numbers is not None:
            return _ColumnBlock("number", _fill_missing(numbers, cells, np.nan))
    if set(texts) <= _BOOLS.keys():
        truths = np.array([_BOOLS[cell] for cell in texts])
        if len(texts) == len(cells):
            return _ColumnBlock("truth", truths)
        return _ColumnBlock("truth", _fill_missing(truths.astype(object), cells, None))
    for type_name, pattern, unit in (("date", _DATE, "D"), ("time", _TIME, "us")):
        if pattern.fullmatch(texts[0]):
            times = _to_times(texts, pattern, unit)
            if times is not None:
                return _ColumnBlock(type_name, _fill_missing(times, cells, np.datetime64("NaT")))
    return _text_block(cells)


def _have_decimal_commas(cells: Sequence[str]) -> bool:
    """Return whether all cells are numbers, and some have a decimal comma."""
    other_cells = [cell for cell in cells if not _DECIMAL_COMMA.fullmatch(cell)]
    return len(other_cells) < len(cells) and _to_numbers(other_cells, float) is not None


def _text_block(cells: Sequence[str]) -> _ColumnBlock:
    return _ColumnBlock(
        "text", np.array([None if cell in MISSING_CELLS else cell for cell in cells], dtype=object)
    )


def _to_numbers(cells: Sequence[str], to_number: Callable[[str], float]) -> NDArray[Any] | None:
    try:
        dtype = np.int64 if to_number is int else np.float64
        return np.array([to_number(cell) for cell in cells], dtype=dtype)
    except (ValueError, OverflowError):
        return None


def _to_times(cells: Sequence[str], pattern: re.Pattern[str], unit: str) -> NDArray[Any] | None:
    if not all(pattern.fullmatch(cell) for cell in cells):
        return None
    try:
        return np.array([_parse_time(cell) for cell in cells], dtype="datetime64[us]").astype(
            f"datetime64[{unit}]"
        )
    except (ValueError, OverflowError):
        return None


def _parse_time(cell: str) -> datetime:
    """Return the time without its time zone; a time with a zone is converted to UTC.

    Raise `ValueError` or `OverflowError` if this date or time does not exist.
    """
    moment = datetime.fromisoformat(cell)
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _fill_missing(values: NDArray[Any], cells: Sequence[str], missing: Any) -> NDArray[Any]:
    """Return an array with a value for every cell: the given values, and ``missing``."""
    filled = np.full(len(cells), missing, dtype=values.dtype)
    filled[[cell not in MISSING_CELLS for cell in cells]] = values
    return filled


def _concatenate(blocks: Sequence[_ColumnBlock], types: set[str]) -> NDArray[Any]:
    """Return the values of all blocks; ``types`` has the names of their types."""
    # A block without values has no type, so it gets the missing values of the column's type. The
    # smallest name is "date" for a column of dates and times; NumPy converts its missing value.
    missing_value = _MISSING_VALUES.get(min(types, default=""))
    return np.concatenate(
        [
            block.values
            if missing_value is None or block.type_name != "none"
            else np.full(len(block.values), missing_value)
            for block in blocks
        ]
    )
