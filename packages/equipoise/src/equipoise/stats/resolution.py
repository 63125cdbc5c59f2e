"""Resolution of a metric: the smallest step of its values, and the differences that are ties.

- The *quantum* is the smallest step, in the unit of the metric. It is known, or inferred from
  values: as the *decimal step*, such as 0.001 for 0.125, or as the *tick*, a gap between values
  that divides all other gaps.
- The *tolerance* of a block is the largest log difference that counts as a tie. It comes from
  earlier blocks, so it cannot depend on which condition is faster (docs/methods/interval.md).

If more of a metric is better, a cost is the inverse of a value. The quantum is a step of the
values, so tolerances are computed from the values, not from the costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from heapq import heappop, heappush, heappushpop

import numpy as np
from msgspec import Struct

from equipoise.stats.arrays import FloatArray

TIE_QUANTA = 1.5
"""A difference below this number of quanta is a tie. Two readings of equal times can differ by a
whole quantum; half a quantum more allows for rounding (docs/methods/interval.md)."""
MAX_TOLERANCE = 1e6
"""Maximum tolerance, in log units. No two finite costs differ by that much: all blocks are ties."""
LOW_QUANTILE = 0.1
"""The tolerance is ``TIE_QUANTA`` quanta, divided by this quantile of the past values."""
MIN_VALUES_FOR_TICK = 6
"""Minimum number of values from which a tick is inferred."""
_MAX_TICK_ERROR = 1e-3
"""Maximum deviation of a gap from a whole number of ticks, in ticks."""


class Resolution(Struct, frozen=True):
    """Smallest step of a metric, and how costs follow from its values."""

    quantum: float | None
    """The quantum; 0 without a smallest step, ``None`` to infer the quantum from values."""
    more_is_better: bool = False
    """Whether a cost is the inverse of a value."""


NO_RESOLUTION = Resolution(0.0)
"""Resolution of a metric without a smallest step."""


def tie_tolerance(baseline: FloatArray, candidate: FloatArray, quantum: float) -> FloatArray:
    """Return the tolerance of first blocks: 1.5 quanta over the smaller value, in log units.

    A first block has no past values. Both arrays have the shape (n,) and the unit of ``quantum``.
    The tolerance is 0 if the quantum or the smaller value is 0.
    """
    smaller = np.minimum(baseline, candidate)
    tolerance = np.zeros_like(smaller)
    with np.errstate(over="ignore"):
        np.divide(TIE_QUANTA * quantum, smaller, out=tolerance, where=smaller > 0)
    return np.minimum(tolerance, MAX_TOLERANCE)


class PastValues:
    """Values of a metric in the blocks so far, and the quantum inferred from them.

    An unknown quantum is the larger of the smallest decimal step and the tick, if there is a tick.
    """

    def __init__(self, resolution: Resolution) -> None:
        self._resolution = resolution
        self._low_quantile = _LowQuantile()
        self._values_by_condition: tuple[set[float], set[float]] = (set(), set())
        self._min_decimal_step = math.inf
        self._may_have_tick = True

    def add(self, baseline: Sequence[float], candidate: Sequence[float]) -> None:
        """Add the costs of a block; timeouts and costs of 0 are ignored."""
        for seen_values, costs in zip(
            self._values_by_condition, (baseline, candidate), strict=True
        ):
            for value in map(self._value, map(float, costs)):
                if 0 < value < math.inf:
                    self._low_quantile.add(value)
                    if self._resolution.quantum is None:
                        seen_values.add(value)
                        self._min_decimal_step = min(self._min_decimal_step, _decimal_step(value))

    def values(self, costs: FloatArray) -> FloatArray:
        """Return the values of costs, shape (n,); 0 for an infinite cost that is an inverse."""
        if not self._resolution.more_is_better:
            return costs
        return np.array([self._value(cost) for cost in costs.tolist()])

    def _value(self, cost: float) -> float:
        if not self._resolution.more_is_better:
            return cost
        # The inverse of an inverse has an error: without rounding, 49 would be 49.00000000000001.
        return float(f"{1.0 / cost if cost else math.inf:.15g}")

    @property
    def is_empty(self) -> bool:
        """Whether no value was added yet."""
        return not len(self._low_quantile)

    @property
    def has_inverse_costs(self) -> bool:
        """Whether a cost is the inverse of a value."""
        return self._resolution.more_is_better

    @property
    def has_no_quantum(self) -> bool:
        """Whether the metric is known to have no smallest step."""
        return self._resolution.quantum == 0

    @property
    def quantum(self) -> float:
        """Known or inferred quantum; 0 before the first value."""
        if self._resolution.quantum is not None:
            return self._resolution.quantum
        return 0.0 if self.is_empty else max(self._min_decimal_step, self._tick())

    def tolerance(self) -> float:
        """Return 1.5 quanta over the 10 % quantile of the values so far, in log units.

        There must be at least one value.
        """
        return min(TIE_QUANTA * self.quantum / self._low_quantile.value, MAX_TOLERANCE)

    def _tick(self) -> float:
        """Return the smallest gap between values of one condition if it is a tick; else 0."""
        if not self._may_have_tick or len(self._low_quantile) < MIN_VALUES_FOR_TICK:
            return 0.0
        gaps_by_condition = [np.diff(sorted(values)) for values in self._values_by_condition]
        if not all(len(value_gaps) for value_gaps in gaps_by_condition):
            return 0.0
        value_gaps = np.concatenate(gaps_by_condition)
        gaps_in_ticks = value_gaps / value_gaps.min()
        errors = np.abs(gaps_in_ticks - np.rint(gaps_in_ticks))
        self._may_have_tick = bool(np.all(errors <= _MAX_TICK_ERROR))
        return float(value_gaps.min()) if self._may_have_tick else 0.0


class _LowQuantile:
    """The 10 % quantile of the values so far: the largest of the lowest tenth of the values."""

    def __init__(self) -> None:
        self._negated_lowest: list[float] = []
        """Heap of the lowest tenth. A heap has its minimum first, so the values are negated."""
        self._higher: list[float] = []
        """Heap of all other values."""

    def __len__(self) -> int:
        return len(self._negated_lowest) + len(self._higher)

    @property
    def value(self) -> float:
        """Value of rank floor((n - 1) / 10), from 0; there must be at least one value."""
        return -self._negated_lowest[0]

    def add(self, value: float) -> None:
        heappush(self._higher, -heappushpop(self._negated_lowest, -value))
        # The rank grows by 1 at most.
        if len(self._negated_lowest) <= int(LOW_QUANTILE * (len(self) - 1)):
            heappush(self._negated_lowest, -heappop(self._higher))


def _decimal_step(value: float) -> float:
    """Return the step of the last decimal place of a value, at most 1: 0.001 for 0.125."""
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return 10.0 ** min(0, int(exponent))
