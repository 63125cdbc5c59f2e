"""A kernel density estimate: the shape of a sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

POINTS = 160
MIN_VALUES = 5
_TAIL = 3.0
"""Distance from the outermost values, in bandwidths, at which a normal kernel is nearly 0."""
_NARROWEST = 1 / 250
"""Minimum bandwidth as a share of the range, so that equal values have a visible peak."""


def density(
    places: NDArray[np.float64],
    low: float,
    high: float,
    weights: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Estimate a Gaussian kernel density at ``POINTS`` places from low to high, with peak 1.

    The bandwidth is Silverman's rule of thumb (1986, eq. 3.31). ``None`` below ``MIN_VALUES``
    values, which do not show a curve.

    Parameters
    ----------
    weights
        Weights of the places, by default equal; the bandwidth uses the effective number of places
        (Kish 1965, (Σw)² / Σw²).
    """
    if len(places) < MIN_VALUES:
        return None
    width = max(_bandwidth(places, weights), _NARROWEST * (high - low))
    begin = max(low, float(places.min()) - _TAIL * width)
    end = min(high, float(places.max()) + _TAIL * width)
    grid = np.linspace(begin, end, POINTS)
    # With bins the cost is POINTS² for any number of trials.
    counts, edges = np.histogram(places, bins=4 * POINTS, range=(begin, end), weights=weights)
    centres = (edges[:-1] + edges[1:]) / 2
    heights = np.exp(-0.5 * ((grid[:, None] - centres[None, :]) / width) ** 2) @ counts
    peak = float(heights.max())
    return (grid, heights / peak) if peak > 0 else None


def _bandwidth(places: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    if weights is None:
        effective = float(len(places))
        deviation = float(places.std(ddof=1))
        low, high = np.percentile(places, [25, 75])
    else:
        effective = float(weights.sum() ** 2 / np.square(weights).sum())
        mean = np.average(places, weights=weights)
        deviation = float(np.sqrt(np.average((places - mean) ** 2, weights=weights)))
        order = np.argsort(places, kind="stable")
        below = np.cumsum(weights[order]) / weights.sum()
        low, high = places[order][np.searchsorted(below, [0.25, 0.75])]
    quarter = float(high - low) / 1.34
    spreads = [spread for spread in (deviation, quarter) if spread > 0]
    return 0.9 * min(spreads, default=0.0) * float(effective**-0.2)
