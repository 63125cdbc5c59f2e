"""Checks what `match` is given; every error names the column and the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.model.errors import UnusableInput

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

NAMED_ROWS = 5
"""So many rows an error names; it counts the others."""
ROUNDING = 1e-8
"""A matrix may lack symmetry or have negative eigenvalues by this share of its largest entry."""


@dataclass(frozen=True, slots=True)
class Units:
    """The checked data: ``x`` (n, k), ``names`` of its columns, ``treated`` (n,) and the rest."""

    x: Floats
    names: tuple[str, ...]
    treated: NDArray[np.uint8]
    outcome: Floats | None
    weights: Floats | None
    z: Floats | None
    outcome_unit: float = 1.0
    """What ``outcome`` is in units of: a power of two, so that its squares do not overflow."""


def power_of_two(values: Floats) -> Any:
    """Of each column: near its largest value; a division by it rounds nothing."""
    _, exponent = np.frexp(np.abs(values).max(axis=0))
    return np.ldexp(1.0, np.clip(exponent, -1000, 1000))


def units(
    y: ArrayLike | None,
    treat: ArrayLike,
    x: ArrayLike,
    weights: ArrayLike | None,
    covariates: ArrayLike | None,
) -> Units:
    """The data as arrays of numbers."""
    checked, names = table(x, "X", "x")
    rows = len(checked)
    outcome = None if y is None else column(y, "y", rows)
    weighted = None if weights is None else column(weights, "weights", rows)
    if weighted is not None:
        refuse_rows(weighted < 0, "weights", "is negative", "give weights of 0 or more")
    z = None
    if covariates is not None:
        z, _ = table(covariates, "covariates", "z")
        same_length(len(z), "covariates", rows)
    treated = treatment(treat, rows)
    if weighted is not None:
        for arm, name in ((1, "treated unit"), (0, "control")):
            if not weighted[treated == arm].any():
                raise UnusableInput(f"weights: every {name} weighs 0")
    unit = 1.0
    if outcome is not None:
        # As power_of_two; of a single number ten times as fast, which small samples notice.
        _, exponent = math.frexp(float(np.abs(outcome).max()))
        unit = math.ldexp(1.0, min(max(exponent, -1000), 1000))
        outcome = outcome / unit
    return Units(checked, names, treated, outcome, weighted, z, unit)


def names_of(values: Any, count: int, letter: str) -> tuple[str, ...]:
    """The names of a frame's columns; without a frame x1, x2, …"""
    columns = getattr(values, "column_names", getattr(values, "columns", None))
    if columns is not None and len(columns) == count:
        return tuple(str(name) for name in columns)
    return tuple(f"{letter}{place}" for place in range(1, count + 1))


def numbers(values: Any, name: str, letter: str | None = None) -> Floats:
    """The values as floats, those that are missing as NaN; with a letter they are columns."""
    given = values.to_numpy() if hasattr(values, "to_numpy") else values
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise UnusableInput(
            f"{name} has rows of unequal lengths", hint="give a value for each row and column"
        ) from error
    if array.dtype.kind in "cmMV":
        raise UnusableInput(
            f"{name} holds {array.dtype}, no real numbers",
            hint="make numbers of it first, such as days since a date",
        )
    try:
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError):
        count = array.shape[1] if array.ndim == 2 else 1
        columns = names_of(values, count, letter) if letter else ()
        return converted(array, name, columns)


def converted(array: NDArray[Any], name: str, labels: Sequence[str]) -> Floats:
    """Numbers out of values of many types, one by one."""
    cells = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
    found = np.full(cells.shape, np.nan)
    for place in range(cells.shape[1]):
        words = np.zeros(len(cells), dtype=np.bool_)
        for row, value in enumerate(cells[:, place].tolist()):
            # The missing value of pandas is no number, and not equal to anything.
            if value is None or type(value).__name__ == "NAType":
                continue
            try:
                found[row, place] = float(value)
            except (TypeError, ValueError):
                words[row] = True
        label = f"{name}, column {labels[place]!r}" if place < len(labels) else name
        refuse_rows(
            words,
            label,
            "is no number",
            "make numbers of categories and texts, one column for each category but one",
        )
    return found.reshape(array.shape)


