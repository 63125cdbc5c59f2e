"""Tables out of CSV and Parquet files."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equipoise.model.errors import UnusableInput

ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq")


def read_table(path: Path, as_text: Sequence[str] = ()) -> Any:
    """Read a whole file as a pyarrow table; its ending says how.

    Parameters
    ----------
    as_text
        Columns of a CSV file that are names, whatever they look like: as numbers the versions 1.1
        and 1.10 would be one. An empty cell is missing, in every column of words.

    Raises
    ------
    UnusableInput
        There is no such file, its ending or its content is another, two columns share a
        name, or pyarrow is not installed.
    """
    name = path.name.lower()
    if not name.endswith(ENDINGS):
        raise UnusableInput(
            f"{path}: no table is read from '{path.suffix}'",
            hint=f"give a file that ends in {', '.join(ENDINGS)}",
        )
    if not path.is_file():
        raise UnusableInput(f"{path}: there is no such file", hint="check the name")
    try:
        csv, parquet = (importlib.import_module(f"pyarrow.{kind}") for kind in ("csv", "parquet"))
        faulty = importlib.import_module("pyarrow").ArrowException
    except ImportError as error:
        raise UnusableInput(
            f"{path}: reading it needs pyarrow", hint="pip install 'equipoise[matching]'"
        ) from error
    try:
        is_parquet = name.endswith(ENDINGS[2:])
        table = parquet.read_table(path) if is_parquet else _read_csv(csv, path, faulty, as_text)
    except (faulty, OSError) as error:
        raise UnusableInput(
            f"{path}: {' '.join(str(error).split())}",
            hint="correct the file, or save it again from the program that wrote it",
        ) from error
    twice = [column for column, number in Counter(table.column_names).items() if number > 1]
    if twice:
        raise UnusableInput(
            f"{path}: more than one column {', '.join(twice)}", hint="rename all but one"
        )
    if not table.num_rows:
        raise UnusableInput(f"{path}: no row", hint="give a table with rows")
    return table


def _read_csv(csv: Any, path: Path, faulty: type[Exception], as_text: Sequence[str]) -> Any:
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(as_text, "string"), strings_can_be_null=bool(as_text)
    )
    try:
        return csv.read_csv(path, convert_options=convert)
    except faulty:
        # Of several threads none knows in which row it is; a single one says it.
        return csv.read_csv(
            path, read_options=csv.ReadOptions(use_threads=False), convert_options=convert
        )
