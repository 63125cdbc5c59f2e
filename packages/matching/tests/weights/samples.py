"""Data for the tests of weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.matching import datasets

Floats = NDArray[np.float64]

COVARIATES = (
    *("age", "educ", "black", "hisp", "married", "nodegr"),
    *("re74", "re75", "u74", "u75"),
)


@dataclass(frozen=True)
class Sample:
    """The treatment, the covariates and the outcome of some rows."""

    treat: NDArray[Any]
    matrix: Floats
    outcome: Floats


def two_arms(rows: int, seed: int = 1, columns: int = 4) -> Sample:
    """Four covariates, one of them binary and one skewed, with an effect of 2."""
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(rows, columns))
    matrix[:, 1] = matrix[:, 1] > 0.3
    matrix[:, 2] = np.exp(matrix[:, 2] / 2)
    linear = 0.6 * matrix[:, 0] + 0.5 * matrix[:, 1] - 0.4 * matrix[:, 2]
    treat = (random.random(rows) < 1 / (1 + np.exp(-linear))).astype(np.int64)
    outcome = matrix.sum(axis=1) + 2.0 * treat + random.normal(size=rows)
    return Sample(treat, matrix, outcome)


def three_arms(rows: int, seed: int = 2) -> Sample:
    """Three arms with the labels a, b and c, whose probabilities depend on two covariates."""
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(rows, 3))
    utilities = np.column_stack(
        [np.zeros(rows), 0.5 * matrix[:, 0] - 0.2, 0.4 * matrix[:, 1] - 0.3 * matrix[:, 0]]
    )
    treat = np.array(["a", "b", "c"])[(utilities + random.gumbel(size=(rows, 3))).argmax(axis=1)]
    return Sample(treat, matrix, matrix.sum(axis=1) + random.normal(size=rows))


def treated_beside_cps() -> Sample:
    """LaLonde's 185 treated people with the 15,992 controls of CPS-1."""
    experiment, controls = datasets.lalonde(), datasets.cps_controls()
    treated = experiment[experiment["treat"] == 1]
    columns = [
        np.concatenate([treated[name].to_numpy(np.float64), controls[name].to_numpy(np.float64)])
        for name in ("treat", *COVARIATES, "re78")
    ]
    return Sample(columns[0].astype(np.int64), np.column_stack(columns[1:-1]), columns[-1])


def weighted_mean(columns: Floats, weights: Floats, rows: Any) -> Floats:
    """The weighted means of the columns over some rows."""
    return np.asarray(weights[rows] @ columns[rows] / weights[rows].sum())
