"""Pairs within strata: as many pairs as the smaller arm has rows, at the smallest distance."""

from __future__ import annotations

import numpy as np

from equipoise_matching.designs.design import LEFT_OUT
from equipoise_matching.designs.strata import arm_counts
from equipoise_matching.designs.units import DesignUnits
from equipoise_matching.matching.match import match
from equipoise_matching.matching.units import Floats, Indices, power_of_two

MAX_ASSIGNMENT_CELLS = 1_000_000
"""Largest number of possible pairs in a stratum whose total distance is minimised exactly."""
MIN_EIGENVALUE_SHARE = 1e-10
"""Eigenvalues of a correlation matrix below this share of the largest are rounding errors of 0."""


def nearest_pairs(units: DesignUnits, strata: Indices) -> Indices:
    """Return for each row the number of its pair, shape (n,); ``LEFT_OUT`` for rows without.

    Within each stratum, every row of the smaller arm (of the treated, in a tie) gets a row of the
    other arm, and the sum of the Mahalanobis distances is smallest (the assignment problem). In a
    stratum with more than ``MAX_ASSIGNMENT_CELLS`` possible pairs, the rows of the smaller arm
    choose in the order of the rows: each takes the nearest remaining row.
    """
    coordinates = whitened(units.matrix)
    pairs = np.full(len(units), LEFT_OUT, dtype=np.int64)
    used_rows = np.flatnonzero(strata != LEFT_OUT)
    # Sort by stratum; in a stratum by arm; in an arm by row number.
    order = used_rows[np.argsort(strata[used_rows] * 2 + units.arm[used_rows], kind="stable")]
    cells = strata[order] * 2 + units.arm[order]
    bounds = np.searchsorted(cells, np.arange(int(cells.max(initial=-1)) + 2))
    made = 0
    for first in range(0, len(bounds) - 1, 2):
        controls = order[bounds[first] : bounds[first + 1]]
        treated = order[bounds[first + 1] : bounds[first + 2]]
        smaller, larger = (controls, treated)
        if len(treated) <= len(controls):
            smaller, larger = (treated, controls)
        partners = _partners(coordinates, smaller, larger)
        numbers = np.arange(made, made + len(smaller))
        pairs[smaller], pairs[partners] = numbers, numbers
        made += len(smaller)
    return pairs


def count_greedy_strata(units: DesignUnits, strata: Indices) -> int:
    """Return the number of strata that ``nearest_pairs`` pairs in the order of the rows."""
    counts = arm_counts(strata, units)
    is_large = (counts.prod(axis=1) > MAX_ASSIGNMENT_CELLS) & (counts.min(axis=1) > 1)
    return int(is_large.sum())


def _partners(coordinates: Floats, smaller: Indices, larger: Indices) -> Indices:
    """Return for each row of the smaller arm the row of the larger arm in its pair."""
    if len(larger) == 1:
        return larger
    if len(smaller) == 1:
        distances = ((coordinates[larger] - coordinates[smaller[0]]) ** 2).sum(axis=1)
        nearest = int(distances.argmin())
        return larger[nearest : nearest + 1]
    if len(smaller) * len(larger) > MAX_ASSIGNMENT_CELLS:
        return _greedy_partners(coordinates, smaller, larger)
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    _, chosen = linear_sum_assignment(cdist(coordinates[smaller], coordinates[larger]))
    return np.asarray(larger[chosen], dtype=np.int64)


def _greedy_partners(coordinates: Floats, smaller: Indices, larger: Indices) -> Indices:
    """Return the nearest row that remains, for each row of the smaller arm in turn."""
    rows = np.concatenate([smaller, larger])
    values = coordinates[rows]
    variances = values.var(axis=0)
    is_variable = variances > 0
    if not is_variable.any():
        return larger[: len(smaller)]
    result = match(
        None,
        np.arange(len(rows)) < len(smaller),
        values[:, is_variable],
        # ``match`` divides each column by its standard deviation; these weights undo the division.
        metric=variances[is_variable],
        replace=False,
        ties=False,
        distance_tolerance=0.0,
    )
    partners = np.empty(len(smaller), dtype=np.int64)
    partners[result.treated_index] = rows[result.control_index]
    return partners


def whitened(matrix: Floats) -> Floats:
    """Return coordinates in which the Mahalanobis distance is the Euclidean one, shape (n, r).

    The covariance is that of all rows. Constant and dependent columns add nothing.
    """
    scaled = matrix / [power_of_two(column) for column in matrix.T]
    deviations = scaled - scaled.mean(axis=0)
    spreads = deviations.std(axis=0, ddof=1) if len(matrix) > 1 else np.zeros(matrix.shape[1])
    is_variable = matrix.max(axis=0) > matrix.min(axis=0)
    standardized = deviations[:, is_variable] / spreads[is_variable]
    if not is_variable.any():
        return np.zeros((len(matrix), 1))
    correlations = standardized.T @ standardized / (len(matrix) - 1)
    eigenvalues, vectors = np.linalg.eigh(correlations)
    is_kept = eigenvalues > MIN_EIGENVALUE_SHARE * eigenvalues[-1]
    return np.asarray(standardized @ (vectors[:, is_kept] / np.sqrt(eigenvalues[is_kept])))
