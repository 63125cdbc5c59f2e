"""Functions that return numbers as text for reports; `equipoise.model.quantities` has more."""

from __future__ import annotations

import math
from collections.abc import Callable

from equipoise.model.quantities import Interval
from equipoise.model.quantities import byte_count as byte_count
from equipoise.model.quantities import duration as duration
from equipoise.model.quantities import metric_formatter as metric_formatter
from equipoise.model.quantities import metric_value as metric_value
from equipoise.model.quantities import significant as significant
from equipoise.model.result import MetricSummary
from equipoise.report.document import UNKNOWN
from equipoise.shared.ratios import NO_SINGLE_RATIO as NO_SINGLE_RATIO
from equipoise.shared.ratios import change_text as change_text
from equipoise.shared.ratios import estimate_and_interval as estimate_and_interval
from equipoise.shared.ratios import in_one_unit as in_one_unit
from equipoise.shared.ratios import interval_text as interval_text
from equipoise.shared.ratios import percent_change as percent_change


def waiting_time(seconds: float) -> str:
    """Return a waiting time in a suitable unit: ``45 s``, ``12 min``, ``2.6 h``."""
    if seconds < 99.5:
        return duration(seconds)
    minutes = seconds / 60.0
    if minutes < 99.5:
        return f"{minutes:.0f} min"
    hours = minutes / 60.0
    return f"{hours:.1f} h" if hours < 99.95 else f"{hours / 24.0:.0f} days"


def with_coverage(interval: str, level: float, alpha: float, noun: str = "interval") -> str:
    """Return the text of an interval with its coverage: ``95 % interval 1.1 to 1.3``.

    The coverage of this interval is 1 - ``level``. The joint coverage of all intervals that share
    ``alpha`` is 1 - ``alpha``. ``noun`` is the word for the interval.
    """
    if shares_alpha(level, alpha):
        return f"{noun} {interval} ({percentage(1.0 - alpha)} over the comparisons reported)"
    return f"{percentage(1.0 - level)} {noun} {interval}"


def shares_alpha(level: float, alpha: float) -> bool:
    """Return whether several comparisons share ``alpha``; then ``level`` is smaller."""
    return level < alpha and not math.isclose(level, alpha)


def percentage(fraction: float) -> str:
    """Return a fraction in percent: ``95 %``."""
    return f"{100.0 * fraction:.4g} %"


def range_text(interval: Interval, to_text: Callable[[float], str], unknown: str = UNKNOWN) -> str:
    """Return ``1.2 ms to 1.4 ms``; return ``unknown`` if an end of the interval is unknown."""
    low, high = interval
    return unknown if low is None or high is None else f"{to_text(low)} to {to_text(high)}"


def time_left_text(elapsed_s: float, budget_s: float, blocks: int, block_limit: int | None) -> str:
    """Return the time until the budget or the block limit ends a campaign: ``0:48``."""
    budget_left_s = max(0.0, budget_s - elapsed_s)
    blocks_left_s = budget_left_s
    if blocks and block_limit is not None:
        blocks_left_s = elapsed_s / blocks * max(0, block_limit - blocks)
    minutes, seconds = divmod(round(min(budget_left_s, blocks_left_s)), 60)
    return f"{minutes}:{seconds:02d}"


def spread_text(summary: MetricSummary) -> str:
    """Return half the distance from the 5th to the 95th percentile, in percent of the median."""
    if not math.isfinite(summary.p95) or summary.median <= 0:
        return UNKNOWN
    half_width = 50.0 * (summary.p95 - summary.p05) / summary.median
    return f"±{significant(half_width, 2)} %"


def capitalized(sentence: str) -> str:
    """Return a sentence with a capital letter first."""
    return sentence[:1].upper() + sentence[1:]
