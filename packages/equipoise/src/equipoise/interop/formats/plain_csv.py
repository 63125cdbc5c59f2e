"""A plain CSV: a row is a trial, with the columns ``condition`` and ``value``.

``block``, ``order`` and ``host`` may stand beside them. With blocks, conditions are compared
within them; ``order`` is any number that grows with time. A value is a cost: less is better. The
column of values may also have the name of a metric that ends in ``_s`` (seconds) or ``_bytes``.
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
    quoted,
    value_column,
)

CONDITION, BLOCK, ORDER, HOST = "condition", "block", "order", "host"
_KNOWN = frozenset({CONDITION, BLOCK, ORDER, HOST})


def _recognises(file: SourceFile) -> bool:
    header = csv_header(file)
    return CONDITION in header and value_column(header) is not None


def _read(file: SourceFile) -> Reading:
    header = csv_header(file)
    column = value_column(header)
    if CONDITION not in header or column is None:
        raise file.unusable(
            "its first line does not name the columns condition and value",
            "begin the file with a line such as condition,value,block,order,host",
        )
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise file.unusable(
            f"more than one column {quoted(', '.join(twice))}", "rename all but one"
        )
    others = [name for name in header if name not in _KNOWN and name != column]
    return Reading(
        tool=None,
        metric=column,
        processes=tuple(
            _process(file, number, row, column) for number, row in csv_rows(file, header)
        ),
        compared=BENCHMARK,
        notes=(f"columns that are not used: {quoted(', '.join(others))}",) if others else (),
    )


def _process(file: SourceFile, number: int, row: dict[str, str], column: str) -> Process:
    value = _number(file, number, row, column)
    if value is None:
        raise file.unusable(f"line {number} has no {column}", "leave out rows without a value")
    block = _number(file, number, row, BLOCK)
    if block is None and row.get(BLOCK) is not None:
        raise file.unusable(f"line {number} has no block", "give every row a block, or none")
    if block is not None and block != int(block):
        raise file.unusable(f"line {number}: block {quoted(row[BLOCK])} is no whole number")
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
        raise file.unusable(
            f"line {number}: {quoted(text)} is no {column}", "write numbers as 0.0123"
        )
    return value


FORMAT = Format("csv", "a header condition,value[,block][,order][,host]", _recognises, _read)
