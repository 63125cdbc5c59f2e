"""Intervals, and numbers with their units and lists of names as people read them in sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

Interval = tuple[float | None, float | None]
"""Lower and upper bound; ``None`` where there is none yet."""
MAX_MEASURED = 1e100
"""Largest measured value: no measurement comes near it, and squares of it can be added up."""
TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
BYTE_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))

_LARGE_COUNTS = ((1e9, "billion"), (1e6, "million"))
_EXACT_BYTES = 1e6
MOST_NAMES = 5
"""Number of conditions that a sentence names."""
FACTOR_FROM = 2.0
"""From here on "3.3 times" reads better than a percentage, and so does its inverse."""
MOST_LISTED = 6
"""Number of values of a column that an error lists."""


def excludes_one(interval: Interval) -> bool:
    """Return whether the interval of a ratio leaves out 1: "no difference"."""
    low, high = interval
    return (low is not None and low > 1.0) or (high is not None and high < 1.0)


def leaves_out(interval: Interval, value: float) -> bool:
    """Return whether a value lies outside of an interval."""
    low, high = interval
    return (low is not None and value < low) or (high is not None and value > high)


def reads_as_factor(ratio: float) -> bool:
    """Return whether a ratio reads as ``3.3 times``, and not as a change in percent."""
    return 0.0 < ratio < math.inf and not 1.0 / FACTOR_FROM < ratio < FACTOR_FROM


def is_known_to_a_tenth(interval: Interval) -> bool:
    """Return whether an interval of a ratio reaches at most a tenth to each side."""
    low, high = interval
    return bool(low) and high is not None and low is not None and high / low <= 1.1**2


def as_factor(ratio: float) -> str:
    """Return a ratio as a factor: ``×3.3``, and ``÷3.3`` for a ratio below 1."""
    return f"÷{significant(1.0 / ratio)}" if 0.0 < ratio < 1.0 else f"×{significant(ratio)}"


def duration(seconds: float) -> str:
    """Return seconds with a unit: ``12.3 ms``."""
    return _with_unit(seconds, TIME_UNITS)


def byte_count(count: float) -> str:
    """Return bytes with a decimal unit: ``2.1 MB``."""
    return _with_unit(count, BYTE_UNITS)


def significant(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits, without an exponent where it is readable."""
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


def count(number: float) -> str:
    """Return a count: ``400,012``, ``3.6 million``; a mean below 100 has a decimal."""
    for scale, name in _LARGE_COUNTS:
        if abs(number) >= scale:
            return f"{significant(number / scale, 2)} {name}"
    if abs(number) < 100 and number != round(number):
        return f"{number:.1f}"
    return f"{round(number):,}"


def counted(number: int, noun: str) -> str:
    """Return a number of things: ``1 block``, ``12 blocks``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def amount(value: float) -> str:
    """Return a number in the unit of somebody's column: ``1,794``, ``0.0124``."""
    return f"{value:,.0f}" if 99.95 <= abs(value) < 1e12 else f"{value:.3g}"


def exact_bytes(number: float) -> str:
    """Return the size of a block: ``35,600 bytes``, ``2.1 MB``."""
    if abs(number) >= _EXACT_BYTES:
        return byte_count(number)
    whole = round(number)
    return "1 byte" if whole == 1 else f"{whole:,} bytes"


def _with_unit(value: float, units: tuple[tuple[float, str], ...]) -> str:
    if not math.isfinite(value):
        return "timed out"
    scale, name = next((unit for unit in units if abs(value) >= unit[0]), units[-1])
    return f"{significant(value / scale)} {name}"


def joined(parts: Iterable[str], last: str = "and") -> str:
    """Return parts of a sentence as ``a, b and c``."""
    *first, end = tuple(parts) or ("",)
    return f"{', '.join(first)} {last} {end}" if first else end


def listed(values: Sequence[str], most: int = MOST_LISTED, joint: str = ", ") -> str:
    """Return values as ``a, b, c``; of many, the first and how many more there are.

    Clauses are joined by ``"; "``.
    """
    shown, more = joint.join(values[:most]), len(values) - most
    end = "; and" if joint == "; " else " and"
    return f"{shown}{end} {more} more" if more > 0 else shown


def names_of(conditions: Sequence[str], last: str = "and") -> str:
    """Return names as ``a, b and c``; of many, the first and how many more there are."""
    more = len(conditions) - MOST_NAMES
    if more < 2:
        return joined(conditions, last)
    others = f"one of {more} more" if last == "or" else f"{more} more"
    return joined([*conditions[:MOST_NAMES], others], last)


def iso_time(seconds: float) -> str:
    """Return seconds since the epoch as every document has them: UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
