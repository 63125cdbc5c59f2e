"""Arrays of the statistics: their types, ranks, medians, quantiles and resamples of blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.model.errors import UnusableInput

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
OrderArray = NDArray[np.int8]

NORMAL_MAD = 1.4826
"""Standard deviation of a normal law over its median absolute deviation."""


def as_costs(costs: FloatArray | Sequence[float], name: str) -> FloatArray:
    """Return one cost for each block: numbers from 0 up, +inf for a trial that timed out.

    Raise `UnusableInput` if a cost is negative or not a number.
    """
    array = np.array(costs, dtype=np.float64, ndmin=1)
    bad_indices = np.flatnonzero(~(array >= 0))
    if bad_indices.size:
        raise UnusableInput(
            f"block {bad_indices[0] + 1} of {name} has the cost {array[bad_indices[0]]}, "
            "which is not a number from 0 up",
            hint="leave out the blocks in which a cost is unknown or negative",
        )
    return array


def shared_ranks(values: FloatArray) -> FloatArray:
    """Return the rank of each value, from 0, shape (n,); equal values get their mean rank."""
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts + 1) / 2.0
    ranks: FloatArray = mean_ranks[groups.reshape(-1)]
    return ranks


def row_medians(table: FloatArray) -> FloatArray:
    """Return the median of each row, shape (rows,), ignoring NaN; each row must have a number."""
    # Sorting is faster than np.nanmedian for short rows, and gives the same medians.
    ordered = np.sort(table, axis=1)
    counts = np.sum(~np.isnan(ordered), axis=1)
    rows = np.arange(len(table))
    medians: FloatArray = (ordered[rows, (counts - 1) // 2] + ordered[rows, counts // 2]) / 2.0
    return medians


def part_medians(values: FloatArray, parts: int) -> FloatArray:
    """Cut n values into 1 to n consecutive parts and return the medians, shape (parts,).

    The first n mod ``parts`` parts have one value more than the others (`numpy.array_split`).
    """
    min_length, longer_part_count = divmod(len(values), parts)
    split_index = longer_part_count * (min_length + 1)
    medians: FloatArray = np.concatenate(
        [
            median_of(values[:split_index].reshape(longer_part_count, min_length + 1)),
            median_of(values[split_index:].reshape(parts - longer_part_count, min_length)),
        ]
    )
    return medians


RESAMPLES = 1000
"""Number of bootstrap resamples."""
LEVEL = 0.05
"""1 minus the coverage of an interval that only describes."""


def block_length(count: int) -> int:
    """Return the length of blocks to resample: ∛n, rounded up (Bühlmann 2002, §3.3)."""
    return max(1, math.ceil(round(math.cbrt(count), 9)))


def circular_block_means(series: FloatArray, resamples: int, seed: int) -> FloatArray:
    """Return means of circular block resamples (Politis and Romano 1992), shape (resamples, m).

    ``series``, shape (n, m), holds m series of n values, which are resampled together.
    """
    count = len(series)
    length = block_length(count)
    circular = np.concatenate([series, series[: length - 1]])
    running_sums = np.cumsum(circular, axis=0)
    block_sums = running_sums[length - 1 :].copy()
    block_sums[1:] -= running_sums[: count - 1]
    starts = np.random.default_rng(seed).integers(
        0, count, size=(resamples, math.ceil(count / length))
    )
    means: FloatArray = block_sums[starts].mean(axis=1) / length
    return means


def circular_block_indices(count: int, resamples: int, generator: np.random.Generator) -> IntArray:
    """Return indices of circular block resamples, shape (resamples, count)."""
    length = block_length(count)
    starts = generator.integers(0, count, size=(resamples, math.ceil(count / length), 1))
    indices: IntArray = (starts + np.arange(length)) % count
    return indices.reshape(resamples, -1)[:, :count]


def median_of(values: FloatArray) -> FloatArray:
    """Return the median over the last axis, as ``np.median`` does.

    ``np.median`` itself would import masked arrays first. The values have the shape (..., n), the
    medians the shape (...,). A median is NaN if one of its values is NaN.
    """
    half, is_odd = divmod(values.shape[-1], 2)
    ordered = np.partition(values, [half, -1] if is_odd else [half - 1, half, -1], axis=-1)
    middle = ordered[..., half]
    if not is_odd:
        middle = (ordered[..., half - 1] + middle) / 2.0
    medians: FloatArray = np.where(np.isnan(ordered[..., -1]), np.nan, middle)
    return medians


def percentile_interval(values: FloatArray) -> tuple[float, float]:
    """Return the bounds of the middle 95 % of resampled values."""
    ordered = np.sort(values)
    return (quantile_of(ordered, LEVEL / 2.0), quantile_of(ordered, 1.0 - LEVEL / 2.0))


def quantile_of(ordered: FloatArray, share: float) -> float:
    """Return the value below which a share of sorted values lies, as ``np.quantile`` does.

    ``np.quantile`` itself would import masked arrays first. The values, shape (n,), are ascending.
    The quantile is interpolated linearly between two values (Hyndman and Fan 1996, definition 7).
    """
    last_index = len(ordered) - 1
    position = last_index * share
    lower_index = math.floor(position)
    low, high = float(ordered[lower_index]), float(ordered[min(lower_index + 1, last_index)])
    fraction = position - lower_index
    if math.isnan(ordered[last_index]):
        return math.nan
    if fraction >= 0.5:
        return high - (high - low) * (1.0 - fraction)
    return low + (high - low) * fraction
