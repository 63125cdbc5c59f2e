"""The covariate balancing propensity score (Imai and Ratkovic 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise_matching.designs.design import Design
from equipoise_matching.matching.frames import Covariates
from equipoise_matching.matching.options import Estimand
from equipoise_matching.matching.propensity import orthogonal_columns, score_of
from equipoise_matching.matching.units import Floats, Truths
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.weights.newton import Evaluation, minimize_convex
from equipoise_matching.weights.scores import treatment_scores
from equipoise_matching.weights.target import (
    WeightingProblem,
    refuse_constant_covariates,
    refuse_mean_outside_range,
    standardized,
    weighted_design,
    weighting_problem,
)

MAX_EQUATION = 1e-8
"""Largest value of a mean balance equation that counts as solved."""
MAX_SLOPE = 1e-6
"""Largest slope of the GMM objective that counts as a minimum."""
_TOLERANCE = 1e-11
_LOWER_BOUND = -100.0
"""Loss below which no minimum is: it has mean linear predictors of more than 100."""
_MAX_ITERATIONS = 1000


def covariate_balancing_score(
    treat: Any,
    X: Any,
    *,
    estimand: Estimand = "ATT",
    focal: Any = None,
    over_identified: bool = False,
) -> Design:
    """Weight by a logistic propensity score that is fitted to balance the covariates.

    The score e(x) solves the balance equations in place of the score equations of the likelihood
    (Imai and Ratkovic 2014, JRSS B 76(1), section 2.2): Σ [t / e - (1 - t) / (1 - e)] x = 0 for the
    ATE, and Σ [t - (1 - t) e / (1 - e)] x = 0 for the ATT, with a constant in x. A row has the
    weight 1 / e or 1 / (1 - e) for the ATE; for the ATT, a control has e / (1 - e).

    Raise `UnusableInput` if no score solves the equations, for several arms with the ATT or with
    ``over_identified``, and for rows that cannot be used.

    Parameters
    ----------
    treat
        Shape (n,): 0 and 1; for the ATE also the labels of several arms (section 4.1 of the paper,
        with the multinomial logit).
    X
        Shape (n, k): the covariates.
    estimand
        ``"ATT"``, ``"ATC"`` or ``"ATE"``. The ATE makes the weighted means of the arms equal to
        each other, not to the mean of all rows.
    focal
        For two arms that are not 0 and 1, the treated arm of the ATT.
    over_identified
        Solve the balance equations and the equations of the likelihood together, by the
        generalised method of moments, continuously updated: neither holds exactly. The details
        then have the J statistic. A small p-value of it is evidence that no logit fits both.

    Examples
    --------
    >>> from equipoise_matching import covariate_balancing_score
    >>> X, treat = [0, 1, 2, 1, 2, 2], [0, 0, 0, 1, 1, 1]
    >>> design = covariate_balancing_score(treat, X)
    >>> design.weights.round(4).tolist()
    [0.1835, 0.633, 2.1835, 1.0, 1.0, 1.0]
    """
    problem = weighting_problem(treat, X, estimand, focal)
    columns, varies = standardized(problem.units.matrix)
    refuse_constant_covariates(varies)
    design = np.column_stack([np.ones(len(columns)), orthogonal_columns(columns[:, varies])])
    details: dict[str, Any] = {}
    if len(problem.units.arms) > 2:
        _refuse_several_arms(problem, over_identified)
        weights, details = _several_arm_weights(problem, treat, X, design)
    else:
        if problem.focal is not None:
            _refuse_infeasible_means(problem, columns)
        sides = _Sides(
            problem.units.arm == (1 if problem.focal is None else problem.focal),
            problem.focal is None,
        )
        parameters, details = _just_identified(problem, sides, design, columns)
        if over_identified:
            parameters, details = _over_identified(problem, sides, design, parameters)
        weights = sides.weights(design @ parameters)
    return weighted_design(
        "covariate_balancing_score",
        problem.units,
        weights,
        estimand=estimand,
        focal=problem.focal,
        columns=columns,
        details=details,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Sides:
    """Two arms: the rows whose probability is modelled, and whether all rows are weighted (ATE).

    Without ``weights_all``, the modelled arm is the focal arm, which keeps the weight 1.
    """

    modelled: Truths
    weights_all: bool

    def weights(self, linear: Floats) -> Floats:
        """Return the weights of all rows for a linear predictor."""
        if self.weights_all:
            return np.asarray(1.0 + np.exp(np.where(self.modelled, -linear, linear)))
        return np.where(self.modelled, 1.0, np.exp(np.where(self.modelled, 0.0, linear)))

    def loss(self, linear: Floats) -> tuple[Floats, Floats, Floats]:
        """Return each row's loss and its two derivatives by the linear predictor.

        The derivative of the loss is minus the row's part of the balance equations (Zhao 2019,
        Annals of Statistics 47(2), section 3).
        """
        signs = np.where(self.modelled, -1.0, 1.0)
        odds = np.exp(signs * linear)
        if self.weights_all:
            return odds + signs * linear, signs * (odds + 1.0), odds
        odds = np.where(self.modelled, 0.0, odds)
        return (
            np.where(self.modelled, -linear, odds),
            np.where(self.modelled, -1.0, odds),
            odds,
        )


class _TailoredLoss:
    """The mean loss of all rows as a function of the parameters."""

    def __init__(self, sides: _Sides, design: Floats) -> None:
        self.sides, self.design = sides, design

    def __call__(self, parameters: Floats) -> Evaluation:
        """Return the mean loss, its gradient and its Hessian."""
        losses, slopes, curvatures = self.sides.loss(self.design @ parameters)
        count = len(losses)
        return Evaluation(
            float(losses.mean()),
            slopes @ self.design / count,
            self.design.T @ (self.design * curvatures[:, np.newaxis]) / count,
        )


def _just_identified(
    problem: WeightingProblem, sides: _Sides, design: Floats, columns: Floats
) -> tuple[Floats, dict[str, Any]]:
    start = np.zeros(design.shape[1])
    share = float(sides.modelled.mean())
    start[0] = np.log(share / (1 - share))
    minimum = minimize_convex(
        _TailoredLoss(sides, design), start, tolerance=_TOLERANCE, lower_bound=_LOWER_BOUND
    )
    largest = float(np.abs(minimum.gradient).max())
    if minimum.unbounded or not largest <= MAX_EQUATION:
        # The linear predictor separates the arms; its direction is that of the column most like it.
        linear = design[:, 1:] @ minimum.point[1:]
        likeness = np.abs(columns.T @ (linear / (np.abs(linear).max() or 1.0)))
        name = problem.units.names[int(likeness.argmax())]
        raise UnusableInput(
            f"no score balances the covariates: they separate the arms, mostly along {name}",
            hint=f"leave out {name}, or rows with values that the other arm lacks",
        )
    return minimum.point, {
        "Iterations": minimum.iterations,
        "Largest balance equation (mean per row)": largest,
    }


def _refuse_infeasible_means(problem: WeightingProblem, columns: Floats) -> None:
    mean = columns[problem.target_rows].mean(axis=0)
    for arm in problem.weighted_arms:
        constraints = columns[problem.units.arm == arm].T - mean[:, np.newaxis]
        refuse_mean_outside_range(problem, arm, problem.units.names, constraints)


def _over_identified(
    problem: WeightingProblem, sides: _Sides, design: Floats, balanced: Floats
) -> tuple[Floats, dict[str, Any]]:
    """Return the parameters of the GMM estimate, from the better of two starting points."""
    from scipy import optimize, stats

    units = problem.units
    score = score_of(Covariates(units.names, units.matrix, sides.modelled))
    likely = np.linalg.lstsq(design, score.linear, rcond=None)[0]
    objective = _MomentDistance(sides, design)
    with np.errstate(all="ignore"):
        ends = [
            optimize.minimize(
                objective, start, jac=True, method="BFGS",
                options={"gtol": 1e-10, "maxiter": _MAX_ITERATIONS},
            )
            for start in (likely, balanced)
        ]  # fmt: skip
    best = min(ends, key=lambda end: float(end.fun))
    slope = float(np.abs(best.jac).max())
    if not slope <= MAX_SLOPE:
        raise UnusableInput(
            f"the generalised method of moments did not converge: its slope is {slope:.2g} after "
            f"{best.nit} steps",
            hint="give over_identified=False, or fewer covariates",
        )
    statistic = float(best.fun) * len(design)
    return np.asarray(best.x), {
        "Iterations": int(best.nit),
        "J statistic": statistic,
        "p-value of the J statistic": float(stats.chi2.sf(statistic, design.shape[1])),
    }


class _MomentDistance:
    """The distance ḡᵀ Σ⁻¹ ḡ of the mean moments from 0, and its gradient.

    The moments of a row are (t - e) x, of the likelihood, and (t - e) h x, of balance. Here h is
    1 / (e (1 - e)) for the ATE and 1 / (1 - e) for the ATT. Σ is their covariance over the
    treatment given the covariates, at the same parameters (section 2.2 of the paper).
    """

    def __init__(self, sides: _Sides, design: Floats) -> None:
        self.sides, self.design = sides, design

    def __call__(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the distance and its gradient by the parameters."""
        design, count = self.design, len(self.design)
        linear = design @ parameters
        score = 1.0 / (1.0 + np.exp(-linear))
        residuals, variance = self.sides.modelled - score, score * (1.0 - score)
        if self.sides.weights_all:
            factor, factor_slope = 1.0 / variance, -(1.0 - 2.0 * score) / variance
        else:
            factor, factor_slope = 1.0 + np.exp(linear), np.exp(linear)
        # Linear combinations of the moments have the same distance. Without this one, Σ is nearly
        # singular for scores that hardly vary.
        spread = float(factor.std()) or 1.0
        factor, factor_slope = (factor - factor.mean()) / spread, factor_slope / spread
        means = np.concatenate([residuals @ design, (residuals * factor) @ design]) / count
        blocks = [
            design.T @ (design * (variance * factor**power)[:, np.newaxis]) / count
            for power in range(3)
        ]
        matrix = np.block([[blocks[0], blocks[1]], [blocks[1], blocks[2]]])
        if not (np.isfinite(matrix).all() and np.isfinite(means).all()):
            return np.inf, np.zeros_like(parameters)
        solution = np.linalg.lstsq(matrix, means, rcond=None)[0]
        first, second = (design @ part for part in np.split(solution, 2))
        # d(ḡᵀΣ⁻¹ḡ) = 2 uᵀdḡ - uᵀdΣu with u = Σ⁻¹ḡ
        along = first + factor * second
        variance_slope = variance * (1.0 - 2.0 * score)
        row_slopes = 2.0 * (residuals * factor_slope * second - variance * along)
        row_slopes -= variance_slope * along**2 + 2.0 * variance * along * factor_slope * second
        return float(means @ solution), row_slopes @ design / count


