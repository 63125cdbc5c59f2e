"""Covariates and treatment from formulae, matrices and data frames of any kind.

Frames are those of pandas, polars and other libraries that narwhals supports; NumPy arrays and
lists are matrices. Columns of words become numbers, too. Rows are counted from 0.
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

from equipoise_matching.matching.formula import MAX_CELLS, cells_of, columns_in
from equipoise_matching.matching.units import (
    Floats,
    Indices,
    Truths,
    leave_out_hint,
    refuse_non_finite,
    refuse_rows,
    treatment,
)
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require
from equipoise_matching.shared.spelling import option

MAX_CATEGORIES = 20
"""Largest number of distinct texts in a covariate: a column with more holds names, not kinds."""
YES = frozenset({"yes", "y", "true", "t"})
NO = frozenset({"no", "n", "false", "f"})

_NUMBER = (bool, int, float, np.number, np.bool_, Decimal)
_UNREADABLE = (
    *(SyntaxError, TypeError, NameError, KeyError, IndexError, ValueError, AttributeError),
    *(ArithmeticError, RecursionError, MemoryError),
)
"""Errors of formulaic, pandas and Python over a formula that cannot be computed."""


@dataclass(frozen=True, slots=True)
class Covariates:
    """A matrix of named columns, and who was treated.

    ``matrix`` has a row for each unit and a column for each name; ``treated`` is true for
    the treated.
    """

    names: tuple[str, ...]
    matrix: Floats
    treated: Truths


def covariates_of(formula_or_matrix: Any, data: Any) -> Covariates:
    """Return covariates and treatment from a formula and a frame, or a matrix and a treatment.

    The formula has formulaic's grammar, in which ``**`` is the power; other Python than
    `formula` allows is refused. The treatment is 0 or 1 for each row.

    Raise `UnusableInput`, naming column and rows: missing or infinite values, treatment other than
    0 and 1 or constant, unequal lengths, unknown columns, a formula that cannot be read.
    """
    if isinstance(formula_or_matrix, str):
        return _from_formula(formula_or_matrix, data)
    names, matrix = matrix_of(formula_or_matrix)
    treated = treatment_of(data, "treat")
    if len(treated) != len(matrix):
        raise UnusableInput(
            f"treat has {len(treated)} rows and the covariates {len(matrix)}",
            hint="give one treatment for each row",
        )
    return Covariates(names, matrix, treated)


def matrix_of(table: Any) -> tuple[tuple[str, ...], Floats]:
    """Return a frame's or an array's columns as finite float64 numbers, with their names.

    Columns of an array are called ``x0``, ``x1``, ….
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
        raise UnusableInput("there is no covariate", hint="give at least one column")
    numbers = [numbers_of(column, name) for name, column in columns.items()]
    return tuple(columns), np.column_stack(numbers)


def columns_of(table: Any) -> dict[str, NDArray[Any]] | None:
    """Return the columns of a frame or a mapping; ``None`` of anything else."""
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
    return {str(name): frame[name].to_numpy() for name in frame.columns}


