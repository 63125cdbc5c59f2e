"""A table as columns: of a CSV or Parquet file, or of a data frame; and back into either."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from equipoise.files.writing import write_whole
from equipoise.matching.frames import columns_of
from equipoise.model.errors import UnusableInput
from equipoise.model.extras import require
from equipoise.tables.csv_file import Columns, read_csv, to_csv
from equipoise.tables.parquet import PARQUET_ENDINGS, is_parquet, no_file, no_row, read_parquet

ENDINGS = (".csv", ".csv.gz", ".tsv", *PARQUET_ENDINGS)
WRITTEN_ENDINGS = (".csv", *PARQUET_ENDINGS)


def read_columns(table: Any, as_text: Collection[str] = ()) -> Columns:
    """Return the columns of a table by name, each of shape (rows,); at least one row.

    Parameters
    ----------
    table
        A path of a CSV or Parquet file, a frame of pandas, polars or pyarrow, anything else with
        Arrow's ``__arrow_c_stream__``, or a mapping of names to columns.
    as_text
        Columns of a CSV file that hold names: as numbers, the versions 1.1 and 1.10 would be one.

    Raises
    ------
    UnusableInput
        The table cannot be read, has two columns of one name, or has no row; or a Parquet file
        needs pyarrow, a frame needs narwhals, and it is not installed.
    """
    if isinstance(table, str | Path):
        return read_file(Path(table), as_text)
    columns = columns_of(table)
    if columns is None and hasattr(table, "__arrow_c_stream__"):
        columns = columns_of(require("pyarrow", "Arrow streams").table(table))
    if columns is None:
        raise UnusableInput(
            f"a table is needed, not {type(table).__name__}",
            hint="give a data frame of pandas, polars or pyarrow, or the name of a CSV or Parquet "
            "file; arrays go into equipoise.matching",
        )
    lengths = {len(column) for column in columns.values() if column.ndim == 1}
    if any(column.ndim != 1 for column in columns.values()) or len(lengths) > 1:
        raise UnusableInput("the columns are of different lengths", hint="give one value per row")
    if not lengths or not max(lengths):
        raise UnusableInput("the table has no row", hint="give a table with rows")
    return columns


def read_file(path: Path, as_text: Collection[str] = ()) -> Columns:
    """Read a whole CSV or Parquet file, in the format of its ending, or a folder of Parquet files.

    Raises
    ------
    UnusableInput
        The file does not exist, has another ending or content, or two columns of one name; or it
        is a Parquet file and pyarrow is not installed.
    """
    if is_parquet(path):
        columns = read_parquet(path)
    elif not path.name.lower().endswith(ENDINGS):
        raise UnusableInput(
            f"{path}: no table is read from '{path.suffix}'",
            hint=f"give a file that ends in {', '.join(ENDINGS)}",
        )
    elif not path.is_file():
        raise no_file(path)
    else:
        columns = read_csv(path, as_text)
    if not columns or not len(next(iter(columns.values()))):
        raise no_row(path)
    return columns


def check_writable(path: Path) -> None:
    """Check before the work that a table can be written at a path.

    Raises
    ------
    UnusableInput
        The ending is of no form that is written, or pyarrow is missing for a Parquet file.
    """
    if not path.name.lower().endswith(WRITTEN_ENDINGS):
        raise UnusableInput(
            f"{path}: no table is written as '{path.suffix}'",
            hint=f"end the name in {', '.join(WRITTEN_ENDINGS)}",
        )
    if not path.name.lower().endswith(".csv"):
        require("pyarrow", "Parquet files")


def write_columns(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Replace a file by these columns, as CSV or Parquet, in the format of its ending.

    Raises
    ------
    UnusableInput
        The file cannot be written in this form.
    """
    check_writable(path)
    if path.name.lower().endswith(".csv"):
        content = to_csv(columns).encode("utf-8", "backslashreplace")
    else:
        arrow = require("pyarrow", "Parquet files")
        parquet = require("pyarrow.parquet", "Parquet files")
        buffer = io.BytesIO()
        parquet.write_table(
            arrow.table({name: arrow.array(values) for name, values in columns.items()}), buffer
        )
        content = buffer.getvalue()
    try:
        write_whole(path, content)
    except OSError as error:
        raise UnusableInput(
            f"cannot write {path}: {error.strerror}", hint="name another file"
        ) from error