def table(values: Any, name: str, letter: str) -> tuple[Floats, tuple[str, ...]]:
    """Shape (n, k), finite, with the names of its columns."""
    if isinstance(values, Mapping):
        for key, own in values.items():
            same_length(len(own), f"{name}, column {str(key)!r}", len(next(iter(values.values()))))
        parts = [numbers(own, f"{name}, column {str(key)!r}") for key, own in values.items()]
        given = np.column_stack(parts) if parts else np.zeros((0, 0))
        names = tuple(str(key) for key in values)
    else:
        given = numbers(values, name, letter)
        if given.ndim == 1:
            given = given[:, np.newaxis]
        names = names_of(values, given.shape[1], letter) if given.ndim == 2 else ()
    if given.ndim != 2 or given.shape[1] == 0 or given.shape[0] == 0:
        raise UnusableInput(
            f"{name} has shape {given.shape}: a row for each unit and a column for each "
            "covariate are needed"
        )
    if not np.isfinite(given).all():
        for place, label in enumerate(names):
            refuse_non_finite(given[:, place], f"{name}, column {label!r}")
    return np.ascontiguousarray(given), names


def column(values: Any, name: str, rows: int) -> Floats:
    """Shape (n,), finite."""
    given = numbers(values, name)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1:
        raise UnusableInput(f"{name} has shape {given.shape}: one value for each unit is needed")
    same_length(len(given), name, rows)
    refuse_non_finite(given, name)
    return np.ascontiguousarray(given)


def same_length(length: int, name: str, rows: int) -> None:
    """As many values as X has rows."""
    if length != rows:
        raise UnusableInput(
            f"{name} has {length} rows and X has {rows}", hint="give one row for each unit in all"
        )


def refuse_non_finite(values: Floats, name: str) -> None:
    """No missing or infinite value."""
    refuse_rows(
        ~np.isfinite(values),
        name,
        "is missing or infinite",
        "leave out these rows, or fill in their values, before matching",
    )


def refuse_rows(wrong: NDArray[np.bool_], name: str, fault: str, hint: str) -> None:
    """Names the rows that are wrong."""
    if wrong.any():
        rows = np.flatnonzero(wrong)
        named = ", ".join(str(row) for row in rows[:NAMED_ROWS])
        more = f" and {rows.size - NAMED_ROWS} more" if rows.size > NAMED_ROWS else ""
        raise UnusableInput(
            f"{name} {fault} in row{'s' if rows.size > 1 else ''} {named}{more} (from 0)", hint=hint
        )


def treatment(values: Any, rows: int) -> NDArray[np.uint8]:
    """Shape (n,): 1 for treated units, 0 for controls; both occur."""
    given = column(values, "treat", rows)
    refuse_rows(
        (given != 0) & (given != 1),
        "treat",
        "is neither 0 nor 1",
        "code treated units as 1 and controls as 0",
    )
    if given.min() == given.max():
        raise UnusableInput(
            f"treat is {given[0]:.0f} in all {rows} rows: there is nobody to match with",
            hint="give both treated units (1) and controls (0)",
        )
    return given.astype(np.uint8)


