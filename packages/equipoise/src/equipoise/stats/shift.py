"""Whether the fast, the middle and the slow runs of two conditions have the same ratio.

- `shift_function`: the ratio of each decile.
- `minimum_misleads`: whether a ranking by minimum contradicts the verdict.
- `statistic_answers`: which condition is faster by the minimum, each decile and the mean.
- `is_mostly_waiting`: whether most of a difference in time is waiting for a processor (run delay).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.model.result import StatisticAnswer, Verdict
from equipoise.shared.spelling import option
from equipoise.stats.arrays import LEVEL, FloatArray, as_costs
from equipoise.stats.describe import quantile_interval
from equipoise.stats.verdict import margin_of

DECILES = tuple(decile / 10 for decile in range(1, 10))
RESAMPLES = 2000
"""Number of bootstrap resamples for the bands."""
TAIL_QUANTILE = 0.99
MIN_BLOCKS_FOR_TAIL = 100
"""Minimum number of blocks for answers by the 99th percentile and the maximum. With fewer blocks,
this percentile lies between the two largest costs."""
MIN_BLOCKS = 10
"""Minimum number of blocks: with fewer, the outer deciles are extremes without a valid band."""
_MAX_RESAMPLED_COSTS = 2_000_000
"""Maximum number of resampled costs in memory at once."""


class ShiftFunction(Struct, frozen=True):
    """The ratio of two distributions, quantile by quantile.

    All arrays have shape ``(quantiles,)``. A ratio is NaN if both quantiles are timeouts, and
    ``inf`` or 0 if one of them is. Bounds may be 0 or ``inf``, too.
    """

    quantiles: FloatArray
    """The deciles, as fractions from 0.1 to 0.9."""
    ratio: FloatArray
    low: FloatArray
    high: FloatArray
    """Upper bounds of the ratios; each pair of bounds is an interval at 95 %."""
    blocks: int


def shift_function(
    baseline: FloatArray, candidate: FloatArray, *, seed: int, resamples: int = RESAMPLES
) -> ShiftFunction:
    """Return deciles of the candidate over deciles of the baseline, with bootstrap bands.

    This is the shift function of Doksum (1974) at the deciles (Wilcox, Introduction to Robust
    Estimation, §5.1.4), as a ratio. The bands are percentile intervals of resampled whole blocks
    (Davison and Hinkley 1997, §3.8). Deciles have the type 8 of Hyndman and Fan (1996).
    ``baseline`` and ``candidate``, shape ``(blocks,)``, are costs in the same blocks, in one unit;
    ``inf`` for a trial that timed out. ``seed`` is for the resampling.

    Raise `UnusableInput` if the shapes differ, there are fewer than ``MIN_BLOCKS`` blocks, or a
    cost is negative or NaN.
    """
    _require_usable_costs(baseline, candidate)
    generator = np.random.default_rng(seed)
    blocks = len(baseline)
    resampled_ratios = np.empty((resamples, len(DECILES)))
    batch_size = max(1, _MAX_RESAMPLED_COSTS // blocks)
    for begin in range(0, resamples, batch_size):
        end = min(resamples, begin + batch_size)
        indices = generator.integers(0, blocks, size=(end - begin, blocks))
        resampled_ratios[begin:end] = _ratios(baseline[indices], candidate[indices])
    # A resample with two timeouts excludes no ratio: it counts as 0 below, and as infinite above.
    ascending_low = np.sort(np.where(np.isnan(resampled_ratios), 0.0, resampled_ratios), axis=0)
    ascending_high = np.sort(np.where(np.isnan(resampled_ratios), np.inf, resampled_ratios), axis=0)
    cut_count = int(np.floor(resamples * LEVEL / 2.0))
    return ShiftFunction(
        quantiles=np.array(DECILES),
        ratio=_ratios(baseline[None, :], candidate[None, :])[0],
        low=ascending_low[cut_count],
        high=ascending_high[resamples - 1 - cut_count],
        blocks=blocks,
    )


def _require_usable_costs(baseline: FloatArray, candidate: FloatArray) -> None:
    if baseline.shape != candidate.shape or baseline.ndim != 1:
        raise UnusableInput(
            f"the baseline's costs have the shape {baseline.shape}, the candidate's the shape "
            f"{candidate.shape}",
            hint="give one cost of each condition for each block: two arrays of shape (blocks,)",
        )
    if len(baseline) < MIN_BLOCKS:
        raise UnusableInput(
            f"{len(baseline)} blocks are too few for a shift function, which needs {MIN_BLOCKS}",
            hint=f"measure again with {option('min_blocks', MIN_BLOCKS)}",
        )
    # These raise an error that names the block of a negative or unknown cost.
    as_costs(baseline, "the baseline")
    as_costs(candidate, "the candidate")


def _ratios(baseline: FloatArray, candidate: FloatArray) -> FloatArray:
    """Return the ratio of each decile, shape (r, deciles), for costs of shape (r, blocks)."""
    denominators, numerators = (_quantiles(baseline, DECILES), _quantiles(candidate, DECILES))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: FloatArray = np.where(numerators == denominators, 1.0, numerators / denominators)
    ratios[np.isinf(denominators) & np.isinf(numerators)] = np.nan
    return ratios


def _quantiles(samples: FloatArray, quantiles: Sequence[float]) -> FloatArray:
    """Return quantiles of type 8 along the last axis; NumPy's would be NaN for infinite costs."""
    ordered = np.sort(samples, axis=-1)
    count = ordered.shape[-1]
    positions = np.clip((count + 1 / 3) * np.array(quantiles) + 1 / 3 - 1, 0.0, count - 1.0)
    indices = np.floor(positions).astype(np.int64)
    weights = positions - indices
    lower, upper = (ordered[..., indices], ordered[..., np.minimum(indices + 1, count - 1)])
    with np.errstate(invalid="ignore"):
        interpolated = lower + weights * (upper - lower)
    return np.where((weights == 0.0) | (lower == upper), lower, interpolated)


