"""Augmented inverse probability weighting with cross-fitting.

The rows are cut into folds. Models of the treatment, e_a(x), and of the outcome, μ_a(x), are fitted
without a fold and predict in it. The mean under arm a in the whole population (ATE) is the mean of

    ψ_a = μ_a(x) + 1[A = a] (y − μ_a(x)) / e_a(x),

and in the population of arm g (ATT for the treated, ATC for the controls) the mean over this arm of

    ψ_a = 1[A = g] μ_a(x) + 1[A = a] e_g(x)/e_a(x) (y − μ_a(x)).

It is consistent if one of both models is, and its error needs neither model's error
(Robins, Rotnitzky and Zhao 1994, JASA 89(427); Chernozhukov et al. 2018, The Econometrics Journal
21(1), definition 3.2 and §5.1).
"""

from __future__ import annotations

import copy
import warnings
from itertools import combinations
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching.effects.arm_means import ArmMeans, check_scale, compare
from equipoise_matching.effects.outcome_model import default_model, fit_glm
from equipoise_matching.effects.result import EffectEstimate, EffectEstimates
from equipoise_matching.effects.sample import (
    DesignRows,
    EffectSample,
    OutcomeModel,
    Scale,
    arm_names,
    effect_sample,
)
from equipoise_matching.effects.variance import error_of, with_interval
from equipoise_matching.matching.frames import distinct_texts, matrix_of, python_value
from equipoise_matching.matching.options import Estimand, check_whole_number
from equipoise_matching.matching.units import Floats, Indices, check_length, power_of_two
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require

MEAN_SCALES: tuple[Scale, ...] = ("difference", "risk ratio", "odds ratio", "rate ratio")
"""Scales that compare means."""
MAX_ARMS = 20
"""Largest number of arms; a column with more values is not a treatment."""