def metric_matrix(metric: str | ArrayLike, names: Sequence[str]) -> Floats | None:
    """The weight matrix (k, k), symmetric positive semidefinite; ``None`` for a named metric."""
    if isinstance(metric, str):
        if metric not in ("inverse_variance", "mahalanobis"):
            raise UnusableInput(
                f"there is no metric {metric!r}",
                hint="give 'inverse_variance', 'mahalanobis', a diagonal or a full matrix",
            )
        return None
    given = numbers(metric, "metric")
    count = len(names)
    if given.shape == (count,):
        given = np.diag(given)
    if given.shape != (count, count):
        raise UnusableInput(
            f"metric has shape {given.shape} and X has {count} columns",
            hint=f"give {count} weights or a matrix of {count} rows and columns",
        )
    for place, label in enumerate(names):
        refuse_non_finite(given[:, place], f"metric, column {label!r}")
    largest = float(np.abs(given).max())
    lopsided = np.abs(given - given.T) > ROUNDING * largest
    if lopsided.any():
        row, other = (int(place) for place in np.argwhere(lopsided)[0])
        raise UnusableInput(
            f"metric is not symmetric: row {row}, column {names[other]!r} is {given[row, other]:g} "
            f"and row {other}, column {names[row]!r} is {given[other, row]:g} (from 0)"
        )
    given = (given + given.T) / 2
    values, vectors = np.linalg.eigh(given)
    if values[0] < -ROUNDING * largest:
        worst = names[int(np.abs(vectors[:, 0]).argmax())]
        raise UnusableInput(
            f"metric is not positive semidefinite: its smallest eigenvalue is {values[0]:g}, "
            f"mostly along column {worst!r}",
            hint="give weights of 0 or more: distances would be negative",
        )
    if largest == 0:
        raise UnusableInput("metric is 0 throughout: every pair would be at distance 0")
    return np.ascontiguousarray(given)


def per_column(values: Any, name: str, names: Sequence[str]) -> NDArray[Any]:
    """One value for each column of X: a single one is for all of them."""
    given = np.asarray(values)
    if given.ndim == 0:
        return np.full(len(names), given[()])
    if given.shape != (len(names),):
        raise UnusableInput(
            f"{name} has {given.size} values and X has {len(names)} columns "
            f"({', '.join(names[:NAMED_ROWS])}{', …' if len(names) > NAMED_ROWS else ''})",
            hint=f"give one value, or {len(names)}",
        )
    return given


def calipers(caliper: Any, names: Sequence[str]) -> Floats:
    """Shape (k,), standard deviations; infinite for no limit."""
    try:
        given = np.asarray(per_column(caliper, "caliper", names), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UnusableInput(
            f"caliper is {caliper!r}", hint="give standard deviations: one number or one a column"
        ) from error
    for width, label in zip(given, names, strict=True):
        if not width >= 0:
            raise UnusableInput(
                f"caliper, column {label!r} is {width:g}",
                hint="a caliper is 0 or more standard deviations (infinite for no limit)",
            )
    return given


def exact_columns(exact: Any, names: Sequence[str]) -> NDArray[np.bool_]:
    """Shape (k,): whether the column must be equal. True, a truth for each, or names."""
    if isinstance(exact, str):
        exact = [exact]
    given = np.asarray(exact)
    if given.dtype.kind == "U" and given.ndim == 1:
        unknown = [str(name) for name in given if name not in names]
        if unknown:
            raise UnusableInput(
                f"exact names {unknown[0]!r}, which is no column of X", hint=f"X has {list(names)}"
            )
        return np.array([name in given for name in names])
    return np.asarray(per_column(exact, "exact", names), dtype=np.bool_)


def restrictions(restrict: Any, rows: int) -> list[tuple[int, int, float]]:
    """Triples of two rows (from 0) and a squared distance, negative for a forbidden pair."""
    if restrict is None:
        return []
    given = numbers(restrict, "restrict")
    if given.ndim == 1 and given.size == 3:
        given = given[np.newaxis, :]
    if given.ndim != 2 or given.shape[1] != 3:
        raise UnusableInput(
            f"restrict has shape {given.shape}",
            hint="give triples: a row, another row, a distance (negative to forbid the pair)",
        )
    refuse_rows(
        np.asarray(np.isnan(given).any(axis=1)), "restrict", "is missing", "fill in these triples"
    )
    pairs = given[:, :2]
    wrong = (pairs < 0) | (pairs >= rows) | (pairs != np.floor(pairs))
    refuse_rows(
        np.asarray(wrong.any(axis=1)),
        "restrict",
        f"names a row that is not among 0 to {rows - 1}",
        "count rows from 0",
    )
    return [(int(first), int(second), float(distance)) for first, second, distance in given]
