"""Overlap: how likely each row was to have the candidate, and which rows cannot be compared.

The treated rows are the rows of the candidate. The odds of the candidate come from a logistic
regression on the covariates and the chosen terms (``terms``). Where the odds are 4, the log has
four times as many candidate rows as similar baseline rows. If the odds are higher, few baseline
rows would decide the estimate, so the candidate row is left out (similar to Crump, Hotz, Imbens and
Mitnik 2009, Biometrika 96(1)).
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from equipoise_matching.matching.units import Floats, Truths
from equipoise_matching.observation.covariates import Covariates
from equipoise_matching.observation.terms import (
    Term,
    TermDictionary,
    select_terms,
    term_budget,
    term_dictionary_of,
)

MAX_ODDS = 4.0
"""Maximum odds of a candidate row that is compared."""
MAX_RELATIVE_ODDS = 6.0
"""Maximum odds as a multiple of the odds among all rows; used if larger than ``MAX_ODDS``."""
MIN_KEPT_SHARE = 0.1
"""Share of candidate rows that must remain; if fewer remain, no row is left out."""
_RIDGE = 1e-4
"""Ridge penalty of each squared slope, for each row."""
_MAX_STEPS = 30
"""Maximum number of Newton's steps."""
_MAX_LOGIT = 30.0
"""Largest size of a logit (logarithm of the odds), so that no predicted chance is 0 or 1."""
_MIN_VARIANCE = 1e-9
"""Smallest variance p(1 − p) of a row in Newton's step, at the predicted chance p."""
_TOLERANCE = 1e-9
"""Largest change of a slope in the last Newton step."""


class TreatmentModel(Struct, frozen=True):
    """Model that predicts which rows have the candidate."""

    dictionary: TermDictionary
    """All terms among which the model could choose."""
    terms: tuple[Term, ...]
    """Terms of the model, the covariates first."""
    logit: Floats
    """Shape (rows,): logarithm of the odds that a row has the candidate."""
    is_left_out: Truths
    """Shape (rows,): whether a row of the candidate is left out because its odds are too high."""

    @property
    def added_terms(self) -> tuple[Term, ...]:
        """Terms of the model besides the covariates: their curves, steps and products."""
        return self.terms[self.dictionary.covariate_count :]


def fit_treatment(covariates: Covariates, treated: Truths, seed: int) -> TreatmentModel:
    """Choose the terms that predict which rows have the candidate, and fit the odds."""
    dictionary = term_dictionary_of(covariates, seed)
    all_rows = np.arange(len(treated))
    target = treated.astype(np.float64)
    terms = select_terms(dictionary, target, all_rows, term_budget(treated))
    logit = fit_logit(dictionary.values(terms), target)
    odds = float(np.count_nonzero(treated)) / float(np.count_nonzero(~treated))
    max_logit = math.log(max(MAX_ODDS, MAX_RELATIVE_ODDS * odds))
    is_left_out = treated & (logit > max_logit)
    if np.count_nonzero(is_left_out) > (1.0 - MIN_KEPT_SHARE) * np.count_nonzero(treated):
        # Both versions have hardly any similar rows. The balance of all rows then shows why.
        is_left_out = np.zeros_like(is_left_out)
    return TreatmentModel(dictionary, terms, logit, is_left_out)


def fit_logit(matrix: Floats, target: Floats) -> Floats:
    """Fit a logistic regression of the target (rows,); return the logit of each row (rows,).

    A small ridge penalty keeps the odds finite if the matrix (rows, columns) predicts the target
    without an error.
    """
    rows, count = matrix.shape
    if not count:
        return np.full(rows, math.log(float(target.mean()) / (1.0 - float(target.mean()))))
    spread = matrix.std(axis=0)
    scaled = (matrix - matrix.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    design = np.column_stack([np.ones(rows), scaled])
    penalty = np.diag([0.0, *[_RIDGE * rows] * count])
    slopes = np.zeros(count + 1)
    for _ in range(_MAX_STEPS):
        logit = np.clip(design @ slopes, -_MAX_LOGIT, _MAX_LOGIT)
        chance = 1.0 / (1.0 + np.exp(-logit))
        weights = np.maximum(chance * (1.0 - chance), _MIN_VARIANCE)
        hessian = (design * weights[:, None]).T @ design + penalty
        gradient = design.T @ (target - chance) - penalty @ slopes
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        slopes += step / max(1.0, float(np.abs(step).max()))
        if float(np.abs(step).max()) < _TOLERANCE:
            break
    return np.asarray(np.clip(design @ slopes, -_MAX_LOGIT, _MAX_LOGIT), dtype=np.float64)
