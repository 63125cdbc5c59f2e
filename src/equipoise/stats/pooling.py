"""One effect over several campaigns, which are levels of their own: days, boots, kernels.

A campaign's interval is about that campaign. What would come out at the next one is told by how
much campaigns differ, and of campaigns of one boot it is the boot that counts once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from equipoise._native import student_quantile
from equipoise.model.errors import UnusableInput
from equipoise.model.interval import Interval
from equipoise.model.result import PooledEffect
from equipoise.stats.arrays import FloatArray


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
