"""Whether the minimum tells another story (Tratt 2019), and what every other statistic says."""

from __future__ import annotations

import math

import numpy as np

from equipoise.model.result import StatisticAnswer, Verdict
from equipoise.stats.arrays import FloatArray
from equipoise.stats.shift import DECILES, quantiles_of
from equipoise.stats.verdict import margin_of


def minimum_misleads(
    baseline_minimum: float,
    candidate_minimum: float,
    *,
    typical: float | None,
    verdict: Verdict,
    min_effect: float,
) -> bool:
    """Whether a ranking by minimum contradicts the result (design.md §4).

    True if the minimum and the typical ratio name different winners, each by more than
    ``min_effect`` percent, or the minimum names one and the verdict is ``equivalent``.

    Parameters
    ----------
    baseline_minimum, candidate_minimum
        Costs from 0 up.
    typical
        The typical log ratio, candidate over baseline; ``None`` if unknown.
    verdict
        Of the comparison.
    min_effect
        In percent.
    """
    margin = margin_of(min_effect)
    by_minimum = _winner(_ln_ratio(candidate_minimum, baseline_minimum), margin)
    if by_minimum == 0:
        return False
    if verdict == "equivalent":
        return True
    return typical is not None and _winner(typical, margin) == -by_minimum


def answers(
    baseline: FloatArray, candidate: FloatArray, *, min_effect: float
) -> tuple[StatisticAnswer, ...]:
    """What each statistic alone would have said: the minimum, each decile and the mean.

    Parameters
    ----------
    baseline, candidate
        Shape (n,), n at least 1: costs from 0 up, +inf for a trial that timed out.
    min_effect
        In percent.

    Returns
    -------
    From the minimum up, the mean last. Two timeouts, or two costs of nothing, are equivalent.
    """
    margin = margin_of(min_effect)
    wanted = np.array(DECILES)
    deciles = [quantiles_of(one, wanted) for one in (baseline, candidate)]
    names = ("minimum", *(f"p{round(100 * decile)}" for decile in DECILES), "mean")
    low, high = (
        [float(np.min(costs)), *quantiles.tolist(), float(np.mean(costs))]
        for costs, quantiles in zip((baseline, candidate), deciles, strict=True)
    )
    return tuple(
        _answer(name, _ln_ratio(over, under), margin)
        for name, under, over in zip(names, low, high, strict=True)
    )


def _answer(statistic: str, log_ratio: float, margin: float) -> StatisticAnswer:
    ratio = math.exp(log_ratio) if math.isfinite(log_ratio) else None
    winner = _winner(log_ratio, margin)
    return StatisticAnswer(
        statistic, ratio, "equivalent" if winner == 0 else "slower" if winner > 0 else "faster"
    )


def _winner(log_ratio: float, margin: float) -> int:
    """1 if the baseline wins, -1 if the candidate does, 0 if neither."""
    if abs(log_ratio) <= margin:
        return 0
    return 1 if log_ratio > 0 else -1


def _ln_ratio(numerator: float, denominator: float) -> float:
    if numerator == denominator:
        return 0.0
    if math.isinf(numerator) or math.isinf(denominator):
        return math.inf if math.isinf(numerator) else -math.inf
    if numerator == 0 or denominator == 0:
        return -math.inf if numerator == 0 else math.inf
    return math.log(numerator) - math.log(denominator)
