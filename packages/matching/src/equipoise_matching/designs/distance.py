"""Distances between the rows of two arms, and the pairs that calipers and exact cells admit.

A distance matrix has a row for each unit of the *first* arm and a column for each unit of the
*second* arm. It is not computed: trees of points find its smallest entries, and the entries below
the sums of a price of the row and a price of the column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equipoise_matching import _native
from equipoise_matching.matching.options import MatchOptions
from equipoise_matching.matching.units import Floats, Indices, Truths, Units

CHUNK_PAIRS = 1 << 20
"""Largest number of entries of a given matrix that are compared together."""
MAX_STORED_PAIRS = 1 << 16
"""Largest number of pairs of two arms, all of which are candidates from the beginning."""
PAIRS_PER_ROW_OF_A_CELL = 16
"""All pairs of an exact cell are candidates if they are at most this many for each of its rows."""

MAX_DISTINCT_SHARE = 0.5
"""Equal rows of an arm become one unit if at most this share of its rows is distinct."""
ENGINE_SCALE = 1e4
"""Factor of the distances in the search of neighbours."""
TIE_ROUNDING = 4e-10 / ENGINE_SCALE**2
"""Squared distances that differ by less may be equal for the search of neighbours."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Pairs that may be formed: positions in both arms, and the distance; shapes (pairs,)."""

    first: Indices
    second: Indices
    distance: Floats

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.first)

    def subset(self, chosen: Truths | Indices | slice) -> Candidates:
        """Return the chosen pairs."""
        return Candidates(self.first[chosen], self.second[chosen], self.distance[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Some candidates, and how far they are complete.

    Every admissible pair that is nearer than ``first_radius`` (n1,) of its first unit, or than
    ``second_radius`` (n2,) of its second unit, is among the candidates.
    """

    candidates: Candidates
    first_radius: Floats
    second_radius: Floats


class Distances(Protocol):
    """Distances between two arms, of which only admissible pairs are ever returned."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of units of the first and of the second arm."""

    def upper_bound(self) -> float:
        """Return a number that is at least every admissible distance."""

    def start(self, first_neighbors: int, second_neighbors: int) -> Start:
        """Return each unit's nearest neighbours; the numbers are those of a unit of each arm."""

    def cheaper(
        self, first_prices: Floats, second_prices: Floats, limits: Indices, start: Start
    ) -> Candidates:
        """Return pairs with distance < price of the first + price of the second unit.

        A unit of the first arm has at most ``limits`` (n1,) pairs, those with the smallest distance
        minus prices. If there is any such pair outside the start, at least one is returned.
        """


def concatenated(parts: list[Candidates]) -> Candidates:
    """Return the pairs of all parts, part after part."""
    if not parts:
        return Candidates(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return Candidates(
        np.concatenate([part.first for part in parts]),
        np.concatenate([part.second for part in parts]),
        np.concatenate([part.distance for part in parts]),
    )


def cheapest_of_each(pairs: Candidates, reduced: Floats, limits: Indices) -> Candidates:
    """Return the pairs of smallest reduced distance, at most ``limits`` (n1,) of a first unit."""
    order = np.lexsort((pairs.second, reduced, pairs.first))
    first = pairs.first[order]
    is_new = np.ones(len(first), dtype=np.bool_)
    is_new[1:] = first[1:] != first[:-1]
    starts = np.flatnonzero(is_new)
    rank = np.arange(len(first)) - np.repeat(starts, np.diff(np.append(starts, len(first))))
    return pairs.subset(order[rank < limits[first]])


# ------------------------------------------------------------------ distances between points


@dataclass(frozen=True, slots=True, eq=False)
class PointDistances:
    """Euclidean distances between points, multiplied by ``scale``.

    Parameters
    ----------
    first, second
        Shapes (n1, d) and (n2, d).
    first_limited, second_limited
        Shapes (n1, c) and (n2, c): values that may differ in a pair by at most ``widths`` (c,).
    first_cell, second_cell
        Shapes (n1,) and (n2,): the exact cell of each unit; a pair has one cell.
    max_distance
        Largest admissible distance, after multiplication by ``scale``.
    """

    first: Floats
    second: Floats
    scale: float
    first_limited: Floats
    second_limited: Floats
    widths: Floats
    first_cell: Indices
    second_cell: Indices
    max_distance: float = math.inf

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of units of both arms."""
        return len(self.first), len(self.second)

    def upper_bound(self) -> float:
        """Return the diagonal of a box around all points, or the caliper if it is smaller."""
        low = np.minimum(self.first.min(axis=0), self.second.min(axis=0))
        high = np.maximum(self.first.max(axis=0), self.second.max(axis=0))
        return min(float(np.linalg.norm(high - low)) * self.scale * (1 + 1e-9), self.max_distance)

    def start(self, first_neighbors: int, second_neighbors: int) -> Start:
        """Return the nearest neighbours, and all pairs of small cells."""
        n1, n2 = self.shape
        blocks = self._blocks()
        radii = np.full(n1, np.inf), np.full(n2, np.inf)
        parts = [self._pairs_of_small_cells()]
        if blocks:
            in_blocks = [np.concatenate(rows) for rows in zip(*blocks, strict=True)]
            for arm, count in enumerate((first_neighbors, second_neighbors)):
                if count:
                    pairs, radius = self._neighbours(arm, in_blocks[arm], count)
                    parts.append(pairs)
                    radii[arm][:] = radius
                else:
                    radii[arm][in_blocks[arm]] = 0.0
        pairs = concatenated(parts)
        _, unique = np.unique(pairs.first * n2 + pairs.second, return_index=True)
        return Start(pairs.subset(unique), *radii)

    def cheaper(
        self, first_prices: Floats, second_prices: Floats, limits: Indices, start: Start
    ) -> Candidates:
        """Return the pairs that cost less than their prices (``cheap.rs``)."""
        pairs = self._measured(
            *_native.cheap_pairs(
                (
                    self.first,
                    np.column_stack([self.first_limited, self.first_cell]),
                    first_prices / self.scale,
                    start.first_radius / self.scale,
                ),
                (
                    self.second,
                    np.column_stack([self.second_limited, self.second_cell]),
                    second_prices / self.scale,
                    start.second_radius / self.scale,
                ),
                np.append(self.widths, 0.0),
                limits,
                self.max_distance / self.scale,
            )
        )
        reduced = pairs.distance - first_prices[pairs.first] - second_prices[pairs.second]
        return pairs.subset(reduced < 0)

    def _measured(self, first: Indices, second: Indices) -> Candidates:
        """Return the admissible pairs among these, with their distances."""
        distance = self._distance(first, second)
        is_admissible = distance <= self.max_distance
        limited = np.abs(self.first_limited[first] - self.second_limited[second])
        is_admissible &= (limited <= self.widths).all(axis=1)
        return Candidates(first, second, distance).subset(is_admissible)

    def _distance(self, first: Indices, second: Indices) -> Floats:
        """Return the distance of each pair."""
        differences = self.first[first] - self.second[second]
        if differences.shape[1] == 1:
            return np.abs(differences[:, 0]) * self.scale
        squared: Floats = np.einsum("ij,ij->i", differences, differences)
        return np.sqrt(squared) * self.scale

    def _cells(self) -> _Cells:
        """Return the exact cells: the units of each cell, and whether the cell is small."""
        count = int(max(self.first_cell.max(), self.second_cell.max())) + 1
        arms = self.first_cell, self.second_cell
        sizes = [np.bincount(cell, minlength=count) for cell in arms]
        products = sizes[0] * sizes[1]
        is_small = products <= PAIRS_PER_ROW_OF_A_CELL * (sizes[0] + sizes[1])
        if products.sum() <= MAX_STORED_PAIRS:
            is_small[:] = True
        first, second = (
            (np.argsort(cell, kind="stable"), np.concatenate([[0], np.cumsum(size)]))
            for cell, size in zip(arms, sizes, strict=True)
        )
        return _Cells(first, second, is_small)

    def _blocks(self) -> list[tuple[Indices, Indices]]:
        """Return the units of both arms in each large cell."""
        cells = self._cells()
        return [
            (cells.units(cells.first, cell), cells.units(cells.second, cell))
            for cell in np.flatnonzero(~cells.is_small).tolist()
        ]

    def _pairs_of_small_cells(self) -> Candidates:
        """Return all admissible pairs of the small cells."""
        cells = self._cells()
        (first, _), (order, starts) = cells.first, cells.second
        first = first[cells.is_small[self.first_cell[first]]]
        cell = self.first_cell[first]
        # Each unit of the first arm is repeated once for each unit of the second in its cell.
        repeats = np.diff(starts)[cell]
        ends = np.cumsum(repeats)
        within = np.arange(repeats.sum()) - np.repeat(ends - repeats, repeats)
        second = order[np.repeat(starts[cell], repeats) + within]
        return self._measured(np.repeat(first, repeats), second)

    def _neighbours(self, arm: int, queries: Indices, count: int) -> tuple[Candidates, Floats]:
        """Return the nearest neighbours of some units of an arm, and a radius for all its units.

        A unit with fewer admissible neighbours is searched again for a quarter of the number.
        """
        targets = self.shape[1 - arm]
        count = min(count, targets)
        radius = np.full(self.shape[arm], np.inf)
        parts = []
        while count and len(queries):
            pairs, unmatched = self._nearest(arm, queries, count)
            unit = (pairs.first, pairs.second)[arm]
            if count < targets:
                reach = np.zeros(len(radius))
                np.maximum.at(reach, unit, pairs.distance / self.scale)
                # The engine may take any of the pairs whose squared distances are almost equal.
                complete = np.sqrt(np.maximum(reach**2 * (1 - 1e-12) - TIE_ROUNDING, 0))
                radius[unit] = complete[unit] * self.scale
            is_admissible = pairs.distance <= self.max_distance
            radius[unit[~is_admissible]] = np.inf
            parts.append(pairs.subset(is_admissible))
            queries, count = unmatched, count // 4
        return concatenated(parts), radius

    def _nearest(self, arm: int, queries: Indices, count: int) -> tuple[Candidates, Indices]:
        """Return the nearest neighbours of units, and the units that have fewer than ``count``."""
        points = [self.first, self.second]
        limits = [
            np.column_stack([self.first_limited, self.first_cell]),
            np.column_stack([self.second_limited, self.second_cell]),
        ]
        points[arm], limits[arm] = points[arm][queries], limits[arm][queries]
        table = np.vstack([np.hstack(parts) for parts in zip(points, limits, strict=True)])
        is_first = np.arange(len(table)) < len(points[0])
        # The engine divides each column by its standard deviation, which the weights multiply back.
        dimensions = points[0].shape[1]
        weights = np.zeros(table.shape[1])
        weights[:dimensions] = table[:, :dimensions].var(axis=0, ddof=1) * ENGINE_SCALE**2
        has_cells = max(self.first_cell.max(), self.second_cell.max()) > 0
        has_limits = has_cells or len(self.widths) > 0
        widths = np.concatenate([np.full(dimensions, np.inf), self.widths, [0.0]])
        options = MatchOptions(
            estimand="ATC" if arm else "ATT",
            matches=count,
            metric=np.diag(weights),
            caliper=widths[np.newaxis] if has_limits else None,
            restrictions=[],
            replace=True,
            ties=False,
            tolerance=0.0,
            r_compatible=False,
            threads=0,
            seed=0,
        )
        names = tuple(f"x{column}" for column in range(table.shape[1]))
        units = Units(np.ascontiguousarray(table), names, is_first, None, None, None)
        found = _native.Matcher(units, options).pairs(None)
        rows = [found.query, found.matched][:: -1 if arm else 1]
        positions = [rows[0], rows[1] - len(points[0])]
        positions[arm] = queries[positions[arm]]
        dropped = queries[found.dropped - (len(points[0]) if arm else 0)]
        first, second = positions
        return Candidates(first, second, self._distance(first, second)), dropped


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The units of both arms, sorted by exact cell.

    ``first`` and ``second`` have the units in order, and where each cell begins.
    """

    first: tuple[Indices, Indices]
    second: tuple[Indices, Indices]
    is_small: Truths

    def units(self, arm: tuple[Indices, Indices], cell: int) -> Indices:
        """Return the units of one arm in a cell."""
        order, starts = arm
        return order[starts[cell] : starts[cell + 1]]


def grouped(distances: Distances) -> tuple[Distances, tuple[Indices, Indices]]:
    """Return the distances of distinct units, and the unit of each row of both arms.

    An arm stays as it is if most of its rows are distinct, and if its distances are given.
    """
    same = tuple(np.arange(count) for count in distances.shape)
    if not isinstance(distances, PointDistances):
        return distances, (same[0], same[1])
    arms = (
        (distances.first, distances.first_limited, distances.first_cell),
        (distances.second, distances.second_limited, distances.second_cell),
    )
    chosen, groups = [], []
    for (points, limited, cell), rows in zip(arms, same, strict=True):
        kept, group = rows, rows
        # Rows with many distinct values of a sum of their coordinates are mostly distinct.
        sums = points @ np.sqrt(np.arange(2, points.shape[1] + 2))
        if len(np.unique(sums)) <= MAX_DISTINCT_SHARE * len(rows):
            _, kept, group = np.unique(
                np.column_stack([points, limited, cell]),
                axis=0,
                return_index=True,
                return_inverse=True,
            )
        chosen.append(kept)
        groups.append(group.reshape(-1))
    first, second = chosen
    distinct = PointDistances(
        first=distances.first[first],
        second=distances.second[second],
        scale=distances.scale,
        first_limited=distances.first_limited[first],
        second_limited=distances.second_limited[second],
        widths=distances.widths,
        first_cell=distances.first_cell[first],
        second_cell=distances.second_cell[second],
        max_distance=distances.max_distance,
    )
    return distinct, (groups[0], groups[1])


# ------------------------------------------------------------------ a given matrix


@dataclass(frozen=True, slots=True, eq=False)
class GivenDistances:
    """A matrix of distances (n1, n2), infinite for pairs that are not admissible."""

    matrix: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of units of both arms."""
        return len(self.matrix), self.matrix.shape[1]

    def upper_bound(self) -> float:
        """Return the largest admissible distance."""
        return float(self.matrix.max(initial=0.0, where=np.isfinite(self.matrix)))

    def start(self, first_neighbors: int, second_neighbors: int) -> Start:
        """Return the smallest distances of each row and of each column."""
        n1, n2 = self.shape
        if n1 * n2 <= MAX_STORED_PAIRS:
            return Start(
                self._pairs(np.isfinite(self.matrix)), np.full(n1, np.inf), np.full(n2, np.inf)
            )
        is_near = np.zeros(self.matrix.shape, dtype=np.bool_)
        radii = []
        for axis, count in ((1, first_neighbors), (0, second_neighbors)):
            if not count:
                radii.append(np.zeros(self.shape[1 - axis]))
                continue
            count = min(count, self.shape[axis])
            places = np.argpartition(self.matrix, count - 1, axis=axis)
            places = places.take(np.arange(count), axis=axis)
            np.put_along_axis(is_near, places, True, axis=axis)
            radius = np.take_along_axis(self.matrix, places, axis=axis).max(axis=axis)
            radii.append(radius if count < self.shape[axis] else np.full_like(radius, np.inf))
        return Start(self._pairs(is_near & np.isfinite(self.matrix)), *radii)

    def cheaper(
        self, first_prices: Floats, second_prices: Floats, limits: Indices, start: Start
    ) -> Candidates:
        """Return the entries below the sum of the prices of their row and their column."""
        parts = []
        size = max(1, CHUNK_PAIRS // self.shape[1])
        for begin in range(0, len(self.matrix), size):
            prices = first_prices[begin : begin + size, np.newaxis] + second_prices
            reduced = self.matrix[begin : begin + size] - prices
            rows, columns = np.nonzero(reduced < 0)
            distance = self.matrix[rows + begin, columns]
            pairs = Candidates(rows + begin, columns, distance)
            parts.append(cheapest_of_each(pairs, reduced[rows, columns], limits))
        return concatenated(parts)

    def _pairs(self, chosen: Truths) -> Candidates:
        rows, columns = np.nonzero(chosen)
        return Candidates(rows, columns, self.matrix[rows, columns])
