"""Check the data of the units to be matched; errors name the column and the rows.

``X`` (covariates to match on) and ``Z`` (covariates of the bias adjustment) are R's names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.numbers import listed
from equipoise_matching.shared.spelling import option

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Truths = NDArray[np.bool_]

MAX_LISTED_ROWS = 5
"""Largest number of rows that an error lists. It counts the other rows."""
FINITE_HINT = "replace them by finite numbers, or by empty fields if the value is unknown"


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Checked data of n units, which ``_native`` reads by the names of the fields.

    The shapes are (n,), except of ``x`` (n, k) and ``z`` (n, l).
    """

    x: Floats
    """Covariates to match on."""
    names: tuple[str, ...]
    """Names of the columns of ``x``."""
    treated: Truths
    """Whether each unit is treated. Both arms have units."""
    outcome: Floats | None
    weights: Floats | None
    z: Floats | None
    """Covariates of the bias adjustment; ``None`` for ``x``."""
    outcome_scale: float = 1.0
    """Power of two by which ``outcome`` was divided, so that no square overflows."""

    @property
    def weights_or_ones(self) -> Floats:
        """Weight of each unit, 1 without weights."""
        return np.ones(len(self.x)) if self.weights is None else self.weights

    def subset(self, rows: Indices) -> Units:
        """Return the data of these rows."""
        selected_arrays: dict[str, Any] = {
            name: np.ascontiguousarray(getattr(self, name)[rows])
            for name in ("x", "treated", "outcome", "weights", "z")
            if getattr(self, name) is not None
        }
        return replace(self, **selected_arrays)


def units_of(
    y: ArrayLike | None,
    treat: ArrayLike,
    x: ArrayLike,
    weights: ArrayLike | None,
    covariates: ArrayLike | None = None,
) -> Units:
    """Check the data and return them as arrays of numbers."""
    covariate_values, names = checked_table(x, "X", "x")
    rows = len(covariate_values)
    outcome, outcome_scale = None, 1.0
    if y is not None:
        outcome = checked_column(y, "y", rows)
        outcome_scale = power_of_two(outcome)
        outcome = outcome / outcome_scale
    checked_weights = None if weights is None else checked_column(weights, "weights", rows)
    if checked_weights is not None:
        refuse_rows(checked_weights < 0, "weights", "is negative", "give weights of 0 or more")
    z = None
    if covariates is not None:
        z, _ = checked_table(covariates, "covariates", "z")
        check_length(len(z), "covariates", rows)
    treated = treated_rows(checked_column(treat, "treat", rows), "treat")
    if checked_weights is not None:
        for arm, name in ((True, "treated unit"), (False, "control")):
            if not checked_weights[treated == arm].any():
                raise UnusableInput(f"weights: every {name} weighs 0", hint="give weights above 0")
    return Units(covariate_values, names, treated, outcome, checked_weights, z, outcome_scale)


def power_of_two(*arrays: Floats) -> float:
    """Return a power of two near the largest value; division by a power of two never rounds."""
    _, exponent = math.frexp(max(float(np.abs(values).max()) for values in arrays))
    # The power and its inverse stay far from the limits of a float.
    return math.ldexp(1.0, min(max(exponent, -1000), 1000))


def column_names(values: Any, count: int, letter: str) -> tuple[str, ...]:
    """Return the names of the columns of a frame or a mapping, else ``x1``, ``x2``, …."""
    columns = getattr(values, "column_names", getattr(values, "columns", None))
    if isinstance(values, Mapping):
        columns = list(values)
    if columns is not None and len(columns) == count:
        return tuple(str(name) for name in columns)
    return tuple(f"{letter}{index}" for index in range(1, count + 1))


def to_floats(values: Any, name: str, letter: str | None = None) -> Floats:
    """Return the values as floats, NaN if missing; unnamed columns get ``letter`` and a number."""
    try:
        array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    except ValueError as error:
        raise UnusableInput(
            f"{name} has rows of unequal lengths", hint="give a value for each row and column"
        ) from error
    if array.dtype.kind in "cmMV":
        raise UnusableInput(
            f"{name} has the type {array.dtype}, not real numbers",
            hint="convert it to numbers first, such as days since a date",
        )
    try:
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError):
        labels = [name] * math.prod(array.shape[1:])
        if letter:
            columns = column_names(values, len(labels), letter)
            labels = [f"{name}, column {column!r}" for column in columns]
        return _convert_cells(array, labels)


