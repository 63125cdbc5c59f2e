"""A kernel density estimate: the shape of a sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

POINTS = 160
"""Number of points at which the density is estimated."""
MIN_VALUES = 5
"""Minimum number of values for a density."""
_TAIL_BANDWIDTHS = 3.0
"""Distance in bandwidths at which a normal kernel is nearly 0."""
_MIN_BANDWIDTH_SHARE = 1 / 250
"""Minimum bandwidth as a share of the range: equal values then have a visible peak."""


def density(
    values: NDArray[np.float64],
    low: float,
    high: float,
    weights: NDArray[np.float64] | None = None,
    bandwidth: float | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Estimate a Gaussian kernel density at ``POINTS`` points in ``low`` to ``high``.

    Return the points and the densities, whose maximum is 1; ``None`` for fewer than ``MIN_VALUES``
    values. With ``weights`` w of the values, the bandwidth follows from the effective number of
    values, (Σw)² / Σw² (Kish 1965), unless it is given.
    """
    if len(values) < MIN_VALUES:
        return None
    if bandwidth is None:
        bandwidth = silverman_bandwidth(values, weights)
    bandwidth = max(bandwidth, _MIN_BANDWIDTH_SHARE * (high - low))
    begin = max(low, float(values.min()) - _TAIL_BANDWIDTHS * bandwidth)
    end = min(high, float(values.max()) + _TAIL_BANDWIDTHS * bandwidth)
    grid = np.linspace(begin, end, POINTS)
    # With bins, the computing time does not depend on the number of values.
    counts, edges = np.histogram(values, bins=4 * POINTS, range=(begin, end), weights=weights)
    centres = (edges[:-1] + edges[1:]) / 2
    heights = np.exp(-0.5 * ((grid[:, None] - centres[None, :]) / bandwidth) ** 2) @ counts
    peak = float(heights.max())
    return (grid, heights / peak) if peak > 0 else None


def silverman_bandwidth(
    values: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> float:
    """Return Silverman's rule of thumb, 0.9 × spread × number^(-1/5) (1986, eq. 3.31)."""
    if weights is None:
        effective_count = float(len(values))
        deviation = float(values.std(ddof=1))
        low, high = np.percentile(values, [25, 75])
    else:
        effective_count = float(weights.sum() ** 2 / np.square(weights).sum())
        mean = np.average(values, weights=weights)
        deviation = float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))
        ascending_order = np.argsort(values, kind="stable")
        weight_shares = np.cumsum(weights[ascending_order]) / weights.sum()
        low, high = values[ascending_order][np.searchsorted(weight_shares, [0.25, 0.75])]
    # In a normal distribution, the quartiles are 1.34 standard deviations apart.
    quartile_deviation = float(high - low) / 1.34
    spreads = [spread for spread in (deviation, quartile_deviation) if spread > 0]
    return 0.9 * min(spreads, default=0.0) * float(effective_count**-0.2)
