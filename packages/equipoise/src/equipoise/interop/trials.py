"""Writes trials as a flat table for other programs: one row for each trial."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Iterator
from itertools import chain
from typing import Any, Literal

from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.model.result import ResultDocument, TrialRow
from equipoise.shared.extras import install_line
from equipoise.shared.safe_text import as_unicode, csv_text

CellKind = Literal["text", "integer", "number", "truth", "numbers", "texts"]
"""Type of the cells of a column: ``truth`` is Boolean, ``numbers`` a list, ``texts`` a mapping."""

_COLUMN_KINDS: dict[str, CellKind] = {
    "block": "integer",
    "position": "integer",
    "condition": "text",
    "phase": "text",
    "analysed": "truth",
    "left_out_because": "text",
    "wall_s": "number",
    "user_s": "number",
    "sys_s": "number",
    "max_rss_bytes": "integer",
    "minor_faults": "integer",
    "major_faults": "integer",
    "voluntary_switches": "integer",
    "involuntary_switches": "integer",
    "exit": "integer",
    "failure": "text",
    "failure_kind": "text",
    "unknown": "texts",
    "layout": "integer",
}
"""Fields of a trial that become columns, with the kind of the cells."""
_COLUMN_PREFIXES = {"covariates": "covariate", "metrics": "metric", "iterations": "iterations"}
"""Fields whose entries become columns, and the prefix of the names of these columns."""


class Column(Struct, frozen=True):
    """A column; each cell has the type of the column, or is ``None``."""

    name: str
    kind: CellKind
    cells: tuple[Any, ...]


def columns_of(document: ResultDocument) -> tuple[Column, ...]:
    """Return the trials as columns.

    The first columns are fields of ``TrialRow``. Then come ``level_<factor>`` for each factor,
    ``covariate_<name>``, ``metric_<name>`` (metrics of the workload), ``iterations_<name>``, and
    the columns of the kind of campaign. Unknown or infinite values are ``None``.
    """
    rows = document.trials
    levels_by_condition = {condition.name: condition.levels for condition in document.conditions}
    columns = [
        Column(name, kind, tuple(_finite_cell(getattr(row, name)) for row in rows))
        for name, kind in _COLUMN_KINDS.items()
    ]
    for factor in dict.fromkeys(chain.from_iterable(levels_by_condition.values())):
        cells = tuple(levels_by_condition.get(row.condition, {}).get(factor) for row in rows)
        columns.append(Column(f"level_{factor}", "text", cells))
    for field in _COLUMN_PREFIXES:
        columns.extend(_mapping_columns(rows, field))
    columns.extend(Column(*column) for column in document.trial_columns())
    return tuple(columns)


def to_json(document: ResultDocument) -> bytes:
    """Return a JSON list of objects, one for each trial."""
    columns = columns_of(document)
    names = [column.name for column in columns]
    rows = [
        dict(zip(names, cells, strict=True))
        for cells in zip(*(column.cells for column in columns), strict=True)
    ]
    return _encode(json.dumps(rows, allow_nan=False, ensure_ascii=False, indent=1) + "\n")


def to_csv(document: ResultDocument) -> bytes:
    """Return CSV in UTF-8, quoted as in RFC 4180: a header, and one line for each trial.

    Unknown values are empty cells. Booleans, lists and mappings are written as in JSON.
    """
    columns = columns_of(document)
    header = [column.name for column in columns]
    rows = zip(*(map(_csv_cell, column.cells) for column in columns), strict=True)
    return _encode(csv_text([header, *rows]))


def to_parquet(document: ResultDocument) -> bytes:
    """Return a Parquet file, in which even a column without values has its type.

    Raise `UnusableInput` if pyarrow is not installed.
    """
    try:
        pyarrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise UnusableInput(
            "Parquet needs pyarrow, which is not installed",
            hint=f"{install_line('equipoise[matching]')}, or export to .csv or .json",
        ) from error
    types = {
        "text": pyarrow.string(),
        "integer": pyarrow.int64(),
        "number": pyarrow.float64(),
        "truth": pyarrow.bool_(),
        "numbers": pyarrow.list_(pyarrow.float64()),
        "texts": pyarrow.map_(pyarrow.string(), pyarrow.string()),
    }
    columns = columns_of(document)
    table = pyarrow.table(
        [
            pyarrow.array(map(_parquet_cell, column.cells), type=types[column.kind])
            for column in columns
        ],
        schema=pyarrow.schema(
            [(as_unicode(column.name), types[column.kind]) for column in columns]
        ),
    )
    buffer = pyarrow.BufferOutputStream()
    parquet.write_table(table, buffer)
    content: bytes = buffer.getvalue().to_pybytes()
    return content


def _mapping_columns(rows: tuple[TrialRow, ...], field: str) -> Iterator[Column]:
    kind: CellKind = "numbers" if field == "iterations" else "number"
    for name in dict.fromkeys(chain.from_iterable(getattr(row, field) for row in rows)):
        cells = tuple(_finite_cell(getattr(row, field).get(name)) for row in rows)
        yield Column(f"{_COLUMN_PREFIXES[field]}_{name}", kind, cells)


def _finite_cell(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return list(map(_finite_cell, value))
    return value if value != {} else None


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return value


def _parquet_cell(value: Any) -> Any:
    if isinstance(value, dict):
        return [(as_unicode(key), as_unicode(text)) for key, text in value.items()]
    return as_unicode(value) if isinstance(value, str) else value


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
