"""Logs and questions that the tests of this folder share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.observation.question import Question

Log = dict[str, NDArray[Any]]

EFFECT = -0.05


def loaded_log(rows: int = 400, *, seed: int = 1, days: int = 40) -> Log:
    """Return a log whose new version runs mostly under load, and is in truth 5 % faster."""
    draw = np.random.default_rng(seed)
    load = draw.gamma(2.0, 1.0, rows)
    new = draw.random(rows) < 1.0 / (1.0 + np.exp(1.4 - 0.7 * load))
    logs = 0.1 * load + EFFECT * new + draw.normal(0.0, 0.02, rows)
    return {
        "version": np.where(new, "2.0", "1.0").astype(object),
        "wall_s": np.exp(logs),
        "load": load,
        "host_type": draw.choice(["arm", "amd"], rows).astype(object),
        "unmoved": draw.normal(5.0, 1.0, rows),
        "day": np.arange(rows) * days // rows,
    }


def question(**changed: Any) -> Question:
    """Return a question: is 2.0 faster than 1.0, matched on the load by the quickest method?"""
    defaults: dict[str, Any] = {
        "treatment": "version",
        "values": "2.0:1.0",
        "outcome": "wall_s",
        "covariates": ("load",),
        "method": "mahalanobis",
        "threads": 1,
    }
    return Question(**{**defaults, **changed})
