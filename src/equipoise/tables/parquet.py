"""Parquet: one file, or a folder of them whose subfolders may be a partition (``day=3/``)."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from equipoise.matching.frames import columns_of
from equipoise.model.errors import UnusableInput
from equipoise.model.extras import install_line
from equipoise.tables.csv_file import Columns

PARQUET_ENDINGS = (".parquet", ".pq")
_HIDDEN = ("_", ".")
"""First letters of names that writers of Parquet give to files and folders without rows."""


def is_parquet(path: Path) -> bool:
    """Return whether the name is that of a Parquet file, or of a folder that holds some."""
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
        and not any(part.startswith(_HIDDEN) for part in file.relative_to(path).parts)
        and file.is_file()
    )


def read_parquet(path: Path) -> Columns:
    """Read a whole Parquet file, or all files of a folder; maybe no row.

    Raises
    ------
    UnusableInput
        There is no such file, it cannot be read, two columns have one name, or pyarrow is missing.
    """
    with pyarrow_for(path, "parquet") as (_, parquet):
        if path.is_dir():
            table = open_parquet(path).to_table()
        else:
            table = parquet.read_table(path)
    repeated = [name for name, number in Counter(table.column_names).items() if number > 1]
    if repeated:
        raise UnusableInput(
            f"{path}: more than one column {', '.join(repeated)}", hint="rename all but one"
        )
    return columns_of(table) or {}


def open_parquet(path: Path) -> Any:
    """Open a Parquet file or a folder of them as a data set of pyarrow.

    The columns are those of all files together. A folder ``name=value`` is a column of its rows.

    Raises
    ------
    UnusableInput
        There is no such file, no file of the folder is Parquet, the files' columns do not fit each
        other, or pyarrow is missing.
    """
    with pyarrow_for(path, "dataset") as (arrow, datasets):
        files = [str(file.absolute()) for file in parquet_files(path)]
        if not files:
            raise UnusableInput(
                f"{path}: no file of the folder is Parquet",
                hint=f"name a folder of files that end in {' or '.join(PARQUET_ENDINGS)}",
            )
        if not path.is_dir():
            return datasets.dataset(files, format="parquet")
        base = str(path.absolute())
        options = {"format": "parquet", "partitioning": "hive", "partition_base_dir": base}
        dataset = datasets.dataset(files, **options)
        schemas = [fragment.physical_schema for fragment in dataset.get_fragments()]
        together = arrow.unify_schemas([dataset.schema, *schemas], promote_options="permissive")
        return datasets.dataset(files, schema=together, **options)


@contextmanager
def pyarrow_for(path: Path, *modules: str) -> Iterator[tuple[Any, ...]]:
    """Import pyarrow and some of its modules; report its errors about the file as the user's."""
    if not (path.is_file() or path.is_dir()):
        raise no_file(path)
    try:
        arrow = importlib.import_module("pyarrow")
        loaded = (arrow, *(importlib.import_module(f"pyarrow.{module}") for module in modules))
    except ImportError as error:
        raise UnusableInput(
            f"{path}: reading it needs pyarrow",
            hint=f"{install_line('equipoise[matching]')}, or save it as CSV",
        ) from error
    try:
        yield loaded
    except (arrow.ArrowException, OSError) as error:
        raise UnusableInput(
            f"{path}: {' '.join(str(error).split())}",
            hint="correct the file, or save it again from the program that wrote it",
        ) from error


def no_file(path: Path) -> UnusableInput:
    """Return the error of a path without a file."""
    return UnusableInput(f"{path}: there is no such file", hint="check the name")


def no_row(path: Path) -> UnusableInput:
    """Return the error of a file without a row."""
    return UnusableInput(f"{path}: the table has no row", hint="give a table with rows")
