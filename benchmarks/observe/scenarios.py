"""Logs with a known truth: versions deployed in runs, errors that last, a factor that is hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

EFFECT = -0.03
"""The candidate's true effect in log units: 3 % faster."""


@dataclass(frozen=True, slots=True)
class Made:
    """A log as ``equipoise_matching.observation`` takes it, of a truth that is known."""

    columns: dict[str, NDArray[Any]]
    effect: float


def deployments(
    draw: np.random.Generator,
    *,
    runs: int = 80,
    rows_a_run: int = 12,
    lasting: float = 0.9,
    hidden: float = 0.0,
) -> Made:
    """Versions that run for a while each, the candidate mostly under load.

    Parameters
    ----------
    runs, rows_a_run
        How often the version is chosen anew, and for how many rows it stays.
    lasting
        The autocorrelation of the errors from one row to the next.
    hidden
        How strongly a factor that no covariate tells moves both the choice of version and the
        outcome; 0 for none. The column ``neighbour`` is moved by it as well, but by no version.
    """
    rows = runs * rows_a_run
    load = 3.0 + _lasting(draw, rows, 0.97, 0.4)
    cache = draw.integers(0, 3, rows).astype(np.float64)
    factor = np.repeat(draw.normal(size=runs), rows_a_run)
    of_run = load.reshape(runs, rows_a_run).mean(axis=1)
    odds = 0.8 * (of_run - 3.0) + hidden * factor[::rows_a_run]
    candidate = np.repeat(draw.random(runs) < 1.0 / (1.0 + np.exp(-odds)), rows_a_run)
    error = _lasting(draw, rows, lasting, 0.02)
    logs = 1.0 + 0.08 * load + 0.02 * cache + EFFECT * candidate + error + 0.05 * hidden * factor
    return Made(
        {
            "version": np.where(candidate, "2.0", "1.0").astype(object),
            "wall_s": np.exp(logs),
            "load": load,
            "cache": cache,
            "neighbour": 10.0 + hidden * factor + draw.normal(size=rows),
            "timestamp": np.arange(rows) * 60.0,
        },
        EFFECT,
    )


def hidden_odds(
    draw: np.random.Generator, gamma: float, *, rows: int = 0, days: int = 0, rows_a_day: int = 8
) -> Made:
    """A hidden coin that multiplies the odds of the candidate by ``gamma``, and slows.

    Parameters
    ----------
    gamma
        The odds ratio of the candidate given the coin.
    rows, days, rows_a_day
        The coin of each of so many rows, or of each of so many days of rows.
    """
    units, each = (days, rows_a_day) if days else (rows, 1)
    coin = draw.random(units) < 0.5
    # Odds of root(gamma) and its inverse: as many candidates as others.
    odds = np.where(coin, np.sqrt(gamma), 1.0 / np.sqrt(gamma)) * 0.5
    candidate = np.repeat(draw.random(units) < odds / (1.0 + odds), each)
    total = units * each
    load = draw.normal(3.0, 1.0, total)
    slow = np.repeat(coin, each) * 0.10
    noise = np.repeat(draw.normal(0.0, 0.01, units), each) + draw.normal(0.0, 0.01, total)
    made = {
        "version": np.where(candidate, "2.0", "1.0").astype(object),
        "wall_s": np.exp(1.0 + 0.05 * load + EFFECT * candidate + slow + noise),
        "load": load,
    }
    if days:
        made["day"] = np.repeat(np.arange(days), each)
    return Made(made, EFFECT)


def _lasting(draw: np.random.Generator, rows: int, share: float, spread: float) -> Values:
    """A stationary series that keeps ``share`` of itself from one row to the next."""
    steps = draw.normal(0.0, spread, rows)
    values = np.empty(rows)
    values[0] = steps[0] / np.sqrt(1.0 - share**2)
    for place in range(1, rows):
        values[place] = share * values[place - 1] + steps[place]
    return values
