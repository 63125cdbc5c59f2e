"""Ratios and their intervals for readers: as changes in percent, or as factors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .numbers import Interval, significant

FACTOR_FROM = 2.0
"""If a ratio or its inverse is at least this large, it is written as a factor: "3.3 times"."""
NO_SINGLE_RATIO = "no single ratio"
"""Text that replaces an estimate outside its interval."""


def leaves_out(interval: Interval, value: float) -> bool:
    """Return whether a value is outside an interval."""
    low, high = interval
    return (low is not None and value < low) or (high is not None and value > high)


def reads_as_factor(ratio: float) -> bool:
    """Return whether a ratio is written as ``3.3 times``, not as a change in percent."""
    return 0.0 < ratio < math.inf and not 1.0 / FACTOR_FROM < ratio < FACTOR_FROM


def as_factor(ratio: float) -> str:
    """Return a ratio as a factor: ``×3.3``, and ``÷3.3`` for a ratio below 1."""
    return f"÷{significant(1.0 / ratio)}" if 0.0 < ratio < 1.0 else f"×{significant(ratio)}"


def percent_change(ratio: float) -> str:
    """Return a ratio as a change, ``+3.1 %``; from a factor of 2 on, as ``×210`` or ``÷3.3``."""
    return as_factor(ratio) if reads_as_factor(ratio) else _percent(ratio)


def _percent(ratio: float) -> str:
    change = 100.0 * (ratio - 1.0)
    size = round(abs(change), 2)
    decimals = 0 if size >= 100 else 1 if size >= 10 else 2
    return f"{change:+.{decimals}f} %"


def in_one_unit(*ratios: float | None) -> tuple[str, ...]:
    """Return ratios in one unit: all as changes in percent, or all as factors."""
    largest = max((ratio for ratio in ratios if ratio is not None), default=1.0)
    return _in_unit_of(largest, ratios)


def _in_unit_of(unit_ratio: float, ratios: Sequence[float | None]) -> tuple[str, ...]:
    """Return ratios in the unit for ``unit_ratio``: all as factors, or all as percentages."""
    to_text = as_factor if reads_as_factor(unit_ratio) else _percent
    return tuple("unlimited" if ratio is None else to_text(ratio) for ratio in ratios)


def estimate_and_interval(
    ratio: float | None,
    interval: Interval,
    *,
    unknown: str = "not known yet",
    unlimited: str = "still unlimited",
) -> tuple[str, str]:
    """Return an estimate and its interval in one unit.

    ``unknown`` replaces an unknown estimate, ``unlimited`` an interval without ends, and
    `NO_SINGLE_RATIO` an estimate outside its interval.
    """
    ratios = (ratio, *interval)
    largest = max((ratio for ratio in ratios if ratio is not None), default=1.0)
    # The estimate decides the unit. If an end is large, all are factors, as "+20000 %" misleads.
    unit_ratio = largest if ratio is None or largest >= FACTOR_FROM else ratio
    estimate, *ends = _in_unit_of(unit_ratio, ratios)
    if ratio is None:
        estimate = unknown
    elif leaves_out(interval, ratio):
        estimate = NO_SINGLE_RATIO
    has_an_end = interval != (None, None)
    return estimate, " to ".join(ends) if has_an_end else unlimited


def interval_text(interval: Interval, unlimited: str = "unlimited to unlimited") -> str:
    """Return an interval of ratios, both ends in one unit: ``+1.20 % to +5.03 %``.

    ``unlimited`` replaces an interval without ends.
    """
    return unlimited if interval == (None, None) else " to ".join(in_one_unit(*interval))


def change_text(ratio: float | None, unknown: str) -> str:
    """Return a ratio as a signed change, or ``unknown`` for an unknown ratio."""
    return unknown if ratio is None else percent_change(ratio)
