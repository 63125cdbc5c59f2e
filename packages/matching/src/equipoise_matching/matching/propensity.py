"""Fit the propensity score: the chance of treatment given the covariates."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import compress
from typing import Any, Literal

import numpy as np

from equipoise_matching.matching.frames import Covariates, covariates_of
from equipoise_matching.matching.units import Floats
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require

Link = Literal["logit", "probit", "cloglog"]
"""Function of the probability that is linear in the covariates."""
LINKS: dict[str, str] = {"logit": "Logit", "probit": "Probit", "cloglog": "CLogLog"}
"""Names of the links in statsmodels."""

_SINGULAR_TOLERANCE = 1e-10
"""Singular values below this fraction of the largest are rounding errors of 0."""
_DEVIANCE_TOLERANCE = 4 * np.finfo(np.float64).eps
"""Relative change of the deviance that is a rounding error: of 10^6 rows it exceeds 1e-12."""


@dataclass(frozen=True, slots=True)
class PropensityScore:
    """A fitted model of the treatment.

    Attributes
    ----------
    score
        Probability of treatment of each row, between 0 and 1.
    linear
        Linear predictor of each row: its score transformed by the link. With the logit, this is
        log(score / (1 - score)).
    names
        Names of the covariates in the model, which has no constant columns.
    information_ratio
        Smallest eigenvalue of the information divided by the largest, for orthogonal covariates.
        A value near 0 means that some rows have a score of 0 or 1 to rounding.
    """

    score: Floats
    linear: Floats
    names: tuple[str, ...]
    information_ratio: float


def propensity_score(formula_or_matrix: Any, data: Any, *, link: Link = "logit") -> PropensityScore:
    """Fit the probability of treatment by a binomial regression (Rosenbaum and Rubin 1983).

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

    The arguments are a formula and its frame, or a matrix of covariates and the treatment. The
    ``link`` is ``"logit"`` (logistic regression), ``"probit"`` or ``"cloglog"``.
    """
    return score_of(covariates_of(formula_or_matrix, data), link)


def score_of(covariates: Covariates, link: Link = "logit") -> PropensityScore:
    """Return the propensity score of checked covariates."""
    models = require("statsmodels.api", "propensity scores")
    sm_exceptions = require("statsmodels.tools.sm_exceptions", "propensity scores")
    separation_warnings = (sm_exceptions.PerfectSeparationWarning, sm_exceptions.ConvergenceWarning)
    matrix = covariates.matrix
    has_variation = np.ptp(matrix, axis=0) > 0.0
    design = np.column_stack([np.ones(len(matrix)), orthogonal_columns(matrix[:, has_variation])])
    family = models.families.Binomial(getattr(models.families.links, _statsmodels_link(link))())
    model = models.GLM(covariates.treated.astype(float), design, family=family)
    with warnings.catch_warnings():
        for category in separation_warnings:
            warnings.simplefilter("error", category)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            fitted_model = model.fit(maxiter=100, tol=1e-12, rtol=_DEVIANCE_TOLERANCE)
            score = np.asarray(fitted_model.fittedvalues, dtype=np.float64)
        except separation_warnings as warning:
            raise UnusableInput(
                "the covariates separate treated rows from controls completely, so there is no "
                "propensity score",
                hint="leave out the covariate that decides the treatment",
            ) from warning
    linear = np.asarray(design @ fitted_model.params, dtype=np.float64)
    names = tuple(compress(covariates.names, has_variation))
    # The covariance is the inverse of the information.
    variances = np.linalg.eigvalsh(fitted_model.normalized_cov_params)
    return PropensityScore(score, linear, names, float(variances[0] / variances[-1]))


def _statsmodels_link(link: str) -> str:
    if link not in LINKS:
        raise UnusableInput(f"there is no link {link!r}", hint=f"choose {', '.join(LINKS)}")
    return LINKS[link]


def orthogonal_columns(matrix: Floats) -> Floats:
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
