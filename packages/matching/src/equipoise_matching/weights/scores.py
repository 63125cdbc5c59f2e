"""Propensity scores: the probability of each arm for each row, by a regression or a classifier."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise_matching.designs.units import DesignUnits, design_units
from equipoise_matching.matching.frames import Covariates
from equipoise_matching.matching.options import check_whole_number
from equipoise_matching.matching.propensity import LINKS, orthogonal_columns, score_of
from equipoise_matching.matching.units import (
    Floats,
    Indices,
    check_length,
    refuse_non_finite,
    refuse_rows,
    to_floats,
)
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require

DEFAULT_FOLDS = 5
MIN_INFORMATION_RATIO = 1e-8
"""Ratio of the eigenvalues of the information below which some rows have scores of 0 or 1."""
SUM_TOLERANCE = 1e-5
"""Distance from 1 that a row's sum of probabilities may have: classifiers compute in 32 bits."""
_SEPARATION_HINT = "leave out the covariate that decides the treatment, or give fewer covariates"


@dataclass(frozen=True, slots=True, eq=False)
class TreatmentScores:
    """The probability of each arm for each of n rows.

    Parameters
    ----------
    arms
        The values of the treatment in ascending order.
    arm
        Shape (n,), the position in ``arms`` of each row's treatment.
    probabilities
        Shape (n, arms); each row has the sum 1.
    model
        Name of the model.
    clipped_rows
        Number of rows whose probabilities ``clip`` changed.
    """

    arms: tuple[Any, ...]
    arm: Indices
    probabilities: Floats
    model: str
    clipped_rows: int = 0

    @property
    def own_probabilities(self) -> Floats:
        """Probability of the arm in which each row is, shape (n,)."""
        return self.probabilities[np.arange(len(self.arm)), self.arm]


def treatment_scores(
    treat: Any,
    X: Any,
    *,
    model: Any = "logit",
    folds: int | None = None,
    seed: int = 0,
    clip: float | None = None,
) -> TreatmentScores:
    """Fit the probability of each arm given the covariates.

    Raise `UnusableInput` for rows that cannot be used, an unknown model, covariates that separate
    the arms, an arm with fewer rows than folds, and invalid probabilities of a classifier.

    Parameters
    ----------
    treat
        Shape (n,): 0 and 1, or the labels of several arms.
    X
        Shape (n, k): a matrix or a data frame of covariates.
    model
        A link of a binomial regression: ``"logit"``, ``"probit"`` or ``"cloglog"``; ``"logit"``
        with several arms is the multinomial logit. Or a classifier with the methods ``fit`` and
        ``predict_proba``, such as scikit-learn's. The classifier is copied, not changed.
    folds
        Number of folds for a classifier: the scores of a fold come from a fit on the other folds
        (cross-fitting; Chernozhukov et al. 2018, Econometrics Journal 21(1)). By default 5; 1 fits
        and predicts on all rows, which overfits.
    seed
        Seed of the folds, and of a classifier whose ``random_state`` is not set.
    clip
        Smallest allowed probability. Smaller ones are raised to it, and the others of the row
        shrink to the sum 1. The result counts the rows; by default no score is changed.

    Examples
    --------
    >>> from equipoise_matching import treatment_scores
    >>> import numpy as np
    >>> random = np.random.default_rng(1)
    >>> X = random.normal(size=(60, 2))
    >>> treat = np.where(X[:, 0] + random.normal(size=60) > 0, "new", "old")
    >>> scores = treatment_scores(treat, X)
    >>> scores.arms
    ('new', 'old')
    >>> scores.probabilities[:2].round(3).tolist()
    [[0.647, 0.353], [0.454, 0.546]]
    """
    units = design_units(treat, X, several_arms=True)
    if isinstance(model, str):
        if folds is not None:
            raise UnusableInput(
                f"folds are for a classifier, not for the model {model!r}",
                hint="leave out folds, or give a classifier as model=",
            )
        probabilities, name = _regression_probabilities(units, model), model
    else:
        count = DEFAULT_FOLDS if folds is None else folds
        probabilities = _classifier_probabilities(units, model, count, seed)
        name = f"{type(model).__name__} ({count} fold{'s' if count > 1 else ''})"
    probabilities, clipped = _clip_probabilities(probabilities, clip)
    return TreatmentScores(units.arms, units.arm, probabilities, name, clipped)


