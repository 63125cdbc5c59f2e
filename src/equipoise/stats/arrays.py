"""The arrays that the statistics take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.model.errors import UnusableInput

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
OrderArray = NDArray[np.int8]


def as_costs(costs: FloatArray | Sequence[float], name: str) -> FloatArray:
    """Return one cost for each block: numbers from 0 up, +inf for a trial that timed out.

    Raises
    ------
    UnusableInput
        If there is a negative cost or one that is no number.
    """
    array = np.array(costs, dtype=np.float64, ndmin=1)
    bad = np.flatnonzero(~(array >= 0))
    if bad.size:
        raise UnusableInput(
            f"block {bad[0] + 1} of {name} has the cost {array[bad[0]]}, "
            "which is no number from 0 up",
            hint="compare a metric that is a cost, and leave out trials that have none",
        )
    return array


def shared_ranks(values: FloatArray) -> FloatArray:
    """Return ranks from 0, equal values sharing their mean rank; shape (n,) as the values."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts + 1) / 2.0
    ranks: FloatArray = middle[place.reshape(-1)]
    return ranks


def row_medians(table: FloatArray) -> FloatArray:
    """Return the median of each row, shape (rows,): NaN is left out, and never all of a row."""
    # Sorted whole: for short rows faster than np.nanmedian, and the same.
    ordered = np.sort(table, axis=1)
    known = np.sum(~np.isnan(ordered), axis=1)
    rows = np.arange(len(table))
    medians: FloatArray = (ordered[rows, (known - 1) // 2] + ordered[rows, known // 2]) / 2.0
    return medians


def part_medians(values: FloatArray, parts: int) -> FloatArray:
    """Return the medians of parts of consecutive values, of nearly equal length.

    Parameters
    ----------
    values
        Shape (n,).
    parts
        From 1 to n; the first n mod ``parts`` of them are one longer (`numpy.array_split`).

    Returns
    -------
    Shape (parts,).
    """
    length, longer = divmod(len(values), parts)
    split = longer * (length + 1)
    medians: FloatArray = np.concatenate(
        [
            np.median(values[:split].reshape(longer, length + 1), axis=1),
            np.median(values[split:].reshape(parts - longer, length), axis=1),
        ]
    )
    return medians
