"""Suspicions: where a series of one value for each commit may have changed its level.

The change-points are those of ``changes.find_changes``, on logarithms, with a smaller penalty: a
suspicion that is false costs one bisection. Nothing here can tell a change of the program from one
of the machine: the values were not measured side by side.

Each has a range that probably holds it: the places k at which the squared loss is at most
`MOST_LOSS` above the least. The loss at the true place is above the least by the greater of two
maxima of random walks with drift, each nearly exponential with mean 2 for small steps (Siegmund
1988; Bai 1997, Proposition 3), so P(loss > x) = 1 - (1 - exp(-x/2))², which is 5 % at x = 7.35.
The range has one more value at each end, since one at its border may be an outlier.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from msgspec import Struct

from equipoise.stats.arrays import FloatArray
from equipoise.stats.changes import (
    LEAST_LENGTH,
    Segment,
    find_changes,
    huberised,
    long_run_variance,
)

LEAST_VALUES = 2 * LEAST_LENGTH
"""Fewer values have no change-point."""
PENALTY_PER_LOG = 4.0
"""Times ln n. Of series without a change, at most 5 % have a suspicion: ``benchmarks/series``."""
MOST_LOSS = -2.0 * math.log(1.0 - math.sqrt(0.95))
"""7.35, in units of the long-run variance."""


class LevelChange(Struct, frozen=True):
    """A place where the level of a series changed; places count values from 0."""

    first: int
    """Last value that is probably on the old level."""
    place: int
    """First value on the new level, where the series fits best."""
    last: int
    """First value that is probably on the new level."""
    before: float
    """The level before."""
    ratio: float
    """The level after, over the one before."""


def level_changes(values: FloatArray, min_effect: float) -> tuple[LevelChange, ...]:
    """Return where the level of a series changed by more than ``min_effect``.

    Parameters
    ----------
    values
        Shape (n,): finite and greater than 0, one for each commit, in their order.
    min_effect
        Percent by which the level must change at least.

    Returns
    -------
    None for fewer than ten values. A level has at least five, unless the values repeat exactly.

    Raises
    ------
    UnusableInput
        A value is not finite.
    """
    if len(values) < LEAST_VALUES:
        return ()
    logs = np.log(values)
    if np.median(np.abs(np.diff(logs))) == 0.0:
        segments, margin = _runs(logs), 0.0
    else:
        segments = list(find_changes(logs, PENALTY_PER_LOG * math.log(len(logs))).segments)
        margin = MOST_LOSS * long_run_variance(huberised(logs))
    least = math.log1p(min_effect / 100.0)
    return tuple(
        _change(logs, before, after, margin)
        for before, after in itertools.pairwise(segments)
        if abs(after.level - before.level) > least
    )


def _runs(logs: FloatArray) -> list[Segment]:
    """Return the stretches of equal values: a count that repeats exactly has no noise."""
    ends = [*(np.flatnonzero(np.diff(logs)) + 1).tolist(), len(logs)]
    return [
        Segment(begin, end, float(logs[begin])) for begin, end in itertools.pairwise([0, *ends])
    ]


def _change(logs: FloatArray, before: Segment, after: Segment, margin: float) -> LevelChange:
    """Return a change with the range of places that fit hardly worse than the best."""
    first, last = before.end - 1, before.end
    if margin > 0.0:
        loss = _losses(huberised(logs)[before.begin : after.end])
        fitting = before.begin + 1 + np.flatnonzero(loss <= np.min(loss) + margin)
        # Beyond them, one value more: that at the border may be an outlier.
        first = max(before.begin, min(first, int(fitting[0]) - 1) - 1)
        last = min(after.end - 1, max(last, int(fitting[-1])) + 1)
    ratio = math.exp(after.level - before.level)
    return LevelChange(first, before.end, last, math.exp(before.level), ratio)


def _losses(values: FloatArray) -> FloatArray:
    """Return the squared loss of two levels, with 1, 2, … values on the first one.

    Returns
    -------
    Shape (n - 1,), less a constant.
    """
    sums = np.cumsum(values - np.mean(values))[:-1]
    sizes = np.arange(1, len(values))
    # The two means are sums/sizes and -sums/(n - sizes).
    return -(sums**2) * (1.0 / sizes + 1.0 / (len(values) - sizes))
