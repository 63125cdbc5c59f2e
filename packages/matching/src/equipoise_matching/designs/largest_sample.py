"""The largest sample of rows whose mean deviations are within limits, with a proof of its size.

The programme has a variable of 0 or 1 for each row, and few constraints. A basic solution of its
linear relaxation therefore has few fractional rows. The search rounds them and exchanges rows, and
starts branch and bound only if no such sample is as large as the relaxation allows. HiGHS solves
the relaxation and the branch and bound (scipy).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise_matching.matching.units import Floats, Truths
from equipoise_matching.shared.errors import UnusableInput

SOLVER_TOLERANCE = 1e-6
"""Largest violation of a constraint that HiGHS accepts; it rounds the bounds of sizes, too."""
MAX_ROUNDED_SIZES = 5
"""Sizes that are tried by rounding, from the bound of the relaxation down."""
FREE_ROWS = 300
"""Rows that rounding by a small integer programme may choose; the others stay as relaxed."""
MAX_ROUNDING_NODES = 200
"""Nodes of branch and bound of this small programme."""
SWAP_CANDIDATES = 200
"""Rows of each kind (counted or not, in the sample or not) that may be exchanged."""
MAX_SWAPS = 100
SECONDS_AT_LEAST = 0.1
"""Shortest time limit that HiGHS gets."""
RELAXATION = "the bound of the linear relaxation"
BRANCH_AND_BOUND = "branch and bound"
"""How a bound of the size was shown."""
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


def largest_sample(problem: SampleProblem, time_limit: float, gap: float) -> LargestSample | None:
    """Return the largest sample; ``None`` if no sample keeps the limits.

    Raise `UnusableInput` if HiGHS cannot solve the linear relaxation.

    The search ends when the size is within ``gap`` of the bound, as a share of the size, or after
    ``time_limit`` seconds. A sample of size 0 means that the time was too short to find any.
    """
    end = time.perf_counter() + time_limit
    relaxation = _relaxation(problem)
    bound = math.floor(relaxation.size + SOLVER_TOLERANCE)
    if bound < 1:
        return None
    best = LargestSample(np.zeros(len(problem.is_counted), dtype=np.bool_), 0, bound, RELAXATION)
    for size in range(bound, max(bound - MAX_ROUNDED_SIZES, 0), -1):
        chosen = _rounded(problem, relaxation, size)
        if chosen is not None:
            best = LargestSample(chosen, size, bound, RELAXATION)
            break
        if time.perf_counter() > end:
            break
    if best.bound - best.size > gap * best.size:
        best = _branch_and_bound(problem, relaxation, best, end, gap)
    return best if best.bound else None


@dataclass(frozen=True, slots=True, eq=False)
class _Relaxation:
    """Solution of the linear relaxation: a share of each row, shape (n,), and the largest size.

    A sample that has row i where the share is 0, or lacks it where the share is 1, is smaller than
    ``size`` by at least ``costs[i]``, the reduced cost of the row.
    """

    size: float
    shares: Floats
    costs: Floats

    def is_open(self, size: float) -> Truths:
        """Return for each row whether samples of this size can differ from the rounded share."""
        is_open: Truths = self.costs <= self.size - size + SOLVER_TOLERANCE
        return is_open


def _relaxation(problem: SampleProblem) -> _Relaxation:
    from scipy.optimize import linprog

    matrix, link = _constraints(problem)
    result = linprog(
        -problem.is_counted.astype(np.float64),
        A_ub=matrix,
        b_ub=np.zeros(len(matrix)),
        A_eq=link if len(link) else None,
        b_eq=np.zeros(len(link)) if len(link) else None,
        bounds=(0, 1),
        method="highs",
    )
    if result.x is None:
        # No sample at all is a solution, so only the numbers can be the reason.
        raise UnusableInput(
            f"HiGHS could not solve the linear relaxation: {result.message}",
            hint="leave out columns with extreme values, or take their logarithm",
        )
    costs = np.abs(result.lower.marginals + result.upper.marginals)
    return _Relaxation(-float(result.fun), np.asarray(result.x), costs)


def _rounded(problem: SampleProblem, relaxation: _Relaxation, size: int) -> Truths | None:
    """Return a sample of this size near the relaxation's; ``None`` if none was found."""
    chosen = np.zeros(len(problem.is_counted), dtype=np.bool_)
    for is_side, count in (
        (problem.is_counted, size),
        (~problem.is_counted, problem.ratio * size),
    ):
        rows = np.flatnonzero(is_side)
        order = np.argsort(-relaxation.shares[rows], kind="stable")
        chosen[rows[order[:count]]] = True
    swapped = _swapped(problem, relaxation, chosen, size)
    if swapped is not None:
        return swapped
    is_free = np.zeros(len(chosen), dtype=np.bool_)
    is_free[np.argsort(relaxation.costs, kind="stable")[:FREE_ROWS]] = True
    chosen = relaxation.shares > 0.5
    result = _solve(problem, chosen, is_free, (size, size), node_limit=MAX_ROUNDING_NODES)
    return _sample_of(problem, result, size)


