"""Read a plain CSV: a row is a trial, with the columns ``condition`` and ``value``.

The columns ``block``, ``order`` and ``host`` are optional. Conditions are compared within blocks;
``order`` is any number that grows with time. A value is a cost: lower is better. The column of
values may also have the name of a metric that ends in ``_s`` (seconds) or ``_bytes``.
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
_OTHER_COLUMNS = frozenset({CONDITION, BLOCK, ORDER, HOST})


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
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise file.error(f"more than one column {quote(', '.join(repeated))}", "rename all but one")
    unused = [name for name in header if name not in _OTHER_COLUMNS and name != column]
    return Reading(
        tool=None,
        metric=column,
        processes=tuple(
            _process(file, number, row, column) for number, row in csv_rows(file, header)
        ),
        compared_factor=BENCHMARK,
        notes=(f"columns that are not used: {quote(', '.join(unused))}",) if unused else (),
    )


def _process(file: SourceFile, number: int, row: dict[str, str], column: str) -> Process:
    value = _number(file, number, row, column)
    if value is None:
        raise file.error(f"line {number} has no {column}", "leave out rows without a value")
    block = _number(file, number, row, BLOCK)
    if block is None and row.get(BLOCK) is not None:
        raise file.error(f"line {number} has no block", "give a block in every row, or in no row")
    if block is not None and block != int(block):
        raise file.error(f"line {number}: block {quote(row[BLOCK])} is not a whole number")
    return Process(
        row[CONDITION],
        {column: value},
        block=None if block is None else int(block),
        order=_number(file, number, row, ORDER),
        host=row.get(HOST) or None,
    )


def _number(file: SourceFile, number: int, row: dict[str, str], column: str) -> float | None:
    text = row.get(column, "").strip()
    value = finite_number(text)
    if text and value is None:
        raise file.error(
            f"line {number}: {quote(text)} is not a number ({column})", "write numbers as 0.0123"
        )
    return value


FORMAT = Format("csv", "a header condition,value[,block][,order][,host]", _recognises, _read)
