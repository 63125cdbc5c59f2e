"""Weights from propensity scores: inverse probability weights and overlap weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise_matching.designs.design import Design
from equipoise_matching.designs.units import design_units
from equipoise_matching.effects.weight_model import logistic_weight_model
from equipoise_matching.matching.options import Estimand
from equipoise_matching.matching.units import Floats, Truths, row_numbers
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.weights.scores import TreatmentScores, score_predictors, scores_for
from equipoise_matching.weights.target import WeightingProblem, weighted_design, weighting_problem

MIN_PROBABILITY = 10 * np.finfo(np.float64).eps
"""Probability that is 0 to rounding, as in R's ``glm``."""


def inverse_probability_weights(
    treat: Any,
    X: Any,
    *,
    estimand: Estimand = "ATT",
    focal: Any = None,
    scores: Any = None,
    stabilized: bool = False,
    trim: float | None = None,
) -> Design:
    """Weight each row by the inverse of the probability of its arm.

    With e_a(x) the probability of arm a, a row of arm a has the weight 1 / e_a(x) for the ATE, and
    e_f(x) / e_a(x) for the ATT with the focal arm f (Rosenbaum 1987, JASA 82(398); for several arms
    McCaffrey et al. 2013, Statistics in Medicine 32(19)). The ATC has the controls as focal arm.

    Raise `UnusableInput` for rows that cannot be used, for a probability of 0 where the estimand
    needs a comparison, and for an option outside its range.

    Parameters
    ----------
    treat
        Shape (n,): 0 and 1, or the labels of several arms.
    X
        Shape (n, k): the covariates. The scores are fitted to them unless ``scores`` is given.
    estimand
        ``"ATT"``, ``"ATC"`` or ``"ATE"``.
    focal
        For the ATT of several arms, the arm whose rows keep the weight 1.
    scores
        The result of `treatment_scores`, or probabilities: shape (n,), of being treated, or
        (n, arms) in ascending order of the arms. By default those of the logit.
    stabilized
        Multiply each weight by the share of its arm among all rows (Robins, Hernán and Brumback
        2000, Epidemiology 11(5)). Only for the ATE.
    trim
        Percentile, such as 99: larger weights are lowered to this percentile of all weights, or for
        ATT and ATC of the weights outside the focal arm (Cole and Hernán 2008, American Journal
        of Epidemiology 168(6)). By default no weight is changed.

    Examples
    --------
    >>> from equipoise_matching import inverse_probability_weights
    >>> X, treat = [0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1]
    >>> inverse_probability_weights(treat, X, estimand="ATE").weights.round(6).tolist()
    [1.5, 1.5, 3.0, 3.0, 1.5, 1.5]
    """
    problem = weighting_problem(treat, X, estimand, focal)
    if stabilized and estimand != "ATE":
        raise UnusableInput(
            f"stabilized weights are for the ATE, not the {estimand}",
            hint="leave out stabilized, or give estimand='ATE'",
        )
    fitted = scores_for(problem.units, scores)
    weights = _inverse_weights(problem, fitted)
    if stabilized:
        shares = np.bincount(problem.units.arm) / len(problem.units)
        weights = weights * shares[problem.units.arm]
    details: dict[str, Any] = _score_details(fitted)
    if trim is not None:
        is_weighted = ~problem.target_rows if problem.focal is not None else problem.target_rows
        weights, trimmed = _trimmed(weights, is_weighted, trim)
        details["Trimmed rows"] = trimmed
    return weighted_design(
        "inverse_probability_weights",
        problem.units,
        weights,
        estimand=estimand,
        focal=problem.focal,
        details=details,
    )


