"""The matched data set: the rows of a table that are in pairs, with their weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.match import MatchResult
from equipoise.matching.stratified import MatchByResult
from equipoise.matching.units import Indices
from equipoise.model.extras import require
from equipoise.tables.csv_file import Columns
from equipoise.tables.problem import MatchTable
from equipoise.tables.reading import take_rows

ROW, PAIR, STRATUM, WEIGHT = "row", "pair", "stratum", "weight"


def matched_numbers(result: MatchResult, rows: Indices, cells: NDArray[np.int64] | None) -> Columns:
    """Return ``row``, ``pair``, ``stratum`` and ``weight`` of each row of the matched data.

    A pair is a unit that looked for matches, with all its matches. It gives a row for the unit,
    whose weight is the sum over its matches, and behind it a row for each match. So the mean of the
    treated less that of the controls, both weighted, is the effect.

    Parameters
    ----------
    result
        A match of the rows that take part.
    rows
        Number in the table of each of these rows, from 0.
    cells
        Cell of exact matching of each of these rows, from 0.
    """
    is_treated = result.matched_treated
    query = np.where(is_treated, result.treated_index, result.control_index)
    other = np.where(is_treated, result.control_index, result.treated_index)
    _, first, pair = np.unique(query, return_index=True, return_inverse=True)
    pair = pair.reshape(-1)
    stratum = np.zeros(len(query), dtype=np.int64) if cells is None else cells[query]
    if isinstance(result, MatchByResult):
        stratum = result.stratum
    order = np.argsort(np.concatenate([np.arange(len(first)), pair]), kind="stable")
    return {
        ROW: rows[np.concatenate([query[first], other])[order]],
        PAIR: np.concatenate([np.arange(len(first)), pair])[order] + 1,
        STRATUM: np.concatenate([stratum[first], stratum])[order] + 1,
        WEIGHT: np.concatenate([np.bincount(pair, result.weights), result.weights])[order],
    }


def matched_columns(table: MatchTable, numbers: Columns) -> Columns:
    """Return the matched data: all columns of the table, then the ``matched_numbers``."""
    return {**take_rows(table.columns, numbers[ROW]), **_named(numbers, table.columns)}


def matched_frame(frame: Any, table: MatchTable, numbers: Columns) -> Any:
    """Return the matched data as a frame of the library that the table came from.

    A table from a file or a mapping gives a frame of pandas.
    """
    if isinstance(frame, str | Path | Mapping):
        return require("pandas", "frames").DataFrame(matched_columns(table, numbers))
    narwhals = require("narwhals", "data frames")
    native = narwhals.from_native(frame, pass_through=True)
    if isinstance(native, narwhals.LazyFrame):
        native = native.collect()
    if not isinstance(native, narwhals.DataFrame):
        native = narwhals.from_native(require("pyarrow", "Arrow streams").table(frame))
    taken = native[numbers[ROW].tolist()]
    added = [
        narwhals.new_series(name, values, backend=native.implementation)
        for name, values in _named(numbers, table.columns).items()
    ]
    joined = narwhals.concat(
        [_renumbered(narwhals, taken), *(series.to_frame() for series in added)], how="horizontal"
    )
    return joined.to_native()


def _renumbered(narwhals: Any, frame: Any) -> Any:
    """Return a frame of pandas with its rows numbered anew: a row may be there several times."""
    native = narwhals.to_native(frame)
    if hasattr(native, "reset_index"):
        return narwhals.from_native(native.reset_index(drop=True))
    return frame


def _named(numbers: Columns, columns: Mapping[str, Any]) -> Columns:
    """Return the numbers under names that no column has: a taken name gets ``match_`` before it."""
    named: Columns = {}
    for name, values in numbers.items():
        while name in columns:
            name = f"match_{name}"
        named[name] = values
    return named
