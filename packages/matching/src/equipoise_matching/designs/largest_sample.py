"""The largest sample of rows whose mean deviations are within limits, with a proof of its size.

The programme has a variable of 0 or 1 for each row, and few constraints. A basic solution of its
linear relaxation therefore has few fractional rows. The search rounds them first, and starts branch
and bound only if no rounded sample is as large as the relaxation allows. HiGHS solves both (scipy).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise_matching.matching.units import Floats, Truths

SOLVER_TOLERANCE = 1e-6
"""Largest violation of a constraint that HiGHS accepts; it rounds the bounds of sizes, too."""
FREE_ROWS = 300
"""Rows that a rounded sample may exchange besides the fractional ones."""
MAX_ROUNDED_SIZES = 5
"""Sizes that are tried by rounding, from the bound of the relaxation down."""
MAX_ROUNDING_NODES = 2_000
"""Nodes of branch and bound for one rounding."""
SECONDS_AT_LEAST = 0.1
"""Shortest time limit that HiGHS gets."""
_INFEASIBLE_STATUS = 2
"""Status of ``scipy.optimize.milp`` for constraints that no solution meets."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleProblem:
    """Rows from which the largest sample is chosen.

    The size of a sample is its number of counted rows. With a ratio, the sample has ``ratio`` other
    rows for each counted row. The sum of the deviations is within ±limit times the size.

    Parameters
    ----------
    deviations
        Shape (n, k).
    limits
        Shape (k,), finite, 0 or more.
    is_counted
        Shape (n,).
    ratio
        Number of other rows for each counted row; 0 if all rows are counted.
    """

    deviations: Floats
    limits: Floats
    is_counted: Truths
    ratio: int

    def is_met_by(self, chosen: Truths, size: int) -> bool:
        """Return whether a sample has this size and keeps all limits."""
        others = int((chosen & ~self.is_counted).sum())
        sums = np.abs(self.deviations[chosen].sum(axis=0))
        return (
            int((chosen & self.is_counted).sum()) == size
            and others == self.ratio * size
            and bool((sums <= self.limits * size + 2 * SOLVER_TOLERANCE).all())
        )


@dataclass(frozen=True, slots=True, eq=False)
class LargestSample:
    """The largest sample that was found, and an upper bound of all sizes.

    ``chosen`` (n,) is true for the rows of the sample; ``proof`` says how the bound was shown.
    """

    chosen: Truths
    size: int
    bound: int
    proof: str

    @property
    def is_largest(self) -> bool:
        """Whether no larger sample exists."""
        return self.size >= self.bound


def largest_sample(
    problem: SampleProblem, time_limit: float, gap: float
) -> LargestSample | None:
    """Return the largest sample; ``None`` if no sample keeps the limits.

    The search ends when the size is within ``gap`` of the bound, as a share of the size, or after
    ``time_limit`` seconds. A sample of size 0 means that the time was too short to find any.
    """
    end = time.perf_counter() + time_limit
    bound, proof = _relaxed_bound(problem), "the bound of the linear relaxation"
    best = np.zeros(len(problem.is_counted), dtype=np.bool_)
    size = 0
    for candidate_size in range(bound, max(bound - MAX_ROUNDED_SIZES, 0), -1):
        chosen, is_impossible = _rounded(problem, candidate_size)
        if chosen is not None:
            best, size = chosen, candidate_size
            break
        if is_impossible and bound == candidate_size:
            bound, proof = candidate_size - 1, "branch and bound"
        if time.perf_counter() > end:
            break
    if bound < 1:
        return None
    if bound - size <= gap * size:
        return LargestSample(best, size, bound, proof)
    return _branch_and_bound(problem, LargestSample(best, size, bound, proof), end, gap)


def _relaxed_bound(problem: SampleProblem) -> int:
    """Return the largest whole size that the linear relaxation allows."""
    result = _solve(-problem.is_counted.astype(np.float64), *_size_free_rows(problem))
    return math.floor(-float(result.fun) + SOLVER_TOLERANCE)


def _rounded(problem: SampleProblem, size: int) -> tuple[Truths | None, bool]:
    """Return a sample of this size near the relaxation's, and whether it is proven impossible.

    The relaxation gets the smallest possible share of the limits. Its fractional rows and evenly
    spaced other rows are then free; the rest of the sample is fixed.
    """
    rows = len(problem.is_counted)
    values = _most_balanced_shares(problem, size) if rows > FREE_ROWS else np.full(rows, 0.5)
    is_free = (values > SOLVER_TOLERANCE) & (values < 1 - SOLVER_TOLERANCE)
    is_free[np.unique(np.linspace(0, rows - 1, FREE_ROWS).astype(np.int64))] = True
    chosen: Truths = values > 0.5
    fixed = np.flatnonzero(chosen & ~is_free)
    free = np.flatnonzero(is_free)
    matrix, lower, upper = _sized_rows(problem, size)
    fixed_sums = matrix[:, fixed].sum(axis=1)
    result = _solve(
        np.zeros(len(free)),
        matrix[:, free],
        lower - fixed_sums,
        upper - fixed_sums,
        integrality=np.ones(len(free)),
        node_limit=MAX_ROUNDING_NODES,
    )
    if result.x is None:
        return None, len(free) == rows and result.status == _INFEASIBLE_STATUS
    chosen[free] = result.x > 0.5
    return (chosen if problem.is_met_by(chosen, size) else None), False