def _refuse_several_arms(problem: WeightingProblem, over_identified: bool) -> None:
    count = len(problem.units.arms)
    if problem.estimand != "ATE":
        raise UnusableInput(
            f"the score of {count} arms is for the ATE (Imai and Ratkovic 2014, section 4.1)",
            hint="give estimand='ATE', or use entropy_balance for the ATT of several arms",
        )
    if over_identified:
        raise UnusableInput(
            f"over_identified is for two arms, but there are {count}",
            hint="leave out over_identified",
        )


def _several_arm_weights(
    problem: WeightingProblem, treat: Any, X: Any, design: Floats
) -> tuple[Floats, dict[str, Any]]:
    """Return inverse probabilities whose weighted means agree between neighbouring arms."""
    from scipy import optimize

    start = treatment_scores(treat, X).probabilities
    logits = np.log(start[:, 1:] / start[:, :1])
    equations = _ArmEquations(problem, design)
    with np.errstate(all="ignore"):
        found = optimize.least_squares(
            equations.values,
            np.linalg.lstsq(design, logits, rcond=None)[0].ravel(order="F"),
            jac=equations.jacobian,
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
            max_nfev=_MAX_ITERATIONS,
        )
    largest = float(np.abs(found.fun).max())
    if not largest <= MAX_EQUATION:
        raise UnusableInput(
            f"no score balances the covariates in all {len(problem.units.arms)} arms: an equation "
            f"stays at {largest:.2g}",
            hint="give fewer covariates, or use entropy_balance",
        )
    return equations.inverse_probabilities(found.x), {
        "Iterations": int(found.nfev),
        "Largest balance equation (mean per row)": largest,
    }


