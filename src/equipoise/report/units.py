"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable

from equipoise.model.result import MetricSummary

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTE_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_BIG_FACTOR = 2.0
"""From here on a ratio reads better as "times" than as a percentage."""


def duration(seconds: float) -> str:
    """Seconds with a unit: ``12.3 ms``."""
    return _with_unit(seconds, _TIME_UNITS)


def waiting_time(seconds: float) -> str:
    """How long one waits, in the unit that one waits in: ``45 s``, ``12 min``, ``2.6 h``."""
    if seconds < 99.5:
        return duration(seconds)
    minutes = seconds / 60.0
    if minutes < 99.5:
        return f"{minutes:.0f} min"
    hours = minutes / 60.0
    return f"{hours:.1f} h" if hours < 99.95 else f"{hours / 24.0:.0f} days"


def byte_count(count: float) -> str:
    """Bytes with a decimal unit: ``2.1 MB``."""
    return _with_unit(count, _BYTE_UNITS)


def byte_rate(per_second: float) -> str:
    """Bytes a second with a decimal unit: ``2.1 GB/s``."""
    return f"{byte_count(per_second)}/s"


def rate(per_second: float) -> str:
    """How many in a second: ``2439/s``."""
    return f"{significant(per_second)}/s"


def metric_value(value: float, metric: str) -> str:
    """A value with its unit, which is the end of the metric's name."""
    show = shower(metric)
    return significant(value, 4) if show is significant else show(value)


def shower(metric: str) -> Callable[[float], str]:
    """How a metric is written; its unit is the end of its name."""
    if metric.endswith("_bytes_per_s"):
        return byte_rate
    if metric.endswith("_per_s"):
        return rate
    if metric.endswith("_s"):
        return duration
    return byte_count if metric.endswith("_bytes") else significant


def percent_change(ratio: float) -> str:
    """A ratio as a signed change: ``+3.1 %``, or ``×210`` where a percentage misleads."""
    if ratio >= _BIG_FACTOR:
        return times(ratio)
    change = 100.0 * (ratio - 1.0)
    size = round(abs(change), 2)
    decimals = 0 if size >= 100 else 1 if size >= 10 else 2
    return f"{change:+.{decimals}f} %"


def interval_words(low: float | None, high: float | None) -> str:
    """An interval of ratios, both ends in one manner: ``+1.20 % to +5.03 %``."""
    manner = times if (high if high is not None else low or 0.0) >= _BIG_FACTOR else percent_change
    return " to ".join("unlimited" if end is None else manner(end) for end in (low, high))


def times(ratio: float) -> str:
    """A ratio as a factor: ``×2.31``."""
    return f"×{significant(ratio)}"


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, without an exponent where it is readable."""
    if not math.isfinite(value):
        return "unlimited"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    # Rounded first: 9.999 with three digits is 10.0, not 10.00.
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{value:.{decimals}f}"


def seconds_left(elapsed_s: float, budget_s: float, blocks: int, block_limit: int) -> str:
    """The time after which the budget or the block limit ends a campaign: ``0:48``."""
    by_budget = max(0.0, budget_s - elapsed_s)
    by_blocks = elapsed_s / blocks * max(0, block_limit - blocks) if blocks else by_budget
    left = round(min(by_budget, by_blocks))
    return f"{left // 60}:{left % 60:02d}"


def _with_unit(value: float, units: tuple[tuple[float, str], ...]) -> str:
    if not math.isfinite(value):
        return "timed out"
    for scale, name in units:
        if abs(value) >= scale:
            return f"{significant(value / scale)} {name}"
    scale, name = units[-1]
    return f"{significant(value / scale)} {name}"


def spread_words(summary: MetricSummary) -> str:
    """Half the distance from the 5th to the 95th percentile, in percent of the median."""
    if not math.isfinite(summary.p95) or summary.median <= 0:
        return "–"
    half = 50.0 * (summary.p95 - summary.p05) / summary.median
    return f"±{significant(half, 2)} %"
