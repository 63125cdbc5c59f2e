"""The shape of a sample: a kernel density estimate, and counts in bins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

POINTS = 160
LEAST_VALUES = 5
_TAIL = 3.0
"""Bandwidths beyond the outermost values: a normal kernel is as good as 0 there."""
_NARROWEST = 1 / 250
"""Of the range: a sample of equal values still gets a visible peak."""


def density(
    places: NDArray[np.float64], low: float, high: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """A Gaussian kernel density on ``POINTS`` places within low and high, its peak scaled to 1.

    The bandwidth is Silverman's rule of thumb (1986, eq. 3.31). ``None`` below
    ``LEAST_VALUES`` values: a curve through three trials is an invention.
    """
    if len(places) < LEAST_VALUES:
        return None
    quarter = float(np.subtract(*np.percentile(places, [75, 25]))) / 1.34
    spreads = [spread for spread in (float(places.std(ddof=1)), quarter) if spread > 0]
    width = max(0.9 * min(spreads, default=0.0) * len(places) ** -0.2, _NARROWEST * (high - low))
    begin = max(low, float(places.min()) - _TAIL * width)
    end = min(high, float(places.max()) + _TAIL * width)
    grid = np.linspace(begin, end, POINTS)
    # Binning first keeps the cost at POINTS² however many trials there are.
    counts, edges = np.histogram(places, bins=4 * POINTS, range=(begin, end))
    centres = (edges[:-1] + edges[1:]) / 2
    heights = np.exp(-0.5 * ((grid[:, None] - centres[None, :]) / width) ** 2) @ counts
    peak = float(heights.max())
    return (grid, heights / peak) if peak > 0 else None
