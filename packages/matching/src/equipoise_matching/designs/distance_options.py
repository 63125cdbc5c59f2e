"""Distances from the arguments of a design: metric, distance matrix, calipers and exact cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching.designs.distance import Distances, GivenDistances, PointDistances
from equipoise_matching.designs.units import DesignUnits
from equipoise_matching.matching.frames import columns_of, value_indices_of
from equipoise_matching.matching.options import checked_metric
from equipoise_matching.matching.units import (
    Floats,
    Indices,
    check_length,
    power_of_two,
    refuse_rows,
    to_floats,
)
from equipoise_matching.shared.errors import UnusableInput

MIN_EIGENVALUE_SHARE = 1e-10
"""Directions in which the covariates vary less, as a share of the largest variance, are dropped."""
DISTANCE = "distance"
"""Key of a caliper that limits the distance instead of a column."""


def distances_of(
    units: DesignUnits,
    first_arm: int,
    *,
    metric: str | ArrayLike,
    distances: ArrayLike | None,
    caliper: float | Mapping[str, float] | None,
    exact: Any,
) -> Distances:
    """Return the distances from the units of ``first_arm`` (0 or 1) to those of the other arm.

    Raise `UnusableInput` for an unknown metric or column, a negative caliper, or a matrix
    ``distances`` of another shape than (treated rows, controls).
    """
    widths, max_distance = _calipers(caliper, units)
    cells = exact_cells(exact, units)
    arms = [np.flatnonzero(units.arm == arm) for arm in (first_arm, 1 - first_arm)]
    limited = np.flatnonzero(np.isfinite(widths))
    if distances is None:
        points, scale = points_of(units, metric)
    else:
        points, scale = np.zeros((len(units), 1)), 1.0
    values = units.matrix[:, limited]
    coordinates, limits = (
        [np.ascontiguousarray(table[rows]) for rows in arms] for table in (points, values)
    )
    by_points = PointDistances(
        first=coordinates[0],
        second=coordinates[1],
        scale=scale,
        first_limited=limits[0],
        second_limited=limits[1],
        widths=widths[limited],
        first_cell=cells[arms[0]],
        second_cell=cells[arms[1]],
        max_distance=max_distance,
    )
    if distances is None:
        return by_points
    matrix = _checked_matrix(distances, units)
    matrix = np.array(matrix if first_arm == 1 else matrix.T)
    matrix[matrix > max_distance] = np.inf
    matrix[by_points.first_cell[:, np.newaxis] != by_points.second_cell] = np.inf
    for column, width in enumerate(by_points.widths):
        sides = by_points.first_limited[:, column], by_points.second_limited[:, column]
        matrix[np.abs(sides[0][:, np.newaxis] - sides[1]) > width] = np.inf
    return GivenDistances(matrix)


def points_of(units: DesignUnits, metric: str | ArrayLike) -> tuple[Floats, float]:
    """Return points (n, d) and a scale: the metric's distance is scale * Euclidean distance.

    ``mahalanobis`` uses the covariance of all rows, and drops directions without variance.
    Weights or a matrix are those of the standardised columns, as in `match`.
    """
    scale = power_of_two(units.matrix)
    matrix = units.matrix / scale
    is_constant = (matrix == matrix[0]).all(axis=0)
    if is_constant.all():
        constant = ", ".join(units.names[:5])
        raise UnusableInput(
            f"{constant} {'has' if len(units.names) == 1 else 'have'} one value in all rows: all "
            "distances are 0",
            hint="give a covariate that differs between rows",
        )
    if isinstance(metric, str) and metric == "euclidean":
        return matrix, scale
    if isinstance(metric, str) and metric not in ("mahalanobis", "inverse_variance"):
        raise UnusableInput(
            f"there is no metric {metric!r}",
            hint="choose 'mahalanobis', 'inverse_variance' or 'euclidean', or give weights",
        )
    checked = checked_metric(metric, units.names)
    # Each column has its own power of two, so that tiny columns keep their digits.
    matrix = units.matrix / [power_of_two(column) for column in units.matrix.T]
    matrix = matrix - matrix.mean(axis=0)
    deviations = matrix.std(axis=0, ddof=1)
    matrix = np.where(is_constant, 0.0, matrix / np.where(deviations > 0, deviations, 1.0))
    if isinstance(checked, str) and checked == "inverse_variance":
        return matrix[:, ~is_constant], 1.0
    if isinstance(checked, str):
        values, vectors = np.linalg.eigh(matrix.T @ matrix / (len(matrix) - 1))
        kept = values > MIN_EIGENVALUE_SHARE * values.max()
        return matrix @ (vectors[:, kept] / np.sqrt(values[kept])), 1.0
    values, vectors = np.linalg.eigh(checked)
    kept = values > np.finfo(np.float64).eps * len(values) * values.max()
    if not kept.any():
        raise UnusableInput("metric is 0: there is no distance", hint="give a weight above 0")
    return matrix @ (vectors[:, kept] * np.sqrt(values[kept])), 1.0


def exact_cells(exact: Any, units: DesignUnits) -> Indices:
    """Return the exact cell of each row, shape (n,), from 0.

    ``exact`` names columns of X, or has one value (or several columns of values) for each row.
    """
    count = len(units)
    if exact is None:
        return np.zeros(count, dtype=np.int64)
    names = [exact] if isinstance(exact, str) else exact
    is_names = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    if is_names and (len(names) != count or set(names) <= set(units.names)):
        unknown = [name for name in names if name not in units.names]
        if unknown:
            raise UnusableInput(
                f"exact names {unknown[0]!r}, which is not a column of X",
                hint=f"name one of the columns {', '.join(units.names)}, or give values for rows",
            )
        columns = {name: units.matrix[:, units.names.index(name)] for name in names}
    else:
        columns = columns_of(names) or {"exact": np.asarray(names)}
    cells = np.zeros(count, dtype=np.int64)
    for name, column in columns.items():
        if column.ndim != 1:
            raise UnusableInput(
                f"{name} has shape {column.shape}", hint="give one value for each row"
            )
        check_length(len(column), name, count)
        indices = value_indices_of(column, name)
        cells = np.unique(cells * (int(indices.max()) + 1) + indices, return_inverse=True)[1]
    return cells.reshape(-1).astype(np.int64)


def _calipers(
    caliper: float | Mapping[str, float] | None, units: DesignUnits
) -> tuple[Floats, float]:
    """Return the largest difference in each column (k,), and the largest distance."""
    widths = np.full(len(units.names), np.inf)
    if caliper is None:
        return widths, math.inf
    limits = dict(caliper) if isinstance(caliper, Mapping) else {DISTANCE: caliper}
    max_distance = math.inf
    for name, limit in limits.items():
        if not (isinstance(limit, int | float | np.number) and limit >= 0):
            raise UnusableInput(
                f"the caliper of {name} is {limit!r}", hint="give a number of at least 0"
            )
        if name in units.names:
            index = units.names.index(name)
            column = units.matrix[:, index]
            scale = power_of_two(column)
            widths[index] = limit * float((column / scale).std()) * scale
        elif name == DISTANCE:
            max_distance = float(limit)
        else:
            raise UnusableInput(
                f"caliper names {name!r}, which is not a column of X",
                hint=f"name {DISTANCE!r} or one of the columns {', '.join(units.names)}",
            )
    return widths, max_distance


def _checked_matrix(distances: ArrayLike, units: DesignUnits) -> Floats:
    matrix = to_floats(distances, "distances")
    counts = np.bincount(units.arm, minlength=2)
    if matrix.shape != (counts[1], counts[0]):
        raise UnusableInput(
            f"distances has shape {matrix.shape}, but there are {counts[1]} treated rows and "
            f"{counts[0]} controls",
            hint="give a row for each treated row and a column for each control",
        )
    treated = np.flatnonzero(units.arm == 1)
    is_wrong = np.zeros(len(units), dtype=np.bool_)
    is_wrong[treated] = (np.isnan(matrix) | (matrix < 0)).any(axis=1)
    refuse_rows(
        is_wrong,
        "distances",
        "is missing or negative",
        "give distances of 0 or more, infinite for a pair that must not be formed",
    )
    return matrix