def scores_for(units: DesignUnits, scores: Any) -> TreatmentScores:
    """Return the scores of a design's rows from `TreatmentScores` or from probabilities.

    ``None`` fits the logit. Probabilities have shape (n,), of being treated, or (n, arms). Raise
    `UnusableInput` for scores of other rows and for invalid probabilities.
    """
    if scores is None:
        return TreatmentScores(
            units.arms, units.arm, _regression_probabilities(units, "logit"), "logit"
        )
    if isinstance(scores, TreatmentScores):
        if scores.arms != units.arms or not np.array_equal(scores.arm, units.arm):
            raise UnusableInput(
                "the scores were fitted to another treatment",
                hint="give treatment_scores the same rows as this function",
            )
        return scores
    array = to_floats(scores, "scores")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 1 and len(units.arms) == 2:
        array = np.column_stack([1.0 - array, array])
    check_length(len(array), "scores", len(units))
    probabilities = _checked_probabilities(array, len(units.arms), "scores")
    return TreatmentScores(units.arms, units.arm, probabilities, "given")


def score_predictors(units: DesignUnits) -> Floats:
    """Return a constant and orthogonal columns with the same scores as the covariates."""
    has_variation = np.ptp(units.matrix, axis=0) > 0.0
    columns = orthogonal_columns(units.matrix[:, has_variation])
    return np.column_stack([np.ones(len(units)), columns])


def _checked_probabilities(array: Floats, arms: int, name: str) -> Floats:
    """Return finite probabilities, shape (n, arms), with sums of exactly 1 to rounding."""
    if array.ndim != 2 or array.shape[1] != arms:
        raise UnusableInput(
            f"{name} has shape {array.shape}, but there are {arms} arms",
            hint="give one probability for each row and arm, or for two arms that of treatment",
        )
    for column in array.T:
        refuse_non_finite(column, name)
    hint = "give probabilities, each from 0 to 1, whose sum in a row is 1"
    is_outside = np.asarray(((array < 0) | (array > 1)).any(axis=1))
    refuse_rows(is_outside, name, "is not between 0 and 1", hint)
    sums = array.sum(axis=1)
    refuse_rows(np.abs(sums - 1) > SUM_TOLERANCE, name, "does not have the sum 1", hint)
    return np.asarray(array / sums[:, np.newaxis])


def _regression_probabilities(units: DesignUnits, link: str) -> Floats:
    if link not in LINKS:
        raise UnusableInput(
            f"there is no model {link!r}",
            hint=f"choose {', '.join(LINKS)}, or give a classifier with fit and predict_proba",
        )
    if len(units.arms) == 2:
        score = score_of(Covariates(units.names, units.matrix, units.treated), link)  # type: ignore[arg-type]
        probabilities = np.column_stack([1.0 - score.score, score.score])
        ratio = score.information_ratio
    else:
        if link != "logit":
            raise UnusableInput(
                f"the model {link!r} is for two arms, but there are {len(units.arms)}",
                hint="use model='logit', the multinomial logit, or a classifier",
            )
        probabilities, ratio = _multinomial_logit(units)
    if not ratio > MIN_INFORMATION_RATIO:
        raise UnusableInput(
            "the covariates separate some rows of one arm from another arm, so their scores are 0 "
            "or 1: there is no overlap",
            hint=_SEPARATION_HINT,
        )
    return probabilities


