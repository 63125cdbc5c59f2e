"""A metric as an axis shows it: its name, its unit, and the range that is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.figures.ticks import log_ticks

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_RATES = tuple((divisor, f"{unit}/s") for divisor, unit in _BYTES)
_COUNTS = ((1.0, "per s"),)
_NAMES = {
    "wall_s": "time",
    "user_s": "user CPU time",
    "sys_s": "system CPU time",
    "cpu_s": "CPU time",
    "max_rss_bytes": "peak memory",
}
_LOGARITHMIC_FROM = 5.0
"""Where groups are this many times apart, a linear axis shows nothing but two spikes."""
_FENCE = 1.5
"""Trials are drawn off the edge beyond this many ranges past the outer percentiles."""
_OUTER = (2.0, 98.0)
_MARGIN = 0.07
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Quantity:
    """How one metric is drawn."""

    name: str
    unit: str
    """Empty for a count or a metric without a known unit."""
    divisor: float
    """A value in the metric's own unit over this is the value in ``unit``."""
    low: float
    high: float
    """The range that is drawn, in ``unit``."""
    logarithmic: bool

    def title(self) -> str:
        """The axis title, with the unit."""
        with_unit = f"{self.name}, in {self.unit}" if self.unit else self.name
        return f"{with_unit} (logarithmic scale)" if self.logarithmic else with_unit

    def ticks(self) -> list[float] | None:
        """Where the axis is labelled; ``None`` lets it choose."""
        return log_ticks(self.low, self.high) if self.logarithmic else None

    def shown(self, value: float) -> float:
        """The value in ``unit``, to as many digits as a picture can use."""
        return rounded(value / self.divisor)

    def clipped(self, value: float) -> float:
        """The value in ``unit``, moved to the edge of the range if it lies beyond."""
        return min(max(self.shown(value), self.low), self.high)

    def beyond(self, value: float) -> bool:
        """Whether the value lies outside the range that is drawn."""
        return not self.low <= self.shown(value) <= self.high

    def place(self, value: float) -> float:
        """Where a value in ``unit`` stands on the axis, up to a linear map."""
        return math.log(value) if self.logarithmic else value


def rounded(value: float) -> float:
    """A number to six significant digits: what is drawn, never what is computed with."""
    return float(f"{value:.{DIGITS}g}")


def quantity_of(metric: str, groups: Sequence[Sequence[float]]) -> Quantity:
    """How to draw a metric over groups of values, one for each condition.

    Parameters
    ----------
    groups
        Finite values in the metric's own unit; groups may be empty.
    """
    filled = [np.asarray(group, dtype=np.float64) for group in groups if len(group)]
    medians = [float(np.median(group)) for group in filled]
    divisor, unit = unit_of(metric, max(medians, default=1.0))
    logarithmic = bool(
        filled
        and min(float(group.min()) for group in filled) > 0
        and max(medians) > _LOGARITHMIC_FROM * min(medians)
    )
    low, high = _range([group / divisor for group in filled], logarithmic)
    return Quantity(
        name=metric_name(metric),
        unit=unit,
        divisor=divisor,
        low=low,
        high=high,
        logarithmic=logarithmic,
    )


def metric_name(metric: str) -> str:
    """A metric in words, without its unit."""
    plain = metric
    for ending in ("_bytes_per_s", "_per_s", "_s", "_bytes"):
        plain = plain.removesuffix(ending)
    return _NAMES.get(metric, plain.replace("_", " "))


def unit_of(metric: str, typical: float) -> tuple[float, str]:
    """The divisor and the name of the unit in which a typical value reads well.

    A metric's own unit is the end of its name: ``_s`` for seconds, ``_bytes`` for bytes,
    ``_bytes_per_s`` for bytes a second.
    """
    units: Iterable[tuple[float, str]] = ()
    if metric.endswith("_bytes_per_s"):
        units = _RATES
    elif metric.endswith("_per_s"):
        units = _COUNTS
    elif metric.endswith("_s"):
        units = _TIMES
    elif metric.endswith("_bytes"):
        units = _BYTES
    smallest = (1.0, "")
    for divisor, unit in units:
        smallest = (divisor, unit)
        if abs(typical) >= divisor:
            break
    return smallest


def _range(
    groups: Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]], logarithmic: bool
) -> tuple[float, float]:
    if not groups:
        return (0.0, 1.0)
    placed = [np.log(group) if logarithmic else group for group in groups]
    outer = [np.percentile(group, _OUTER) for group in placed]
    reach = _FENCE * (max(high for _, high in outer) - min(low for low, _ in outer))
    low = max(min(float(g.min()) for g in placed), min(float(low) for low, _ in outer) - reach)
    high = min(max(float(g.max()) for g in placed), max(float(high) for _, high in outer) + reach)
    margin = (
        _MARGIN * (high - low) if high > low else _MARGIN if logarithmic else _MARGIN * abs(high)
    )
    low, high = low - margin, high + (margin or 1.0)
    return (math.exp(low), math.exp(high)) if logarithmic else (low, high)
