"""Distinct times of one program: the modes of a sample.

The rule of verdict.md §8. Two modes are claimed only where two normal laws explain the sample
better than every shape with one peak does, with a clear valley between them; each side of the
valley is then asked again.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from msgspec import Struct

from equipoise.stats.arrays import FloatArray, IntArray
from equipoise.stats.single_shapes import best_single_bic

LEAST_VALUES = 10
SHALLOWEST_VALLEY = 0.9
"""The density in the valley over that of the lower peak, at most."""
LEAST_EVIDENCE = 0.5
EVIDENCE_TIMES_VALUES = 40.0
"""The evidence is at least this over the number of values: BIC is rash in small samples."""
FURTHER_EVIDENCE = 6.0
"""The least for a side of a valley: cut off where another mode begins, it is no whole shape."""
LEAST_SHARE = 0.05
LEAST_MEMBERS = 4
MOST_VALUES = 1000
"""Larger samples are reduced to so many of their quantiles: a rare tail is no mode."""


class Modes(Struct, frozen=True):
    """The modes of one sample, from the lowest up."""

    places: tuple[float, ...]
    """The half-sample mode of each."""
    shares: tuple[float, ...]
    cuts: tuple[float, ...]
    """The valleys between them: one fewer."""
    log_evidence: float | None
    """Evidence of the weakest split that was made, or of the strongest that was not.

    Half the difference of the BICs of one shape and of two normal laws, about the natural logarithm
    of the Bayes factor for several modes; ``None`` for too few values, or without a valley."""

    def of(self, values: FloatArray) -> IntArray:
        """Return to which mode each value belongs, from 0; shape (n,)."""
        return np.asarray(np.searchsorted(np.array(self.cuts), values), dtype=np.int64)


def find_modes(values: FloatArray, *, resolution: float = 0.0) -> Modes:
    """Return how many modes a sample has, where, and with what shares.

    Parameters
    ----------
    values
        Shape (n,), n at least 1: finite, in any order.
    resolution
        The step of what measured them, in their unit: values one step apart are no two modes. 0 if
        it is finer than what is measured.

    Returns
    -------
    At least one mode. Simulated error rates and power: docs/statistics.md.
    """
    ordered = np.sort(values)
    count = len(ordered)
    step = max(resolution, _printed_step(ordered))
    sample = ordered
    if count > MOST_VALUES:
        sample = np.quantile(ordered, (np.arange(MOST_VALUES) + 0.5) / MOST_VALUES)
    members = max(LEAST_SHARE * len(sample), LEAST_MEMBERS * len(sample) / count)
    cuts, evidence = _cuts(_spread_ties(sample, step), members, step, LEAST_EVIDENCE)
    # Ties were spread out to find the valleys: one may part no values.
    places = [0, *np.searchsorted(ordered, cuts).tolist()]
    cuts = [
        cut
        for cut, (before, place) in zip(cuts, pairwise(places), strict=True)
        if before < place < count
    ]
    sides = np.split(ordered, np.searchsorted(ordered, cuts))
    return Modes(
        places=tuple(half_sample_mode(side) for side in sides),
        shares=tuple(len(side) / count for side in sides),
        cuts=tuple(cuts),
        log_evidence=evidence,
    )


def _cuts(
    ordered: FloatArray, members: float, step: float, evident: float
) -> tuple[list[float], float | None]:
    """Return the valleys of a sample, lowest first, and the evidence of the weakest claim."""
    cut, evidence = _split(ordered, members, step, evident)
    if cut is None:
        return [], evidence
    place = int(np.searchsorted(ordered, cut))
    below, above = (
        _cuts(side, members, step, FURTHER_EVIDENCE) for side in (ordered[:place], ordered[place:])
    )
    evidences = [evidence, *(weakest for cuts, weakest in (below, above) if cuts)]
    return [*below[0], cut, *above[0]], min(one for one in evidences if one is not None)


def _split(
    ordered: FloatArray, members: float, step: float, evident: float
) -> tuple[float | None, float | None]:
    """Return the valley, if it is evident, and the evidence, if there is a valley at all."""
    count = len(ordered)
    if count < max(LEAST_VALUES, 2 * members) or ordered[-1] - ordered[0] <= step:
        return None, None
    two = two_normals(ordered)
    below = int(np.searchsorted(ordered, two.valley_at))
    smallest = min(below, count - below, two.shares.min() * count)
    if two.valley_depth > SHALLOWEST_VALLEY or smallest < members:
        return None, None
    sides = (ordered[:below], ordered[below:])
    evidence = 0.5 * (best_single_bic(ordered) - min(two.bic, _bic_of_sides(sides)))
    enough = evidence >= max(evident, EVIDENCE_TIMES_VALUES / count)
    return two.valley_at if enough else None, evidence


def _bic_of_sides(sides: tuple[FloatArray, FloatArray]) -> float:
    """BIC where each side has a law of its own, one normal or two: three or four modes in all.

    Two normal laws alone explain three equal modes no better than a uniform law does.
    """
    count = sum(len(side) for side in sides)
    bic = math.log(count)
    for side in sides:
        if len(side) < LEAST_VALUES or np.var(side) == 0.0:
            return math.inf
        normal = 2.0 * math.log(len(side)) + len(side) * (
            math.log(2.0 * math.pi * float(np.var(side))) + 1.0
        )
        bic += min(normal, two_normals(side).bic) - 2.0 * len(side) * math.log(len(side) / count)
    return bic


def _spread_ties(ordered: FloatArray, step: float) -> FloatArray:
    """Spread equal values evenly over the step that they were rounded to."""
    if step == 0.0:
        return ordered
    _, first, sizes = np.unique(ordered, return_index=True, return_counts=True)
    rank = np.arange(len(ordered)) - np.repeat(first, sizes)
    within = (rank + 0.5) / np.repeat(sizes, sizes) - 0.5
    return np.sort(ordered + step * within)


def _printed_step(ordered: FloatArray) -> float:
    """Return the power of ten that every value is a multiple of, where values repeat; else 0."""
    distinct = np.unique(ordered)
    if len(distinct) == len(ordered):
        return 0.0
    largest = max(abs(float(ordered[0])), abs(float(ordered[-1])))
    first = 0 if largest == 0.0 else math.floor(math.log10(largest))
    for exponent in range(first, first - 12, -1):
        step = 10.0**exponent
        if step == 0.0:
            return 0.0
        multiples = distinct / step
        if np.all(np.abs(multiples - np.round(multiples)) <= 1e-9 * np.maximum(1.0, multiples)):
            return step
    return 0.0


EM_ROUNDS = 300
ROUNDS_OF_ALL = 30
"""After so many only the best start goes on."""
STARTS = 4
CLOSE_ENOUGH = 1e-6
LEAST_SPREAD = 0.01
"""The sd of a part, in those of the whole: a part may not shrink onto one trial."""
VALLEY_POINTS = 101


class TwoNormals(Struct, frozen=True):
    """The fit; the lower part first, shapes (2,)."""

    shares: FloatArray
    places: FloatArray
    spreads: FloatArray
    bic: float
    valley_at: float
    """Place between the two where the density is least."""
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
    count, spread, middle = len(values), float(np.std(values)), float(np.mean(values))
    scaled = (values - middle) / spread
    starts = _starts(scaled)
    fits = [
        (terms * math.log(count) - 2.0 * likelihood, parts)
        for terms, pooled in ((4, True), (5, False))
        for likelihood, parts in [_em(scaled, starts, pooled=pooled)]
    ]
    bic, parts = min(fits, key=lambda fit: fit[0])
    share, place, variance = parts[:, np.argsort(parts[1])]
    sd = np.sqrt(variance)
    at, depth = _valley(share, place, sd)
    return TwoNormals(
        shares=share,
        places=middle + spread * place,
        spreads=spread * sd,
        bic=bic + 2.0 * count * math.log(spread),
        valley_at=middle + spread * at,
        valley_depth=depth,
    )


def _starts(values: FloatArray) -> FloatArray:
    """Return the number of values below each of a few good splits; shape (starts,)."""
    count = len(values)
    size = np.arange(2.0, count - 1)
    sums, squares = np.cumsum(values), np.cumsum(values**2)
    below, squares_below = sums[1 : count - 2], squares[1 : count - 2]
    fit = np.zeros_like(size)
    for part, total, square in (
        (size, below, squares_below),
        (count - size, sums[-1] - below, squares[-1] - squares_below),
    ):
        variance = np.maximum(square / part - (total / part) ** 2, LEAST_SPREAD**2)
        fit += part * (np.log(part) - 0.5 * np.log(variance))
    # The best split of each quarter of the sample: neighbours would all end in one place.
    quarters = np.array_split(np.arange(len(size)), min(STARTS, len(size)))
    return np.array([size[part[int(np.argmax(fit[part]))]] for part in quarters])


def _em(values: FloatArray, below: FloatArray, *, pooled: bool) -> tuple[float, FloatArray]:
    """Return the likelihood of the best fit from all starts, and its parts.

    The parts have the shape (3, 2): shares, places and variances. Within, arrays are (starts,
    parts, values).
    """
    count = len(values)
    lower = (np.arange(count)[None, :] < below[:, None]).astype(np.float64)
    members = np.stack([lower, 1.0 - lower], axis=1)
    squares = values**2
    previous = np.full(len(below), -math.inf)
    for done in range(EM_ROUNDS):
        weight = np.maximum(members.sum(axis=2), 1e-9)
        shares = weight / count
        places = members @ values / weight
        variances = members @ squares / weight - places**2
        if pooled:
            common = np.sum(shares * variances, axis=1, keepdims=True)
            variances = np.broadcast_to(common, variances.shape)
        variances = np.maximum(variances, LEAST_SPREAD**2)
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
    return float(likelihoods[best]), np.array([shares[best], places[best], variances[best]])


def _valley(shares: FloatArray, places: FloatArray, spreads: FloatArray) -> tuple[float, float]:
    grid = np.linspace(places[0], places[1], VALLEY_POINTS)[:, None]
    density = (shares / spreads * np.exp(-0.5 * ((grid - places) / spreads) ** 2)).sum(axis=1)
    left, right = np.maximum.accumulate(density), np.maximum.accumulate(density[::-1])[::-1]
    depth = density / np.minimum(left, right)
    lowest = int(np.argmin(depth))
    return float(grid[lowest, 0]), float(depth[lowest])


def half_sample_mode(ordered: FloatArray) -> float:
    """Return the half-sample mode (Bickel and Frühwirth 2006): the shortest half, again and again.

    Parameters
    ----------
    ordered
        Shape (n,), n at least 1: ascending.
    """
    remaining = ordered
    while len(remaining) > 3:
        half = (len(remaining) + 1) // 2
        widths = remaining[half - 1 :] - remaining[: len(remaining) - half + 1]
        start = int(np.argmin(widths))
        remaining = remaining[start : start + half]
    if len(remaining) == 3:
        left, right = remaining[1] - remaining[0], remaining[2] - remaining[1]
        if left != right:
            remaining = remaining[:2] if left < right else remaining[1:]
    return float(np.mean(remaining))
