"""Entropy balancing: the weights nearest to the base weights that make the moments equal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching.designs.design import Design
from equipoise_matching.matching.options import Estimand
from equipoise_matching.matching.units import Floats, checked_column, refuse_rows
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.weights.newton import Evaluation, Minimum, minimize_convex
from equipoise_matching.weights.target import (
    WeightingProblem,
    refuse_constant_covariates,
    refuse_mean_outside_range,
    standardized,
    weighted_design,
    weighting_problem,
)

MAX_IMBALANCE = 1e-8
"""Largest remaining difference of a moment, in standard deviations, of a result."""
_TOLERANCE = 1e-11
"""Difference of a moment at which the search stops."""
_BLOCK_PRODUCTS = 200_000
"""Multiplications of a block: it stays in the cache, and BLAS starts no threads for it."""
_MIN_BLOCK_ROWS = 32
_CLEAR_PART = 0.3
"""Part of the largest multiplier from which an error names a column."""


def entropy_balance(
    treat: Any,
    X: Any,
    *,
    estimand: Estimand = "ATT",
    focal: Any = None,
    moments: int = 1,
    base_weights: ArrayLike | None = None,
) -> Design:
    """Change the weights as little as possible so that the arms have the same moments.

    In each weighted arm, the weights w minimise Σ w log(w / q), with the base weights q, among all
    weights with the moments of the target: the focal arm (ATT, ATC) or all rows (ATE)
    (Hainmueller 2012, Political Analysis 20(1), section 3). The sum of the weights of an arm
    is that of its base weights, and the focal arm keeps its base weights.

    Raise `UnusableInput` if no weights have the moments of the target, with the column, and for
    rows or options that cannot be used.

    Parameters
    ----------
    treat
        Shape (n,): 0 and 1, or the labels of several arms.
    X
        Shape (n, k): the covariates.
    estimand
        ``"ATT"``, ``"ATC"`` or ``"ATE"``.
    focal
        For the ATT of several arms, the arm whose moments the other arms get.
    moments
        1 balances means, 2 also variances, 3 also skewness. For interactions, give them as columns.
    base_weights
        Shape (n,), 0 or more, such as sampling weights; by default 1 for each row.

    Examples
    --------
    >>> from equipoise_matching import entropy_balance
    >>> X, treat = [0, 1, 2, 1, 2, 2], [0, 0, 0, 1, 1, 1]
    >>> design = entropy_balance(treat, X)
    >>> design.weights.round(4).tolist()
    [0.1835, 0.633, 2.1835, 1.0, 1.0, 1.0]
    """
    problem = weighting_problem(treat, X, estimand, focal)
    if moments not in (1, 2, 3):
        raise UnusableInput(f"moments is {moments!r}", hint="give 1, 2 or 3")
    base = _checked_base_weights(problem, base_weights)
    covariates, varies = standardized(problem.units.matrix)
    refuse_constant_covariates(varies)
    names, columns = _moment_columns(problem.units.names, covariates, int(moments))
    target = np.average(columns[problem.target_rows], axis=0, weights=base[problem.target_rows])
    weights = base.copy()
    iterations, imbalance = 0, 0.0
    for arm in problem.weighted_arms:
        rows = np.flatnonzero((problem.units.arm == arm) & (base > 0))
        constraints = columns.T[:, rows]
        constraints -= target[:, np.newaxis]
        refuse_mean_outside_range(problem, arm, names, constraints)
        dual = _EntropyDual(constraints, base[rows])
        minimum = minimize_convex(
            dual, np.zeros(len(names)), tolerance=_TOLERANCE, lower_bound=dual.lower_bound
        )
        if minimum.unbounded or np.abs(minimum.gradient).max(initial=0.0) > MAX_IMBALANCE:
            _refuse_infeasible(problem, arm, names, minimum)
        weights[rows] = dual.shares(minimum.point) * base[rows].sum()
        iterations = max(iterations, minimum.iterations)
        imbalance = max(imbalance, float(np.abs(minimum.gradient).max(initial=0.0)))
    return weighted_design(
        "entropy_balance",
        problem.units,
        weights,
        estimand=estimand,
        focal=problem.focal,
        columns=covariates,
        details={
            "Moments": int(moments),
            "Iterations": iterations,
            "Largest remaining imbalance (standard deviations)": imbalance,
        },
    )


class _EntropyDual:
    """The dual of an arm's problem: log Σ q exp(λᵀc), with c the moments minus the target.

    Its gradient is the imbalance of the weights q exp(λᵀc), and its Hessian their covariance.
    """

    def __init__(self, constraints: Floats, base_weights: Floats) -> None:
        # Shape (moments, rows): the rows of a moment are contiguous in the memory.
        self.constraints = constraints
        self.log_base = np.log(base_weights / base_weights.sum())
        # Below it, λᵀc < 0 in every row: a hyperplane separates the arm from the target.
        self.lower_bound = float(self.log_base.min())

    def __call__(self, multipliers: Floats) -> Evaluation:
        """Return the dual, its gradient and its Hessian."""
        shares, value = self._shares_and_value(multipliers)
        # Unlike a product by BLAS, einsum gives the same bits on any number of threads.
        gradient = np.einsum("ij,j->i", self.constraints, shares)
        second_moments = np.zeros((len(multipliers), len(multipliers)))
        block_rows = max(_BLOCK_PRODUCTS // len(multipliers) ** 2, _MIN_BLOCK_ROWS)
        for start in range(0, len(shares), block_rows):
            block = self.constraints[:, start : start + block_rows]
            second_moments += (block * shares[start : start + block_rows]) @ block.T
        return Evaluation(value, gradient, second_moments - np.outer(gradient, gradient))

    def shares(self, multipliers: Floats) -> Floats:
        """Return the weights, shape (rows,), with the sum 1."""
        return self._shares_and_value(multipliers)[0]

    def _shares_and_value(self, multipliers: Floats) -> tuple[Floats, float]:
        exponents = np.einsum("i,ij->j", multipliers, self.constraints)
        exponents += self.log_base
        largest = float(exponents.max())
        exponents -= largest
        shares = np.exp(exponents, out=exponents)
        total = float(shares.sum())
        shares /= total
        return shares, math.log(total) + largest


def _checked_base_weights(problem: WeightingProblem, base_weights: Any) -> Floats:
    if base_weights is None:
        return np.ones(len(problem.units))
    base = checked_column(base_weights, "base_weights", len(problem.units))
    refuse_rows(base < 0, "base_weights", "is negative", "give weights of 0 or more")
    with np.errstate(over="ignore"):
        if not np.isfinite(base.sum()):
            raise UnusableInput("the sum of base_weights is infinite", hint="give smaller weights")
    for arm, name in enumerate(problem.units.arm_names):
        if not base[problem.units.arm == arm].any():
            raise UnusableInput(
                f"base_weights: every row of arm {name} weighs 0", hint="give weights above 0"
            )
    return base


def _moment_columns(
    covariates: tuple[str, ...], columns: Floats, moments: int
) -> tuple[tuple[str, ...], Floats]:
    """Return names and standardised columns of the powers of the covariates that vary.

    Powers of standardised columns span the same moments as powers of the covariates, and their
    products are less alike.
    """
    if moments == 1 and columns.any(axis=0).all():
        return covariates, columns
    names, kept = [], []
    for power in range(1, moments + 1):
        power_columns, varies = standardized(columns**power)
        for index in np.flatnonzero(varies):
            names.append(covariates[index] if power == 1 else f"{covariates[index]}^{power}")
            kept.append(power_columns[:, index])
    return tuple(names), np.stack(kept).T


def _refuse_infeasible(
    problem: WeightingProblem, arm: int, names: tuple[str, ...], minimum: Minimum
) -> None:
    # The multipliers of a separating hyperplane are its normal; they grow without limit.
    sizes = np.abs(minimum.point)
    order = np.argsort(-sizes, kind="stable")
    named = [names[index] for index in order[:3] if sizes[index] >= _CLEAR_PART * sizes.max()]
    raise UnusableInput(
        f"no weights of arm {problem.units.arm_names[arm]} give the covariates the means of "
        f"{problem.target_name}: they lie outside the arm's values in {' and '.join(named)}",
        hint=f"leave out {named[0]}, use fewer moments, or leave out rows unlike the other arm",
    )
