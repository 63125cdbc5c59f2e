"""What one would say without matching: all rows of the candidate against all of the baseline."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.frames import require
from equipoise.observation.scores import LEVEL, Estimate, Values


def naive(outcome: Values, treated: NDArray[np.bool_]) -> Estimate:
    """The difference of the means with the interval of Welch's t-test (by scipy)."""
    stats: Any = require("scipy.stats", "intervals")
    one, other = outcome[treated], outcome[~treated]
    difference = float(one.mean() - other.mean())
    if min(len(one), len(other)) < 2 or (np.ptp(one) == 0.0 and np.ptp(other) == 0.0):
        return Estimate(difference, None, None)
    interval = stats.ttest_ind(one, other, equal_var=False).confidence_interval(LEVEL)
    return Estimate(difference, None, (float(interval.low), float(interval.high)))
