"""Two normal laws fitted to a sample, and the valley between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise.stats.arrays import FloatArray

ROUNDS = 300
ROUNDS_OF_ALL = 30
"""After so many only the best start goes on."""
STARTS = 4
CLOSE_ENOUGH = 1e-6
LEAST_SPREAD = 0.01
"""The sd of a part, in those of the whole: a part may not shrink onto one trial."""
VALLEY_POINTS = 101


@dataclass(frozen=True, slots=True)
class TwoNormals:
    """The fit; the lower part first, shapes (2,)."""

    shares: FloatArray
    places: FloatArray
    spreads: FloatArray
    bic: float
    valley_at: float
    """Where the density between the two places is least."""
    valley_depth: float
    """The density there over that of the lower peak: 1 where there is no valley."""


def two_normals(values: FloatArray) -> TwoNormals:
    """Fit a mixture of two normal laws by EM (Dempster, Laird and Rubin 1977).

    Once with one spread for both and once with two; of lesser BIC is what is returned. Begun at the
    splits of the ordered sample that classify it best. The sd of either part is at least
    ``LEAST_SPREAD`` of the whole's.

    Parameters
    ----------
    values
        Shape (n,), n at least 4: ordered, finite, not all equal.
    """
    spread = float(np.std(values))
    middle = float(np.mean(values))
    scaled = (values - middle) / spread
    starts = _starts(scaled)
    fits = (
        (4, _em(scaled, starts, _common_variance)),
        (5, _em(scaled, starts, _own_variances)),
    )
    bics = [terms * math.log(len(values)) - 2.0 * fit.log_likelihood for terms, fit in fits]
    best = int(np.argmin(bics))
    fit = fits[best][1]
    order = np.argsort(fit.places)
    share, place, sd = fit.shares[order], fit.places[order], np.sqrt(fit.variances[order])
    at, depth = _valley(share, place, sd)
    return TwoNormals(
        shares=share,
        places=middle + spread * place,
        spreads=spread * sd,
        bic=bics[best] + 2.0 * len(values) * math.log(spread),
        valley_at=middle + spread * at,
        valley_depth=depth,
    )


@dataclass(frozen=True, slots=True)
class _Fit:
    shares: FloatArray
    places: FloatArray
    variances: FloatArray
    log_likelihood: float


def _own_variances(shares: FloatArray, variances: FloatArray) -> FloatArray:
    return variances


def _common_variance(shares: FloatArray, variances: FloatArray) -> FloatArray:
    pooled: FloatArray = np.sum(shares * variances, axis=1, keepdims=True)
    return np.broadcast_to(pooled, variances.shape)


def _starts(values: FloatArray) -> FloatArray:
    """How many values are below each of a few good splits; shape (starts,)."""
    count = len(values)
    below = np.arange(2, count - 1)
    sums, squares = np.cumsum(values), np.cumsum(values**2)

    def variance(total: FloatArray, square: FloatArray, size: FloatArray) -> FloatArray:
        found: FloatArray = np.maximum(square / size - (total / size) ** 2, LEAST_SPREAD**2)
        return found

    size = below.astype(np.float64)
    left = variance(sums[below - 1], squares[below - 1], size)
    right = variance(sums[-1] - sums[below - 1], squares[-1] - squares[below - 1], count - size)
    fit = size * (np.log(size) - 0.5 * np.log(left)) + (count - size) * (
        np.log(count - size) - 0.5 * np.log(right)
    )
    # The best split of each quarter of the sample: neighbours would all end in one place.
    quarters = np.array_split(np.arange(len(below)), min(STARTS, len(below)))
    return np.array([size[part[int(np.argmax(fit[part]))]] for part in quarters])


def _em(
    values: FloatArray,
    below: FloatArray,
    variances_of: Callable[[FloatArray, FloatArray], FloatArray],
) -> _Fit:
    """The best fit from all starts; arrays are (starts, parts, values)."""
    count = len(values)
    lower = (np.arange(count)[None, :] < below[:, None]).astype(np.float64)
    members = np.stack([lower, 1.0 - lower], axis=1)
    squares = values**2
    previous = np.full(len(below), -math.inf)
    for done in range(ROUNDS):
        weight = np.maximum(members.sum(axis=2), 1e-9)
        shares = weight / count
        places = members @ values / weight
        variances = members @ squares / weight - places**2
        variances = np.maximum(variances_of(shares, variances), LEAST_SPREAD**2)
        logs = (
            np.log(shares / np.sqrt(2.0 * math.pi * variances))[:, :, None]
            - 0.5 * (values - places[:, :, None]) ** 2 / variances[:, :, None]
        )
        top = logs.max(axis=1, keepdims=True)
        members = np.exp(logs - top)
        total = members.sum(axis=1, keepdims=True)
        members /= total
        likelihoods = (top + np.log(total)).sum(axis=(1, 2))
        if np.all(likelihoods - previous < CLOSE_ENOUGH * count):
            break
        previous = likelihoods
        if done == ROUNDS_OF_ALL and len(likelihoods) > 1:
            leader = [int(np.argmax(likelihoods))]
            members, previous = members[leader], previous[leader]
    best = int(np.argmax(likelihoods))
    return _Fit(shares[best], places[best], variances[best], float(likelihoods[best]))


def _valley(shares: FloatArray, places: FloatArray, spreads: FloatArray) -> tuple[float, float]:
    grid = np.linspace(places[0], places[1], VALLEY_POINTS)[:, None]
    density = (shares / spreads * np.exp(-0.5 * ((grid - places) / spreads) ** 2)).sum(axis=1)
    left, right = np.maximum.accumulate(density), np.maximum.accumulate(density[::-1])[::-1]
    depth = density / np.minimum(left, right)
    lowest = int(np.argmin(depth))
    return float(grid[lowest, 0]), float(depth[lowest])
