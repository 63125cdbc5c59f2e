"""Reads a CSV with the columns ``condition`` and ``value``: each row is a trial.

The columns ``block``, ``order`` and ``host`` are optional. Conditions are compared within blocks;
``order`` is any number that increases with time. Lower values are better. The column of values may
also have the name of a metric that ends in ``_s`` (seconds) or ``_bytes``.
"""

from __future__ import annotations

from equipoise.interop.reading import (
    BENCHMARK,
    Format,
    Process,
    Reading,
    SourceFile,
    csv_header,
    csv_rows,
    finite_number,
    quote,
    value_column,
)

CONDITION, BLOCK, ORDER, HOST = "condition", "block", "order", "host"
_KNOWN_COLUMNS = frozenset({CONDITION, BLOCK, ORDER, HOST})


def _recognises(file: SourceFile) -> bool:
    header = csv_header(file)
    return CONDITION in header and value_column(header) is not None


def _read(file: SourceFile) -> Reading:
    header = csv_header(file)
    column = value_column(header)
    if CONDITION not in header or column is None:
        raise file.error(
            "the first line does not name the columns condition and value",
            "begin the file with a line such as condition,value,block,order,host",
        )
    if repeated := sorted({name for name in header if header.count(name) > 1}):
        names = quote(", ".join(repeated))
        raise file.error(f"more than one column {names}", "rename all but one")
    unused = [name for name in header if name not in _KNOWN_COLUMNS and name != column]
    return Reading(
        tool=None,
        metric=column,
        processes=tuple(
            _process(file, line_number, row, column) for line_number, row in csv_rows(file, header)
        ),
        compared_factor=BENCHMARK,
        notes=(f"columns that are not used: {quote(', '.join(unused))}",) if unused else (),
    )


def _process(file: SourceFile, line_number: int, row: dict[str, str], column: str) -> Process:
    value = _number(file, line_number, row, column)
    if value is None:
        raise file.error(f"line {line_number} has no {column}", "leave out rows without a value")
    block = _number(file, line_number, row, BLOCK)
    if block is None and row.get(BLOCK) is not None:
        hint = "give a block in every row, or in no row"
        raise file.error(f"line {line_number} has no block", hint)
    if block is not None and block != int(block):
        raise file.error(f"line {line_number}: block {quote(row[BLOCK])} is not a whole number")
    return Process(
        row[CONDITION],
        {column: value},
        block=None if block is None else int(block),
        order=_number(file, line_number, row, ORDER),
        host=row.get(HOST) or None,
    )


def _number(file: SourceFile, line_number: int, row: dict[str, str], column: str) -> float | None:
    text = row.get(column, "").strip()
    value = finite_number(text)
    if text and value is None:
        raise file.error(
            f"line {line_number}: {quote(text)} is not a number (column {column})",
            "write numbers as 0.0123",
        )
    return value


FORMAT = Format("csv", "a header condition,value[,block][,order][,host]", _recognises, _read)
