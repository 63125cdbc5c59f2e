"""Intervals after a design contain the effect of the population at their level."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from equipoise_matching.effects.estimate import effect_of
from equipoise_matching.effects.result import EffectEstimate
from equipoise_matching.effects.sample import DesignRows
from equipoise_matching.effects.weight_model import logistic_weight_model

DRAWS = 200
WITHIN = 4 * math.sqrt(0.95 * 0.05 / DRAWS)
"""Four standard errors of a share of 95 % among the draws."""
EFFECT = 1.0


NODES, MASSES = np.polynomial.hermite_e.hermegauss(201)
_CHANCES = MASSES / (1.0 + np.exp(-0.8 * NODES))
MEAN_OF_TREATED = float((NODES * _CHANCES).sum() / _CHANCES.sum())
"""Mean of x among the treated of `weighted`: E[x e(x)]/E[e(x)] by Gauss-Hermite quadrature."""


def covers(effect: EffectEstimate, truth: float = EFFECT) -> bool:
    return effect.interval[0] < truth < effect.interval[1]


def pairs(generator: Any) -> tuple[Any, DesignRows]:
    """Sixty pairs whose level differs, and whose effect depends on x."""
    x = np.repeat(generator.normal(size=60), 2)
    treat = np.tile([1, 0], 60)
    level = np.repeat(2.0 * generator.normal(size=60), 2)
    y = x + level + (EFFECT + x) * treat + generator.normal(size=120)
    strata = np.repeat(np.arange(60), 2)
    return y, DesignRows(treat, (0, 1), np.ones(120), "ATT", strata, ("x",), x[:, None])


def test_the_error_by_pairs_covers_and_the_others_do_not() -> None:
    generator = np.random.default_rng(61)
    hits = {"design": 0, "rows": 0, "sample": 0}
    for _ in range(DRAWS):
        y, design = pairs(generator)
        hits["design"] += covers(effect_of(y, design, {}))
        hits["rows"] += covers(effect_of(y, design, {"error": "rows"}))
        hits["sample"] += covers(effect_of(y, design, {"variance": "sample"}))
    assert hits["design"] / DRAWS == pytest.approx(0.95, abs=WITHIN)
    # Rows ignore that a pair shares its level, and "sample" ignores that effects differ.
    assert hits["rows"] / DRAWS > 0.95 + WITHIN / 2
    assert hits["sample"] / DRAWS < 0.95 - WITHIN / 2


def weighted(generator: Any, estimand: str) -> tuple[Any, DesignRows, float]:
    """Logistic weights with their model, and an effect that depends on x."""
    x = generator.normal(size=300)
    probability = 1.0 / (1.0 + np.exp(-0.8 * x))
    treat = (generator.random(300) < probability).astype(np.int64)
    y = x + (EFFECT + 0.5 * x) * treat + generator.normal(size=300)
    predictors = np.column_stack([np.ones(300), x])
    coefficients = np.zeros(2)
    for _ in range(25):
        e = 1.0 / (1.0 + np.exp(-predictors @ coefficients))
        information = (predictors * (e * (1 - e))[:, None]).T @ predictors
        coefficients = coefficients + np.linalg.solve(information, predictors.T @ (treat - e))
    weights = np.where(treat == 1, 1 / e, 1 / (1 - e))
    if estimand == "ATT":
        weights = np.where(treat == 1, 1.0, e / (1 - e))
    model = logistic_weight_model(predictors, treat == 1, e, estimand)
    shift = MEAN_OF_TREATED
    truth = EFFECT + (0.5 * shift if estimand == "ATT" else 0.0)
    design = DesignRows(
        treat, (0, 1), weights, estimand, None, ("x",), x[:, None], weight_model=model
    )
    return y, design, truth


@pytest.mark.parametrize("estimand", ["ATE", "ATT"])
@pytest.mark.parametrize("covariates", [None, "design"])
def test_errors_with_the_model_of_the_weights_cover(estimand: str, covariates: Any) -> None:
    generator = np.random.default_rng(62)
    hits = 0
    for _ in range(DRAWS):
        y, design, truth = weighted(generator, estimand)
        hits += covers(effect_of(y, design, {"covariates": covariates}), truth)
    assert hits / DRAWS == pytest.approx(0.95, abs=WITHIN)


@pytest.mark.parametrize("scale", ["difference", "risk ratio", "odds ratio"])
def test_marginal_effects_on_risks_cover(scale: Any) -> None:
    def risk(x: Any, treat: Any) -> Any:
        return 1.0 / (1.0 + np.exp(0.5 - x - 0.8 * treat))

    control, treated = (float((MASSES * risk(NODES, arm)).sum() / MASSES.sum()) for arm in (0, 1))
    truths = {
        "difference": treated - control,
        "risk ratio": treated / control,
        "odds ratio": treated * (1 - control) / (control * (1 - treated)),
    }
    generator = np.random.default_rng(63)
    hits = 0
    for _ in range(DRAWS):
        x = generator.normal(size=250)
        treat = (generator.random(250) < 1.0 / (1.0 + np.exp(-x))).astype(np.int64)
        y = (generator.random(250) < risk(x, treat)).astype(float)
        design = DesignRows(treat, (0, 1), np.ones(250), "ATE", None, ("x",), x[:, None])
        hits += covers(effect_of(y, design, {"scale": scale}), truths[scale])
    assert hits / DRAWS == pytest.approx(0.95, abs=WITHIN)


def test_hazard_ratios_of_weighted_pairs_cover() -> None:
    """With frailty by pair, the marginal ratio is 1 if there is no effect."""
    generator = np.random.default_rng(64)
    hits = 0
    for _ in range(DRAWS):
        frailty = np.repeat(np.exp(generator.normal(size=80)), 2)
        treat, strata = np.tile([1, 0], 80), np.repeat(np.arange(80), 2)
        lifetime = generator.exponential(size=160) / frailty
        censoring = generator.exponential(size=160) * 3.0
        design = DesignRows(
            treat, (0, 1), np.repeat(generator.uniform(0.5, 2.0, 80), 2), "ATT", strata
        )
        effect = effect_of(
            np.minimum(lifetime, censoring),
            design,
            {"event": (lifetime <= censoring).astype(int)},
        )
        hits += covers(effect)
    assert hits / DRAWS == pytest.approx(0.95, abs=WITHIN)
