"""Samples and series with a known shape, for the tests of stats and for benchmarks/shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.model.iterations import TrialClass

FloatArray = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], FloatArray]
"""So many times in a row, in units of their spread."""


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


ITERATIONS = 200


def autoregressive(
    generator: np.random.Generator, count: int, dependence: float, sd: float = 1.0
) -> FloatArray:
    """A stationary AR(1) series around 0."""
    steps = generator.normal(0.0, sd * np.sqrt(1.0 - dependence**2), count)
    series = np.empty(count)
    series[0] = generator.normal(0.0, sd)
    for place in range(1, count):
        series[place] = dependence * series[place - 1] + steps[place]
    return series


def _levels(dependence: float, *pieces: tuple[float, float]) -> Draw:
    """A series that stays at each level, in sd, up to its share of the iterations."""

    def draw(generator: np.random.Generator, count: int) -> FloatArray:
        noise = 100.0 + autoregressive(generator, count, dependence)
        begin = 0
        for until, level in pieces:
            end = round(until * count)
            noise[begin:end] += level
            begin = end
        return noise

    return draw


def _cooling(generator: np.random.Generator, count: int) -> FloatArray:
    """Exponential approach to a level: 8 sd above it at first, e times nearer every ten
    iterations."""
    return 100.0 + 8.0 * np.exp(-np.arange(count) / 10.0) + generator.normal(0.0, 1.0, count)


_RESTLESS = tuple((eighth / 8, 4.0 * (eighth % 2)) for eighth in range(1, 9))

SERIES: dict[str, tuple[TrialClass, Draw]] = {
    "white": ("flat", _levels(0.0)),
    "AR .3": ("flat", _levels(0.3)),
    "AR .6": ("flat", _levels(0.6)),
    "t3": ("flat", lambda generator, count: 100.0 + generator.standard_t(3.0, count)),
    "a tenth 2 sd slower": ("warm-up", _levels(0.0, (0.1, 2.0))),
    "a tenth 3 sd slower, AR .3": ("warm-up", _levels(0.3, (0.1, 3.0))),
    "cooling down from 8 sd": ("warm-up", _cooling),
    "3 sd slower after a quarter": ("slowdown", _levels(0.0, (0.25, 0.0), (1.0, 3.0))),
    "3 sd slower after a quarter, AR .3": ("slowdown", _levels(0.3, (0.25, 0.0), (1.0, 3.0))),
    "4 sd up and down every eighth": ("no steady state", _levels(0.0, *_RESTLESS)),
    "4 sd slower at the last sixth, AR .3": (
        "no steady state",
        _levels(0.3, (5 / 6, 0.0), (1.0, 4.0)),
    ),
}
"""Series of ``ITERATIONS``, with the class each of them has."""


@dataclass(frozen=True, slots=True)
class Nested:
    """A nested design with known variance components."""

    names: tuple[str, ...]
    counts: tuple[int, ...]
    """Units of each level within one unit above it."""
    sds: tuple[float, ...]
    lost: float = 0.0
    """The share of values that are missing."""

    def draw(self, generator: np.random.Generator) -> tuple[FloatArray, list[NDArray[np.int64]]]:
        """Values, and the unit of each value at every level except the lowest."""
        count = size = int(np.prod(self.counts))
        values, units = np.full(count, 100.0), []
        for inside, sd in zip(self.counts, self.sds, strict=True):
            size //= inside
            unit = np.arange(count) // size
            values += generator.normal(0.0, sd, int(unit[-1]) + 1)[unit]
            units.append(unit)
        kept = generator.random(count) >= self.lost
        return values[kept], [unit[kept] for unit in units[:-1]]


NESTED = (
    Nested(("trial", "iteration"), (30, 30), (1.0, 1.0)),
    Nested(("trial", "iteration"), (30, 30), (1.0, 1.0), lost=0.3),
    Nested(("layout", "trial", "iteration"), (20, 5, 10), (1.0, 1.0, 1.0)),
    Nested(("boot", "layout", "trial", "iteration"), (16, 5, 4, 4), (1.0, 1.0, 1.0, 1.0)),
)
