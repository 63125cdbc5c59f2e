"""The covariates of a table as numbers for a design, with indicators of missing values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equipoise_matching.matching.frames import numeric_columns_of
from equipoise_matching.matching.units import Floats
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.tables.missing import without_missing
from equipoise_matching.tables.reading import read_columns


def design_covariates(data: Any, covariates: Sequence[str]) -> dict[str, Floats]:
    """Return the covariates of all rows as numbers, with indicators of missing values.

    A missing number becomes the mean of its column, and a new covariate, such as ``age is
    missing``, is 1 where the value was missing (Rosenbaum and Rubin 1984, JASA 79(387), appendix
    B). A missing text is a text of its own. The result is X of every design: the design then
    balances which values are missing, too. It needs that treatment does not depend on the missing
    values themselves.

    Raise `UnusableInput` if the table cannot be read, a column does not exist or is missing in
    every row, or a column of texts has too many of them.

    Examples
    --------
    >>> from equipoise_matching.tables import design_covariates
    >>> people = {"age": [20.0, float("nan"), 40.0], "sex": ["f", "m", "f"]}
    >>> {name: list(map(float, column)) for name, column in
    ...  design_covariates(people, ["age", "sex"]).items()}
    {'age': [20.0, 30.0, 40.0], 'sex=m': [0.0, 1.0, 0.0], 'age is missing': [0.0, 1.0, 0.0]}

    Parameters
    ----------
    data
        A frame, a mapping of columns, or the path of a CSV or Parquet file.
    covariates
        Names of the columns.
    """
    columns = read_columns(data)
    for name in covariates:
        if name not in columns:
            raise UnusableInput(
                f"there is no column {name}", hint=f"name one of the columns {', '.join(columns)}"
            )
    if not covariates:
        raise UnusableInput("there is no covariate", hint="name at least one column")
    complete = without_missing(columns, covariates, (), "indicator")
    numbers: dict[str, Floats] = {}
    for name in dict.fromkeys(covariates):
        numbers.update(numeric_columns_of(complete.columns[name], name))
    return {**numbers, **complete.indicators}
