"""A Parquet file of which one stratum is read at a time, and only the columns of the question."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from equipoise.matching.frames import columns_of
from equipoise.model.errors import UnusableInput
from equipoise.observation.arms import text_of
from equipoise.observation.question import Log, Question
from equipoise.observation.strata import StratifiedLog

ENDINGS = (".parquet", ".pq")


def read_strata(named: str, column: str, question: Question) -> StratifiedLog:
    """Find the strata of a file; their rows are read when they are asked for.

    Raises
    ------
    UnusableInput
        It is no Parquet file, a column is not there, or a stratum has no name.
    """
    path = Path(named)
    if not named.lower().endswith(ENDINGS):
        raise UnusableInput(
            f"{named}: by strata only Parquet is read: of other files every row would be read "
            "for each stratum",
            hint="save it as Parquet, such as by pandas.read_csv(…).to_parquet(…)",
        )
    if not path.is_file():
        raise UnusableInput(f"{path}: there is no such file", hint="check the name")
    try:
        arrow, datasets = (importlib.import_module(f"pyarrow{part}") for part in ("", ".dataset"))
    except ImportError as error:
        raise UnusableInput(
            f"{path}: reading it needs pyarrow", hint="pip install 'equipoise[matching]'"
        ) from error
    with _faults_named(path, arrow):
        dataset = datasets.dataset(path, format="parquet")
        there = dataset.schema.names
        needed = _needed(column, question)
        missing = [name for name in needed if name not in there]
        if missing:
            raise UnusableInput(
                f"{path}: there is no column {', '.join(missing)}",
                hint=f"there are {', '.join(there)}",
            )
        values = _distinct(dataset, column)
        versions = _distinct(dataset, question.treatment)
    if not values:
        raise UnusableInput(f"{path}: no row", hint="give a table with rows")
    if None in values:
        raise UnusableInput(
            f"--strata: {column} is missing in some rows", hint="fill it in, or leave them out"
        )
    by_name = {text_of(value): value for value in sorted(values)}

    def read(name: str) -> Log:
        one = arrow.scalar(by_name[name], _plain_type(dataset, column))
        with _faults_named(path, arrow):
            table = dataset.to_table(columns=list(needed), filter=datasets.field(column) == one)
        return columns_of(table) or {}

    distinct = arrow.array(versions, _plain_type(dataset, question.treatment))
    log = columns_of(arrow.table({question.treatment: distinct})) or {}
    return StratifiedLog(column, tuple(by_name), log, read)


@contextmanager
def _faults_named(path: Path, arrow: Any) -> Iterator[None]:
    """Say what pyarrow found wrong with the file as an error of its user."""
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        raise UnusableInput(
            f"{path}: {' '.join(str(error).split())}",
            hint="correct the file, or save it again from the program that wrote it",
        ) from error


def _needed(column: str, question: Question) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            (
                column,
                question.treatment,
                question.outcome,
                *(question.covariates or ()),
                *question.exact,
                *(question.cluster or ()),
            )
        )
    )


def _plain_type(dataset: Any, column: str) -> Any:
    """The type of a column's values; of categories, that of their words."""
    kind = dataset.schema.field(column).type
    return getattr(kind, "value_type", kind)


def _distinct(dataset: Any, column: str) -> list[Any]:
    """The values of a column, each once, in the order in which they come."""
    found: dict[Any, None] = {}
    for batch in dataset.to_batches(columns=[column]):
        found.update(dict.fromkeys(batch.column(0).unique().to_pylist()))
    return list(found)
