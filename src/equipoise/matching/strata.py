"""Rows that agree in one factor or several: which stratum each row belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.empirical import rows_in_words
from equipoise.matching.frames import check_present, columns_of
from equipoise.matching.validate import Indices, same_length
from equipoise.model.errors import UnusableInput


@dataclass(frozen=True, slots=True)
class Factors:
    """The strata of ``rows`` rows, in the order of the factors' values.

    ``code`` (n,) is the stratum of each row; ``values`` has for each stratum a value of each
    of the factors ``names``.
    """

    names: tuple[str, ...]
    code: Indices
    values: tuple[tuple[Any, ...], ...]


def factors_of(by: Any, rows: int) -> Factors:
    """The strata that the factors form together (only combinations that occur).

    Parameters
    ----------
    by
        Shape (rows,) or (rows, factors), a frame, or a mapping of names to columns; numbers,
        texts or categories.

    Raises
    ------
    UnusableInput
        Naming the factor and its rows: a value is missing, or there are too few or many.
    """
    columns = columns_of(by)
    if columns is None:
        array = np.asarray(by)
        if array.ndim not in (1, 2) or (array.ndim == 2 and not array.shape[1]):
            raise UnusableInput(
                f"by has shape {array.shape}", hint="give one value, or one a factor, for each row"
            )
        many = array.reshape(len(array), -1)
        columns = {
            "by" if many.shape[1] == 1 else f"by{place + 1}": many[:, place]
            for place in range(many.shape[1])
        }
    if not columns:
        raise UnusableInput("by has no column", hint="give at least one factor")
    together = np.zeros(rows, dtype=np.int64)
    for name, column in columns.items():
        if column.ndim != 1:
            raise UnusableInput(f"by, factor {name!r} has shape {column.shape}")
        same_length(len(column), f"by, factor {name!r}", rows)
        levels = levels_of(column, f"by, factor {name!r}")
        # Made dense again at each factor: the product of their levels may not fit.
        mixed = together * (int(levels.max()) + 1) + levels
        together = np.unique(mixed, return_inverse=True)[1].astype(np.int64).reshape(-1)
    _, first = np.unique(together, return_index=True)
    kept = [[plain(value) for value in column[first]] for column in columns.values()]
    return Factors(tuple(columns), together, tuple(zip(*kept, strict=True)))


def levels_of(column: NDArray[Any], name: str) -> Indices:
    """The place of each row's value among the distinct values, in their order."""
    if column.dtype.kind == "f":
        missing = np.isnan(column)
        if missing.any():
            raise UnusableInput(
                f"{name}: missing in {rows_in_words(missing)}",
                hint="leave out these rows, or make a category of their own of them",
            )
    elif column.dtype.kind not in "biuSU":
        check_present(column, name)
    try:
        return np.unique(column, return_inverse=True)[1].astype(np.int64).reshape(-1)
    except TypeError:
        # Values of several types have no order but that in which they occur.
        places: dict[Any, int] = {}
        return np.array([places.setdefault(value, len(places)) for value in column.tolist()])


def plain(value: Any) -> Any:
    """A number of NumPy's as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