def _most_balanced_shares(problem: SampleProblem, size: int) -> Floats:
    """Return the share of each row in the best balanced relaxed sample of a size, shape (n,).

    All sums of deviations are at most the same share of their limits, and the share is smallest.
    """
    matrix, lower, upper = _sized_rows(problem, size)
    columns = problem.deviations.shape[1]
    balance, bounds = matrix[:columns], upper[:columns]
    # The last variable is half the share: ±sums ≤ share · limit. Rounding may need a share above 1.
    shared = np.vstack(
        [
            np.column_stack([balance, -2 * bounds]),
            np.column_stack([-balance, -2 * bounds]),
            np.column_stack([matrix[columns:], np.zeros(len(matrix) - columns)]),
        ]
    )
    objective = np.zeros(matrix.shape[1] + 1)
    objective[-1] = 1.0
    result = _solve(
        objective,
        shared,
        np.concatenate([np.full(2 * columns, -np.inf), lower[columns:]]),
        np.concatenate([np.zeros(2 * columns), upper[columns:]]),
    )
    # A solution always exists: that of the bound, scaled down to this size.
    return np.asarray(result.x[:-1], dtype=np.float64)


def _branch_and_bound(
    problem: SampleProblem, start: LargestSample, end: float, gap: float
) -> LargestSample:
    """Return the result of branch and bound over samples larger than the start."""
    matrix, lower, upper = _size_free_rows(problem)
    counted = problem.is_counted.astype(np.float64)
    result = _solve(
        -counted,
        np.vstack([matrix, counted]),
        np.append(lower, start.size + 1),
        np.append(upper, start.bound),
        integrality=np.ones(len(counted)),
        mip_rel_gap=gap,
        time_limit=max(end - time.perf_counter(), SECONDS_AT_LEAST),
    )
    if result.status == _INFEASIBLE_STATUS:
        return LargestSample(start.chosen, start.size, start.size, "branch and bound")
    bound = start.bound
    if result.mip_dual_bound is not None and math.isfinite(result.mip_dual_bound):
        bound = min(bound, math.floor(-float(result.mip_dual_bound) + SOLVER_TOLERANCE))
    if result.x is not None:
        chosen: Truths = np.asarray(result.x > 0.5)
        size = int((chosen & problem.is_counted).sum())
        if problem.is_met_by(chosen, size):
            return LargestSample(chosen, size, max(bound, size), "branch and bound")
    return LargestSample(start.chosen, start.size, bound, "branch and bound")


def _size_free_rows(problem: SampleProblem) -> tuple[Floats, Floats, Floats]:
    """Return the constraints of samples of any size: matrix, lower and upper bounds."""
    counted = problem.is_counted.astype(np.float64)
    allowed = problem.limits[:, np.newaxis] * counted
    sums = problem.deviations.T
    matrix = np.vstack([sums - allowed, -sums - allowed])
    lower, upper = np.full(len(matrix), -np.inf), np.zeros(len(matrix))
    if problem.ratio:
        matrix = np.vstack([matrix, 1.0 - counted - problem.ratio * counted])
        lower, upper = np.append(lower, 0.0), np.append(upper, 0.0)
    return matrix, lower, upper


def _sized_rows(problem: SampleProblem, size: int) -> tuple[Floats, Floats, Floats]:
    """Return the constraints of samples of one size: the k sums, then the numbers of rows."""
    counted = problem.is_counted.astype(np.float64)
    limits = problem.limits * size
    totals = np.array([float(size), float(problem.ratio * size)])
    matrix = np.vstack([problem.deviations.T, counted, 1.0 - counted])
    return matrix, np.concatenate([-limits, totals]), np.concatenate([limits, totals])


def _solve(
    objective: Floats,
    matrix: Floats,
    lower: Floats,
    upper: Floats,
    *,
    integrality: Floats | None = None,
    **options: Any,
) -> Any:
    """Minimise a linear objective over variables from 0 to 1."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    return milp(
        objective,
        integrality=integrality,
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(matrix, lower, upper),
        options=options,
    )
