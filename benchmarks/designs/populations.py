"""Populations whose effects are known, from which the data sets of the simulations are drawn."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

POPULATION_ROWS = 1_000_000
"""Rows from which the effects of a population are computed."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """``x`` (n, k), ``treat`` (n,), ``y`` (n,), the true ``effect`` (n,) and ``overlap`` (n,).

    ``overlap`` is e(1 − e), with the true probability e of treatment.
    """

    x: Floats
    treat: Indices
    y: Floats
    effect: Floats
    overlap: Floats


Draw = Callable[[np.random.Generator, int], DataSet]


def kang_schafer(generator: np.random.Generator, rows: int, *, transformed: bool) -> DataSet:
    """Kang and Schafer (2007, Statistical Science 22(4)), with no effect.

    With ``transformed``, the covariates are the nonlinear functions that the paper's analyst sees.
    """
    z = generator.normal(size=(rows, 4))
    e = 1.0 / (1.0 + np.exp(z @ (1.0, -0.5, 0.25, 0.1)))
    treat = (generator.random(rows) < e).astype(np.int64)
    y = 210.0 + z @ (27.4, 13.7, 13.7, 13.7) + generator.normal(size=rows)
    x = z
    if transformed:
        x = np.column_stack(
            [
                np.exp(z[:, 0] / 2.0),
                z[:, 1] / (1.0 + np.exp(z[:, 0])) + 10.0,
                (z[:, 0] * z[:, 2] / 25.0 + 0.6) ** 3,
                (z[:, 1] + z[:, 3] + 20.0) ** 2,
            ]
        )
    return DataSet(x, treat, y, np.zeros(rows), e * (1.0 - e))


def kang_schafer_right(generator: np.random.Generator, rows: int) -> DataSet:
    return kang_schafer(generator, rows, transformed=False)


def kang_schafer_wrong(generator: np.random.Generator, rows: int) -> DataSet:
    return kang_schafer(generator, rows, transformed=True)


def heterogeneous(generator: np.random.Generator, rows: int) -> DataSet:
    """Five covariates; the effect 1 + x₀ + x₁/2 is larger for those who are treated more often."""
    x = generator.normal(size=(rows, 5))
    e = 1.0 / (1.0 + np.exp(0.8 - 0.6 * x[:, 0] - 0.4 * x[:, 1] + 0.2 * x[:, 2]))
    treat = (generator.random(rows) < e).astype(np.int64)
    effect = 1.0 + x[:, 0] + 0.5 * x[:, 1]
    y = x[:, 0] + 0.5 * x[:, 1] ** 2 + 0.5 * x[:, 3] + effect * treat
    return DataSet(x, treat, y + generator.normal(size=rows), effect, e * (1.0 - e))


@dataclass(frozen=True, slots=True)
class _Survey:
    """Rows of the NSW experiment and of the CPS, with a fitted outcome and treatment."""

    x: Floats
    logit: Floats
    mean: Floats
    residual: Floats


COVARIATES = ("age", "educ", "black", "hisp", "married", "nodegr", "re74", "re75")
LALONDE_EFFECT = 1794.0
"""Dollars that training adds for everyone: the published difference of the experiment."""


@cache
def _survey() -> _Survey:
    import pandas

    models: Any = importlib.import_module("statsmodels.api")

    from equipoise_matching.matching.datasets import cps_controls, lalonde

    experiment, cps = lalonde(), cps_controls()
    # Earnings up to 10,000 dollars before training: the people whom the programme could reach.
    cps = cps[(cps["re74"] < 10_000) & (cps["re75"] < 10_000)]
    frame = pandas.concat([experiment[experiment["treat"] == 1], cps], ignore_index=True)
    x = frame[list(COVARIATES)].to_numpy(np.float64)
    scaled = models.add_constant((x - x.mean(axis=0)) / x.std(axis=0))
    fitted = models.GLM(
        frame["treat"].to_numpy(np.float64), scaled, family=models.families.Binomial()
    ).fit()
    logit = scaled @ fitted.params
    y = frame["re78"].to_numpy(np.float64)
    control = frame["treat"].to_numpy() == 0
    squares = np.column_stack([scaled, scaled[:, [1, 7, 8]] ** 2])
    slopes = np.linalg.lstsq(squares[control], y[control], rcond=None)[0]
    mean = squares @ slopes
    # The logits are halved and shifted, so that a quarter is treated and both arms overlap.
    return _Survey(x, 0.5 * (logit - logit.mean()) - 1.3, mean, (y - mean)[control])


def lalonde_like(generator: np.random.Generator, rows: int) -> DataSet:
    """People of the NSW and the CPS, drawn again; treatment and earnings follow fitted models."""
    survey = _survey()
    chosen = generator.integers(0, len(survey.x), rows)
    e = 1.0 / (1.0 + np.exp(-survey.logit[chosen]))
    treat = (generator.random(rows) < e).astype(np.int64)
    noise = survey.residual[generator.integers(0, len(survey.residual), rows)]
    y = survey.mean[chosen] + noise + LALONDE_EFFECT * treat
    return DataSet(survey.x[chosen], treat, y, np.full(rows, LALONDE_EFFECT), e * (1.0 - e))


POPULATIONS: dict[str, Draw] = {
    "kang-schafer": kang_schafer_right,
    "kang-schafer-transformed": kang_schafer_wrong,
    "heterogeneous": heterogeneous,
    "lalonde-like": lalonde_like,
}


@cache
def true_effect(population: str, estimand: str) -> float:
    """Return the effect of an estimand in a population."""
    data = POPULATIONS[population](np.random.default_rng(1), POPULATION_ROWS)
    weights = {
        "ATE": np.ones(len(data.treat)),
        "ATT": data.treat.astype(np.float64),
        "ATC": 1.0 - data.treat,
        "ATO": data.overlap,
    }[estimand]
    return float(np.average(data.effect, weights=weights))
