"""Resampling that keeps what neighbours have in common."""

from __future__ import annotations

import math

import numpy as np

from equipoise.stats.arrays import FloatArray, IntArray

RESAMPLES = 1000


def block_length(count: int) -> int:
    """Return the cube root of the length of the series, rounded up (Bühlmann 2002, §3.3)."""
    return max(1, math.ceil(round(math.cbrt(count), 9)))


def circular_block_sums(series: FloatArray, resamples: int, seed: int) -> FloatArray:
    """Return means of circular block resamples (Politis and Romano 1992).

    Parameters
    ----------
    series
        Shape (n, m): m series of n values, resampled together.
    resamples
        Number of resamples.
    seed
        Seed of the generator.

    Returns
    -------
    Shape (resamples, m): the mean of each series in each resample.
    """
    count = len(series)
    length = block_length(count)
    wrapped = np.concatenate([series, series[: length - 1]])
    running = np.cumsum(wrapped, axis=0)
    sums = running[length - 1 :].copy()
    sums[1:] -= running[: count - 1]
    starts = np.random.default_rng(seed).integers(
        0, count, size=(resamples, math.ceil(count / length))
    )
    means: FloatArray = sums[starts].mean(axis=1) / length
    return means


def circular_block_indices(count: int, resamples: int, generator: np.random.Generator) -> IntArray:
    """Return indices of circular block resamples, shape (resamples, count)."""
    length = block_length(count)
    starts = generator.integers(0, count, size=(resamples, math.ceil(count / length), 1))
    indices: IntArray = (starts + np.arange(length)) % count
    return indices.reshape(resamples, -1)[:, :count]


def percentile_interval(values: FloatArray, level: float) -> tuple[float, float]:
    """Return the middle 1 - level of the resampled values."""
    low, high = np.quantile(values, [level / 2.0, 1.0 - level / 2.0])
    return (float(low), float(high))
