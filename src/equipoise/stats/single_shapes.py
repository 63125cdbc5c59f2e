"""Fits of shapes with one peak: the greatest likelihood of each shape that a time may have.

The rivals of two modes (stats/modes.py): a sample has two only if two normal laws explain it
better than each of these does. NumPy alone, so that the base install can tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.polynomial import Chebyshev

from equipoise.stats.arrays import FloatArray

STUDENT_FREEDOMS = np.array([1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0])
STUDENT_ROUNDS = 40
GUMBEL_ROUNDS = 30
SEARCH_ROUNDS = 60
SHORTEST_STEP = 0.01
BETA_ENDS = (0.5, 2.0, 8.0)
"""Distances of the ends beyond the extremes, in mean distances between neighbours."""
SPIKE_ROUNDS = 40
SPIKE_SHARES = (0.02, 0.1)
MOST_SPIKES = 0.15
"""More often than this, what is far off is no spike."""
_LEAST = 1e-300
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def best_single_bic(values: FloatArray) -> float:
    """Return the least BIC among the shapes with one peak.

    Parameters
    ----------
    values
        Shape (n,): ordered, finite, not all equal.

    Returns
    -------
    Schwarz's (1978) p·ln n - 2·ln L, the least over normal, both Gumbels, Student's t, uniform,
    and, on the side of the longer tail, exponentially modified normal, shifted lognormal and
    normal with rare spikes.
    """
    count = len(values)
    # In units of the spread, so that every search begins near its end; BICs shift alike.
    spread = float(np.std(values))
    scaled = (values - np.mean(values)) / spread
    right = scaled if np.mean(scaled**3) >= 0 else -scaled[::-1]
    likelihoods = (
        (2, -0.5 * count * (math.log(2.0 * math.pi * float(np.var(scaled))) + 1.0)),
        (2, _gumbel(scaled)),
        (2, _gumbel(-scaled)),
        # Ends are known to 1/n, not to 1/√n: each counts twice.
        (4, -count * math.log(float(scaled[-1] - scaled[0]))),
        (6, _beta(scaled)),
        (3, _student(scaled)),
        (3, _exponentially_modified_normal(right)),
        (3, _shifted_lognormal(right)),
        (4, _normal_with_spikes(right)),
    )
    bic = min(terms * math.log(count) - 2.0 * likelihood for terms, likelihood in likelihoods)
    return bic + 2.0 * count * math.log(spread)


def _beta(values: FloatArray) -> float:
    """Beta with one peak (both exponents at least 1), its ends beyond the extremes."""
    range_ = float(values[-1] - values[0])
    best = -math.inf
    for beyond in BETA_ENDS:
        extra = beyond * range_ / len(values)
        width = range_ + 2.0 * extra
        place = (values - values[0] + extra) / width
        # The likelihood depends on the sample only through these two.
        low, high = float(np.mean(np.log(place))), float(np.mean(np.log1p(-place)))
        mean, variance = float(np.mean(place)), float(np.var(place))
        size = max(2.0, mean * (1.0 - mean) / variance - 1.0)
        start = (max(1.0, mean * size), max(1.0, (1.0 - mean) * size))
        best = max(best, _greatest_beta(low, high, start, math.log(width)))
    return len(values) * best


def _greatest_beta(low: float, high: float, start: tuple[float, float], ln_width: float) -> float:
    """Return the greatest mean log density over both exponents, by pattern search."""

    def density(first: float, second: float) -> float:
        constant = math.lgamma(first + second) - math.lgamma(first) - math.lgamma(second)
        return constant + (first - 1.0) * low + (second - 1.0) * high - ln_width

    best, value, step = start, density(*start), 0.3
    while step > 1e-2:
        for direction in ((1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)):
            first, second = (
                max(1.0, exponent * math.exp(step * sign))
                for exponent, sign in zip(best, direction, strict=True)
            )
            if (other := density(first, second)) > value:
                best, value = (first, second), other
                break
        else:
            step *= 0.5
    return value


def _gumbel(values: FloatArray) -> float:
    """Fit the law of the largest values: the likelihood equation for the scale, by bisection."""
    mean, smallest = float(np.mean(values)), float(np.min(values))
    low, high = 1e-3, 10.0
    for _ in range(GUMBEL_ROUNDS):
        scale = math.sqrt(low * high)
        weight = np.exp(-(values - smallest) / scale)
        if scale - mean + float(np.sum(values * weight) / np.sum(weight)) > 0:
            high = scale
        else:
            low = scale
    place = smallest - scale * math.log(float(np.mean(weight)))
    standard = (values - place) / scale
    return float(np.sum(-standard - np.exp(-standard))) - len(values) * math.log(scale)


def _student(values: FloatArray) -> float:
    """Over a grid of degrees of freedom, each by EM (Lange, Little and Taylor 1989)."""
    freedom = STUDENT_FREEDOMS[:, None]
    place = np.full_like(freedom, np.median(values))
    scale = np.full_like(freedom, max(1e-3, float(np.median(np.abs(values - place[0])))))
    for _ in range(STUDENT_ROUNDS):
        weight = (freedom + 1.0) / (freedom + ((values - place) / scale) ** 2)
        place = np.sum(weight * values, axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
        scale = np.sqrt(np.mean(weight * (values - place) ** 2, axis=1, keepdims=True)) + 1e-9
    constant = [
        math.lgamma((one + 1) / 2) - math.lgamma(one / 2) - 0.5 * math.log(one * math.pi)
        for one in STUDENT_FREEDOMS
    ]
    tails = np.log1p(((values - place) / scale) ** 2 / freedom).sum(axis=1)
    likelihoods = len(values) * (constant - np.log(scale[:, 0])) - (
        (STUDENT_FREEDOMS + 1) / 2 * tails
    )
    return float(likelihoods.max())


def _exponentially_modified_normal(values: FloatArray) -> float:
    """Fit normal plus exponential (Grushka 1972), its tail to the right."""

    def likelihood(points: FloatArray) -> FloatArray:
        place, sd, tail = points[:, :1], np.exp(points[:, 1:2]), np.exp(points[:, 2:])
        standard = (values - place) / sd
        argument = (sd / tail - standard) / math.sqrt(2.0)
        # Two forms of one function: each overflows where the other serves.
        scaled = _scaled_erfc(np.abs(argument))
        inside = np.log(scaled) - 0.5 * standard**2
        with np.errstate(over="ignore"):
            beyond = np.log(np.maximum(2.0 - np.exp(-(argument**2)) * scaled, _LEAST)) + (
                0.5 * (sd / tail) ** 2 - standard * sd / tail
            )
        total = np.asarray(np.where(argument >= 0, inside, beyond).sum(axis=1), dtype=np.float64)
        total -= len(values) * np.log(2.0 * tail[:, 0])
        return total

    skewness = min(1.9, max(0.05, float(np.mean(values**3))))
    tail = (skewness / 2.0) ** (1.0 / 3.0)
    starts = [
        [-share, 0.5 * math.log(1.0 - share**2), math.log(share)]
        for share in (tail, 0.5, 0.9, 0.99)
    ]
    return _greatest(likelihood, np.array(starts))


def _shifted_lognormal(values: FloatArray) -> float:
    """Lognormal above some least value: the profile over that value.

    The likelihood has no bound as the shift nears the smallest value; it stays a hundredth of the
    range, or the distance to the next, away from it.
    """
    smallest, range_ = float(values[0]), float(values[-1] - values[0])
    shifts = smallest - range_ * np.geomspace(0.01, 100.0, 60)
    logs = np.log(values[None, :] - shifts[:, None])
    likelihoods = -0.5 * len(values) * (np.log(2.0 * math.pi * np.var(logs, axis=1)) + 1.0)
    return float(np.max(likelihoods - logs.sum(axis=1)))


def _normal_with_spikes(values: FloatArray) -> float:
    """Fit a normal with a rare part that is anywhere in the range, or exponentially far above.

    By EM from several shares of the rare part, both kinds at once.
    """
    count = len(values)
    rare = np.array(SPIKE_SHARES * 2)[:, None]
    exponential = (np.arange(len(rare)) < len(SPIKE_SHARES))[:, None]
    middle = float(np.median(values))
    place = np.full_like(rare, middle)
    sd = np.full_like(rare, max(1e-3, 1.4826 * float(np.median(np.abs(values - middle)))))
    mean_excess = np.full_like(rare, 1.0)
    likelihoods = np.zeros(len(rare))
    even = -math.log(float(values[-1] - values[0]))
    for _ in range(SPIKE_ROUNDS):
        usual = np.log((1.0 - rare) / sd) - 0.5 * ((values - place) / sd) ** 2 - _HALF_LOG_TWO_PI
        excess = values - place
        above = np.where(excess > 0, -excess / mean_excess - np.log(mean_excess), -math.inf)
        spikes = np.log(rare) + np.where(exponential, above, even)
        both = np.logaddexp(usual, spikes)
        likelihoods = both.sum(axis=1)
        member = np.exp(usual - both)
        weight = member.sum(axis=1, keepdims=True) + 1e-9
        other = np.maximum(count - weight, 1e-6)
        mean_excess = np.maximum(
            ((1.0 - member) * np.maximum(excess, 0.0)).sum(axis=1, keepdims=True) / other, 1e-3
        )
        place = (member * values).sum(axis=1, keepdims=True) / weight
        spread = (member * (values - place) ** 2).sum(axis=1, keepdims=True) / weight
        sd = np.sqrt(np.maximum(spread, 1e-4))
        rare = np.clip(1.0 - weight / count, 1e-4, MOST_SPIKES)
    return float(likelihoods.max())


def _greatest(likelihood: Callable[[FloatArray], FloatArray], starts: FloatArray) -> float:
    """Return the greatest value by pattern search (Hooke and Jeeves 1961), from the best start."""
    values = likelihood(starts)
    best, greatest = starts[int(np.argmax(values))], float(np.max(values))
    directions = np.concatenate([np.eye(3), -np.eye(3), _DIAGONALS])
    step = 0.4
    for _ in range(SEARCH_ROUNDS):
        points = best + step * directions
        values = likelihood(points)
        place = int(np.argmax(values))
        if values[place] > greatest:
            best, greatest = points[place], float(values[place])
        elif step < SHORTEST_STEP:
            break
        else:
            step *= 0.5
    return greatest


_DIAGONALS = np.array([[1.0, 1.0, -1.0], [-1.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]])
"""Directions that shift the place and move spread between the two parts at once."""


def _scaled_erfc(values: FloatArray) -> FloatArray:
    """Return exp(x²)·erfc(x) for x from 0 up, to 1e-9 of itself."""
    place = (values - _MIDDLE) / (values + _MIDDLE)
    scaled: FloatArray = _scaled_erfc_series()(place) / (1.0 + 2.0 * values)
    return scaled


@cache
def _scaled_erfc_series() -> Chebyshev:
    """Interpolate (1 + 2x)·exp(x²)·erfc(x), x = _MIDDLE·(1 + t)/(1 - t), for t from -1 to 1."""

    def exact(place: float) -> float:
        value = _MIDDLE * (1.0 + place) / (1.0 - place)
        if value < _FAR:
            return (1.0 + 2.0 * value) * math.exp(value**2) * math.erfc(value)
        # The first terms of the asymptotic series (Abramowitz and Stegun 7.1.23).
        square = 2.0 * value**2
        series = 1.0 - (1.0 - 3.0 / square * (1.0 - 5.0 / square * (1.0 - 7.0 / square))) / square
        return (2.0 + 1.0 / value) / math.sqrt(math.pi) * series

    return Chebyshev.interpolate(np.vectorize(exact, otypes=[np.float64]), _DEGREE)


_MIDDLE = 3.75
"""Value that lies in the middle of the interpolation."""
_FAR = 25.0
"""Value from which on the series replaces the product, which would overflow."""
_DEGREE = 14
