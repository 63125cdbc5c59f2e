"""Energy balancing: the weights of the smallest energy distance (Huling and Mak 2024)."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise_matching.designs.design import Design
from equipoise_matching.matching.options import Estimand
from equipoise_matching.matching.units import Floats, Indices
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require
from equipoise_matching.weights.target import (
    refuse_constant_covariates,
    standardized,
    weighted_design,
    weighting_problem,
)

MAX_ROWS = 10_000
"""Largest number of weighted rows: their matrix of distances has 0.8 GB, and the solver's more."""
MAX_GAP = 1e-6
"""Largest certified distance from the minimum, as a share of the unweighted energy distance."""
_ROUNDING = 1e-9
"""Energy distance that is a rounding error; covariates are in standard deviations."""
_ZERO_WEIGHT = 1e-9
"""Weights below this fraction of the mean weight are 0 to the accuracy of the solver."""
_SOLVER_TOLERANCE = 1e-10


def energy_balance(
    treat: Any,
    X: Any,
    *,
    estimand: Estimand = "ATT",
    focal: Any = None,
    improved: bool = True,
) -> Design:
    """Find the weights that minimise the energy distance between the arms.

    The energy distance compares whole distributions, not only moments; it is 0 only for equal
    distributions. For the ATT, the weights minimise the distance of each other arm to the focal
    arm; for the ATE, the sum of the distances of the arms to all rows (Huling and Mak 2024, Journal
    of Causal Inference 12(1)). The weights are 0 or more and have the mean 1 in each arm. Distances
    are Euclidean between covariates in standard deviations.

    The weights solve a convex quadratic programme, with the dense interior-point solver PIQP
    (Schwan et al. 2023, arXiv 2304.00290; the extra ``energy``). The details have a certificate: an
    upper bound of the energy distance minus its minimum.

    Raise `UnusableInput` for rows that cannot be used, more than 10,000 weighted rows, and a solver
    that is missing or does not reach the minimum.

    Parameters
    ----------
    treat
        Shape (n,): 0 and 1, or the labels of several arms.
    X
        Shape (n, k): the covariates. Memory grows as n², and time as n³: at most 10,000 rows are
        weighted.
    estimand
        ``"ATT"``, ``"ATC"`` or ``"ATE"``.
    focal
        For the ATT of several arms, the arm to which the others are compared.
    improved
        For the ATE, add the energy distances between each two arms to the sum, as the paper
        recommends.

    Examples
    --------
    >>> from equipoise_matching import energy_balance
    >>> X, treat = [0, 1, 2, 3, 1, 2], [0, 0, 0, 0, 1, 1]
    >>> design = energy_balance(treat, X)
    >>> design.weights.round(4).tolist()
    [0.0, 2.0, 2.0, 0.0, 1.0, 1.0]
    """
    problem = weighting_problem(treat, X, estimand, focal)
    columns, varies = standardized(problem.units.matrix)
    refuse_constant_covariates(varies)
    is_weighted = ~problem.target_rows if problem.focal is not None else problem.target_rows
    rows = np.flatnonzero(is_weighted)
    if len(rows) > MAX_ROWS:
        raise UnusableInput(
            f"{len(rows)} rows are to be weighted, and energy balancing can weight {MAX_ROWS}",
            hint="use entropy_balance, or draw a sample of the rows",
        )
    groups = np.searchsorted(problem.weighted_arms, problem.units.arm[rows]).astype(np.int64)
    kernel = _centred_kernel(columns[:, varies], rows, problem.target_rows)
    form = _quadratic_form(kernel, groups, cross_distances=problem.focal is None and improved)
    sizes = np.bincount(groups)
    uniform = 1.0 / sizes[groups]
    shares, iterations = _minimize_on_simplices(form, groups)
    distance, start = float(shares @ form @ shares), float(uniform @ form @ uniform)
    gap = _optimality_gap(form, groups, shares)
    if not gap <= MAX_GAP * start + _ROUNDING:
        raise UnusableInput(
            f"the solver ended up to {gap:.2g} above the smallest energy distance",
            hint="give fewer covariates, or use entropy_balance",
        )
    weights = np.ones(len(problem.units))
    weights[rows] = shares * sizes[groups]
    return weighted_design(
        "energy_balance",
        problem.units,
        weights,
        estimand=estimand,
        focal=problem.focal,
        columns=columns,
        details={
            "Iterations": iterations,
            "Energy distance without weights": start,
            "Energy distance": distance,
            "Certified distance from the minimum": gap,
        },
    )


