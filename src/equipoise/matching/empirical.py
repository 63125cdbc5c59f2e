"""Empirical distribution functions of two samples, with weights if there are any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.model.errors import UnusableInput

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TwoSamples:
    """Two samples at the sorted distinct values of both.

    ``place`` gives for each row, the treated first, the index of its value; ``treated`` and
    ``control`` are the empirical distribution functions there.
    """

    values: Values
    place: NDArray[np.intp]
    treated: Values
    control: Values

    @property
    def distances(self) -> Values:
        """``|F_treated - F_control|`` at every distinct value."""
        return np.abs(self.treated - self.control)


def two_samples(
    treated: Values,
    control: Values,
    weights_treated: Values | None = None,
    weights_control: Values | None = None,
) -> TwoSamples:
    """Both empirical distribution functions; without weights every row counts the same."""
    values, place = np.unique(np.concatenate([treated, control]), return_inverse=True)
    split = len(treated)
    return TwoSamples(
        values,
        place,
        _distribution(place[:split], len(values), weights_treated),
        _distribution(place[split:], len(values), weights_control),
    )


def _distribution(place: NDArray[np.intp], count: int, weights: Values | None) -> Values:
    mass = np.bincount(place, weights=weights, minlength=count)
    cumulated = np.cumsum(mass)
    return np.asarray(cumulated / cumulated[-1], dtype=np.float64)


def sample(values: Any, name: str) -> Values:
    """One sample as finite float64 numbers.

    Raises
    ------
    UnusableInput
        It is no list of numbers, is empty, or has missing or infinite values.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UnusableInput(f"{name}: not numbers ({error})", hint="give numbers") from error
    if array.ndim != 1 or not len(array):
        raise UnusableInput(
            f"{name}: a list of at least one number is needed, not shape {array.shape}",
            hint="give one column",
        )
    check_finite(array, name)
    return array


def sample_weights(weights: Any, values: Values, name: str) -> Values | None:
    """The weights of a sample; ``None`` where there are none.

    Raises
    ------
    UnusableInput
        They are not as many as the values, negative, not finite, or all zero.
    """
    if weights is None:
        return None
    array = sample(weights, name)
    if len(array) != len(values):
        raise UnusableInput(
            f"{name}: {len(array)} weights for {len(values)} values",
            hint="give one weight for each value",
        )
    if np.any(array < 0):
        raise UnusableInput(
            f"{name}: negative in {rows_in_words(array < 0)}", hint="weights are zero or more"
        )
    if not np.any(array > 0):
        raise UnusableInput(f"{name}: every weight is zero", hint="some row must count")
    return array


def check_finite(array: Values, name: str) -> None:
    """Refuse a column with missing or infinite values.

    Raises
    ------
    UnusableInput
        Naming the column and its rows, counted from 0.
    """
    bad = ~np.isfinite(array)
    if np.any(bad):
        kind = "missing" if np.all(np.isnan(array[bad])) else "missing or infinite"
        raise UnusableInput(
            f"{name}: {kind} in {rows_in_words(bad)}",
            hint="drop these rows or fill them in first; rows are counted from 0",
        )


def rows_in_words(which: NDArray[np.bool_], most: int = 5) -> str:
    """``row 3``, or ``rows 1, 4, 7, 9, 12 and 30 more``; rows are counted from 0."""
    rows = np.flatnonzero(which)
    named = ", ".join(str(row) for row in rows[:most])
    more = f" and {len(rows) - most} more" if len(rows) > most else ""
    return f"{'row' if len(rows) == 1 else 'rows'} {named}{more}"
