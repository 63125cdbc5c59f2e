"""Evaluators for the tests of executors: at the top of a module, so that workers can load them."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

VARIABLES = 4


def candidates(count: int) -> Floats:
    """Return candidates, shape (count, VARIABLES), drawn from a fixed seed."""
    return np.random.default_rng(7).normal(size=(count, VARIABLES))


@dataclass
class Engine:
    """Values that depend on data and, in the last bit, on the order of a sum."""

    data: Floats
    built: int = field(default=0, init=False)
    """Number of times that this process built the engine."""

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self.data, "built": 0}

    def __call__(self, points: Floats) -> Floats:
        if self.built == 0:
            self.built = 1
        distances = np.array([np.abs(self.data - row).sum() for row in points])
        return np.column_stack([distances, np.sin(distances)])


@dataclass(frozen=True)
class DiesOnce:
    """An engine that kills its process at the first evaluation of a candidate, and only once."""

    engine: Engine
    mark: Path
    at: float

    def __call__(self, points: Floats) -> Floats:
        if (points[:, 0] == self.at).any() and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.engine(points)


def dies_always(points: Floats) -> Floats:
    """Kill the process that evaluates the function."""
    os.kill(os.getpid(), signal.SIGKILL)
    return points


def refuses_negative(points: Floats) -> Floats:
    """Raise an error if any first parameter is below -1."""
    if (points[:, 0] < -1).any():
        raise ArithmeticError("no root of a negative number")
    return points[:, :1]


def as_many_as_positive(points: Floats) -> Floats:
    """Return as many criteria as the first candidate has positive parameters, and one more."""
    return np.zeros((len(points), int((points[0] > 0).sum()) + 1))


def bowl(point: Floats) -> float:
    """Return a value that is smallest at (1, 1)."""
    return float(((point - 1.0) ** 2).sum())
