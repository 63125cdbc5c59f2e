"""Overlap: how likely each row was to have the candidate, and which rows are beyond comparison.

The odds of the candidate come from a logistic regression on the covariates and on the terms that
explain who has which version (``terms``). A row of the candidate at odds of 4 shares each baseline
row like it with three others; beyond, a few baseline rows would carry the answer. Such rows take no
part (Crump, Hotz, Imbens and Mitnik 2009, Biometrika 96(1), for the mean over all rows).
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from equipoise_matching.matching.units import Floats, Truths
from equipoise_matching.observation.covariates import Covariates
from equipoise_matching.observation.terms import (
    Dictionary,
    Term,
    dictionary_of,
    select_terms,
    term_budget,
)

MAX_ODDS = 4.0
"""Largest odds of the candidate at which its rows are compared."""
MAX_RELATIVE_ODDS = 6.0
"""The same relative to the odds in the whole log, where the candidate has most rows."""
MIN_KEPT = 0.1
"""Share of the candidate's rows that must remain; else no row is left out for its odds."""
_RIDGE = 1e-4
_MAX_STEPS = 30
_MAX_LOGIT = 30.0
_CLOSE = 1e-9


class TreatmentModel(Struct, frozen=True):
    """Who has which version: the terms that explain it, and the logit of each row (rows,).

    ``dictionary`` has every candidate term, and ``terms`` are those that entered, the covariates
    first. ``outside`` (rows,) marks the candidate's rows that are left out for their odds.
    """

    dictionary: Dictionary
    terms: tuple[Term, ...]
    logit: Floats
    outside: Truths

    @property
    def curved(self) -> tuple[Term, ...]:
        """The terms in addition to the covariates themselves."""
        return self.terms[self.dictionary.lines :]


def fit_treatment(covariates: Covariates, treated: Truths, seed: int) -> TreatmentModel:
    """Choose the terms that explain who has the candidate (rows,), and fit the odds."""
    dictionary = dictionary_of(covariates, seed)
    everyone = np.arange(len(treated))
    candidate = treated.astype(np.float64)
    terms = select_terms(dictionary, candidate, everyone, term_budget(treated))
    logit = logistic(dictionary.values(terms), candidate)
    ratio = float(np.count_nonzero(treated)) / float(np.count_nonzero(~treated))
    limit = math.log(max(MAX_ODDS, MAX_RELATIVE_ODDS * ratio))
    outside = treated & (logit > limit)
    if np.count_nonzero(outside) > (1.0 - MIN_KEPT) * np.count_nonzero(treated):
        # Without overlap the balance shows which rows are missing.
        outside = np.zeros_like(outside)
    return TreatmentModel(dictionary, terms, logit, outside)


def logistic(matrix: Floats, target: Floats) -> Floats:
    """Return the logit of a logistic regression with a slight ridge for each row, shape (rows,).

    The ridge keeps the odds finite where the columns (rows, columns) separate the versions.
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
        weights = np.maximum(chance * (1.0 - chance), _CLOSE)
        hessian = (design * weights[:, None]).T @ design + penalty
        gradient = design.T @ (target - chance) - penalty @ slopes
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        slopes += step / max(1.0, float(np.abs(step).max()))
        if float(np.abs(step).max()) < _CLOSE:
            break
    return np.asarray(np.clip(design @ slopes, -_MAX_LOGIT, _MAX_LOGIT), dtype=np.float64)
