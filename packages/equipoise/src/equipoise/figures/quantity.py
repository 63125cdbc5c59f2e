"""The axis of a metric: its name, unit, range and labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from equipoise.model.quantities import BYTE_UNITS, TIME_UNITS, Interval

_BYTE_RATE_UNITS = tuple((divisor, f"{unit}/s") for divisor, unit in BYTE_UNITS)
_COUNT_RATE_UNITS = ((1.0, "per s"),)
_METRIC_NAMES = {
    "wall_s": "time",
    "call_s": "time of a call",
    "user_s": "user CPU time",
    "sys_s": "system CPU time",
    "cpu_s": "CPU time",
    "max_rss_bytes": "peak memory",
}
"""Names of metrics whose identifier is not a readable name."""
_MAX_LINEAR_RATIO = 5.0
"""Maximum ratio of the largest to the smallest median on a linear axis."""
_OUTER_PERCENTILES = (2.0, 98.0)
"""Percentiles around nearly all values of a group, without outliers."""
_MAX_DISTANCE_BEYOND = 1.5
"""Maximum distance from an outer percentile to the next end of the axis, as a multiple of the
distance between the two outer percentiles."""
_MARGIN_SHARE = 0.07
"""Empty space at each end of an axis, as a share of the drawn range."""
_SIGNIFICANT_DIGITS = 6
_MAX_TICKS = 9
_DECADE_LABELS = ((1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1, 3), (1,))
"""Possible sets of labels, as multiples of a power of ten, from dense to sparse."""
_MIN_DECADE_FACTOR = 4.0
"""Minimum ratio of the ends of an axis with `_DECADE_LABELS`; else labels are evenly spaced."""

_MAX_BAR_LENGTHS = 4.0
"""Maximum distance from the outermost ratio to the end of a drawn bar, as a multiple of the median
length of a bar. Longer bars are cut off."""


class DrawnQuantity(Struct, frozen=True):
    """A metric as an axis shows it."""

    name: str
    unit: str
    """Empty for a count or a metric without a known unit."""
    divisor: float
    """Size of ``unit`` in the unit of the metric: 0.001 for ms and a metric in seconds."""
    low: float
    """Lower end of the drawn range, in ``unit``."""
    high: float
    """Upper end of the drawn range, in ``unit``."""
    is_logarithmic: bool

    def title(self) -> str:
        """Return the title of the axis, with the unit."""
        with_unit = f"{self.name}, in {self.unit}" if self.unit else self.name
        return f"{with_unit} (logarithmic scale)" if self.is_logarithmic else with_unit

    def ticks(self) -> list[float] | None:
        """Return the positions of the labels; ``None`` lets the axis choose."""
        return log_ticks(self.low, self.high) if self.is_logarithmic else None

    def scaled(self, value: float) -> float:
        """Return a value in ``unit``, rounded for drawing."""
        return rounded(value / self.divisor)

    def clipped(self, value: float) -> float:
        """Return a value in ``unit``: the nearest edge, if it is outside of the drawn range."""
        return min(max(self.scaled(value), self.low), self.high)

    def is_beyond(self, value: float) -> bool:
        """Return whether a value is outside of the drawn range."""
        return not self.low <= self.scaled(value) <= self.high

    def coordinate(self, value: float) -> float:
        """Return a value that is in ``unit``; on a logarithmic axis, its logarithm."""
        return math.log(value) if self.is_logarithmic else value


def rounded(value: float) -> float:
    """Round a number for drawing."""
    return float(f"{value:.{_SIGNIFICANT_DIGITS}g}")


def drawn_quantity(
    metric: str, groups: Sequence[Sequence[float]], typical: float | None = None
) -> DrawnQuantity:
    """Choose the unit, the range and the scale for groups of finite values of a metric.

    The unit suits the value ``typical``, by default the largest median of the groups.
    """
    arrays = [np.asarray(group, dtype=np.float64) for group in groups if len(group)]
    medians = [float(np.median(group)) for group in arrays]
    divisor, unit = unit_of(metric, typical or max(medians, default=1.0))
    is_logarithmic = bool(
        arrays
        and min(float(group.min()) for group in arrays) > 0
        and max(medians) > _MAX_LINEAR_RATIO * min(medians)
    )
    low, high = _drawn_range([group / divisor for group in arrays], is_logarithmic)
    return DrawnQuantity(metric_name(metric), unit, divisor, low, high, is_logarithmic)


def metric_name(metric: str) -> str:
    """Return the name of a metric in words, without its unit."""
    name = metric
    for ending in ("_bytes_per_s", "_per_s", "_s", "_bytes"):
        name = name.removesuffix(ending)
    return _METRIC_NAMES.get(metric, name.replace("_", " "))


def unit_of(metric: str, typical: float) -> tuple[float, str]:
    """Return the size and the name of a unit in which the value ``typical`` is easy to read.

    A metric's name ends in its unit: ``_s``, ``_bytes``, ``_per_s`` or ``_bytes_per_s``.
    """
    units: Iterable[tuple[float, str]] = ()
    if metric.endswith("_bytes_per_s"):
        units = _BYTE_RATE_UNITS
    elif metric.endswith("_per_s"):
        units = _COUNT_RATE_UNITS
    elif metric.endswith("_s"):
        units = TIME_UNITS
    elif metric.endswith("_bytes"):
        units = BYTE_UNITS
    divisor_and_unit = (1.0, "")
    for divisor, unit in units:
        divisor_and_unit = (divisor, unit)
        if abs(typical) >= divisor:
            break
    return divisor_and_unit


def log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two positive numbers, for labels of a logarithmic axis."""
    if high < _MIN_DECADE_FACTOR * low:
        return _even_ticks(low, high)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for multiples in _DECADE_LABELS:
        candidates = [rounded(number * 10.0**power) for power in powers for number in multiples]
        ticks = [tick for tick in candidates if low <= tick <= high]
        if len(ticks) <= _MAX_TICKS:
            return ticks
    power_step = math.ceil(len(powers) / _MAX_TICKS)
    candidates = [10.0**power for power in powers if power % power_step == 0]
    return [tick for tick in candidates if low <= tick <= high]


