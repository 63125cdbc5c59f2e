"""How weights depend on a fitted model: the part of an error that comes from estimating weights.

A model of the weights has q parameters γ with estimating equations Σ s_i(γ) = 0. Stacked with the
equations of the outcome's model, they give standard errors that count both (Stefanski and Boos
2002, The American Statistician 56(1); Lunceford and Davidian 2004, Statistics in Medicine 23(19)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise_matching.matching.units import Floats, Indices, Truths
from equipoise_matching.shared.errors import UnusableInput


@dataclass(frozen=True, slots=True, eq=False)
class WeightModel:
    """The estimating equations of a model with q parameters, from which n weights come.

    Parameters
    ----------
    scores
        Shape (n, q), the value s_i of each row's equations; each column sums to 0.
    information
        Shape (q, q), −Σ ∂s_i/∂γ.
    derivatives
        Shape (n, q), ∂w_i/∂γ of each weight.
    """

    scores: Floats
    information: Floats
    derivatives: Floats

    def subset(self, rows: Indices) -> WeightModel:
        """Return the model for the used rows.

        The equations of rows that are left out still move the parameters. A row that is left out
        has the weight 0, so the effect has no equation for it.
        """
        if len(rows) == len(self.scores):
            return self
        raise UnusableInput(
            "the model of the weights has rows that the design leaves out",
            hint="fit the weights again on the rows that remain, or give error='bootstrap'",
        )

    def shift(self, gradient: Floats) -> Floats:
        """Return the influence of each row on a value through the parameters, shape (n,).

        ``gradient`` (q,) is the derivative of the value with respect to the parameters.
        """
        return np.asarray(self.scores @ np.linalg.solve(self.information, gradient))


def logistic_weight_model(
    predictors: Floats, treated: Truths, probability: Floats, estimand: str
) -> WeightModel:
    """Return the model of the weights that come from a logistic regression of the treatment.

    ``predictors`` (n, q) includes the constant, and ``probability`` (n,) is the fitted probability
    e of treatment. The weights are 1/e and 1/(1 − e) for the ATE, 1 and e/(1 − e) for the ATT,
    (1 − e)/e and 1 for the ATC, 1 − e and e for the effect on the overlap (ATO).
    """
    slope = probability * (1.0 - probability)
    odds = probability / (1.0 - probability)
    # Derivatives of the weights with respect to the logit of e.
    by_estimand = {
        "ATE": (-1.0 / odds, odds),
        "ATT": (np.zeros_like(odds), odds),
        "ATC": (-1.0 / odds, np.zeros_like(odds)),
        "ATO": (-slope, slope),
    }
    if estimand not in by_estimand:
        raise UnusableInput(
            f"there are no logistic weights for {estimand!r}",
            hint=f"choose one of {', '.join(by_estimand)}",
        )
    of_treated, of_controls = by_estimand[estimand]
    derivative = np.where(treated, of_treated, of_controls)
    return WeightModel(
        scores=predictors * (treated - probability)[:, None],
        information=(predictors * slope[:, None]).T @ predictors,
        derivatives=predictors * derivative[:, None],
    )
