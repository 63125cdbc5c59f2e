"""Columns of words as numbers: an indicator for each word but the first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.frames import numbers_of
from equipoise.matching.stratified import levels_of, plain
from equipoise.matching.units import Floats, Indices
from equipoise.model.errors import UnusableInput

MAX_CATEGORIES = 20
"""Largest number of distinct texts in a covariate: a column with more holds names, not kinds."""
YES = frozenset({"yes", "y", "true", "t"})
NO = frozenset({"no", "n", "false", "f"})


def holds_text(column: NDArray[Any]) -> bool:
    """Return whether a column has texts."""
    if column.dtype.kind in "US":
        return True
    return column.dtype.kind == "O" and any(isinstance(value, str) for value in column.tolist())


def numbers_or_indicators(column: NDArray[Any], name: str) -> list[tuple[str, Floats]]:
    """Return a column of numbers as it is, or an indicator column for each text but the first.

    Raises
    ------
    UnusableInput
        A value is missing or infinite, or there are more than ``MAX_CATEGORIES`` texts.
    """
    if not holds_text(column):
        return [(name, numbers_of(column, name))]
    texts, code = distinct_texts(column, name)
    if len(texts) > MAX_CATEGORIES:
        raise UnusableInput(
            f"{name}: {len(texts)} different texts are too many for a covariate",
            hint=f"leave {name} out, or compare within each value: --exact {name}",
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
