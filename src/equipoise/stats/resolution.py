"""Resolution of a metric beside its costs: what cannot be told from a tie.

A tolerance that depends on which condition is faster breaks the symmetry that the bets rest on
(verdict.md §10). So the tolerance of a block is set by the costs of the blocks before it.
"""

from __future__ import annotations

import bisect
import math
from decimal import Decimal

import numpy as np

from equipoise.stats.arrays import FloatArray

TIE_QUANTA = 1.5
"""Two readings of equal times can differ by a whole quantum; half a quantum more leaves room for
the rounding of the ratio under test (verdict.md §1)."""
LOW_QUANTILE = 0.1
"""The quanta are set against this quantile of the past costs."""
COSTS_FOR_TICKS = 6
"""Costs from which ticks that are no power of ten are inferred."""
_TICK_ERROR = 1e-3
"""Largest deviation of a gap from a whole number of ticks, in ticks."""


def tie_tolerance(baseline: FloatArray, candidate: FloatArray, quantum: float) -> FloatArray:
    """Return 1.5 clock quanta in log units: relative to the smaller of the two costs.

    The rule of the first engine.

    Parameters
    ----------
    baseline, candidate
        Shape (n,): costs, in the unit of ``quantum``.
    quantum
        Resolution of the metric; 0 for one without.

    Returns
    -------
    Shape (n,); 0 where the smaller cost is 0, which ``block_differences`` deals with.
    """
    smaller = np.minimum(baseline, candidate)
    tolerance = np.zeros_like(smaller)
    np.divide(TIE_QUANTA * quantum, smaller, out=tolerance, where=smaller > 0)
    return tolerance


class PastCosts:
    """Costs so far, and the resolution that they show.

    Parameters
    ----------
    quantum
        Resolution of the metric in its own unit, 0 for one without; ``None`` to infer it from the
        granularity of the costs: their decimal places, and the smallest gap between two of them
        where every gap is a whole number of it.
    """

    def __init__(self, quantum: float | None) -> None:
        self._known = quantum
        self._costs: list[float] = []
        self._decimal = math.inf
        self._ticks_possible = True

    def add(self, *costs: float) -> None:
        """Add the costs of a block; a timeout and a cost of 0 show no resolution."""
        for cost in costs:
            if 0 < cost < math.inf:
                bisect.insort(self._costs, cost)
                if self._known is None:
                    self._decimal = min(self._decimal, _decimal_unit(cost))

    @property
    def is_empty(self) -> bool:
        """Whether there is no cost yet."""
        return not self._costs

    @property
    def is_exact(self) -> bool:
        """Whether the metric is known to have no resolution."""
        return self._known == 0

    @property
    def quantum(self) -> float:
        """Resolution in the unit of the metric."""
        if self._known is not None:
            return self._known
        return max(self._decimal, self._tick()) if self._costs else 0.0

    def tolerance(self) -> float:
        """Return 1.5 quanta in log units, beside the 10 % quantile of the costs so far.

        There must be a cost.
        """
        low = self._costs[int(LOW_QUANTILE * (len(self._costs) - 1))]
        return TIE_QUANTA * self.quantum / low

    def _tick(self) -> float:
        if not self._ticks_possible or len(self._costs) < COSTS_FOR_TICKS:
            return 0.0
        gaps = np.diff(np.unique(self._costs))
        if len(gaps) == 0:
            return 0.0
        ticks = gaps / gaps.min()
        self._ticks_possible = bool(np.all(np.abs(ticks - np.rint(ticks)) <= _TICK_ERROR))
        return float(gaps.min()) if self._ticks_possible else 0.0


def _decimal_unit(cost: float) -> float:
    """Return the last decimal place of a cost, at most 1: 0.001 for 0.125."""
    exponent = Decimal(repr(cost)).normalize().as_tuple().exponent
    return 10.0 ** min(0, int(exponent))