def minimum_misleads(
    baseline_minimum: float,
    candidate_minimum: float,
    *,
    typical: float | None,
    verdict: Verdict,
    min_effect: float,
) -> bool:
    """Return whether a ranking by minimum contradicts the result (docs/methods/verdict.md).

    A minimum misleads in two cases. Ratios are candidate over baseline.

    - The ratio of the minima and the typical log ratio have different winners, each by more than
      ``min_effect`` percent.
    - The minima have a winner, and the verdict is ``equivalent``.
    """
    margin = margin_of(min_effect)
    minimum_sign = _winner_sign(_ln_ratio(candidate_minimum, baseline_minimum), margin)
    if minimum_sign == 0:
        return False
    if verdict == "equivalent":
        return True
    return typical is not None and _winner_sign(typical, margin) == -minimum_sign


def statistic_answers(
    baseline: FloatArray, candidate: FloatArray, *, min_effect: float, level: float = LEVEL
) -> tuple[StatisticAnswer, ...]:
    """Return the answer of each statistic: the minimum, each decile and, at the end, the mean.

    From 100 blocks on, the 99th percentile and the maximum follow the deciles.

    ``baseline`` and ``candidate``, shape (n,), are costs of 0 or more, +inf for a trial that timed
    out. An answer is certain if the intervals of both conditions do not overlap. ``level`` is the
    maximum chance of a certain answer that is wrong, if trials are independent. Answers by the
    minimum, the maximum and the mean are never certain: no interval of a mean of unlimited costs
    has an error rate (Bahadur and Savage 1956).
    """
    margin = margin_of(min_effect)
    has_tail = len(baseline) >= MIN_BLOCKS_FOR_TAIL
    quantiles = (*DECILES, TAIL_QUANTILE) if has_tail else DECILES
    quantile_names = [f"p{round(100 * quantile)}" for quantile in quantiles]

    def statistics(costs: FloatArray) -> dict[str, float]:
        values = {"minimum": float(np.min(costs))}
        values |= zip(quantile_names, _quantiles(costs, quantiles).tolist(), strict=True)
        if has_tail:
            values["maximum"] = float(np.max(costs))
        return values | {"mean": float(np.mean(costs))}

    baseline_values, candidate_values = statistics(baseline), statistics(candidate)
    certain_signs = dict(
        zip(quantile_names, _certain_signs(baseline, candidate, quantiles, level), strict=True)
    )
    answers: list[StatisticAnswer] = []
    for name, value in candidate_values.items():
        log_ratio = _ln_ratio(value, baseline_values[name])
        sign = _winner_sign(log_ratio, margin)
        ratio = math.exp(log_ratio) if math.isfinite(log_ratio) else None
        is_certain = sign != 0 and sign == certain_signs.get(name, 0)
        answers.append(StatisticAnswer(name, ratio, _ANSWER_BY_SIGN[sign], is_certain))
    return tuple(answers)


def _certain_signs(
    baseline: FloatArray, candidate: FloatArray, quantiles: Sequence[float], level: float
) -> Iterator[Literal[-1, 0, 1]]:
    """Yield 1 if the candidate is certainly slower at a quantile, -1 if certainly faster, else 0.

    The levels of all intervals add up to ``level``.
    """
    quantile_level = level / (2 * len(quantiles))
    ordered = [np.sort(costs) for costs in (baseline, candidate)]
    for quantile in quantiles:
        (baseline_low, baseline_high), (low, high) = (
            quantile_interval(costs, quantile, quantile_level) for costs in ordered
        )
        is_above = low is not None and baseline_high is not None and low > baseline_high
        is_below = high is not None and baseline_low is not None and high < baseline_low
        yield 1 if is_above else -1 if is_below else 0


_ANSWER_BY_SIGN: dict[int, Literal["faster", "slower", "equivalent"]]
_ANSWER_BY_SIGN = {-1: "faster", 0: "equivalent", 1: "slower"}


def _winner_sign(log_ratio: float, margin: float) -> int:
    """Return 1 if the baseline wins, -1 if the candidate does, 0 if neither."""
    return (log_ratio > margin) - (log_ratio < -margin)


def _ln_ratio(numerator: float, denominator: float) -> float:
    if numerator == denominator:
        return 0.0
    with np.errstate(divide="ignore"):
        return float(np.log(numerator) - np.log(denominator))


MAJORITY_SHARE = 0.5
"""Fraction of the extra time above which waiting is most of the extra time."""
_NORMAL_95 = 1.6448536269514722
"""Quantile of the normal distribution for a one-sided level of 5 %."""


def is_mostly_waiting(extra_s: FloatArray, waiting_s: FloatArray) -> bool:
    """Return whether waiting is over half of the extra time, in most blocks and in total.

    A sign test decides on "in most blocks" (Dixon and Mood 1946). ``extra_s`` is the wall time of
    the slower condition minus the wall time of the faster condition. ``waiting_s`` is the same
    difference of run delays. Both are in seconds, shape (n,).
    """
    blocks = len(extra_s)
    waiting_blocks = int(((extra_s > 0.0) & (waiting_s > MAJORITY_SHARE * extra_s)).sum())
    if not waiting_s.sum() > MAJORITY_SHARE * extra_s.sum() > 0.0:
        return False
    # Normal approximation with continuity correction, wrong by at most one block.
    return waiting_blocks - 0.5 > (blocks + _NORMAL_95 * math.sqrt(blocks)) / 2.0
