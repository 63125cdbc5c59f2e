"""Carry-over: the effect on a trial of the condition that ran before it (docs/statistics.md).

A trial that stands first in its block has independent coins for itself and for what ran before it,
the last trial of the preceding block. So the contrast by what ran before estimates the carry-over,
and the coin alone gives its standard error (Neyman 1923; Imbens and Rubin 2015, ch. 6), whatever
the drift: a drift only adds noise, and a local trend takes most of that out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from equipoise._native import student_quantile
from equipoise.model.errors import UnusableInput
from equipoise.model.result import CarryOver
from equipoise.stats.arrays import LEVEL, FloatArray, IntArray, median_of, row_medians
from equipoise.stats.verdict import margin_of

LEAST_TRIALS_EACH = 6
"""After the baseline, and after the candidate."""
NEAREST, FARTHEST = 2, 6
"""The neighbours, on each side, that the local trend is taken from. Not the nearest: of two
conditions, what ran before a trial is what did not stand first in the block before."""
ROUNDS = 5
"""Conditions and trend are estimated in turns."""
CLIP_SCALES = 5.0
WARN_ERRORS = 3.0
"""Standard errors: a false warning in at most one of a hundred campaigns of 60 blocks."""


def carry_over(
    orders: IntArray,
    costs: FloatArray,
    *,
    candidate: int,
    baseline: int = 0,
    follows: NDArray[np.bool_] | None = None,
) -> CarryOver | None:
    """Return how much more a trial takes if the candidate, not the baseline, ran before it.

    Raise `UnusableInput` if the shapes do not agree.

    Parameters
    ----------
    orders
        Shape (n, k): the conditions of each block in the order in which they ran.
    costs
        Shape (n, k): what those trials cost, by position; +inf for one that timed out, which counts
        as the slowest that finished.
    candidate, baseline
        Conditions, as in ``orders``.
    follows
        Shape (n,): whether a block ran right after the one before it in these arrays; not so after
        a block that was left out. All but the first by default.

    Returns
    -------
    The ratio with its 95 % interval; ``None`` with under six first trials after either condition.
    """
    if orders.shape != costs.shape or orders.ndim != 2:
        raise UnusableInput(
            f"orders of shape {orders.shape} and costs of shape {costs.shape} do not agree",
            hint="give both by block and position",
        )
    if len(orders) < 2:
        return None
    usable = np.ones(len(orders) - 1, dtype=bool) if follows is None else follows[1:]
    conditions, before = orders[1:, 0][usable], orders[:-1, -1][usable]
    first_costs = costs[1:, 0][usable]
    known = first_costs[np.isfinite(first_costs) & (first_costs > 0)]
    after = [before == one for one in (candidate, baseline)]
    counts = [int(one.sum()) for one in after]
    if not len(known) or min(counts) < LEAST_TRIALS_EACH:
        return None
    logs = np.log(np.clip(first_costs, known.min(), known.max()))
    residuals = _residuals(logs, conditions, before)
    high, low = (residuals[one] for one in after)
    estimate = float(np.mean(high) - np.mean(low))
    error = math.sqrt(sum(float(np.var(one, ddof=1)) / len(one) for one in (high, low)))
    reach = student_quantile(1.0 - LEVEL / 2.0, sum(counts) - 2) * error
    return CarryOver(
        ratio=math.exp(estimate),
        ratio_ci=(math.exp(estimate - reach), math.exp(estimate + reach)),
        trials=sum(counts),
    )


def should_warn(measured: CarryOver, *, min_effect: float) -> bool:
    """Return whether a carry-over is both certain and large enough to matter.

    Certain: more than three standard errors. Large enough: the effect is off by about half of it,
    and that reaches a quarter of ``min_effect`` (percent).
    """
    low, high = measured.ratio_ci
    if low is None or high is None:
        return False
    size = abs(math.log(measured.ratio))
    reach = 0.5 * (math.log(high) - math.log(low))
    error = reach / student_quantile(1.0 - LEVEL / 2.0, measured.trials - 2)
    return size > WARN_ERRORS * error and size / 2.0 >= margin_of(min_effect) / 4.0


def _residuals(logs: FloatArray, conditions: IntArray, before: IntArray) -> FloatArray:
    """Remove its own condition and the local trend from each first trial.

    The trend is that of its neighbours, each without its own condition and what ran before it. The
    coin for what ran before a trial has no part in its neighbours, so the trend hides none of it.
    """
    effect, before_effect = np.zeros_like(logs), np.zeros_like(logs)
    detrended = logs
    for _ in range(ROUNDS):
        detrended = logs - _local_trend(logs - effect - before_effect)
        effect = _group_medians(detrended - before_effect, conditions)
        before_effect = _group_medians(detrended - effect, before)
    around = detrended - effect - before_effect
    clip = CLIP_SCALES * 1.4826 * float(median_of(np.abs(around - median_of(around))))
    if clip > 0:
        around = np.clip(around, -clip, clip)
    return np.asarray(around + before_effect)


def _group_medians(values: FloatArray, groups: IntArray) -> FloatArray:
    medians = np.empty_like(values)
    for group in np.unique(groups):
        members = groups == group
        medians[members] = median_of(values[members])
    return medians


def _local_trend(values: FloatArray) -> FloatArray:
    """Return the median of up to five neighbours on each side, as many on one as on the other."""
    places = np.arange(len(values))
    # At the very ends there is only one side to look at.
    reach = np.clip(np.minimum(places, places[::-1]), NEAREST, FARTHEST)
    distances = np.abs(np.arange(-FARTHEST, FARTHEST + 1))
    near = (distances >= NEAREST) & (distances <= reach[:, None])
    windows = sliding_window_view(
        np.pad(values, FARTHEST, constant_values=math.nan), 2 * FARTHEST + 1
    )
    return row_medians(np.where(near, windows, math.nan))
