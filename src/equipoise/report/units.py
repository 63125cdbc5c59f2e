"""Numbers as people read them; ``model.quantities`` has those that every room writes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from equipoise.model.quantities import (
    FACTOR_FROM,
    Interval,
    amount,
    as_factor,
    leaves_out,
    reads_as_factor,
)
from equipoise.model.quantities import byte_count as byte_count
from equipoise.model.quantities import duration as duration
from equipoise.model.quantities import metric_formatter as metric_formatter
from equipoise.model.quantities import metric_value as metric_value
from equipoise.model.quantities import significant as significant
from equipoise.model.result import MetricSummary
from equipoise.report.document import UNKNOWN

NO_SINGLE_RATIO = "no single ratio"
"""Stands for an estimate that lies outside of the interval beside it."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|(?:[nµm]?s|min|h|[kKMGT]?i?B)\b)")
"""Space between a number and its unit."""


def waiting_time(seconds: float) -> str:
    """Return a time to wait in a unit that people wait in: ``45 s``, ``12 min``, ``2.6 h``."""
    if seconds < 99.5:
        return duration(seconds)
    minutes = seconds / 60.0
    if minutes < 99.5:
        return f"{minutes:.0f} min"
    hours = minutes / 60.0
    return f"{hours:.1f} h" if hours < 99.95 else f"{hours / 24.0:.0f} days"


def percent_change(ratio: float) -> str:
    """Return a ratio as a change: ``+3.1 %``, or ``×210`` and ``÷3.3`` from a factor of 2 on."""
    return as_factor(ratio) if reads_as_factor(ratio) else _percent(ratio)


def in_one_unit(*ratios: float | None) -> tuple[str, ...]:
    """Return ratios that are read together: all as changes in percent, or all as factors."""
    largest = max((ratio for ratio in ratios if ratio is not None), default=1.0)
    return _in_unit_of(largest, ratios)


def _in_unit_of(leading: float, ratios: Sequence[float | None]) -> tuple[str, ...]:
    show = as_factor if reads_as_factor(leading) else _percent
    return tuple("unlimited" if ratio is None else show(ratio) for ratio in ratios)


def estimate_and_interval(
    ratio: float | None,
    interval: Interval,
    *,
    unknown: str = "not known yet",
    unlimited: str = "still unlimited",
) -> tuple[str, str]:
    """Return an estimate and its interval in one unit.

    ``unknown`` stands for an estimate that is not known, ``unlimited`` for an interval that has
    no end. An estimate outside of its interval is not shown beside it: no single ratio fits.
    """
    ratios = (ratio, *interval)
    largest = max((one for one in ratios if one is not None), default=1.0)
    # The estimate decides, as in the sentence of a verdict; "+20000 %" misleads in any case.
    leading = largest if ratio is None or largest >= FACTOR_FROM else ratio
    estimate, *ends = _in_unit_of(leading, ratios)
    if ratio is None:
        estimate = unknown
    elif leaves_out(interval, ratio):
        estimate = NO_SINGLE_RATIO
    known = interval != (None, None)
    return estimate, " to ".join(ends) if known else unlimited


def with_coverage(interval: str, level: float, alpha: float, kind: str = "interval") -> str:
    """Return an interval with its coverage, as people read one.

    1 minus ``level`` is the coverage of the interval by itself, 1 minus ``alpha`` that of all that
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


def _percent(ratio: float) -> str:
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
    """Return an interval of ratios, both ends in one unit: ``+1.20 % to +5.03 %``.

    ``unlimited`` stands for an interval without any end.
    """
    return unlimited if interval == (None, None) else " to ".join(in_one_unit(*interval))


def range_text(interval: Interval, show: Callable[[float], str], unknown: str = UNKNOWN) -> str:
    """Return ``1.2 ms to 1.4 ms``, or what stands for an interval of which an end is not known."""
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


def unbroken(text: str) -> str:
    """Return text in which no line ends between a number and its unit: ``5 %``, ``12 ms``.

    For forms that break lines where they are shown; a command must keep its spaces.
    """
    return _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text)


def capitalized(sentence: str) -> str:
    """Return a sentence with a capital letter first."""
    return sentence[:1].upper() + sentence[1:]
