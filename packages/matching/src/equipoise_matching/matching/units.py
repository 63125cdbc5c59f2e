"""The units to be matched: data that are checked, with errors that name column and rows."""

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

MAX_NAMED_ROWS = 5
"""Rows that an error names; it counts the others."""
FINITE_HINT = "put finite numbers in their place, or an empty field where none is known"
"""Hint of an error over infinite values."""


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Checked data of n units, as ``_native`` reads them.

    Parameters
    ----------
    x
        Shape (n, k), the covariates to match on.
    names
        Names of the columns of ``x``.
    treated
        Shape (n,), whether each unit is treated; both arms occur.
    outcome, weights
        Shape (n,), or ``None``.
    z
        Shape (n, l), the covariates of the bias adjustment; ``None`` for ``x``.
    outcome_unit
        Unit of ``outcome``: a power of two, so that squares of outcomes do not overflow.
    """

    x: Floats
    names: tuple[str, ...]
    treated: Truths
    outcome: Floats | None
    weights: Floats | None
    z: Floats | None
    outcome_unit: float = 1.0

    @property
    def weights_or_ones(self) -> Floats:
        """Weight of each unit, 1 without weights."""
        return np.ones(len(self.x)) if self.weights is None else self.weights

    def subset(self, rows: Indices) -> Units:
        """Return the units of these rows."""
        parts: dict[str, Any] = {
            name: np.ascontiguousarray(getattr(self, name)[rows])
            for name in ("x", "treated", "outcome", "weights", "z")
            if getattr(self, name) is not None
        }
        return replace(self, **parts)


def units_of(
    y: ArrayLike | None,
    treat: ArrayLike,
    x: ArrayLike,
    weights: ArrayLike | None,
    covariates: ArrayLike | None = None,
) -> Units:
    """Check the data and return them as arrays of numbers."""
    checked, names = table(x, "X", "x")
    rows = len(checked)
    outcome, outcome_unit = None, 1.0
    if y is not None:
        outcome = column(y, "y", rows)
        outcome_unit = power_of_two(outcome)
        outcome = outcome / outcome_unit
    checked_weights = None if weights is None else column(weights, "weights", rows)
    if checked_weights is not None:
        refuse_rows(checked_weights < 0, "weights", "is negative", "give weights of 0 or more")
    z = None
    if covariates is not None:
        z, _ = table(covariates, "covariates", "z")
        same_length(len(z), "covariates", rows)
    treated = treatment(column(treat, "treat", rows), "treat")
    if checked_weights is not None:
        for arm, name in ((True, "treated unit"), (False, "control")):
            if not checked_weights[treated == arm].any():
                raise UnusableInput(f"weights: every {name} weighs 0")
    return Units(checked, names, treated, outcome, checked_weights, z, outcome_unit)


def power_of_two(*arrays: Floats) -> float:
    """Return a power of two near the largest value: a division by it rounds nothing."""
    _, exponent = math.frexp(max(float(np.abs(values).max()) for values in arrays))
    return math.ldexp(1.0, min(max(exponent, -1000), 1000))


def names_of(values: Any, count: int, letter: str) -> tuple[str, ...]:
    """Return the names of a frame's or a mapping's columns, or ``x1``, ``x2``, … for others."""
    columns = getattr(values, "column_names", getattr(values, "columns", None))
    if isinstance(values, Mapping):
        columns = list(values)
    if columns is not None and len(columns) == count:
        return tuple(str(name) for name in columns)
    return tuple(f"{letter}{place}" for place in range(1, count + 1))


def numbers(values: Any, name: str, letter: str | None = None) -> Floats:
    """Return the values as floats, NaN where missing; ``letter`` names unnamed columns."""
    try:
        array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    except ValueError as error:
        raise UnusableInput(
            f"{name} has rows of unequal lengths", hint="give a value for each row and column"
        ) from error
    if array.dtype.kind in "cmMV":
        raise UnusableInput(
            f"{name} holds {array.dtype}, not real numbers",
            hint="make numbers of it first, such as days since a date",
        )
    try:
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError):
        labels = [name] * math.prod(array.shape[1:])
        if letter:
            columns = names_of(values, len(labels), letter)
            labels = [f"{name}, column {column!r}" for column in columns]
        return mixed_numbers(array, labels)


def mixed_numbers(array: NDArray[Any], labels: Sequence[str]) -> Floats:
    """Convert values of many types, one by one; errors call the columns by their labels."""
    cells = array.reshape(-1, len(labels))
    floats = np.full(cells.shape, np.nan)
    unreadable = np.zeros(cells.shape, dtype=np.bool_)
    for place, value in np.ndenumerate(cells):
        # The missing value of pandas is not a number, and not equal to anything.
        if value is None or type(value).__name__ == "NAType":
            continue
        try:
            floats[place] = float(value)
        except (TypeError, ValueError):
            unreadable[place] = True
    hint = "make numbers of categories and texts, one column for each category but one"
    for wrong, label in zip(unreadable.T, labels, strict=True):
        refuse_rows(wrong, label, "is not a number", hint)
    return floats.reshape(array.shape)


def table(values: Any, name: str, letter: str) -> tuple[Floats, tuple[str, ...]]:
    """Return finite numbers, shape (n, k), and the names of their columns."""
    if isinstance(values, Mapping):
        columns = {f"{name}, column {str(key)!r}": part for key, part in values.items()}
        for label, part in columns.items():
            same_length(len(part), label, len(next(iter(values.values()))))
        parts = [numbers(part, label) for label, part in columns.items()]
        array = np.column_stack(parts) if parts else np.zeros((0, 0))
        names = tuple(str(key) for key in values)
    else:
        array = numbers(values, name, letter)
        if array.ndim == 1:
            array = array[:, np.newaxis]
        names = names_of(values, array.shape[1], letter) if array.ndim == 2 else ()
    if array.ndim != 2 or array.shape[1] == 0 or array.shape[0] == 0:
        raise UnusableInput(
            f"{name} has shape {array.shape}: a row for each unit and a column for each "
            "covariate are needed"
        )
    if not np.isfinite(array).all():
        for place, label in enumerate(names):
            refuse_non_finite(array[:, place], f"{name}, column {label!r}")
    return np.ascontiguousarray(array), names


def column(values: Any, name: str, rows: int) -> Floats:
    """Return finite numbers, shape (n,)."""
    array = numbers(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise UnusableInput(f"{name} has shape {array.shape}: one value for each unit is needed")
    same_length(len(array), name, rows)
    refuse_non_finite(array, name)
    return np.ascontiguousarray(array)


def same_length(length: int, name: str, rows: int) -> None:
    """Refuse a number of values that is not the number of rows of X."""
    if length != rows:
        raise UnusableInput(
            f"{name} has {length} rows and X has {rows}", hint="give one row for each unit in all"
        )


def refuse_non_finite(values: Floats, name: str) -> None:
    """Refuse missing values, then infinite ones."""
    refuse_rows(np.isnan(values), name, "is missing", leave_out_hint())
    refuse_rows(np.isinf(values), name, "is infinite", FINITE_HINT)


def leave_out_hint() -> str:
    """Return the hint of an error over missing values."""
    return (
        f"leave out these rows (of a table: {option('missing', 'drop')}), or fill in their values "
        "first"
    )


def refuse_rows(wrong: Truths, name: str, fault: str, hint: str) -> None:
    """Raise an error that names the rows that are wrong, if there are any."""
    if wrong.any():
        raise UnusableInput(f"{name} {fault} in {row_numbers(wrong)} (from 0)", hint=hint)


def row_numbers(which: Truths) -> str:
    """Return ``row 3``, or ``rows 1, 4, 7, 9, 12 and 30 more``; rows count from 0."""
    rows = np.flatnonzero(which).tolist()
    named = listed([*map(str, rows)], MAX_NAMED_ROWS)
    return f"{'row' if len(rows) == 1 else 'rows'} {named}"


def treatment(codes: Floats, name: str) -> Truths:
    """Return which units are treated, shape (n,), from 1 and 0; both occur."""
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
