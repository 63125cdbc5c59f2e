"""G-computation: predict the outcome of the target population under each arm, and average it.

Each arm a has a regression of the outcome on centred covariates x, weighted by the weights w of the
design. This is one regression on treatment, covariates and their interactions. With predictions
μ_a(x) and the target's weights t (Σ t = 1), the mean under arm a is

    m_a = Σ_i t_i μ_a(x_i).

Without covariates m_a is the weighted mean of the arm. The influence of row i on m_a is

    φ_i = 1[A_i = a] w_i (y_i − μ_a(x_i)) x_iᵀ B_a⁻¹ g_a + t_i (μ_a(x_i) − m_a),

where B_a = Σ_{A_i = a} w_i v_i x_i x_iᵀ, g_a = Σ t_i v_i x_i, and v is the derivative of the
inverse link. The second part counts that the covariates of the population are a sample; it is left
out for the effect in this sample, as the delta method of R's packages does. If the weights come
from a model with parameters γ, φ_i also has the part of γ (``weight_model``).

The regression with centred covariates and interactions: Lin 2013 (Annals of Applied Statistics
7(1)), Negi and Wooldridge 2021 (Econometric Reviews 40(5)). The recommendation after matching:
Greifer and Stuart 2021 (Epidemiologic Reviews 43(1)), and the vignette of MatchIt.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from equipoise_matching.effects.arm_means import ArmMeans
from equipoise_matching.effects.sample import Correction, EffectSample, OutcomeModel, Variance
from equipoise_matching.matching.units import Floats, power_of_two
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require
from equipoise_matching.shared.numbers import listed

MAX_LEVERAGE = 0.9
"""Largest leverage that the correction HC3 uses in place of a larger leverage."""
MAX_LINEAR_PREDICTOR = 30.0
"""Largest logit of a fitted risk; a larger one means that a covariate separates the outcomes."""
_DEPENDENT = 1e-7
"""Norm below which a column depends on earlier columns, as a share of its own norm."""
MODEL_NAMES = {"linear": "linear", "logistic": "logistic", "poisson": "Poisson"}


class ArmFit(Struct, frozen=True):
    """The regression of an arm with p coefficients."""

    coefficients: Floats
    residual: Floats
    """Outcome minus prediction of each row of the arm."""
    slope: Floats
    """Derivative of the inverse link at each row of the arm."""


def model_means(
    sample: EffectSample,
    model: OutcomeModel,
    variance: Variance = "population",
    correction: Correction | None = None,
) -> ArmMeans:
    """Return the means under each arm by g-computation.

    Raise `UnusableInput` if an arm has too few rows for the covariates, or a covariate separates
    the rows with and without an event.
    """
    scale = power_of_two(sample.outcome) if model == "linear" else 1.0
    outcome = sample.outcome / scale
    columns, left_out = independent_covariates(sample)
    kept_names = [name for name in sample.names if name not in left_out]
    design = np.column_stack([np.ones(len(sample)), columns])
    if not columns.shape[1]:
        # All models fit the weighted mean, and only the linear one exists if the mean is 0.
        model = "linear"
    if correction is None:
        correction = "HC3" if sample.clusters is None else "HC1"
    arms = len(sample.arm_names)
    values, influence = np.zeros(arms), np.zeros((len(sample), arms))
    largest_leverage = 0.0
    for index, name in enumerate(sample.arm_names):
        rows = np.flatnonzero(sample.arm == index)
        weights = sample.weights[rows] / float(sample.weights[rows].mean())
        fit = fit_arm(outcome[rows], design[rows], weights, model, name, kept_names)
        predictor = design @ fit.coefficients
        prediction, slope = _inverse_link(predictor, model)
        values[index] = float(sample.target @ prediction)
        orthogonal, triangle = np.linalg.qr(design[rows] * np.sqrt(weights * fit.slope)[:, None])
        gradient = (sample.target * slope) @ design
        direction = np.linalg.solve(triangle, np.linalg.solve(triangle.T, gradient))
        residual = fit.residual
        leverage = (orthogonal**2).sum(axis=1)
        largest_leverage = max(largest_leverage, float(leverage.max()))
        if correction == "HC3":
            residual = residual / (1.0 - np.minimum(leverage, MAX_LEVERAGE))
        influence[rows, index] = weights * residual * (design[rows] @ direction)
        deviation = prediction - values[index]
        if variance == "population":
            influence[:, index] += sample.target * deviation
        if sample.weight_model is not None:
            per_weight = np.zeros(len(sample))
            per_weight[rows] = fit.residual * (design[rows] @ direction)
            per_weight[rows] /= float(sample.weights[rows].mean())
            if sample.target_is_weighted:
                per_weight += deviation / float(sample.weights.sum())
            gradient_of_parameters = sample.weight_model.derivatives.T @ per_weight
            influence[:, index] += sample.weight_model.shift(gradient_of_parameters)
    notes: tuple[str, ...] = ()
    if left_out:
        notes = (f"not adjusted for {listed(left_out)}, which an arm's other covariates determine",)
    return ArmMeans(
        values * scale,
        influence * scale,
        arms * design.shape[1],
        _method(model, columns.shape[1]),
        correction,
        largest_leverage,
        notes,
    )


def _method(model: OutcomeModel, covariates: int) -> str:
    if not covariates:
        return "the weighted means of the arms"
    noun = "covariate" if covariates == 1 else "covariates"
    return (
        f"g-computation with a weighted {MODEL_NAMES[model]} model of treatment, {covariates} "
        f"centred {noun} and their interactions"
    )


def independent_covariates(sample: EffectSample) -> tuple[Floats, tuple[str, ...]]:
    """Return the standardised covariates without those that depend on others in an arm.

    The second value names the covariates that were left out. The mean and the spread are those of
    the target population.
    """
    matrix = sample.covariates
    if not matrix.shape[1]:
        return matrix, ()
    largest = np.abs(matrix).max(axis=0)
    columns = matrix / np.where(largest > 0.0, largest, 1.0)
    columns = columns - sample.target @ columns
    spread = columns.std(axis=0)
    columns = columns / np.where(spread > 1e-12, spread, 1.0)
    kept = np.arange(matrix.shape[1])
    while True:
        dependent = np.zeros(len(kept), dtype=np.bool_)
        for index in range(len(sample.arm_names)):
            rows = np.flatnonzero(sample.arm == index)
            dependent |= _dependent_columns(columns[np.ix_(rows, kept)])
        if not dependent.any():
            break
        kept = kept[~dependent]
    left_out = np.setdiff1d(np.arange(matrix.shape[1]), kept)
    smallest = int(np.bincount(sample.arm, minlength=len(sample.arm_names)).min())
    if len(kept) and smallest <= len(kept) + 1:
        raise UnusableInput(
            f"an arm has {smallest} rows, which are too few for {len(kept)} covariates",
            hint="give fewer covariates, or covariates=None for the weighted means",
        )
    return columns[:, kept], tuple(sample.names[index] for index in left_out)


def _dependent_columns(columns: Floats) -> Any:
    """Return whether each column depends on the constant and the columns before it."""
    if len(columns) <= columns.shape[1] + 1:
        return np.zeros(columns.shape[1], dtype=np.bool_)
    design = np.column_stack([np.ones(len(columns)), columns])
    diagonal = np.abs(np.diag(np.linalg.qr(design, mode="r")))
    return (diagonal <= _DEPENDENT * np.linalg.norm(design, axis=0))[1:]


def fit_arm(
    outcome: Floats,
    design: Floats,
    weights: Floats,
    model: OutcomeModel,
    arm_name: str,
    names: Sequence[str],
) -> ArmFit:
    """Fit the weighted regression of an arm; the links are canonical."""
    if model == "linear":
        roots = np.sqrt(weights)
        coefficients = np.asarray(
            np.linalg.lstsq(design * roots[:, None], outcome * roots, rcond=None)[0],
            dtype=np.float64,
        )
        return ArmFit(coefficients, outcome - design @ coefficients, np.ones(len(outcome)))
    place = f"the outcome among the rows of {arm_name}"
    coefficients = fit_glm(outcome, design, weights, model, place, names)
    prediction, slope = _inverse_link(design @ coefficients, model)
    return ArmFit(coefficients, outcome - prediction, slope)


def fit_glm(
    outcome: Floats,
    design: Floats,
    weights: Floats,
    model: OutcomeModel,
    place: str,
    names: Sequence[str] = (),
) -> Floats:
    """Return the coefficients of a weighted logistic or Poisson regression (statsmodels).

    Raise `UnusableInput` if a covariate separates the outcomes, so that there are no finite
    coefficients.
    """
    models = require("statsmodels.api", "outcome models")
    exceptions = require("statsmodels.tools.sm_exceptions", "outcome models")
    family = models.families.Binomial() if model == "logistic" else models.families.Poisson()
    if model == "logistic" and not ((outcome >= 0.0) & (outcome <= 1.0)).all():
        raise UnusableInput(
            "a logistic model needs an outcome of 0 and 1", hint='give model="linear"'
        )
    if model == "poisson" and (outcome < 0.0).any():
        raise UnusableInput(
            "a Poisson model needs an outcome of 0 or more", hint='give model="linear"'
        )
    if np.ptp(outcome) == 0.0 and (model == "logistic" or outcome[0] == 0.0):
        raise UnusableInput(
            f"{place} is always {outcome[0]:g}, so there is no {MODEL_NAMES[model]} model",
            hint='give covariates=None for the weighted means, or model="linear"',
        )
    glm = models.GLM(outcome, design, family=family, var_weights=weights)
    failures = (exceptions.ModelWarning, np.linalg.LinAlgError, ValueError)
    with warnings.catch_warnings():
        warnings.simplefilter("error", exceptions.ModelWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            fitted = glm.fit(maxiter=100, tol=1e-9, tol_criterion="params")
        except failures as failure:
            raise _separation(glm, place, names) from failure
    coefficients = np.asarray(fitted.params, dtype=np.float64)
    if (
        not np.isfinite(coefficients).all()
        or np.abs(design @ coefficients).max() > MAX_LINEAR_PREDICTOR
    ):
        raise _separation(glm, place, names)
    return coefficients


def _separation(glm: Any, place: str, names: Sequence[str]) -> UnusableInput:
    """Return the error; the covariate is the one whose coefficient grows fastest."""
    subject = "the covariates separate"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            coefficients = np.abs(np.asarray(glm.fit(maxiter=15).params)[1:])
        except (np.linalg.LinAlgError, ValueError):
            coefficients = np.zeros(0)
    if len(coefficients) == len(names) > 0 and np.isfinite(coefficients).all():
        subject = f"{names[int(coefficients.argmax())]} separates"
    return UnusableInput(
        f"{subject} the values of {place}, so there is no finite slope",
        hint='give model="linear", or covariates= without it',
    )


def _inverse_link(predictor: Floats, model: OutcomeModel) -> tuple[Floats, Floats]:
    """Return the prediction and its derivative with respect to the linear predictor."""
    if model == "linear":
        return predictor, np.ones(len(predictor))
    if model == "poisson":
        mean = np.exp(np.minimum(predictor, 700.0))
        return mean, mean
    risk = np.asarray(1.0 / (1.0 + np.exp(-np.clip(predictor, -700.0, 700.0))))
    return risk, risk * (1.0 - risk)


def default_model(outcome: Floats, scale: str) -> OutcomeModel:
    """Return the model of an outcome: logistic for 0 and 1, Poisson for a rate ratio."""
    if scale == "rate ratio":
        return "poisson"
    return "logistic" if np.isin(outcome, (0.0, 1.0)).all() else "linear"