def overlap_weights(treat: Any, X: Any, *, scores: Any = None) -> Design:
    """Weight each row by the probability of the other arm.

    The estimand is the effect in the overlap (ATO): on rows that could be in each arm. With two
    arms, a treated row has the weight 1 - e(x) and a control e(x) (Li, Morgan and Zaslavsky 2018,
    JASA 113(521)). With several arms, a row of arm a has the weight h(x) / e_a(x), where 1 / h(x)
    is the sum of 1 / e_b(x) over all arms b (Li and Li 2019, Annals of Applied Statistics 13(4)).
    Scores of the logit make the means of the covariates equal in both arms. With the scores that
    this function fits to the arms 0 and 1, the error of an effect counts that they were fitted.

    Raise `UnusableInput` for rows that cannot be used, and for arms without overlap.

    Parameters
    ----------
    treat
        Shape (n,): 0 and 1, or the labels of several arms.
    X
        Shape (n, k): the covariates.
    scores
        As for `inverse_probability_weights`.

    Examples
    --------
    >>> from equipoise_matching import overlap_weights
    >>> X, treat = [0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1]
    >>> overlap_weights(treat, X).weights.round(6).tolist()
    [0.333333, 0.333333, 0.666667, 0.666667, 0.333333, 0.333333]
    """
    units = design_units(treat, X, several_arms=True)
    fitted = scores_for(units, scores)
    probabilities = fitted.probabilities
    # The product of the other arms' probabilities is h(x) / e_a(x) without a division by 0.
    products = np.column_stack(
        [np.delete(probabilities, arm, axis=1).prod(axis=1) for arm in range(len(units.arms))]
    )
    totals = products.sum(axis=1)
    own = products[np.arange(len(units)), units.arm]
    weights = np.divide(own, totals, out=np.zeros(len(units)), where=totals > 0)
    for arm, name in enumerate(units.arm_names):
        if not weights[units.arm == arm].any():
            raise UnusableInput(
                f"arm {name} does not overlap with the others: every row has the weight 0",
                hint="give scores between 0 and 1, or leave out the covariate that decides "
                "the treatment",
            )
    weight_model = None
    if scores is None and units.arms == (0, 1):
        weight_model = logistic_weight_model(
            score_predictors(units), units.treated, probabilities[:, 1], "ATO"
        )
    return weighted_design(
        "overlap_weights",
        units,
        weights,
        estimand="ATO",
        details=_score_details(fitted),
        weight_model=weight_model,
    )


def _inverse_weights(problem: WeightingProblem, scores: TreatmentScores) -> Floats:
    own = scores.own_probabilities
    is_needed = problem.target_rows
    is_zero = (scores.probabilities <= MIN_PROBABILITY).any(axis=1)
    _refuse_zero_probabilities((own <= MIN_PROBABILITY) | (is_zero & is_needed))
    numerator = 1.0 if problem.focal is None else scores.probabilities[:, problem.focal]
    weights = np.asarray(numerator / own, dtype=np.float64)
    if not all(weights[problem.units.arm == arm].any() for arm in problem.weighted_arms):
        raise UnusableInput(
            "every row of an arm has the weight 0: the arms do not overlap",
            hint="give scores between 0 and 1",
        )
    return weights


def _refuse_zero_probabilities(is_zero: Truths) -> None:
    if is_zero.any():
        raise UnusableInput(
            f"the probability of an arm is 0 in {row_numbers(is_zero)} (from 0), so the arms do "
            "not overlap there",
            hint="leave out these rows, or give scores=treatment_scores(treat, X, clip=0.01)",
        )


def _trimmed(weights: Floats, is_weighted: Truths, percentile: float) -> tuple[Floats, int]:
    """Return weights of at most a percentile of the weighted rows, and the number of changes."""
    is_number = isinstance(percentile, int | float | np.number)
    if not (is_number and 50 < percentile <= 100):
        raise UnusableInput(
            f"trim is {percentile!r}", hint="give a percentile above 50 and up to 100, such as 99"
        )
    limit = np.quantile(weights[is_weighted], float(percentile) / 100)
    is_large = is_weighted & (weights > limit)
    return np.where(is_large, limit, weights), int(is_large.sum())


def _score_details(scores: TreatmentScores) -> dict[str, Any]:
    details: dict[str, Any] = {
        "Score": scores.model,
        "Smallest probability of a row's own arm": float(scores.own_probabilities.min()),
    }
    if scores.clipped_rows:
        details["Rows with clipped scores"] = scores.clipped_rows
    return details
