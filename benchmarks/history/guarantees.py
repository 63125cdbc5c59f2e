"""What is guaranteed: false discoveries among many pairs, and the coverage of the curve."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from benchmarks.history.engine import ALPHA, MIN_EFFECT
from equipoise.kinds.history.statistics import History
from packages.equipoise.tests.kinds.history.histories import names_of
from packages.equipoise.tests.stats.simulated import (
    FloatArray,
    Noise,
    autoregressive,
    student,
    white,
)

PAIRS = 300
BLOCKS = 25
REAL = 30
"""Pairs with a change, where there are any."""
EFFECT = 0.05
REVISIONS = 30
CURVE_BLOCKS = 100

NOISES: dict[str, Noise] = {
    "independent": white(0.01),
    "t2": student(0.005, 2.0),
    "AR 0.9": autoregressive,
}


class Discoveries(Struct, frozen=True):
    """Names of one campaign with pairs at the smallest effect."""

    false: int
    true: int

    @property
    def share(self) -> float:
        """Fraction of the names that is false; 0 without a name."""
        return self.false / max(1, self.false + self.true)


def discoveries(kind: str, real: int, seed: int) -> Discoveries:
    """Return the names among 300 pairs of neighbours, most of which differ by just the margin."""
    rng = np.random.default_rng([seed, real])
    margin = math.log1p(MIN_EFFECT / 100.0)
    changed = set(rng.choice(PAIRS, real, replace=False).tolist())
    history = History(alpha=ALPHA, min_effect=MIN_EFFECT)
    names = names_of(PAIRS)
    history.begin_campaign(names, range(PAIRS + 1), "gcc 14")
    for pair in range(PAIRS):
        step = (EFFECT if pair in changed else margin) * rng.choice((-1.0, 1.0))
        by_trial = NOISES[kind](rng, 2 * BLOCKS).reshape(BLOCKS, 2).tolist()
        for first, second in by_trial:
            order = rng.permutation((pair, pair + 1)).tolist()
            logs = dict(zip(order, (first, second), strict=True))
            logs[pair + 1] += step
            history.add({one: math.exp(log) for one, log in logs.items()}, order)
    places = {name: place for place, name in enumerate(names)}
    named = [places[one.pair.earlier_hash] for one in history.state().changes]
    true = sum(pair in changed for pair in named)
    return Discoveries(len(named) - true, true)


def misses(kind: str, seed: int) -> bool:
    """Return whether any interval of a curve ever left out the truth.

    The intervals are running ones: what one leaves out at any look it leaves out at the end.
    """
    rng = np.random.default_rng([seed, 7])
    levels: FloatArray = np.concatenate([[0.0], np.cumsum(rng.normal(0.0, 0.02, REVISIONS))])
    history = History(alpha=ALPHA, min_effect=MIN_EFFECT)
    history.begin_campaign(names_of(REVISIONS), range(REVISIONS + 1), "gcc 14")
    everything = tuple(range(REVISIONS + 1))
    by_trial = iter(NOISES[kind](rng, CURVE_BLOCKS * len(everything)).tolist())
    for _ in range(CURVE_BLOCKS):
        order = rng.permutation(everything).tolist()
        history.add({one: math.exp(levels[one] + next(by_trial)) for one in order}, order)
    curve = zip(history.state().revisions, levels.tolist(), strict=True)
    return any(not _holds(point.ratio_ci, math.exp(level)) for point, level in curve)


def _holds(interval: tuple[float | None, float | None], ratio: float) -> bool:
    low, high = interval
    return (low is None or low <= ratio) and (high is None or ratio <= high)