def take_rows(columns: Mapping[str, NDArray[Any]], rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return these rows of a table, by their numbers or by a truth for each."""
    return {name: column[rows] for name, column in columns.items()}


def numbers_of(column: Any, name: str) -> Floats:
    """Return a column as finite float64 numbers; errors name the column and its rows."""
    array = np.asarray(column)
    if array.dtype.kind not in "biuf":
        check_present(array, name)
        refuse_rows(
            np.array([not isinstance(value, _NUMBER) for value in array.ravel().tolist()]),
            name,
            "is not a number",
            "make a number of it first, such as days since a date"
            if array.dtype.kind in "mM"
            else "a formula turns a column of words into numbers: 'treat ~ column'",
        )
    numbers = np.asarray(array, dtype=np.float64)
    refuse_non_finite(numbers, name)
    return numbers


def treatment_of(table: Any, name: str) -> Truths:
    """Return who was treated, from 0 and 1 or false and true."""
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
    return treatment(numbers_of(column, name), name)


def formula_columns(formula: str, columns: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
    """Return the columns that a formula names, each once; evaluate nothing of it.

    Raise `UnusableInput` if it is not a formula, or not one that may be evaluated.
    """
    with _errors_of_formula(formula):
        return columns_in(formula, _text_columns(columns))


@contextmanager
def _refuse_left_out_values(formula: str) -> Iterator[None]:
    """Raise `UnusableInput` if the levels of ``C()`` leave out a value: it would become a NaN."""
    left_out = require("formulaic", "formulae").errors.DataMismatchWarning
    with warnings.catch_warnings():
        warnings.simplefilter("error", left_out)
        try:
            yield
        except left_out:
            raise UnusableInput(
                f"formula '{formula}': the levels of C() leave out values of the column",
                hint="name every value of the column in levels=[…], or leave levels out",
            ) from None


@contextmanager
def _errors_of_formula(formula: str) -> Iterator[None]:
    """Report the errors of formulaic, pandas and Python as the user's."""
    unreadable = require("formulaic.errors", "formulae").FormulaicError
    try:
        yield
    except (unreadable, *_UNREADABLE) as error:
        # The sentences after the first one draw the place, in colours.
        fault = str(error).partition("\n")[0].partition(". ")[0].removesuffix(".")
        raise UnusableInput(
            f"formula '{formula}': {fault}",
            hint="write it as 'treat ~ age + I(age**2) + age:educ'; the power is **",
        ) from error


def _text_columns(columns: Mapping[str, NDArray[Any]]) -> set[str]:
    return {name for name, column in columns.items() if column.dtype.kind not in "biufmM"}


def _from_formula(formula: str, data: Any) -> Covariates:
    formulaic = require("formulaic", "formulae")
    import pandas

    columns = columns_of(data)
    if columns is None:
        raise UnusableInput(
            f"a formula needs a data frame, not {type(data).__name__}",
            hint="give a pandas or polars frame, or a matrix instead of the formula",
        )
    no_treatment = UnusableInput(
        f"formula '{formula}': no treatment", hint="write it as 'treat ~ age + educ'"
    )
    if "~" not in formula:
        raise no_treatment
    with _errors_of_formula(formula):
        text = _text_columns(columns)
        names = columns_in(formula, text)
        parsed = formulaic.Formula(formula)
        for name in names:
            if name not in columns:
                raise UnusableInput(
                    f"formula '{formula}': no column {name}",
                    hint=f"there are {', '.join(columns)}",
                )
        used = {name: _widest(columns[name]) for name in names}
        for name, column in used.items():
            if column.dtype.kind in "biuf":
                refuse_non_finite(np.asarray(column, dtype=np.float64), name)
            else:
                check_present(column, name)
        frame = pandas.DataFrame(used)
        _refuse_large_table(formula, parsed, frame, text)
        # Values that overflow or have no logarithm are named below with their rows.
        with np.errstate(all="ignore"), _refuse_left_out_values(formula):
            matrices = parsed.get_model_matrix(frame, na_action="ignore")
        left, right = matrices["lhs"], matrices["rhs"]
    if not hasattr(left, "columns") or not hasattr(right, "columns"):
        raise UnusableInput(
            f"formula '{formula}': several parts", hint="write it without |: 'treat ~ age + educ'"
        )
    if not len(left.columns):
        raise no_treatment
    sides = [{str(name): side[name].to_numpy() for name in side.columns} for side in (left, right)]
    treated = treatment_of(sides[0], str(left.columns[0]))
    covariates = {name: column for name, column in sides[1].items() if name != "Intercept"}
    exclusive_or = [name for name in covariates if "^" in name and name not in columns]
    if exclusive_or:
        raise UnusableInput(
            f"formula '{formula}': in {exclusive_or[0]} the ^ is Python's exclusive or",
            hint="write the power as **: I(age**2)",
        )
    names, matrix = matrix_of(covariates)
    return Covariates(names, matrix, treated)


def _refuse_large_table(formula: str, parsed: Any, frame: Any, text: set[str]) -> None:
    """Refuse a formula whose categories and splines make more columns than memory may hold."""
    sides = [*(getattr(parsed, side, ()) for side in ("lhs", "rhs"))]
    if any(isinstance(side, tuple) for side in sides):
        return
    terms = [[str(factor.expr) for factor in term.factors] for side in sides for term in side]
    cells = cells_of(
        terms, text, lambda name: frame[name].nunique() if name in frame else 1, len(frame)
    )
    if cells > MAX_CELLS:
        raise UnusableInput(
            f"formula '{formula}' makes about {cells / len(frame):.0f} columns of {len(frame)} "
            f"rows; at most {MAX_CELLS} cells are made",
            hint="leave out columns with a value for each row, or match exactly on them",
        )


def _widest(column: NDArray[Any]) -> NDArray[Any]:
    """Widen small integers: the square of 99 does not fit an int8."""
    kinds = {"i": np.int64, "u": np.int64, "f": np.float64}
    return column.astype(kinds[column.dtype.kind]) if column.dtype.kind in kinds else column


def check_present(column: NDArray[Any], name: str) -> None:
    """Refuse a column of any kind with missing values."""
    refuse_rows(missing_in(column), name, "is missing", leave_out_hint())


def missing_in(column: NDArray[Any]) -> Truths:
    """Return for each value of a column of any kind whether it is missing, shape (n,)."""
    if column.dtype.kind in "biuSU":
        return np.zeros(len(column), dtype=np.bool_)
    if column.dtype.kind in "fcmM":
        return np.asarray(column != column)
    return np.array([_is_missing(value) for value in column.tolist()], dtype=np.bool_)


def _is_missing(value: object) -> bool:
    # The missing value of pandas is not even unequal to itself.
    if value is None or type(value).__name__ == "NAType":
        return True
    # A formula can put an array into a cell, which is refused later because it is not a number.
    return not isinstance(value, np.ndarray) and bool(value != value)


def holds_text(column: NDArray[Any]) -> bool:
    """Return whether a column has texts."""
    if column.dtype.kind in "US":
        return True
    return column.dtype.kind == "O" and any(isinstance(value, str) for value in column.tolist())


def numbers_or_indicators(column: NDArray[Any], name: str) -> list[tuple[str, Floats]]:
    """Return a column of numbers as it is, or an indicator column for each text but the first.

    Raise `UnusableInput` if a value is missing or infinite, or there are more than
    ``MAX_CATEGORIES`` texts.
    """
    if not holds_text(column):
        return [(name, numbers_of(column, name))]
    texts, code = distinct_texts(column, name)
    if len(texts) > MAX_CATEGORIES:
        raise UnusableInput(
            f"{name}: {len(texts)} different texts are too many for a covariate",
            hint=f"leave {name} out, or compare within each value: {option('exact', name)}",
        )
    return [
        (f"{name}={text}", (code == place).astype(np.float64))
        for place, text in enumerate(texts)
        if place
    ]


def yes_or_no(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of yes and no as 1 and 0, and any other column as it is.

    Yes and no may be written as ``yes``, ``y``, ``true`` or ``t``, and ``no``, ``n``, ``false`` or
    ``f``, in letters of either case.
    """
    if not holds_text(column):
        return column
    texts = [value.strip().lower() if isinstance(value, str) else "" for value in column.tolist()]
    if not all(text in YES or text in NO for text in texts):
        return column
    return np.array([text in YES for text in texts])


def distinct_texts(column: NDArray[Any], name: str) -> tuple[list[str], Indices]:
    """Return the distinct values as text, and for each row the position of its value."""
    code = levels_of(column, name)
    _, first = np.unique(code, return_index=True)
    return [text_of(plain(value)) for value in column[first]], code


def text_of(value: Any) -> str:
    """Return a value as a user would type it."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def levels_of(column: NDArray[Any], name: str) -> Indices:
    """Return the place of each row's value among the distinct values, in their order."""
    if column.dtype.kind not in "biuSU":
        check_present(column, name)
    try:
        return np.unique(column, return_inverse=True)[1].astype(np.int64).reshape(-1)
    except TypeError:
        # Values of several types have only the order in which they occur.
        places: dict[Any, int] = {}
        return np.array([places.setdefault(value, len(places)) for value in column.tolist()])


def plain(value: Any) -> Any:
    """Return a number of NumPy's as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
