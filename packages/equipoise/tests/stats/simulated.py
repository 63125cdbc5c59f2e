"""Simulated campaigns with known truth, for the tests of the statistics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import ComparisonVerdict, judge

FloatArray = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], FloatArray]
"""Log times of so many trials, in the order in which they run."""


def white(sd: float) -> Noise:
    """Independent normal log times."""
    return lambda generator, trials: generator.normal(0.0, sd, trials)


def student(sd: float, freedom: float) -> Noise:
    """Independent heavy-tailed log times; sd is the scale."""
    return lambda generator, trials: sd * generator.standard_t(freedom, trials)


def autoregressive(generator: np.random.Generator, trials: int) -> FloatArray:
    """AR(1) with coefficient 0.9."""
    series = np.empty(trials)
    series[0] = generator.normal(0.0, 0.02)
    steps = generator.normal(0.0, 0.02, trials)
    for trial in range(1, trials):
        series[trial] = 0.9 * series[trial - 1] + steps[trial]
    return series


def random_walk(generator: np.random.Generator, trials: int) -> FloatArray:
    """Steps of 1 %."""
    walk: FloatArray = np.cumsum(generator.normal(0.0, 0.01, trials))
    return walk


def drift(generator: np.random.Generator, trials: int) -> FloatArray:
    """1 % slower at every run."""
    return 0.01 * np.arange(trials) + generator.normal(0.0, 0.01, trials)


def two_modes(generator: np.random.Generator, trials: int) -> FloatArray:
    """One trial in three is 15 % slower."""
    slow = (generator.random(trials) < 0.33).astype(np.float64)
    return 0.15 * slow + generator.normal(0.0, 0.01, trials)


def order_effect(generator: np.random.Generator, trials: int) -> FloatArray:
    """The second trial of each block takes 5 % more."""
    second = (np.arange(trials) % 2).astype(np.float64)
    return 0.05 * second + generator.normal(0.0, 0.02, trials)


def period_of_three(generator: np.random.Generator, trials: int) -> FloatArray:
    """Every third trial takes 10 % more."""
    every_third = np.resize(np.array([0.0, 0.0, 0.10]), trials)
    return every_third + generator.normal(0.0, 0.01, trials)


def spikes(generator: np.random.Generator, trials: int) -> FloatArray:
    """One trial in twenty takes up to several times as long."""
    hit = (generator.random(trials) < 0.05).astype(np.float64)
    return hit * generator.exponential(0.7, trials) + generator.normal(0.0, 0.01, trials)


NOISES: dict[str, Noise] = {
    "independent": white(0.02),
    "t2": student(0.01, 2.0),
    "autoregressive 0.9": autoregressive,
    "random walk": random_walk,
    "drift of 1 % per run": drift,
    "two modes": two_modes,
    "order effect of 5 %": order_effect,
    "period of three": period_of_three,
    "spikes": spikes,
}


def campaign(
    noise: Noise, generator: np.random.Generator, blocks: int, effect: float = 0.0
) -> PairedBlocks:
    """A campaign in which the candidate takes e^effect times as long, with the given noise."""
    return PairedBlocks(*costs_and_orders(noise, generator, blocks, effect))


def costs_and_orders(
    noise: Noise, generator: np.random.Generator, blocks: int, effect: float = 0.0
) -> tuple[FloatArray, FloatArray, NDArray[np.int8]]:
    """Costs of the baseline and of the candidate, and the order coins."""
    orders = generator.choice(np.array([-1, 1], dtype=np.int8), blocks)
    by_position = np.exp(noise(generator, 2 * blocks)).reshape(blocks, 2)
    rows = np.arange(blocks)
    baseline = by_position[rows, np.where(orders == 1, 0, 1)]
    candidate = by_position[rows, np.where(orders == 1, 1, 0)] * np.exp(effect)
    return baseline, candidate, orders


def watched(
    baseline: FloatArray,
    candidate: FloatArray,
    orders: NDArray[np.int8],
    *,
    min_effect: float = 1.0,
    alpha: float = 0.05,
) -> ComparisonVerdict:
    """The first verdict of a campaign that is analysed after every block, or its last analysis."""
    growing = PairedBlocks()
    (judged,) = judge([growing], min_effect=min_effect, alpha=alpha)
    for costs in zip(baseline.tolist(), candidate.tolist(), orders.tolist(), strict=True):
        growing.append(*costs)
        if len(growing) < 7:
            continue
        (judged,) = judge([growing], min_effect=min_effect, alpha=alpha)
        if judged.verdict != "undecided":
            break
    return judged


def at_most(campaigns: int, chance: float) -> int:
    """The largest count that is compatible with a rate of at most ``chance``.

    The 99.9 % quantile of the binomial law: a correct rate exceeds it in one test of a thousand,
    and with fixed seeds either always or never.
    """
    return int(binom.ppf(0.999, campaigns, chance))


def at_least(campaigns: int, chance: float) -> int:
    """The smallest count that is compatible with a rate of at least ``chance``."""
    return int(binom.ppf(0.001, campaigns, chance))