def _multinomial_logit(units: DesignUnits) -> tuple[Floats, float]:
    """Return the probabilities, and the ratio of the extreme eigenvalues of the information."""
    models = require("statsmodels.api", "propensity scores")
    exceptions = require("statsmodels.tools.sm_exceptions", "propensity scores")
    model = models.MNLogit(units.arm, score_predictors(units))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # A fit that did not converge is refused below.
        warnings.simplefilter("ignore")
        try:
            fitted = model.fit(method="newton", maxiter=100, disp=0)
            information = -np.asarray(model.hessian(fitted.params))
            has_converged = fitted.mle_retvals["converged"] and np.isfinite(information).all()
        except (np.linalg.LinAlgError, exceptions.PerfectSeparationError):
            has_converged = False
    if not has_converged:
        raise UnusableInput(
            "the covariates separate an arm from the others, so there is no propensity score",
            hint=_SEPARATION_HINT,
        )
    eigenvalues = np.linalg.eigvalsh(information)
    probabilities = np.asarray(fitted.predict(), dtype=np.float64)
    return probabilities, float(eigenvalues[0] / eigenvalues[-1])


def _classifier_probabilities(units: DesignUnits, model: Any, folds: int, seed: int) -> Floats:
    """Return the cross-fitted probabilities of a classifier, shape (n, arms)."""
    name = type(model).__name__
    for method in ("fit", "predict_proba"):
        if not callable(getattr(model, method, None)):
            raise UnusableInput(
                f"the model {name} has no method {method}",
                hint=f"choose {', '.join(LINKS)}, or give a classifier with fit and predict_proba",
            )
    check_whole_number("folds", folds, 1)
    check_whole_number("seed", seed, 0)
    counts = np.bincount(units.arm)
    if counts.min() < folds:
        arm = int(counts.argmin())
        raise UnusableInput(
            f"arm {units.arm_names[arm]} has {counts[arm]} rows, fewer than the {folds} folds",
            hint=f"give folds={counts[arm]} or less",
        )
    fold_of_row = _stratified_folds(units.arm, folds, np.random.default_rng(seed))
    probabilities = np.empty((len(units), len(units.arms)))
    for fold in range(folds):
        is_held_out = fold_of_row == fold
        is_fitted = ~is_held_out if folds > 1 else is_held_out
        fitted = _seeded_copy(model, seed)
        fitted.fit(units.matrix[is_fitted], units.arm[is_fitted])
        predicted = to_floats(fitted.predict_proba(units.matrix[is_held_out]), f"scores of {name}")
        probabilities[is_held_out] = _checked_probabilities(
            predicted, len(units.arms), f"scores of {name}"
        )
    return probabilities


def _stratified_folds(arm: Indices, folds: int, random: np.random.Generator) -> Indices:
    """Return the fold of each row; each arm is spread over the folds as evenly as possible."""
    fold_of_row = np.empty(len(arm), dtype=np.int64)
    dealt = 0
    for index in range(int(arm.max()) + 1):
        rows = random.permutation(np.flatnonzero(arm == index))
        fold_of_row[rows] = (dealt + np.arange(len(rows))) % folds
        dealt += len(rows)
    return fold_of_row


def _seeded_copy(model: Any, seed: int) -> Any:
    """Return a copy of a classifier whose random numbers depend on the seed alone."""
    copied = copy.deepcopy(model)
    if callable(getattr(copied, "get_params", None)):
        unseeded = {
            name: seed % 2**32
            for name, value in copied.get_params(deep=True).items()
            if value is None and name.rpartition("__")[2] == "random_state"
        }
        if unseeded:
            copied.set_params(**unseeded)
    return copied


def _clip_probabilities(probabilities: Floats, clip: float | None) -> tuple[Floats, int]:
    """Return probabilities of at least ``clip``, and the number of rows that changed."""
    if clip is None:
        return probabilities, 0
    arms = probabilities.shape[1]
    if not (isinstance(clip, int | float | np.number) and 0 < clip < 1 / arms):
        raise UnusableInput(
            f"clip is {clip!r}",
            hint=f"give a probability above 0 and below 1/{arms}, such as 0.01",
        )
    is_low = (probabilities < clip).any(axis=1)
    excess = np.maximum(probabilities[is_low] - clip, 0.0)
    clipped = probabilities.copy()
    clipped[is_low] = clip + excess * ((1 - arms * clip) / excess.sum(axis=1, keepdims=True))
    return clipped, int(is_low.sum())
