"""Read covariates and treatment from formulae, matrices and data frames.

Frames come from pandas, polars or another library that narwhals supports. NumPy arrays and lists
are matrices. A formula, such as ``treat ~ age + I(age**2)``, is text for the library formulaic. A
column of texts becomes indicators: columns of 0 and 1, one for each text but the first. Rows are
counted from 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.matching.formula import MAX_CELLS, cell_bound, columns_in
from equipoise_matching.matching.units import (
    Floats,
    Indices,
    Truths,
    leave_out_hint,
    refuse_non_finite,
    refuse_rows,
    treated_rows,
)
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require
from equipoise_matching.shared.spelling import option

MAX_CATEGORIES = 20
"""Largest number of distinct texts in a covariate; a column with more texts holds names."""
YES_TEXTS = frozenset({"yes", "y", "true", "t"})
NO_TEXTS = frozenset({"no", "n", "false", "f"})
"""Texts that mean true and false, in lower case."""

_NUMBER_TYPES = (bool, int, float, np.number, np.bool_, Decimal)
"""Types of the values that count as numbers in a column of objects."""
_FORMULA_ERRORS = (
    *(SyntaxError, TypeError, NameError, KeyError, IndexError, ValueError, AttributeError),
    *(ArithmeticError, RecursionError, MemoryError),
)
"""Errors of formulaic, pandas and Python for a formula that cannot be computed."""


@dataclass(frozen=True, slots=True)
class Covariates:
    """A matrix with named columns, and the treatment of each row.

    ``matrix`` has shape (rows, names), and ``treated`` (rows,) is true for treated units.
    """

    names: tuple[str, ...]
    matrix: Floats
    treated: Truths


def covariates_of(formula_or_matrix: Any, data: Any) -> Covariates:
    """Return covariates and treatment from a formula and a frame, or a matrix and a treatment.

    The formula has formulaic's grammar, in which ``**`` is the power, and only the Python that
    `formula` allows. The treatment is 0 or 1 for each row.

    Raise `UnusableInput` for missing or infinite values, unequal lengths, unknown columns, or an
    invalid formula. Raise it also if the treatment has other values than 0 and 1, or only one of
    them. The error names the column and the rows.
    """
    if isinstance(formula_or_matrix, str):
        return _from_formula(formula_or_matrix, data)
    names, matrix = matrix_of(formula_or_matrix)
    treated = treatment_of(data, "treat")
    if len(treated) != len(matrix):
        raise UnusableInput(
            f"the treatment has {len(treated)} values, but the covariates have {len(matrix)} rows",
            hint="give one treatment for each row of the covariates",
        )
    return Covariates(names, matrix, treated)


def matrix_of(table: Any) -> tuple[tuple[str, ...], Floats]:
    """Return a frame's or an array's columns as finite float64 numbers, with their names.

    The columns of an array get the names ``x0``, ``x1``, ….
    """
    columns = columns_of(table)
    if columns is None:
        array = np.asarray(table)
        if array.ndim == 1:
            array = array[:, np.newaxis]
        if array.ndim != 2 or not array.shape[1]:
            raise UnusableInput(
                f"covariates of shape {array.shape} are not a matrix",
                hint="give rows of units and columns of covariates",
            )
        columns = {f"x{index}": array[:, index] for index in range(array.shape[1])}
    if not columns:
        raise UnusableInput(
            "there is no covariate",
            hint="name a column after the ~ of the formula, or give a table with columns",
        )
    numbers = [numbers_of(column, name) for name, column in columns.items()]
    return tuple(columns), np.column_stack(numbers)


def columns_of(table: Any) -> dict[str, NDArray[Any]] | None:
    """Return the columns of a frame or a mapping; ``None`` for anything else."""
    if isinstance(table, Mapping):
        return {str(name): np.asarray(column) for name, column in table.items()}
    if isinstance(table, np.ndarray | list | tuple):
        return None
    narwhals = require("narwhals", "data frames")
    frame = narwhals.from_native(table, pass_through=True, allow_series=True)
    if isinstance(frame, narwhals.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, narwhals.Series):
        return {frame.name or "x0": frame.to_numpy()}
    if not isinstance(frame, narwhals.DataFrame):
        return None
    # Not frame[name], which is a row if the names of the columns are whole numbers.
    return {str(name): frame.get_column(name).to_numpy() for name in frame.columns}


def take_rows(columns: Mapping[str, NDArray[Any]], rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the rows with these numbers, or with a true value in ``rows``."""
    return {name: column[rows] for name, column in columns.items()}


def numbers_of(column: Any, name: str) -> Floats:
    """Return a column as finite float64 numbers; errors name the column and its rows."""
    array = np.asarray(column)
    if array.dtype.kind not in "biuf":
        check_present(array, name)
        refuse_rows(
            np.array([not isinstance(value, _NUMBER_TYPES) for value in array.ravel().tolist()]),
            name,
            "is not a number",
            "convert it to numbers first, such as days since a date"
            if array.dtype.kind in "mM"
            else "use a formula, which converts a column of texts to numbers: 'treat ~ column'",
        )
    numbers = np.asarray(array, dtype=np.float64)
    refuse_non_finite(numbers, name)
    return numbers


