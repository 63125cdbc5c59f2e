"""Tables from CSV and Parquet files, whole or a stratum at a time."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from equipoise.observation.question import Log, Question
    from equipoise.observation.strata import StratifiedLog

PARQUET_ENDINGS = (".parquet", ".pq")
ENDINGS = (".csv", ".csv.gz", *PARQUET_ENDINGS)


def read_table(path: Path, as_text: Sequence[str] = ()) -> Any:
    """Read a whole file as a pyarrow table, in the format of its ending.

    Parameters
    ----------
    as_text
        Columns of a CSV file that hold names: as numbers, the versions 1.1 and 1.10 would be
        one. An empty cell is a missing value in every text column.

    Raises
    ------
    UnusableInput
        The file does not exist, has another ending or content, or two columns of one name; or
        pyarrow is not installed.
    """
    name = path.name.lower()
    if not name.endswith(ENDINGS):
        raise UnusableInput(
            f"{path}: no table is read from '{path.suffix}'",
            hint=f"give a file that ends in {', '.join(ENDINGS)}",
        )
    with _pyarrow(path, "csv", "parquet") as (arrow, csv, parquet):
        if name.endswith(PARQUET_ENDINGS):
            table = parquet.read_table(path)
        else:
            table = _read_csv(csv, path, arrow.ArrowException, as_text)
    repeated = [column for column, number in Counter(table.column_names).items() if number > 1]
    if repeated:
        raise UnusableInput(
            f"{path}: more than one column {', '.join(repeated)}", hint="rename all but one"
        )
    if not table.num_rows:
        raise _no_row(path)
    return table


def read_strata(name: str, column: str, question: Question) -> StratifiedLog:
    """Find the strata of a Parquet file; each stratum's rows are read when they are needed.

    Raises
    ------
    UnusableInput
        The file is no Parquet file, a column is missing, or a stratum has no name.
    """
    from equipoise.matching.frames import columns_of
    from equipoise.observation.question import text_of
    from equipoise.observation.strata import StratifiedLog

    path = Path(name)
    if not name.lower().endswith(PARQUET_ENDINGS):
        raise UnusableInput(
            f"{name}: --strata reads Parquet files only: any other file would be read whole for "
            "each stratum",
            hint="save it as Parquet, such as by pandas.read_csv(…).to_parquet(…)",
        )
    with _pyarrow(path, "dataset") as (arrow, datasets):
        dataset = datasets.dataset(path, format="parquet")
        known = dataset.schema.names
        named = (
            *(column, question.treatment, question.outcome),
            *(question.covariates or ()),
            *question.exact,
            *(question.cluster or ()),
        )
        needed = list(dict.fromkeys(named))
        missing = [name for name in needed if name not in known]
        if missing:
            raise UnusableInput(
                f"{path}: there is no column {', '.join(missing)}",
                hint=f"the columns are {', '.join(known)}",
            )
        values = _distinct(dataset, column)
        versions = _distinct(dataset, question.treatment)
    if not values:
        raise _no_row(path)
    if None in values:
        raise UnusableInput(
            f"--strata: {column} is missing in some rows", hint="fill it in, or leave them out"
        )
    by_name = {text_of(value): value for value in sorted(values)}

    def read(name: str) -> Log:
        value = arrow.scalar(by_name[name], _value_type(dataset, column))
        with _pyarrow(path):
            table = dataset.to_table(columns=needed, filter=datasets.field(column) == value)
        return columns_of(table) or {}

    distinct = arrow.array(versions, _value_type(dataset, question.treatment))
    log = columns_of(arrow.table({question.treatment: distinct})) or {}
    return StratifiedLog(column, tuple(by_name), log, read)


@contextmanager
def _pyarrow(path: Path, *modules: str) -> Iterator[tuple[Any, ...]]:
    """Import pyarrow and some of its modules; report its errors about the file as the user's."""
    if not path.is_file():
        raise UnusableInput(f"{path}: there is no such file", hint="check the name")
    try:
        arrow = importlib.import_module("pyarrow")
        loaded = (arrow, *(importlib.import_module(f"pyarrow.{module}") for module in modules))
    except ImportError as error:
        raise UnusableInput(
            f"{path}: reading it needs pyarrow", hint="pip install 'equipoise[matching]'"
        ) from error
    try:
        yield loaded
    except (arrow.ArrowException, OSError) as error:
        raise UnusableInput(
            f"{path}: {' '.join(str(error).split())}",
            hint="correct the file, or save it again from the program that wrote it",
        ) from error


def _no_row(path: Path) -> UnusableInput:
    return UnusableInput(f"{path}: the table has no row", hint="give a table with rows")


def _read_csv(csv: Any, path: Path, arrow_error: type[Exception], as_text: Sequence[str]) -> Any:
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(as_text, "string"), strings_can_be_null=bool(as_text)
    )
    try:
        return csv.read_csv(path, convert_options=convert)
    except arrow_error:
        # Several threads do not know the row of an error; a single one does.
        return csv.read_csv(
            path, read_options=csv.ReadOptions(use_threads=False), convert_options=convert
        )


def _value_type(dataset: Any, column: str) -> Any:
    """Return the type of a column's values; for categories, the type of their names."""
    kind = dataset.schema.field(column).type
    return getattr(kind, "value_type", kind)


def _distinct(dataset: Any, column: str) -> list[Any]:
    """Return the distinct values of a column, in the order of their first rows."""
    values: dict[Any, None] = {}
    for batch in dataset.to_batches(columns=[column]):
        values.update(dict.fromkeys(batch.column(0).unique().to_pylist()))
    return list(values)