def _swapped(
    problem: SampleProblem, relaxation: _Relaxation, start: Truths, size: int
) -> Truths | None:
    """Return the sample after exchanges of rows; ``None`` if it does not keep the limits.

    Each exchange replaces a row by one that is counted alike, and is the one that leaves the
    smallest sum of squares of what exceeds the limits.
    """
    chosen, limits = start.copy(), problem.limits * size
    by_cost = np.argsort(relaxation.costs, kind="stable")
    for _ in range(MAX_SWAPS):
        if problem.is_met_by(chosen, size):
            return chosen
        sums = problem.deviations[chosen].sum(axis=0)
        best, swap = float((np.maximum(np.abs(sums) - limits, 0) ** 2).sum()), None
        for is_side in (problem.is_counted, ~problem.is_counted):
            inside = by_cost[(chosen & is_side)[by_cost]][:SWAP_CANDIDATES]
            outside = by_cost[(~chosen & is_side)[by_cost]][:SWAP_CANDIDATES]
            if not len(inside) or not len(outside):
                continue
            changes = problem.deviations[outside] - problem.deviations[inside][:, np.newaxis]
            excess = (np.maximum(np.abs(sums + changes) - limits, 0) ** 2).sum(axis=2)
            first, second = np.unravel_index(int(excess.argmin()), excess.shape)
            if excess[first, second] < best:
                best, swap = float(excess[first, second]), (inside[first], outside[second])
        if swap is None:
            return None
        chosen[swap[0]], chosen[swap[1]] = False, True
    return None


def _branch_and_bound(
    problem: SampleProblem, relaxation: _Relaxation, start: LargestSample, end: float, gap: float
) -> LargestSample:
    """Return the result of branch and bound over samples larger than the start.

    Rows whose reduced costs are too large for such a sample are fixed.
    """
    result = _solve(
        problem,
        relaxation.shares > 0.5,
        relaxation.is_open(start.size + 1),
        (start.size + 1, start.bound),
        mip_rel_gap=gap,
        time_limit=max(end - time.perf_counter(), SECONDS_AT_LEAST),
    )
    if result.status == _INFEASIBLE_STATUS:
        return LargestSample(start.chosen, start.size, start.size, BRANCH_AND_BOUND)
    bound = start.bound
    if result.mip_dual_bound is not None and math.isfinite(result.mip_dual_bound):
        bound = min(bound, math.floor(-float(result.mip_dual_bound) + SOLVER_TOLERANCE))
    proof = RELAXATION if bound == start.bound else BRANCH_AND_BOUND
    if result.x is not None:
        size = int((np.asarray(result.x > 0.5) & problem.is_counted).sum())
        chosen = _sample_of(problem, result, size)
        if chosen is not None:
            return LargestSample(chosen, size, max(bound, size), proof)
    return LargestSample(start.chosen, start.size, max(bound, start.size), proof)


def _sample_of(problem: SampleProblem, result: Any, size: int) -> Truths | None:
    """Return the rows of a solution; ``None`` without a solution that keeps all limits."""
    if result.x is None:
        return None
    chosen: Truths = np.asarray(result.x > 0.5)
    return chosen if problem.is_met_by(chosen, size) else None


def _constraints(problem: SampleProblem) -> tuple[Floats, Floats]:
    """Return rows whose products with the sample are at most 0, and rows with products of 0."""
    counted = problem.is_counted.astype(np.float64)
    allowed = problem.limits[:, np.newaxis] * counted
    sums = problem.deviations.T
    # The programme has one row of zeros if there are no columns, because HiGHS needs a row.
    matrix = np.vstack([sums - allowed, -sums - allowed, np.zeros_like(counted)])
    link = 1.0 - counted - problem.ratio * counted
    return matrix, link[np.newaxis] if problem.ratio else np.zeros((0, len(counted)))


def _solve(
    problem: SampleProblem,
    fixed: Truths,
    is_free: Truths,
    sizes: tuple[int, int],
    **options: Any,
) -> Any:
    """Maximise the size within ``sizes`` over the free rows; the other rows are ``fixed``."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    matrix, link = _constraints(problem)
    counted = problem.is_counted.astype(np.float64)
    fixed_values = fixed.astype(np.float64)
    return milp(
        -counted,
        integrality=np.ones(len(counted)),
        bounds=Bounds(np.where(is_free, 0.0, fixed_values), np.where(is_free, 1.0, fixed_values)),
        constraints=[
            LinearConstraint(matrix, -np.inf, 0.0),
            LinearConstraint(np.vstack([link, np.zeros_like(counted)]), 0.0, 0.0),
            LinearConstraint(counted, *map(float, sizes)),
        ],
        options=options,
    )
