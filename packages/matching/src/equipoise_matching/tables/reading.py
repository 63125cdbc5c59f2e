"""Read a table from a CSV file, a Parquet file or a data frame, and write a table to a file.

A Parquet table is a file, or a folder of files whose subfolders may be a partition (``day=3/``).
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from equipoise_matching.matching.frames import columns_of
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import install_line, require
from equipoise_matching.tables.csv_file import Columns, read_csv, refuse_repeated, to_csv

PARQUET_ENDINGS = (".parquet", ".pq")
ENDINGS = (".csv", ".csv.gz", ".tsv", *PARQUET_ENDINGS)
WRITABLE_ENDINGS = (".csv", *PARQUET_ENDINGS)
"""Endings of the names of Parquet files, of readable files and of writable files."""
_HIDDEN_PREFIXES = ("_", ".")
"""First characters of the names of files and folders without rows, by convention of Parquet."""


def read_columns(table: Any, as_text: Collection[str] = ()) -> Columns:
    """Return the columns of a table by name, each of shape (rows,), with at least one row.

    Raise `UnusableInput` if the table cannot be read, two columns have the same name, or there is
    no row. Raise it also if pyarrow, for Parquet files, or narwhals, for frames, is not installed.

    Parameters
    ----------
    table
        A path of a CSV or Parquet file, a frame of pandas, polars or pyarrow, anything else with
        Arrow's ``__arrow_c_stream__``, or a mapping of names to columns.
    as_text
        Columns of a CSV file to read as text, such as versions: as numbers, 1.1 and 1.10 are equal.
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
            "file; give arrays to equipoise_matching.match",
        )
    lengths = {len(column) for column in columns.values() if column.ndim == 1}
    if any(column.ndim != 1 for column in columns.values()) or len(lengths) > 1:
        raise UnusableInput("the columns have different lengths", hint="give one value per row")
    if not lengths or not max(lengths):
        raise UnusableInput("the table has no row", hint="give a table with rows")
    return columns


def source_of(table: Any) -> str:
    """Return the name of a table in errors: its path, if it has one."""
    return str(table) if isinstance(table, str | Path) else "the table"


def read_file(path: Path, as_text: Collection[str] = ()) -> Columns:
    """Read a whole CSV or Parquet file, or a folder of Parquet files.

    Raise `UnusableInput` if the file does not exist, its ending is unknown, its content is not a
    table, two columns have the same name, or pyarrow is not installed for a Parquet file.
    """
    if is_parquet(path):
        columns = read_parquet(path)
    elif not path.name.lower().endswith(ENDINGS):
        raise UnusableInput(
            f"{path}: a table cannot be read from a file with the ending '{path.suffix}'",
            hint=f"give a file whose name ends in {', '.join(ENDINGS)}",
        )
    elif not path.is_file():
        raise no_file(path)
    else:
        columns = read_csv(path, as_text)
    if not columns or not len(next(iter(columns.values()))):
        raise no_row(path)
    return columns


def is_parquet(path: Path) -> bool:
    """Return whether a path ends like a Parquet file, or is a folder with Parquet files."""
    if path.name.lower().endswith(PARQUET_ENDINGS):
        return True
    return path.is_dir() and bool(parquet_files(path))


def parquet_files(path: Path) -> list[Path]:
    """Return the file, or all Parquet files below a folder, in the order of their names."""
    if not path.is_dir():
        return [path] if path.is_file() else []
    return sorted(
        file
        for file in path.rglob("*")
        if file.name.lower().endswith(PARQUET_ENDINGS)
        and not any(part.startswith(_HIDDEN_PREFIXES) for part in file.relative_to(path).parts)
        and file.is_file()
    )


def read_parquet(path: Path) -> Columns:
    """Read a whole Parquet file, or all files of a folder. The result may have no rows.

    Raise `UnusableInput` if the file cannot be read, a name is repeated, or pyarrow is missing.
    """
    with pyarrow_for(path, "parquet") as (_, parquet):
        if path.is_dir():
            table = open_parquet(path).to_table()
        else:
            table = parquet.read_table(path)
    refuse_repeated(path, table.column_names)
    return columns_of(table) or {}


def open_parquet(path: Path) -> Any:
    """Open a Parquet file, or a folder of Parquet files, as a data set of pyarrow.

    The data set has every column of every file. A folder ``name=value`` is a column too.

    Raise `UnusableInput` if the file does not exist, the folder has no Parquet files, a column has
    incompatible types in two files, or pyarrow is not installed.
    """
    with pyarrow_for(path, "dataset") as (arrow, datasets):
        files = [str(file.absolute()) for file in parquet_files(path)]
        if not files:
            raise UnusableInput(
                f"{path}: the folder has no Parquet file",
                hint=f"name a folder of files that end in {' or '.join(PARQUET_ENDINGS)}",
            )
        if not path.is_dir():
            return datasets.dataset(files, format="parquet")
        folder = str(path.absolute())
        options = {"format": "parquet", "partitioning": "hive", "partition_base_dir": folder}
        dataset = datasets.dataset(files, **options)
        schemas = [fragment.physical_schema for fragment in dataset.get_fragments()]
        schema = arrow.unify_schemas([dataset.schema, *schemas], promote_options="permissive")
        return datasets.dataset(files, schema=schema, **options)


@contextmanager
def pyarrow_for(path: Path, *modules: str) -> Iterator[tuple[Any, ...]]:
    """Import pyarrow and some of its modules; convert its errors to `UnusableInput`."""
    if not (path.is_file() or path.is_dir()):
        raise no_file(path)
    try:
        arrow = importlib.import_module("pyarrow")
        imported = (arrow, *(importlib.import_module(f"pyarrow.{module}") for module in modules))
    except ImportError as error:
        raise UnusableInput(
            f"{path}: reading Parquet needs pyarrow, which is not installed",
            hint=f"{install_line('pyarrow')}, or save the table as CSV",
        ) from error
    try:
        yield imported
    except (arrow.ArrowException, OSError) as error:
        raise UnusableInput(
            f"{path}: pyarrow cannot read it: {' '.join(str(error).split())}",
            hint="write the file again with the program that made it",
        ) from error


def no_file(path: Path) -> UnusableInput:
    """Return the error for a path without a file."""
    return UnusableInput(f"{path}: there is no such file", hint="check the path")


def no_row(path: Path) -> UnusableInput:
    """Return the error for a file without rows."""
    return UnusableInput(f"{path}: the table has no row", hint="give a table with rows")


def check_writable(path: Path) -> None:
    """Check, before the work begins, that a table can be written to a path.

    Raise `UnusableInput` for an unknown ending, or for a Parquet file without pyarrow.
    """
    if not path.name.lower().endswith(WRITABLE_ENDINGS):
        raise UnusableInput(
            f"{path}: a table cannot be written to a file with the ending '{path.suffix}'",
            hint=f"end the name of the file with one of {', '.join(WRITABLE_ENDINGS)}",
        )
    if not path.name.lower().endswith(".csv"):
        require("pyarrow", "Parquet files")


def file_content(path: Path, columns: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the content of a CSV or Parquet file with these columns, by the ending of its name.

    Raise `UnusableInput` for the same reasons as `check_writable`.
    """
    check_writable(path)
    if path.name.lower().endswith(".csv"):
        return to_csv(columns).encode("utf-8", "backslashreplace")
    arrow = require("pyarrow", "Parquet files")
    parquet = require("pyarrow.parquet", "Parquet files")
    buffer = io.BytesIO()
    parquet.write_table(arrow.table(dict(columns)), buffer)
    return buffer.getvalue()