def treatment_of(table: Any, name: str) -> Truths:
    """Return whether each row was treated, from 0 and 1 or false and true."""
    columns = columns_of(table)
    if columns is None:
        columns = {name: np.asarray(table)}
    if [column.ndim for column in columns.values()] != [1]:
        raise UnusableInput(
            f"{name}: one column is needed, not {', '.join(columns) or 'none'} "
            f"of shape {np.shape(table)}",
            hint="give one treatment for each row",
        )
    ((name, column),) = columns.items()
    return treated_rows(numbers_of(column, name), name)


def formula_columns(formula: str, columns: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
    """Return the names of the columns in a formula, each once, without evaluating the formula.

    Raise `UnusableInput` if the formula is invalid or contains code that is not allowed.
    """
    with _errors_of_formula(formula):
        return columns_in(formula, _text_columns(columns))


@contextmanager
def _refuse_missing_levels(formula: str) -> Iterator[None]:
    """Raise `UnusableInput` if ``levels`` of ``C()`` lacks a value, which would become NaN."""
    mismatch_warning = require("formulaic", "formulae").errors.DataMismatchWarning
    with warnings.catch_warnings():
        warnings.simplefilter("error", mismatch_warning)
        try:
            yield
        except mismatch_warning:
            raise UnusableInput(
                f"formula '{formula}': levels= of C() lacks some values of its column",
                hint="name every value of the column in levels=[…], or leave out levels=",
            ) from None


@contextmanager
def _errors_of_formula(formula: str) -> Iterator[None]:
    """Convert the errors of formulaic, pandas and Python to `UnusableInput`."""
    formulaic_error = require("formulaic.errors", "formulae").FormulaicError
    try:
        yield
    except (formulaic_error, *_FORMULA_ERRORS) as error:
        # Only the first sentence is kept; the others mark the position of the error in colours.
        message = str(error).partition("\n")[0].partition(". ")[0].removesuffix(".")
        raise UnusableInput(
            f"formula '{formula}': {message}",
            hint="write column names and operators as in 'treat ~ age + I(age**2) + age:educ'",
        ) from error


def _text_columns(columns: Mapping[str, NDArray[Any]]) -> set[str]:
    return {name for name, column in columns.items() if column.dtype.kind not in "biufmM"}


def _from_formula(formula: str, data: Any) -> Covariates:
    """Check the columns in a formula, evaluate it, and check the matrices of both sides."""
    formulaic = require("formulaic", "formulae")
    import pandas

    columns = columns_of(data)
    if columns is None:
        raise UnusableInput(
            f"a formula needs a data frame, not {type(data).__name__}",
            hint="give a pandas or polars frame, or a matrix instead of the formula",
        )
    hint = "write the treatment first: 'treat ~ age + educ'"
    no_treatment = UnusableInput(f"formula '{formula}': the treatment is missing", hint=hint)
    if "~" not in formula:
        raise no_treatment
    with _errors_of_formula(formula):
        text_columns = _text_columns(columns)
        names = columns_in(formula, text_columns)
        parsed = formulaic.Formula(formula)
        for name in names:
            if name not in columns:
                raise UnusableInput(
                    f"formula '{formula}': there is no column {name}",
                    hint=f"name one of the columns {', '.join(columns)}",
                )
        used_columns = {name: _widen_numbers(columns[name]) for name in names}
        for name, column in used_columns.items():
            if column.dtype.kind in "biuf":
                refuse_non_finite(np.asarray(column, dtype=np.float64), name)
            else:
                check_present(column, name)
        frame = pandas.DataFrame(used_columns)
        _refuse_large_table(formula, parsed, frame, text_columns)
        # Overflows and invalid logarithms raise an error below, with their rows.
        with np.errstate(all="ignore"), _refuse_missing_levels(formula):
            matrices = parsed.get_model_matrix(frame, na_action="ignore")
        left_matrix, right_matrix = matrices["lhs"], matrices["rhs"]
    if not hasattr(left_matrix, "columns") or not hasattr(right_matrix, "columns"):
        raise UnusableInput(
            f"formula '{formula}' has several parts", hint="leave out |: 'treat ~ age + educ'"
        )
    if not len(left_matrix.columns):
        raise no_treatment
    left, right = (
        {str(name): matrix[name].to_numpy() for name in matrix.columns}
        for matrix in (left_matrix, right_matrix)
    )
    treated = treatment_of(left, str(left_matrix.columns[0]))
    covariates = {name: column for name, column in right.items() if name != "Intercept"}
    exclusive_or = [name for name in covariates if "^" in name and name not in columns]
    if exclusive_or:
        raise UnusableInput(
            f"formula '{formula}': the ^ in {exclusive_or[0]} is Python's exclusive or",
            hint="write powers with **: I(age**2)",
        )
    names, matrix = matrix_of(covariates)
    return Covariates(names, matrix, treated)


def _refuse_large_table(formula: str, parsed: Any, frame: Any, texts: set[str]) -> None:
    """Raise `UnusableInput` if categories and splines make too many columns for the memory."""
    sides = [*(getattr(parsed, side, ()) for side in ("lhs", "rhs"))]
    if any(isinstance(side, tuple) for side in sides):
        return
    terms = [[str(factor.expr) for factor in term.factors] for side in sides for term in side]
    cells = cell_bound(
        terms, texts, lambda name: frame[name].nunique() if name in frame else 1, len(frame)
    )
    if cells > MAX_CELLS:
        raise UnusableInput(
            f"formula '{formula}' makes about {cells / len(frame):.0f} columns of {len(frame)} "
            f"rows: more than {MAX_CELLS} cells",
            hint="leave out columns with a value for each row, or match exactly on them",
        )


def _widen_numbers(column: NDArray[Any]) -> NDArray[Any]:
    """Convert numbers to 64 bits, because the square of 99 does not fit into 8 bits."""
    types = {"i": np.int64, "u": np.int64, "f": np.float64}
    return column.astype(types[column.dtype.kind]) if column.dtype.kind in types else column


def check_present(column: NDArray[Any], name: str) -> None:
    """Raise `UnusableInput` if a column of any type has missing values."""
    refuse_rows(missing_in(column), name, "is missing", leave_out_hint())


def missing_in(column: NDArray[Any]) -> Truths:
    """Return whether each value of a column of any type is missing, shape (n,)."""
    if column.dtype.kind in "biuSU":
        return np.zeros(len(column), dtype=np.bool_)
    if column.dtype.kind in "fcmM":
        return np.asarray(column != column)
    return np.array([_is_missing(value) for value in column.tolist()], dtype=np.bool_)


def _is_missing(value: object) -> bool:
    # pd.NA gives no truth value when compared with itself.
    if value is None or type(value).__name__ == "NAType":
        return True
    # A formula can put an array into a cell. A later check refuses such a cell.
    return not isinstance(value, np.ndarray) and bool(value != value)


def holds_text(column: NDArray[Any]) -> bool:
    """Return whether a column has texts."""
    if column.dtype.kind in "US":
        return True
    return column.dtype.kind == "O" and any(isinstance(value, str) for value in column.tolist())


def numeric_columns_of(column: NDArray[Any], name: str) -> list[tuple[str, Floats]]:
    """Return numbers of a column, with names: the column itself, or an indicator for each text.

    The first text has no indicator. Raise `UnusableInput` for missing or infinite values, or for
    more than ``MAX_CATEGORIES`` texts.
    """
    if not holds_text(column):
        return [(name, numbers_of(column, name))]
    texts, text_indices = distinct_texts(column, name)
    if len(texts) > MAX_CATEGORIES:
        raise UnusableInput(
            f"{name}: {len(texts)} different texts are too many for a covariate",
            hint=f"leave {name} out, or add {option('exact', name)} to compare within each value",
        )
    return [
        (f"{name}={text}", (text_indices == index).astype(np.float64))
        for index, text in enumerate(texts)
        if index
    ]


def convert_yes_no(column: NDArray[Any]) -> NDArray[Any]:
    """Convert yes and no, in upper or lower case, to true and false; keep other columns."""
    if not holds_text(column):
        return column
    texts = [value.strip().lower() if isinstance(value, str) else "" for value in column.tolist()]
    if not all(text in YES_TEXTS or text in NO_TEXTS for text in texts):
        return column
    return np.array([text in YES_TEXTS for text in texts])


def distinct_texts(column: NDArray[Any], name: str) -> tuple[list[str], Indices]:
    """Return the distinct values as text, and for each row the index of its value."""
    indices = value_indices_of(column, name)
    _, first_rows = np.unique(indices, return_index=True)
    return [text_of(python_value(value)) for value in column[first_rows]], indices


def text_of(value: Any) -> str:
    """Return a value as a user would type it."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def value_indices_of(column: NDArray[Any], name: str) -> Indices:
    """Return for each row the index of its value among the sorted distinct values."""
    if column.dtype.kind not in "biuSU":
        check_present(column, name)
    try:
        return np.unique(column, return_inverse=True)[1].astype(np.int64).reshape(-1)
    except TypeError:
        # Values of several types cannot be sorted, so they keep the order of first occurrence.
        index_of: dict[Any, int] = {}
        return np.array([index_of.setdefault(value, len(index_of)) for value in column.tolist()])


def python_value(value: Any) -> Any:
    """Return a NumPy number as a Python number, and any other value unchanged."""
    return value.item() if isinstance(value, np.generic) else value
