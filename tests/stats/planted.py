"""Samples and series whose shape is known, for the tests of stats and for benchmarks/shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], FloatArray]
"""So many independent times, in units of the spread, around 100."""


def _gumbel_low(generator: np.random.Generator, count: int) -> FloatArray:
    return -generator.gumbel(0.0, 1.0, count)


def _modified_normal(generator: np.random.Generator, count: int) -> FloatArray:
    return generator.normal(0.0, 1.0, count) + generator.exponential(2.0, count)


def _spikes(generator: np.random.Generator, count: int) -> FloatArray:
    """Three trials in a hundred take 5 to 15 sd longer."""
    hit = generator.random(count) < 0.03
    return generator.normal(0.0, 1.0, count) + hit * generator.uniform(5.0, 15.0, count)


SINGLE: dict[str, Draw] = {
    "normal": lambda generator, count: generator.normal(0.0, 1.0, count),
    "lognormal": lambda generator, count: generator.lognormal(0.0, 0.5, count),
    "exponential": lambda generator, count: generator.exponential(1.0, count),
    "Gumbel of largest": lambda generator, count: generator.gumbel(0.0, 1.0, count),
    "Gumbel of smallest": _gumbel_low,
    "t3": lambda generator, count: generator.standard_t(3.0, count),
    "exponentially modified normal": _modified_normal,
    "uniform": lambda generator, count: generator.uniform(0.0, 1.0, count),
    "gamma": lambda generator, count: generator.gamma(2.0, 1.0, count),
}
"""The nine shapes with one peak of issue 7."""

SPIKES: Draw = _spikes


def two_peaks(apart: float, upper: float) -> Draw:
    """Two normal peaks ``apart`` sd apart, the share ``upper`` in the higher one."""

    def draw(generator: np.random.Generator, count: int) -> FloatArray:
        slow = generator.random(count) < upper
        return generator.normal(0.0, 1.0, count) + apart * slow

    return draw