def _convert_cells(array: NDArray[Any], labels: Sequence[str]) -> Floats:
    """Convert values of several types, one by one; errors name columns by ``labels``."""
    cells = array.reshape(-1, len(labels))
    floats = np.full(cells.shape, np.nan)
    unreadable = np.zeros(cells.shape, dtype=np.bool_)
    for index, value in np.ndenumerate(cells):
        # A missing value stays NaN.
        if value is None or type(value).__name__ == "NAType":
            continue
        try:
            floats[index] = float(value)
        except (TypeError, ValueError):
            unreadable[index] = True
    hint = "replace categories and texts by numbers: a column of 0 and 1 for all but one category"
    for is_wrong, label in zip(unreadable.T, labels, strict=True):
        refuse_rows(is_wrong, label, "is not a number", hint)
    return floats.reshape(array.shape)


def checked_table(values: Any, name: str, letter: str) -> tuple[Floats, tuple[str, ...]]:
    """Return finite numbers, shape (n, k), and the names of their columns.

    Unnamed columns get ``letter`` and a number. Raise `UnusableInput` for other values.
    """
    if isinstance(values, Mapping):
        columns = {f"{name}, column {str(key)!r}": cells for key, cells in values.items()}
        for label, cells in columns.items():
            check_length(len(cells), label, len(next(iter(values.values()))))
        arrays = [to_floats(cells, label) for label, cells in columns.items()]
        array = np.column_stack(arrays) if arrays else np.zeros((0, 0))
        names = tuple(str(key) for key in values)
    else:
        array = to_floats(values, name, letter)
        if array.ndim == 1:
            array = array[:, np.newaxis]
        names = column_names(values, array.shape[1], letter) if array.ndim == 2 else ()
    if array.ndim != 2 or array.shape[1] == 0 or array.shape[0] == 0:
        raise UnusableInput(
            f"{name} has shape {array.shape}",
            hint="give a row for each unit and a column for each covariate",
        )
    if not np.isfinite(array).all():
        for index, label in enumerate(names):
            refuse_non_finite(array[:, index], f"{name}, column {label!r}")
    return np.ascontiguousarray(array), names


def checked_column(values: Any, name: str, rows: int) -> Floats:
    """Return one finite number for each row, shape (n,); raise `UnusableInput` for other values."""
    array = to_floats(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise UnusableInput(f"{name} has shape {array.shape}", hint="give one value for each unit")
    check_length(len(array), name, rows)
    refuse_non_finite(array, name)
    return np.ascontiguousarray(array)


def check_length(length: int, name: str, rows: int) -> None:
    """Raise `UnusableInput` if the number of values is not the number of rows of X."""
    if length != rows:
        raise UnusableInput(
            f"{name} has {length} rows and X has {rows}",
            hint="give one row for each unit in every argument",
        )


def refuse_non_finite(values: Floats, name: str) -> None:
    """Raise `UnusableInput` for missing values, then for infinite values."""
    if np.isfinite(values).all():
        return
    refuse_rows(np.isnan(values), name, "is missing", leave_out_hint())
    refuse_rows(np.isinf(values), name, "is infinite", FINITE_HINT)


def leave_out_hint() -> str:
    """Return the hint of an error about missing values."""
    return (
        f"leave out these rows (for a table, give {option('missing', 'drop')}), or fill in their "
        "values"
    )


def refuse_rows(is_wrong: Truths, name: str, problem: str, hint: str) -> None:
    """Raise `UnusableInput` with the numbers of the wrong rows, if there are any."""
    if is_wrong.any():
        raise UnusableInput(f"{name} {problem} in {row_numbers(is_wrong)} (from 0)", hint=hint)


def row_numbers(selected: Truths, noun: str = "row") -> str:
    """Return ``row 3``, or ``rows 1, 4, 7, 9, 12 and 30 more``; rows count from 0."""
    rows = np.flatnonzero(selected).tolist()
    return f"{noun}{'' if len(rows) == 1 else 's'} {listed([*map(str, rows)], MAX_LISTED_ROWS)}"


def treated_rows(codes: Floats, name: str) -> Truths:
    """Return whether each row is treated, shape (n,), from codes 1 and 0; both must occur."""
    refuse_rows(
        (codes != 0) & (codes != 1),
        name,
        "is neither 0 nor 1",
        "code treated units as 1 and controls as 0",
    )
    if not len(codes) or codes.min() == codes.max():
        value = f"{codes[0]:.0f} in all {len(codes)} rows" if len(codes) else "empty"
        raise UnusableInput(
            f"{name} is {value}: there is nothing to compare with",
            hint="give both treated units (1) and controls (0)",
        )
    return np.asarray(codes == 1)
