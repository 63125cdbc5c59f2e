"""The robustness value: a hidden factor of this strength removes the estimate."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from equipoise_matching.effects.omitted_factor import robustness_value_of
from equipoise_matching.matching.units import Floats
from equipoise_matching.observation.hidden_factor import Regression, fit_regression, robustness_of

models: Any = importlib.import_module("statsmodels.api")

DRAW = np.random.default_rng(4)
ROWS = 500
X = DRAW.normal(size=(ROWS, 3))
TREATED = DRAW.random(ROWS) < 1.0 / (1.0 + np.exp(-(X[:, 0] + 0.5 * X[:, 1])))
Y = X @ [1.0, 0.2, 0.1] + 0.5 * TREATED + DRAW.normal(size=ROWS)
OWNERS = ("load", "cache", "noise")


def residual(y: object, x: object) -> Floats:
    return np.asarray(models.OLS(y, x).fit().resid)


def hidden_factor(of_treatment: float, of_outcome: float) -> Floats:
    """Return a column with these partial R², which makes the estimate fall."""
    covariates = models.add_constant(X)
    d = residual(TREATED.astype(float), covariates)
    y = residual(Y, np.column_stack([covariates, TREATED]))
    free = residual(DRAW.normal(size=ROWS), np.column_stack([covariates, TREATED, Y]))
    d, y, free = (column / np.linalg.norm(column) for column in (d, y, free))
    # Among what is orthogonal to the treatment, the share of the outcome is of_outcome.
    rest = np.sqrt(of_outcome) * y + np.sqrt(1.0 - of_outcome) * free
    made: Floats = np.sqrt(of_treatment) * d + np.sqrt(1.0 - of_treatment) * rest
    return made


def test_the_estimate_is_that_of_statsmodels() -> None:
    fitted = models.OLS(Y, models.add_constant(np.column_stack([TREATED, X]))).fit()
    assert fit_regression(Y, TREATED, X, OWNERS).estimate == pytest.approx(fitted.params[1])


def test_a_factor_as_strong_as_the_robustness_value_leaves_nothing() -> None:
    value = fit_regression(Y, TREATED, X, OWNERS).robustness
    design = models.add_constant(np.column_stack([TREATED, X, hidden_factor(value, value)]))
    assert models.OLS(Y, design).fit().params[1] == pytest.approx(0.0, abs=1e-9)


def test_the_published_value_of_the_study_of_darfur_is_met() -> None:
    """Cinelli and Hazlett 2020, table 1: t = 4.18, 783 degrees of freedom, 13.9 %."""
    assert robustness_value_of(4.18**2 / 783) == pytest.approx(0.139, abs=5e-4)


def test_a_factor_that_is_the_multiple_of_the_strongest_covariate_leaves_nothing() -> None:
    fitted = fit_regression(Y, TREATED, X, OWNERS)
    assert fitted.strongest_column == "load"
    assert fitted.multiple is not None
    fitted_y = models.OLS(Y, models.add_constant(np.column_stack([TREATED, X]))).fit()
    fitted_d = models.OLS(TREATED.astype(float), models.add_constant(X)).fit()
    r2_y = fitted_y.tvalues[2] ** 2 / (fitted_y.tvalues[2] ** 2 + fitted_y.df_resid)
    r2_d = fitted_d.tvalues[1] ** 2 / (fitted_d.tvalues[1] ** 2 + fitted_d.df_resid)
    k = fitted.multiple
    of_treatment = k * r2_d / (1 - r2_d)
    shared = k * r2_d**2 / ((1 - k * r2_d) * (1 - r2_d))
    eta = (np.sqrt(k) + np.sqrt(shared)) / np.sqrt(1 - shared)
    of_outcome = min(1.0, eta**2 * r2_y / (1 - r2_y))
    design = models.add_constant(
        np.column_stack([TREATED, X, hidden_factor(of_treatment, of_outcome)])
    )
    assert models.OLS(Y, design).fit().params[1] == pytest.approx(0.0, abs=1e-6)


def test_the_contributions_and_the_estimate_add_up_to_the_naive_difference() -> None:
    fitted = fit_regression(Y, TREATED, X, OWNERS)
    naive = Y[TREATED].mean() - Y[~TREATED].mean()
    assert fitted.estimate + sum(fitted.contributions.values()) == pytest.approx(naive)


def test_the_sentence_has_no_exponent() -> None:
    fitted = Regression(0.5, 0.9999, "load", 312.4, {})
    summary = robustness_of(fitted, 0.5).summary
    assert "explained 100 % of the variance" in summary
    assert "mattered 312 times as much as load does" in summary
