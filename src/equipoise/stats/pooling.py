"""One effect over several campaigns, which are levels of their own: days, boots, kernels.

A campaign's interval is about that campaign. What would come out at the next one is told by how
much campaigns differ, and of campaigns of one boot it is the boot that counts once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from equipoise.model.errors import UnusableInput
from equipoise.model.interval import Interval
from equipoise.model.result import PooledEffect
from equipoise.stats.arrays import FloatArray

_LARGEST_QUANTILE = 1e6
_HALVINGS = 100


def pool(
    effects: FloatArray, errors: FloatArray, boots: Sequence[str], *, level: float = 0.05
) -> PooledEffect:
    """Pool the effects of several campaigns.

    Parameters
    ----------
    effects, errors
        Shape (k,): the log ratio of each campaign and its standard error within the campaign.
    boots
        What each campaign ran on: boot and kernel.
    level
        1 minus the coverage.

    Returns
    -------
    The mean of the replicates with Student's interval from their own spread, which holds what
    varies within and between them alike; the variance between campaigns is that of the effects
    less the mean of the squared errors (the estimate of Hedges, 1983), never below 0.

    Raises
    ------
    UnusableInput
        There is no campaign.
    """
    if len(effects) == 0:
        raise UnusableInput("there is no campaign to pool", hint="run the study first")
    by_boot: dict[str, list[float]] = {}
    for effect, boot in zip(effects, boots, strict=True):
        by_boot.setdefault(boot, []).append(effect)
    of_boot = np.array([np.mean(together) for together in by_boot.values()])
    replicates = of_boot if len(by_boot) > 1 else effects
    count = len(replicates)
    mean = float(np.mean(replicates))
    interval: Interval = (None, None)
    if count > 1:
        error = float(np.std(replicates, ddof=1)) / math.sqrt(count)
        reach = student_quantile(1.0 - level / 2.0, count - 1) * error
        interval = (math.exp(mean - reach), math.exp(mean + reach))
    spread = float(np.var(effects, ddof=1)) if len(effects) > 1 else 0.0
    between = max(0.0, spread - float(np.mean(errors**2)))
    return PooledEffect(math.exp(mean), interval, math.sqrt(between), len(effects), count)


@cache
def student_quantile(probability: float, freedom: int) -> float:
    """The quantile of Student's t, for a probability above one half, exact for any freedom.

    By bisection of the distribution function (Abramowitz and Stegun 26.7.3 and 26.7.4).
    """
    low, high = 0.0, _LARGEST_QUANTILE
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if 0.5 + 0.5 * _within(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def student_outside(t: float, freedom: int) -> float:
    """P(|T| > t), for t from 0 up."""
    return max(0.0, 1.0 - _within(t, freedom))


def _within(t: float, freedom: int) -> float:
    """P(|T| <= t)."""
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2 == 1
    term = cosine if odd else 1.0
    total = 0.0 if freedom == 1 else term
    for power in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine**2 * (power - 1) / power
        total += term
    return 2.0 / math.pi * (angle + sine * total) if odd else sine * total
