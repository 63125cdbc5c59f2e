"""Reads a CSV with the columns ``commit`` and ``value``: each row is the value of a commit.

The columns ``date``, ``benchmark``, ``setting`` and ``unit`` are optional. The column of values may
also have the name of a metric that ends in ``_s`` (seconds) or ``_bytes``.
"""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.interop.reading import (
    VALUE,
    Format,
    SourceFile,
    csv_header,
    csv_rows,
    finite_number,
    quote,
    value_column,
)
from equipoise.interop.series.reading import SeriesReading, SeriesValue, utc_time

COMMIT, DATE = "commit", "date"
BENCHMARK, SETTING, UNIT = "benchmark", "setting", "unit"
_KNOWN_COLUMNS = frozenset({COMMIT, DATE, VALUE, BENCHMARK, SETTING, UNIT})
_UNITS = {"_s": "seconds", "_bytes": "bytes"}
"""Unit of a metric, by the end of its name."""


def _recognises(file: SourceFile) -> bool:
    header = csv_header(file)
    return COMMIT in header and value_column(header) is not None


def _read(file: SourceFile) -> SeriesReading:
    header = csv_header(file)
    column = value_column(header)
    if COMMIT not in header or column is None or len(set(header)) < len(header):
        raise file.error(
            "the first line does not name the columns commit and value once each",
            "begin the file with a line such as commit,date,value",
        )
    unused = [name for name in header if name not in _KNOWN_COLUMNS and name != column]
    notes = (f"Columns that are not used: {quote(', '.join(unused))}.",) if unused else ()
    return SeriesReading("CSV", tuple(_read_values(file, header, column)), notes)


def _read_values(file: SourceFile, header: list[str], column: str) -> Iterator[SeriesValue]:
    unit = next((unit for suffix, unit in _UNITS.items() if column.endswith(suffix)), None)
    for line_number, row in csv_rows(file, header):
        cells = {name: cell.strip() for name, cell in row.items()}
        yield _read_value(file, line_number, cells, column, unit)


def _read_value(
    file: SourceFile, line_number: int, cells: dict[str, str], column: str, unit: str | None
) -> SeriesValue:
    value, date = finite_number(cells[column]), cells.get(DATE, "")
    if value is None:
        raise file.error(
            f"line {line_number}: {quote(cells[column])} is not a number (column {column})",
            "write numbers as 0.0123",
        )
    time = utc_time(date) if date else None
    if date and time is None:
        problem = f"line {line_number}: {quote(date)} is not a date"
        raise file.error(problem, "write dates as 2026-07-31")
    return SeriesValue(
        benchmark=cells.get(BENCHMARK) or file.path.name.removesuffix(file.path.suffix),
        metric=column,
        unit=cells.get(UNIT) or unit,
        setting=cells.get(SETTING, ""),
        commit=cells[COMMIT],
        date=time,
        value=value,
    )


FORMAT = Format(
    "csv", "a header commit,date,value[,benchmark][,setting][,unit]", _recognises, _read
)
