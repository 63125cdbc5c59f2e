"""Whether the minimum tells another story (Tratt 2019)."""

from __future__ import annotations

import math

from equipoise.model.result import Verdict
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


def _winner(log_ratio: float, margin: float) -> int:
    """1 if the baseline wins, -1 if the candidate does, 0 if neither."""
    if abs(log_ratio) <= margin:
        return 0
    return 1 if log_ratio > 0 else -1


def _ln_ratio(numerator: float, denominator: float) -> float:
    if numerator == denominator:
        return 0.0
    if numerator == 0 or denominator == 0:
        return -math.inf if numerator == 0 else math.inf
    return math.log(numerator) - math.log(denominator)
