"""Fit the propensity score: the chance of treatment given the covariates."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from equipoise_matching.matching.frames import Covariates, covariates_of
from equipoise_matching.matching.units import Floats
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require

_SINGULAR_TOLERANCE = 1e-10
"""Singular values below this fraction of the largest are rounding errors of 0."""


@dataclass(frozen=True, slots=True)
class PropensityScore:
    """A fitted logistic model of the treatment.

    Attributes
    ----------
    score
        Probability of treatment of each row, between 0 and 1.
    linear
        Logit of the score of each row, log(score / (1 - score)).
    names
        Names of the covariates in the model, which has no constant columns.
    """

    score: Floats
    linear: Floats
    names: tuple[str, ...]


def propensity_score(formula_or_matrix: Any, data: Any) -> PropensityScore:
    """Fit the probability of treatment by logistic regression (Rosenbaum and Rubin 1983).

    Raise `UnusableInput` if the input cannot be used, or the covariates separate treated rows from
    controls completely, so that there is no score.

    Examples
    --------
    >>> from equipoise_matching import propensity_score
    >>> import numpy as np
    >>> random = np.random.default_rng(1)
    >>> X = random.normal(size=(60, 2))
    >>> treat = X[:, 0] + random.normal(size=60) > 0
    >>> propensity_score(X, treat).score[:3].round(3).tolist()
    [0.647, 0.454, 0.825]

    The arguments are a formula and its frame, or a matrix of covariates and the treatment.
    """
    return score_of(covariates_of(formula_or_matrix, data))


def score_of(covariates: Covariates) -> PropensityScore:
    """Return the propensity score of checked covariates."""
    models = require("statsmodels.api", "propensity scores")
    sm_exceptions = require("statsmodels.tools.sm_exceptions", "propensity scores")
    separation_warnings = (sm_exceptions.PerfectSeparationWarning, sm_exceptions.ConvergenceWarning)
    matrix = covariates.matrix
    has_variation = np.ptp(matrix, axis=0) > 0.0
    design = np.column_stack([np.ones(len(matrix)), _basis(matrix[:, has_variation])])
    model = models.GLM(covariates.treated.astype(float), design, family=models.families.Binomial())
    with warnings.catch_warnings():
        for category in separation_warnings:
            warnings.simplefilter("error", category)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            fitted_model = model.fit(maxiter=100, tol=1e-12)
        except separation_warnings as warning:
            raise UnusableInput(
                "the covariates separate treated rows from controls completely, so there is no "
                "propensity score",
                hint="leave out the covariate that decides the treatment",
            ) from warning
    score = np.asarray(fitted_model.fittedvalues, dtype=np.float64)
    linear = np.asarray(design @ fitted_model.params, dtype=np.float64)
    return PropensityScore(score, linear, tuple(compress(covariates.names, has_variation)))


def _basis(matrix: Floats) -> Floats:
    """Return orthogonal columns that give the same scores as the matrix.

    So tiny numbers do not count as zero, and dependent columns cause no singular matrix.
    """
    if not matrix.shape[1]:
        return matrix
    # Divide by the largest number first, because squares of 1e200 would be infinite.
    scaled = matrix / np.abs(matrix).max(axis=0)
    scaled = scaled - scaled.mean(axis=0)
    scaled = scaled / scaled.std(axis=0)
    columns, singular_values, _ = np.linalg.svd(scaled, full_matrices=False)
    is_independent = singular_values > _SINGULAR_TOLERANCE * singular_values[0]
    return np.asarray(columns[:, is_independent] * np.sqrt(len(matrix)), dtype=np.float64)
