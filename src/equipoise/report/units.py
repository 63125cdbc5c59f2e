"""Numbers as people read them; ``model.quantities`` has those that every room writes."""

from __future__ import annotations

import math
from collections.abc import Callable

from equipoise.model.interval import Interval
from equipoise.model.quantities import amount
from equipoise.model.quantities import byte_count as byte_count
from equipoise.model.quantities import duration as duration
from equipoise.model.quantities import significant as significant
from equipoise.model.result import MetricSummary

_BIG_FACTOR = 2.0
"""From here on a ratio reads better as "times" than as a percentage."""


def waiting_time(seconds: float) -> str:
    """Return a time to wait in a unit that people wait in: ``45 s``, ``12 min``, ``2.6 h``."""
    if seconds < 99.5:
        return duration(seconds)
    minutes = seconds / 60.0
    if minutes < 99.5:
        return f"{minutes:.0f} min"
    hours = minutes / 60.0
    return f"{hours:.1f} h" if hours < 99.95 else f"{hours / 24.0:.0f} days"


def byte_rate(per_second: float) -> str:
    """Return bytes a second with a decimal unit: ``2.1 GB/s``."""
    return f"{byte_count(per_second)}/s"


def rate(per_second: float) -> str:
    """Return a number a second: ``2439/s``."""
    return f"{significant(per_second)}/s"


def metric_value(value: float, metric: str) -> str:
    """Return a value with its unit, which is the end of the metric's name."""
    show = metric_formatter(metric)
    return significant(value, 4) if show is significant else show(value)


def metric_formatter(metric: str) -> Callable[[float], str]:
    """Return what formats a metric, whose unit is the end of its name."""
    if metric.endswith("_bytes_per_s"):
        return byte_rate
    if metric.endswith("_per_s"):
        return rate
    if metric.endswith("_s"):
        return duration
    return byte_count if metric.endswith("_bytes") else significant


def percent_change(ratio: float) -> str:
    """Return a ratio as a signed change: ``+3.1 %``, or ``×210`` where a percentage misleads."""
    if ratio >= _BIG_FACTOR:
        return times(ratio)
    change = 100.0 * (ratio - 1.0)
    size = round(abs(change), 2)
    decimals = 0 if size >= 100 else 1 if size >= 10 else 2
    return f"{change:+.{decimals}f} %"


def signed_amount(value: float) -> str:
    """Return a number with its sign: ``+1,794``."""
    return f"{'+' if value >= 0 else '-'}{amount(abs(value))}"


def change_text(ratio: float | None, unknown: str) -> str:
    """Return a ratio as a signed change, or what stands for a ratio that is not known."""
    return unknown if ratio is None else percent_change(ratio)


def interval_text(interval: Interval, unlimited: str = "unlimited to unlimited") -> str:
    """Return an interval of ratios, both ends in one manner: ``+1.20 % to +5.03 %``.

    Parameters
    ----------
    unlimited
        What stands for an interval without any end.
    """
    low, high = interval
    if low is None and high is None:
        return unlimited
    manner = times if (high if high is not None else low or 0.0) >= _BIG_FACTOR else percent_change
    return " to ".join("unlimited" if end is None else manner(end) for end in interval)


def times(ratio: float) -> str:
    """Return a ratio as a factor: ``×2.31``."""
    return f"×{significant(ratio)}"


def seconds_left(elapsed_s: float, budget_s: float, blocks: int, block_limit: int | None) -> str:
    """Return the time after which the budget or the block limit ends a campaign: ``0:48``."""
    by_budget = max(0.0, budget_s - elapsed_s)
    by_blocks = by_budget
    if blocks and block_limit is not None:
        by_blocks = elapsed_s / blocks * max(0, block_limit - blocks)
    minutes, seconds = divmod(round(min(by_budget, by_blocks)), 60)
    return f"{minutes}:{seconds:02d}"


def spread_text(summary: MetricSummary) -> str:
    """Return half the distance from the 5th to the 95th percentile, in percent of the median."""
    if not math.isfinite(summary.p95) or summary.median <= 0:
        return "–"
    half = 50.0 * (summary.p95 - summary.p05) / summary.median
    return f"±{significant(half, 2)} %"


def ratio_interval(interval: Interval) -> str:
    """Return an interval of ratios as changes; an open end is unlimited."""
    if interval == (None, None):
        return "still unlimited"
    return " to ".join(change_text(end, "unlimited") for end in interval)


def capitalized(sentence: str) -> str:
    """Return a sentence with a capital letter first."""
    return sentence[:1].upper() + sentence[1:]