def _even_ticks(low: float, high: float) -> list[float]:
    magnitude = 10.0 ** math.floor(math.log10((high - low) / _MAX_TICKS))
    widths = (multiple * magnitude for multiple in (1, 2, 5, 10, 20))
    width = next(width for width in widths if (high - low) / width < _MAX_TICKS)
    first_number, last_number = math.ceil(low / width), math.floor(high / width)
    return [rounded(number * width) for number in range(first_number, last_number + 1)]


def _drawn_range(groups: Sequence[NDArray[np.float64]], is_log: bool) -> tuple[float, float]:
    """Return the range of an axis for all values except outliers (see `_MAX_DISTANCE_BEYOND`)."""
    if not groups:
        return (0.0, 1.0)
    arrays = [np.log(group) if is_log else group for group in groups]
    percentiles = [np.percentile(group, _OUTER_PERCENTILES) for group in arrays]
    lowest = min(float(low) for low, _ in percentiles)
    highest = max(float(high) for _, high in percentiles)
    max_distance = _MAX_DISTANCE_BEYOND * (highest - lowest)
    low = max(min(float(group.min()) for group in arrays), lowest - max_distance)
    high = min(max(float(group.max()) for group in arrays), highest + max_distance)
    span = high - low if high > low else 1.0 if is_log else abs(high)
    margin = _MARGIN_SHARE * span
    low, high = low - margin, high + (margin or 1.0)
    return (math.exp(low), math.exp(high)) if is_log else (low, high)


def values_on_axis(bars: Sequence[tuple[float | None, Interval]]) -> Iterator[float | None]:
    """Yield the values that an axis must include; ``bars`` are ratios with their intervals.

    The values are all ratios and the ends of intervals, except ends that are far from all ratios.
    """
    yield from (ratio for ratio, _ in bars)
    known = [(ratio, interval) for ratio, interval in bars if ratio]
    lengths = [
        abs(math.log(end) - math.log(ratio)) for ratio, interval in known for end in interval if end
    ]
    max_log = max((abs(math.log(ratio)) for ratio, _ in known), default=0.0)
    max_log += _MAX_BAR_LENGTHS * (float(np.median(lengths)) if lengths else 0.0)
    yield from (
        end for _, interval in bars for end in interval if end and abs(math.log(end)) <= max_log
    )
