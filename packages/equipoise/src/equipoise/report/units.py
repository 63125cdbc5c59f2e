"""Numbers as people read them; ``model.quantities`` has those that every room writes."""

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
    """Return a time to wait in a unit that people wait in: ``45 s``, ``12 min``, ``2.6 h``."""
    if seconds < 99.5:
        return duration(seconds)
    minutes = seconds / 60.0
    if minutes < 99.5:
        return f"{minutes:.0f} min"
    hours = minutes / 60.0
    return f"{hours:.1f} h" if hours < 99.95 else f"{hours / 24.0:.0f} days"


def with_coverage(interval: str, level: float, alpha: float, kind: str = "interval") -> str:
    """Return an interval with its coverage, as people read one.

    1 minus ``level`` is the coverage of the interval alone, 1 minus ``alpha`` that of all that
    share alpha with it.
    """
    if is_shared(level, alpha):
        return f"{kind} {interval} ({percentage(1.0 - alpha)} over the comparisons reported)"
    return f"{percentage(1.0 - level)} {kind} {interval}"


def is_shared(level: float, alpha: float) -> bool:
    """Return whether a level is a part of the alpha that several comparisons share."""
    return level < alpha and not math.isclose(level, alpha)


def percentage(share: float) -> str:
    """Return a share in percent: ``95 %``."""
    return f"{100.0 * share:.4g} %"


def range_text(interval: Interval, show: Callable[[float], str], unknown: str = UNKNOWN) -> str:
    """Return ``1.2 ms to 1.4 ms``, or a replacement if an end of the interval is not known."""
    low, high = interval
    return unknown if low is None or high is None else f"{show(low)} to {show(high)}"


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


def capitalized(sentence: str) -> str:
    """Return a sentence with a capital letter first."""
    return sentence[:1].upper() + sentence[1:]
