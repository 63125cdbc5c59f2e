"""A metric as an axis shows it: its name, its unit, the drawn range, and the labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from equipoise.model.quantities import BYTE_UNITS, TIME_UNITS, Interval

_RATES = tuple((divisor, f"{unit}/s") for divisor, unit in BYTE_UNITS)
_COUNTS = ((1.0, "per s"),)
_NAMES = {
    "wall_s": "time",
    "call_s": "time of a call",
    "user_s": "user CPU time",
    "sys_s": "system CPU time",
    "cpu_s": "CPU time",
    "max_rss_bytes": "peak memory",
}
_LOGARITHMIC_FROM = 5.0
"""Ratio of the medians above which the axis is logarithmic."""
_FENCE = 1.5
"""Ranges of the outer percentiles beyond which a trial is drawn at the edge."""
_OUTER = (2.0, 98.0)
_MARGIN = 0.07
_DIGITS = 6

_MAX_TICKS = 9
_NARROW = 4.0
"""Factor below which a logarithmic axis is nearly linear, and labelled like one."""
_STEPS = ((1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1, 3), (1,))
"""Labels within a decade, the densest first."""


_WIDEST = 4.0
"""Typical bar lengths beyond the outermost mark up to which a bar is drawn in full."""


class Quantity(Struct, frozen=True):
    """How one metric is drawn."""

    name: str
    unit: str
    """Empty for a count or a metric without a known unit."""
    divisor: float
    """Size of ``unit`` in the metric's own unit."""
    low: float
    high: float
    """The drawn range, in ``unit``."""
    logarithmic: bool

    def title(self) -> str:
        """Return the axis title, with the unit."""
        with_unit = f"{self.name}, in {self.unit}" if self.unit else self.name
        return f"{with_unit} (logarithmic scale)" if self.logarithmic else with_unit

    def ticks(self) -> list[float] | None:
        """Return the positions of the labels; ``None`` lets the axis choose."""
        return log_ticks(self.low, self.high) if self.logarithmic else None

    def scaled(self, value: float) -> float:
        """Return the value in ``unit``, to as many digits as a picture can use."""
        return rounded(value / self.divisor)

    def clipped(self, value: float) -> float:
        """Return the value in ``unit``, moved to the edge of the range if it is beyond."""
        return min(max(self.scaled(value), self.low), self.high)

    def beyond(self, value: float) -> bool:
        """Return whether the value is outside the drawn range."""
        return not self.low <= self.scaled(value) <= self.high

    def place(self, value: float) -> float:
        """Return the position of a value in ``unit`` on the axis, up to a linear map."""
        return math.log(value) if self.logarithmic else value


def rounded(value: float) -> float:
    """Round a number for drawing, to six significant digits."""
    return float(f"{value:.{_DIGITS}g}")


def quantity_of(
    metric: str, groups: Sequence[Sequence[float]], typical: float | None = None
) -> Quantity:
    """Choose how to draw a metric over groups of finite values, one for each condition.

    The unit is that of a typical value, by default of the largest median.
    """
    filled = [np.asarray(group, dtype=np.float64) for group in groups if len(group)]
    medians = [float(np.median(group)) for group in filled]
    divisor, unit = unit_of(metric, typical or max(medians, default=1.0))
    logarithmic = bool(
        filled
        and min(float(group.min()) for group in filled) > 0
        and max(medians) > _LOGARITHMIC_FROM * min(medians)
    )
    low, high = _range([group / divisor for group in filled], logarithmic)
    return Quantity(metric_name(metric), unit, divisor, low, high, logarithmic)


def metric_name(metric: str) -> str:
    """Return the name of a metric in words, without its unit."""
    plain = metric
    for ending in ("_bytes_per_s", "_per_s", "_s", "_bytes"):
        plain = plain.removesuffix(ending)
    return _NAMES.get(metric, plain.replace("_", " "))


def unit_of(metric: str, typical: float) -> tuple[float, str]:
    """Return the size and the name of the unit in which a typical value reads well.

    A metric's own unit is the end of its name: ``_s`` for seconds, ``_bytes`` for bytes,
    ``_bytes_per_s`` for bytes a second.
    """
    units: Iterable[tuple[float, str]] = ()
    if metric.endswith("_bytes_per_s"):
        units = _RATES
    elif metric.endswith("_per_s"):
        units = _COUNTS
    elif metric.endswith("_s"):
        units = TIME_UNITS
    elif metric.endswith("_bytes"):
        units = BYTE_UNITS
    smallest = (1.0, "")
    for divisor, unit in units:
        smallest = (divisor, unit)
        if abs(typical) >= divisor:
            break
    return smallest


def log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two positive ones, as labels of a logarithmic axis."""
    if high < _NARROW * low:
        return _even_ticks(low, high)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in _STEPS:
        places = [rounded(step * 10.0**power) for power in powers for step in steps]
        ticks = [place for place in places if low <= place <= high]
        if len(ticks) <= _MAX_TICKS:
            return ticks
    every = math.ceil(len(powers) / _MAX_TICKS)
    places = [10.0**power for power in powers if power % every == 0]
    return [place for place in places if low <= place <= high]


def _even_ticks(low: float, high: float) -> list[float]:
    power = 10.0 ** math.floor(math.log10((high - low) / _MAX_TICKS))
    width = next(s * power for s in (1, 2, 5, 10, 20) if (high - low) / (s * power) < _MAX_TICKS)
    first, last = math.ceil(low / width), math.floor(high / width)
    return [rounded(number * width) for number in range(first, last + 1)]


def _range(groups: Sequence[NDArray[np.float64]], logarithmic: bool) -> tuple[float, float]:
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


def extent(drawn: Sequence[tuple[float | None, Interval]]) -> Iterator[float | None]:
    """Yield the ratios, and the ends of their intervals that are not unusually far out."""
    yield from (ratio for ratio, _ in drawn)
    known = [(ratio, interval) for ratio, interval in drawn if ratio]
    reach = [
        abs(math.log(end) - math.log(ratio)) for ratio, interval in known for end in interval if end
    ]
    most = max((abs(math.log(ratio)) for ratio, _ in known), default=0.0)
    most += _WIDEST * (float(np.median(reach)) if reach else 0.0)
    yield from (
        end for _, interval in drawn for end in interval if end and abs(math.log(end)) <= most
    )
