"""The noise of simulated trials: their log times, in the order in which they run."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

KINDS = {
    "gauss": "independent",
    "drift": "drift 0.05 % a trial",
    "throttle": "+4 sd in 60 of 120 trials",
    "ar": "AR 0.9",
    "walk": "random walk, sd/3",
    "modes": "+4 sd in 30 %",
    "t2": "t2",
}
"""The kinds of noise, with their names in the tables."""


def series(
    kind: str, sd: float, campaigns: int, trials: int, rng: np.random.Generator
) -> FloatArray:
    """Return log times without the commit's own level, shape (campaigns, trials).

    ``sd`` is the standard deviation of a trial's log time; for t2 its scale.
    """
    shape = (campaigns, trials)
    count = np.arange(1, trials + 1)
    if kind == "t2":
        return sd * rng.standard_t(2, size=shape)
    start = sd * rng.normal(size=(campaigns, 1))
    z = sd * rng.normal(size=shape)
    match kind:
        case "gauss":
            return z
        case "drift":
            return z + 0.0005 * count
        case "throttle":
            return z + 4 * sd * (count % 120 >= 60)
        case "ar":
            filtered, _ = lfilter([math.sqrt(1 - 0.81)], [1, -0.9], z, zi=0.9 * start)
            return np.asarray(filtered)
        case "walk":
            return start + np.cumsum(z / 3, axis=1) + z
        case "modes":
            return z + 4 * sd * (rng.random(shape) < 0.3)
        case _:
            raise ValueError(kind)


class Machine:
    """Runs trials of campaigns that run side by side; each has trials of its own.

    Parameters
    ----------
    levels
        Shape (campaigns, commits): log cost of each commit.
    by_trial
        Shape (campaigns, trials): the noise.
    """

    def __init__(self, levels: FloatArray, by_trial: FloatArray) -> None:
        self._levels, self._by_trial = levels, by_trial
        self._next = np.zeros(len(levels), dtype=np.int64)

    def run(self, campaigns: IntArray, commits: IntArray) -> FloatArray:
        """Return the log time of one trial of a commit in each of these campaigns."""
        places = self._next[campaigns]
        self._next[campaigns] += 1
        return self._levels[campaigns, commits] + self._by_trial[campaigns, places]