class _ArmEquations:
    """The balance equations of several arms in the parameters of a multinomial logit.

    The parameters have shape (k + 1, arms - 1), flattened arm by arm; the first arm has zeros.
    """

    def __init__(self, problem: WeightingProblem, design: Floats) -> None:
        self.arm, self.arms, self.design = problem.units.arm, len(problem.units.arms), design

    def probabilities(self, parameters: Floats) -> Floats:
        """Return the probability of each arm, shape (n, arms)."""
        matrix = parameters.reshape(self.design.shape[1], self.arms - 1, order="F")
        linear = np.column_stack([np.zeros(len(self.design)), self.design @ matrix])
        exponentials = np.exp(linear - linear.max(axis=1, keepdims=True))
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))

    def inverse_probabilities(self, parameters: Floats) -> Floats:
        """Return the inverse probability of each row's own arm, shape (n,)."""
        return np.asarray(1.0 / self.probabilities(parameters)[np.arange(len(self.arm)), self.arm])

    def values(self, parameters: Floats) -> Floats:
        """Return the difference of the weighted sums of each arm and the arm before, per row."""
        weights = self.inverse_probabilities(parameters)
        sums = [
            weights[self.arm == index] @ self.design[self.arm == index] / len(self.arm)
            for index in range(self.arms)
        ]
        return np.diff(sums, axis=0).ravel()

    def jacobian(self, parameters: Floats) -> Floats:
        """Return the derivatives of ``values`` by the parameters."""
        probabilities = self.probabilities(parameters)
        sums = []
        for index in range(self.arms):
            rows = self.arm == index
            design, own = self.design[rows], probabilities[rows]
            weights = 1.0 / own[:, index]
            parts = []
            for column in range(1, self.arms):
                # d(1 / e_a) by the linear predictor of arm c: e_c / e_a, minus 1 / e_a if c is a.
                slopes = weights * (own[:, column] - (1.0 if column == index else 0.0))
                parts.append(design.T @ (design * slopes[:, np.newaxis]) / len(self.arm))
            sums.append(np.hstack(parts))
        return np.vstack([after - before for before, after in zip(sums, sums[1:], strict=False)])