def aipw_effect(
    y: ArrayLike,
    treat: ArrayLike,
    X: Any,
    *,
    estimand: Estimand = "ATE",
    scale: Scale = "difference",
    treatment_learner: Any = None,
    outcome_learner: Any = None,
    folds: int = 5,
    min_probability: float = 0.01,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> EffectEstimate:
    """Estimate the effect by augmented inverse probability weighting with cross-fitting.

    Raise `UnusableInput` if the data or an option cannot be used, or a fold has no row of an arm.

    Examples
    --------
    >>> from equipoise_matching import aipw_effect
    >>> import numpy as np
    >>> random = np.random.default_rng(2)
    >>> X = random.normal(size=(1000, 3))
    >>> treat = (random.random(1000) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    >>> y = 2.0 * treat + X.sum(axis=1) + random.normal(size=1000)
    >>> effect = aipw_effect(y, treat, X)
    >>> round(effect.estimate, 1), effect.interval[0] < 2.0 < effect.interval[1]
    (2.1, True)

    Any classifier and regressor of scikit-learn may replace the generalised linear models:
    ``treatment_learner=RandomForestClassifier(random_state=1)``.

    Parameters
    ----------
    y, treat, X
        Shapes (n,), (n,) with 1 for treated rows and 0 for controls, and (n, k).
    estimand
        The effect on the treated (ATT), on the controls (ATC) or on all (ATE).
    scale
        "difference", "risk ratio", "odds ratio" or "rate ratio".
    treatment_learner, outcome_learner
        Objects with ``fit`` and ``predict_proba``, or for numbers ``predict``, which are copied for
        each fold. By default a logistic model of the treatment; of the outcome a linear, logistic
        (0 and 1) or Poisson model (rate ratio) in each arm. A learner that draws random numbers
        needs its own seed.
    folds
        Number of folds, at least 2.
    min_probability
        Smaller probabilities of an arm are replaced by this one; a note counts them.
    clusters
        Shape (n,), groups of dependent rows, which stay in one fold.
    confidence
        Chance with which the interval has the true effect.
    seed
        Seed of the draw of the folds.
    """
    effects = aipw_effects(
        y,
        treat,
        X,
        estimand=estimand,
        scale=scale,
        treatment_learner=treatment_learner,
        outcome_learner=outcome_learner,
        folds=folds,
        min_probability=min_probability,
        clusters=clusters,
        confidence=confidence,
        seed=seed,
    )
    if len(effects) > 1:
        raise UnusableInput(
            "treat has more than two values, so there is more than one effect",
            hint="use aipw_effects, which compares each pair of arms",
        )
    return effects[0]


def aipw_effects(
    y: ArrayLike,
    treat: ArrayLike,
    X: Any,
    *,
    estimand: Estimand = "ATE",
    target: Any = None,
    scale: Scale = "difference",
    treatment_learner: Any = None,
    outcome_learner: Any = None,
    folds: int = 5,
    min_probability: float = 0.01,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> EffectEstimates:
    """Estimate the effect for each pair of arms as `aipw_effect` does, with the same arguments.

    ``target`` is the arm to average over if there are several arms and the estimand is not ATE.

    Examples
    --------
    >>> from equipoise_matching import aipw_effects
    >>> import numpy as np
    >>> random = np.random.default_rng(3)
    >>> X = random.normal(size=(900, 2))
    >>> dose = random.integers(0, 3, 900)
    >>> effects = aipw_effects(X[:, 0] + dose + random.normal(size=900), dose, X)
    >>> [(effect.contrast, round(effect.estimate)) for effect in effects]
    [(('1', '0'), 1), (('2', '0'), 2), (('2', '1'), 1)]
    """
    if scale not in MEAN_SCALES:
        raise UnusableInput(
            f"there is no scale {scale!r}", hint=f"choose one of {', '.join(MEAN_SCALES)}"
        )
    if estimand not in get_args(Estimand):
        raise UnusableInput(f"there is no estimand {estimand!r}", hint="choose ATT, ATC or ATE")
    if not 0.0 < min_probability < 0.5:
        raise UnusableInput(
            f"min_probability is {min_probability!r}", hint="give a number between 0 and 0.5"
        )
    check_whole_number("folds", folds, 2)
    check_whole_number("seed", seed, 0)
    names, matrix = matrix_of(X)
    column = np.asarray(treat)
    if column.ndim != 1:
        raise UnusableInput(
            f"the treatment has shape {column.shape}", hint="give one treatment for each row"
        )
    check_length(len(column), "treat", len(matrix))
    texts, arm = distinct_texts(column, "treat")
    if not 2 <= len(texts) <= MAX_ARMS:
        raise UnusableInput(
            f"treat has {len(texts)} different values", hint=f"give 2 to {MAX_ARMS} arms"
        )
    arms = tuple(
        python_value(column[np.flatnonzero(arm == index)[0]]) for index in range(len(texts))
    )
    arms = (0, 1) if set(arms) == {0, 1} else arms
    rows = DesignRows(arm, arms, np.ones(len(arm)), estimand, None, names, matrix, "")
    sample = effect_sample(y, rows, {"clusters": clusters, "target": target})
    check_scale(sample.outcome, scale)
    means = cross_fitted_means(
        sample,
        scale,
        treatment_learner,
        outcome_learner,
        fold_of_rows(sample.arm, sample.clusters, folds, seed),
        min_probability,
    )
    effects = []
    for first, second in combinations(range(len(arms)), 2):
        contrast = compare(means, scale, second, first, sample.arm_names)
        error = error_of(contrast.influence, sample, 1)
        effects.append(
            with_interval(
                contrast.value,
                error,
                scale,
                confidence,
                estimand=estimand,
                contrast=(arm_names(arms)[second], arm_names(arms)[first]),
                arm_values=(float(means.values[second]), float(means.values[first])),
                method=means.method,
                rows=len(sample),
                clusters=None if sample.clusters is None else int(sample.clusters.max()) + 1,
                notes=means.notes,
            )
        )
    return EffectEstimates(tuple(effects))


def fold_of_rows(arm: Indices, clusters: Indices | None, folds: int, seed: int) -> Indices:
    """Return the fold of each row; arms have nearly equal shares of each fold.

    With clusters, whole clusters are drawn.
    """
    generator = np.random.default_rng(seed)
    fold = np.empty(len(arm), dtype=np.int64)
    if clusters is not None:
        count = int(clusters.max()) + 1
        if count < folds:
            raise UnusableInput(
                f"there are {count} clusters for {folds} folds", hint="give fewer folds"
            )
        return np.asarray((generator.permutation(count) % folds)[clusters])
    for index in range(int(arm.max()) + 1):
        rows = np.flatnonzero(arm == index)
        if len(rows) < folds:
            raise UnusableInput(
                f"an arm has {len(rows)} rows for {folds} folds", hint="give fewer folds"
            )
        fold[rows] = generator.permutation(len(rows)) % folds
    return fold


def cross_fitted_means(
    sample: EffectSample,
    scale: Scale,
    treatment_learner: Any,
    outcome_learner: Any,
    fold: Indices,
    min_probability: float,
) -> ArmMeans:
    """Return the means under each arm, from models that did not see the row."""
    arms, count = len(sample.arm_names), len(sample)
    model = default_model(sample.outcome, scale)
    probability, prediction = np.empty((count, arms)), np.empty((count, arms))
    treatment = treatment_learner if treatment_learner is not None else _ArmModel()
    outcome = outcome_learner if outcome_learner is not None else _OutcomeModel(model)
    columns = _standardised(sample.covariates)
    # Least squares has no overflow after a division by a power of two; other learners get y itself.
    scale_of_outcome = 1.0
    if outcome_learner is None and model == "linear":
        scale_of_outcome = power_of_two(sample.outcome)
    y = sample.outcome / scale_of_outcome
    for index in range(int(fold.max()) + 1):
        is_inside = fold == index
        seen = np.flatnonzero(~is_inside)
        inside = np.flatnonzero(is_inside)
        if len(np.unique(sample.arm[seen])) < arms:
            raise UnusableInput(
                f"without fold {index} there is an arm without rows", hint="give fewer folds"
            )
        fitted = copy.deepcopy(treatment)
        fitted.fit(columns[seen], sample.arm[seen])
        probability[inside] = _checked_predictions(
            fitted.predict_proba(columns[inside]), (len(inside), arms), "treatment_learner"
        )
        for arm in range(arms):
            rows = seen[sample.arm[seen] == arm]
            fitted = copy.deepcopy(outcome)
            fitted.fit(columns[rows], y[rows])
            prediction[inside, arm] = _predicted_mean(fitted, columns[inside])
    clipped = int((probability < min_probability).any(axis=1).sum())
    probability = np.maximum(probability, min_probability)
    is_in_arm = sample.arm[:, None] == np.arange(arms)
    residual = np.where(is_in_arm, y[:, None] - prediction, 0.0)
    # The target's probability given the covariates: 1 for all rows, or that of its arm.
    in_target = sample.target > 0.0
    target_probability = np.ones((count, 1))
    if not in_target.all():
        arm = int(sample.arm[in_target][0])
        target_probability = probability[:, [arm]]
    share = float(in_target.mean())
    values_by_row = in_target[:, None] * prediction + target_probability / probability * residual
    values = values_by_row.mean(axis=0) / share
    influence = (values_by_row - in_target[:, None] * values) / (share * count)
    notes: tuple[str, ...] = ()
    if clipped:
        rows_noun = "row has" if clipped == 1 else "rows have"
        notes = (f"{clipped} {rows_noun} a probability of an arm below {min_probability:g}",)
    method = _method(treatment, outcome, int(fold.max()) + 1)
    return ArmMeans(scale_of_outcome * values, scale_of_outcome * influence, 1, method, notes=notes)


def _method(treatment: Any, outcome: Any, folds: int) -> str:
    return (
        f"augmented inverse probability weighting with {folds}-fold cross-fitting "
        f"({_learner_name(treatment)} for the treatment, {_learner_name(outcome)} for the outcome)"
    )


def _learner_name(learner: Any) -> str:
    name = getattr(learner, "label", None)
    return name if isinstance(name, str) else type(learner).__name__


def _standardised(matrix: Floats) -> Floats:
    largest = np.abs(matrix).max(axis=0)
    columns = matrix / np.where(largest > 0.0, largest, 1.0)
    columns = columns - columns.mean(axis=0)
    spread = columns.std(axis=0)
    return np.asarray(columns / np.where(spread > 1e-12, spread, 1.0))


def _checked_predictions(values: Any, shape: tuple[int, ...], name: str) -> Floats:
    predictions = np.asarray(values, dtype=np.float64)
    if predictions.shape != shape or not np.isfinite(predictions).all():
        raise UnusableInput(
            f"{name} predicts an array of shape {predictions.shape}, or not finite numbers",
            hint=f"give a learner whose predictions have shape {shape}",
        )
    return predictions


def _predicted_mean(fitted: Any, columns: Floats) -> Floats:
    """Return the predicted mean outcome; a classifier of 0 and 1 predicts the chance of 1."""
    classes = getattr(fitted, "classes_", None)
    if classes is None or not hasattr(fitted, "predict_proba"):
        return _checked_predictions(fitted.predict(columns), (len(columns),), "outcome_learner")
    labels = np.asarray(classes, dtype=np.float64)
    shape = (len(columns), len(labels))
    chances = _checked_predictions(fitted.predict_proba(columns), shape, "outcome_learner")
    return np.asarray(chances @ labels)


class _ArmModel:
    """A logistic model of two arms, or a multinomial one of several (statsmodels)."""

    label = "a logistic model"

    def fit(self, columns: Floats, arm: Indices) -> None:
        self.arms = int(arm.max()) + 1
        design = np.column_stack([np.ones(len(columns)), columns])
        self.kept = independent_columns_of(design)
        design = design[:, self.kept]
        if self.arms == 2:
            outcome = arm.astype(np.float64)
            self.coefficients = fit_glm(
                outcome, design, np.ones(len(arm)), "logistic", "the treatment"
            )[:, None]
            return
        self.coefficients = _multinomial_coefficients(arm, design)

    def predict_proba(self, columns: Floats) -> Floats:
        design = np.column_stack([np.ones(len(columns)), columns])[:, self.kept]
        logits = np.column_stack([np.zeros(len(columns)), design @ self.coefficients])
        logits -= logits.max(axis=1, keepdims=True)
        odds = np.exp(logits)
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _multinomial_coefficients(arm: Indices, design: Floats) -> Floats:
    """Return the coefficients of all arms but the first (statsmodels), shape (p, arms − 1)."""
    models = require("statsmodels.api", "models of the treatment")
    exceptions = require("statsmodels.tools.sm_exceptions", "models of the treatment")
    separated = UnusableInput(
        "the covariates separate the arms, so there are no probabilities of treatment",
        hint="leave out the covariate that decides the treatment",
    )
    failures = (exceptions.ModelWarning, np.linalg.LinAlgError, ValueError)
    with warnings.catch_warnings():
        warnings.simplefilter("error", exceptions.ModelWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            fitted = models.MNLogit(arm, design).fit(method="newton", maxiter=100, disp=False)
        except failures as failure:
            raise separated from failure
    coefficients = np.asarray(fitted.params, dtype=np.float64)
    if not np.isfinite(coefficients).all():
        raise separated
    return coefficients


class _OutcomeModel:
    """A generalised linear model of the outcome (statsmodels, or least squares)."""

    def __init__(self, model: OutcomeModel) -> None:
        self.model = model
        self.label = f"a {'Poisson' if model == 'poisson' else model} model"

    def fit(self, columns: Floats, outcome: Floats) -> None:
        design = np.column_stack([np.ones(len(columns)), columns])
        if self.model == "linear" or np.ptp(outcome) == 0.0:
            self.is_linear = True
            self.coefficients = np.linalg.lstsq(design, outcome, rcond=None)[0]
            return
        self.is_linear = False
        self.coefficients = np.zeros(design.shape[1])
        kept = independent_columns_of(design)
        self.coefficients[kept] = fit_glm(
            outcome, design[:, kept], np.ones(len(outcome)), self.model, "the outcome in an arm"
        )

    def predict(self, columns: Floats) -> Floats:
        predictor = np.column_stack([np.ones(len(columns)), columns]) @ self.coefficients
        if self.is_linear:
            return np.asarray(predictor)
        if self.model == "poisson":
            return np.asarray(np.exp(np.minimum(predictor, 700.0)))
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(predictor, -700.0, 700.0))))


def independent_columns_of(design: Floats) -> Indices:
    """Return the columns that do not depend on earlier columns."""
    diagonal = np.abs(np.diag(np.linalg.qr(design, mode="r")))
    return np.flatnonzero(diagonal > 1e-9 * np.linalg.norm(design, axis=0))
