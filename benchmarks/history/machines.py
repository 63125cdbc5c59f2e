"""Machines that drift by 20 % in the course of a history, and two planted changes."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from packages.equipoise.tests.stats.simulated import FloatArray

COMMITS = 30
STEPS = (0.05, -0.04)
"""The planted changes, in log units."""
APART = 3
"""Commits between the two, and before the first, at least."""
DRIFT = math.log(1.2)
SD = 0.01
"""Standard deviation of the log time of a trial, whatever the machine does."""

MACHINES = {
    "still": "no drift",
    "line": "20 % slower, bit by bit",
    "jump": "20 % slower from one trial on",
    "wander": "random walk over 20 %",
}
"""The machines, with their names in the tables."""


class Truth(Struct, frozen=True):
    """Which commits changed something, and the log cost of each commit from the baseline on."""

    changed: tuple[int, ...]
    levels: tuple[float, ...]


def planted(rng: np.random.Generator) -> Truth:
    """Return commits of which two changed something, wherever they are."""
    first = int(rng.integers(APART, COMMITS - 2 * APART))
    second = int(rng.integers(first + APART, COMMITS + 1))
    jumps = np.zeros(COMMITS + 1)
    jumps[[first, second]] = STEPS
    return Truth((first, second), tuple(np.cumsum(jumps).tolist()))


def machine(kind: str, moments: int, rng: np.random.Generator) -> FloatArray:
    """Return the log time that a machine adds at each moment, shape (moments,)."""
    match kind:
        case "still":
            return np.zeros(moments)
        case "line":
            return np.linspace(0.0, DRIFT, moments)
        case "jump":
            after = np.arange(moments) >= rng.integers(1, moments)
            return DRIFT * after.astype(np.float64)
        case "wander":
            walk: FloatArray = np.cumsum(rng.normal(size=moments))
            return walk * (DRIFT / np.ptp(walk))
        case _:
            raise ValueError(kind)


def nightly_series(truth: Truth, kind: str, runs: int, rng: np.random.Generator) -> FloatArray:
    """Return the time of each commit as a nightly job has it: measured on a night of its own.

    Shape (commits + 1,).

    Parameters
    ----------
    runs
        Runs of each commit, of which the median is the time.
    """
    nights = machine(kind, COMMITS + 1, rng)
    by_run = rng.normal(0.0, SD, (COMMITS + 1, runs))
    logs = np.array(truth.levels)[:, np.newaxis] + nights[:, np.newaxis] + by_run
    return np.asarray(np.exp(np.median(logs, axis=1)))
