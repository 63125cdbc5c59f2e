"""Designs for the tests of balance, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching.designs.design import Design
from equipoise_matching.designs.units import design_units


def weighted(
    treat: ArrayLike,
    X: Any,
    weights: ArrayLike | None = None,
    *,
    method: str = "weighted",
    estimand: Any = "ATT",
    details: Mapping[str, Any] | None = None,
) -> Design:
    """Return a design with these weights, 1 by default."""
    units = design_units(treat, X, several_arms=True)
    values = np.ones(len(units)) if weights is None else np.asarray(weights, dtype=np.float64)
    return Design(method, estimand, units, values, details=details or {})


def confounded(rows: int, *, seed: int = 1) -> tuple[dict[str, Any], Any]:
    """Return covariates and a treatment that depends on them."""
    random = np.random.default_rng(seed)
    age, income = random.normal(40.0, 10.0, rows), random.exponential(20.0, rows)
    married = (random.random(rows) < 0.5).astype(int)
    chance = 1.0 / (1.0 + np.exp(-(age - 45.0) / 10.0 + married))
    treat = (random.random(rows) < chance).astype(int)
    return {"age": age, "income": income, "married": married}, treat
