"""Random data for the tests of effects, and designs as plain arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.effects.sample import DesignRows

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Data(NamedTuple):
    """Rows with an outcome of each kind."""

    x: Floats
    treat: Indices
    number: Floats
    binary: Floats
    events: Floats
    time: Floats
    event: Indices
    weights: Floats
    strata: Indices


def data_of(seed: int, rows: int = 120, columns: int = 2, arms: int = 2) -> Data:
    """Confounded data, with random weights and strata of one treated row and some controls."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, columns))
    logit = 0.6 * x[:, 0] - 0.4
    if arms == 2:
        treat = (generator.random(rows) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int64)
    else:
        treat = generator.integers(0, arms, rows)
    signal = 0.8 * x[:, 0] - 0.4 * x[:, -1] + 0.5 * treat
    number = signal + generator.normal(size=rows)
    binary = (generator.random(rows) < 1.0 / (1.0 + np.exp(-signal))).astype(np.float64)
    events = generator.poisson(np.exp(0.4 * signal)).astype(np.float64)
    # Rounded times make ties.
    time = np.ceil(10.0 * generator.exponential(np.exp(-0.4 * signal))) / 10.0
    event = (generator.random(rows) < 0.7).astype(np.int64)
    weights = generator.uniform(0.3, 3.0, rows)
    controls, treated = np.flatnonzero(treat == 0), np.flatnonzero(treat != 0)
    strata = np.empty(rows, dtype=np.int64)
    strata[treated] = np.arange(len(treated))
    strata[controls] = generator.integers(0, len(treated), len(controls))
    return Data(x, treat, number, binary, events, time, event, weights, strata)


def design_of(data: Data, estimand: str = "ATT", **changes: Any) -> DesignRows:
    """Return the design with the data's weights and strata; ``changes`` replace fields."""
    fields: dict[str, Any] = {
        "arm": data.treat,
        "arms": tuple(range(int(data.treat.max()) + 1)),
        "weights": data.weights,
        "estimand": estimand,
        "strata": data.strata,
        "names": tuple(f"x{index}" for index in range(data.x.shape[1])),
        "matrix": data.x,
        "method": "full_match",
        **changes,
    }
    return DesignRows(**fields)
