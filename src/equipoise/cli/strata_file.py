"""The strata of a Parquet file, read one at a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.model.errors import UnusableInput
from equipoise.tables.reading import PARQUET_ENDINGS, no_row, pyarrow_for

if TYPE_CHECKING:
    from equipoise.observation.question import Log, Question
    from equipoise.observation.strata import StratifiedLog


def read_strata(name: str, column: str, question: Question) -> StratifiedLog:
    """Find the strata of a Parquet file; each stratum's rows are read when they are needed.

    Raises
    ------
    UnusableInput
        The file is no Parquet file, a column is missing, or a stratum has no name.
    """
    from equipoise.matching.categories import text_of
    from equipoise.matching.frames import columns_of
    from equipoise.observation.strata import StratifiedLog

    path = Path(name)
    if not name.lower().endswith(PARQUET_ENDINGS):
        raise UnusableInput(
            f"{name}: --strata reads Parquet files only: any other file would be read whole for "
            "each stratum",
            hint="save it as Parquet, such as by pandas.read_csv(…).to_parquet(…)",
        )
    with pyarrow_for(path, "dataset") as (arrow, datasets):
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
        raise no_row(path)
    if None in values:
        raise UnusableInput(
            f"--strata: {column} is missing in some rows", hint="fill it in, or leave them out"
        )
    by_name = {text_of(value): value for value in sorted(values)}

    def read(name: str) -> Log:
        value = arrow.scalar(by_name[name], _value_type(dataset, column))
        with pyarrow_for(path):
            table = dataset.to_table(columns=needed, filter=datasets.field(column) == value)
        return columns_of(table) or {}

    distinct = arrow.array(versions, _value_type(dataset, question.treatment))
    log = columns_of(arrow.table({question.treatment: distinct})) or {}
    return StratifiedLog(column, tuple(by_name), log, read)


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