def _centred_kernel(columns: Floats, rows: Indices, target_rows: Any) -> Floats:
    """Return the kernel of the energy distance among the weighted rows, centred at the target.

    With D the distance and T, T' two draws from the target rows, the kernel of rows x and y is
    E D(x, T) + E D(y, T) - D(x, y) - E D(T, T'). Then pᵀKp is the energy distance between the
    weights p and the target (Székely and Rizzo 2013, Journal of Statistical Planning and Inference
    143(8)), and the matrix has no negative eigenvalue.
    """
    from scipy.spatial.distance import cdist

    target = columns[target_rows]
    # Blocks of rows keep the matrix of distances to a large target out of the memory.
    to_target = np.concatenate([cdist(block, target).mean(axis=1) for block in _blocks(columns)])
    within = float(to_target[target_rows].mean())
    kernel = cdist(columns[rows], columns[rows])
    np.negative(kernel, out=kernel)
    kernel += to_target[rows][:, np.newaxis]
    kernel += to_target[rows] - within
    return np.asarray(kernel)


def _blocks(columns: Floats, size: int = 256) -> list[Floats]:
    return [columns[start : start + size] for start in range(0, len(columns), size)]


def _quadratic_form(kernel: Floats, groups: Indices, *, cross_distances: bool) -> Floats:
    """Return the matrix Q such that pᵀQp is the sum of the energy distances.

    ``p`` has the weights of each group with the sum 1. The distance between the groups a and b is
    (p_a - p_b)ᵀ K (p_a - p_b).
    """
    count = int(groups.max()) + 1
    is_same = groups[:, np.newaxis] == groups
    if not cross_distances:
        return np.where(is_same, kernel, 0.0)
    return np.where(is_same, count * kernel, -kernel)


def _minimize_on_simplices(form: Floats, groups: Indices) -> tuple[Floats, int]:
    """Return p of 0 or more with the least pᵀQp and the sum 1 in each group, and the iterations."""
    piqp = require("piqp", "energy weights", "energy")
    count, size = int(groups.max()) + 1, len(groups)
    # The solver's tolerances are absolute: the form has a mean diagonal of 1, and p a mean of 1.
    scale = float(np.abs(np.diag(form)).mean()) or 1.0
    sums = np.zeros((count, size))
    sums[groups, np.arange(size)] = 1.0
    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = _SOLVER_TOLERANCE
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = _SOLVER_TOLERANCE
    solver.setup(
        form * (2.0 / scale),
        np.zeros(size),
        sums,
        np.full(count, size / count),
        x_l=np.zeros(size),
        x_u=np.full(size, np.inf),
    )
    solver.solve()
    shares = np.asarray(solver.result.x, dtype=np.float64)
    # An interior-point solver ends just above the bound of 0; the mean of p is 1 here.
    shares = np.where(shares < _ZERO_WEIGHT, 0.0, shares)
    return shares / np.bincount(groups, shares)[groups], int(solver.result.info.iter)


def _optimality_gap(form: Floats, groups: Indices, shares: Floats) -> float:
    """Return an upper bound of pᵀQp minus its minimum, from the gradient (Frank and Wolfe 1956)."""
    gradient = 2.0 * (form @ shares)
    smallest = np.full(int(groups.max()) + 1, np.inf)
    np.minimum.at(smallest, groups, gradient)
    return max(float(shares @ (gradient - smallest[groups])), 0.0)
