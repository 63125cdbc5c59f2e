"""Intervals, numbers with units, and lists of names, as text for sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from equipoise.shared.numbers import MAX_LISTED_VALUES as MAX_LISTED_VALUES
from equipoise.shared.numbers import Interval as Interval
from equipoise.shared.numbers import amount as amount
from equipoise.shared.numbers import joined as joined
from equipoise.shared.numbers import listed as listed
from equipoise.shared.numbers import significant as significant
from equipoise.shared.ratios import FACTOR_FROM as FACTOR_FROM
from equipoise.shared.ratios import as_factor as as_factor
from equipoise.shared.ratios import leaves_out as leaves_out
from equipoise.shared.ratios import reads_as_factor as reads_as_factor

MAX_MEASURED_VALUE = 1e100
"""Maximum measured value: no measurement is near it, and a sum of its squares stays finite."""
TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
BYTE_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))

_COUNT_UNITS = ((1e9, "billion"), (1e6, "million"))
_MAX_EXACT_BYTES = 1e6
"""Number of bytes from which on a text shows a rounded number."""
MAX_NAMES = 5
"""Maximum number of conditions that a sentence names."""


def excludes_one(interval: Interval) -> bool:
    """Return whether the interval of a ratio does not contain 1, "no difference"."""
    low, high = interval
    return (low is not None and low > 1.0) or (high is not None and high < 1.0)


def is_known_to_a_tenth(interval: Interval) -> bool:
    """Return whether a ratio is known to within about a tenth, by its interval."""
    low, high = interval
    return bool(low) and high is not None and low is not None and high / low <= 1.1**2


def duration(seconds: float) -> str:
    """Return a time with a unit: ``12.3 ms``."""
    return _with_unit(seconds, TIME_UNITS)


def byte_count(count: float) -> str:
    """Return a number of bytes with a decimal unit: ``2.1 MB``."""
    return _with_unit(count, BYTE_UNITS)


def byte_rate(per_second: float) -> str:
    """Return bytes per second with a decimal unit: ``2.1 GB/s``."""
    return f"{byte_count(per_second)}/s"


def rate(per_second: float) -> str:
    """Return a rate: ``2439/s``."""
    return f"{significant(per_second)}/s"


def metric_value(value: float, metric: str) -> str:
    """Return a value with its unit, which follows from the end of the metric's name."""
    show = metric_formatter(metric)
    return significant(value, 4) if show is significant else show(value)


def metric_formatter(metric: str) -> Callable[[float], str]:
    """Return the function that formats values of a metric; the end of its name is the unit."""
    if metric.endswith("_bytes_per_s"):
        return byte_rate
    if metric.endswith("_per_s"):
        return rate
    if metric.endswith("_s"):
        return duration
    return byte_count if metric.endswith("_bytes") else significant


def count(number: float) -> str:
    """Return a count: ``400,012``, ``3.6 million``; a mean count below 100 has one decimal."""
    for scale, name in _COUNT_UNITS:
        if abs(number) >= scale:
            return f"{significant(number / scale, 2)} {name}"
    if abs(number) < 100 and number != round(number):
        return f"{number:.1f}"
    return f"{round(number):,}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 block``, ``12 blocks``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def exact_bytes(number: float) -> str:
    """Return a number of bytes, exact below a million: ``35,600 bytes``, ``2.1 MB``."""
    if abs(number) >= _MAX_EXACT_BYTES:
        return byte_count(number)
    byte_number = round(number)
    return "1 byte" if byte_number == 1 else f"{byte_number:,} bytes"


def _with_unit(value: float, units: tuple[tuple[float, str], ...]) -> str:
    if not math.isfinite(value):
        return "timed out"
    scale, name = next(((scale, name) for scale, name in units if abs(value) >= scale), units[-1])
    return f"{significant(value / scale)} {name}"


def names_of(conditions: Sequence[str], conjunction: str = "and") -> str:
    """Return names as ``a, b and c``; from seven names on as ``a, b, c, d, e and 2 more``."""
    other_count = len(conditions) - MAX_NAMES
    if other_count < 2:
        return joined(conditions, conjunction)
    others = f"one of {other_count} more" if conjunction == "or" else f"{other_count} more"
    return joined([*conditions[:MAX_NAMES], others], conjunction)


def iso_time(seconds: float) -> str:
    """Format seconds since the epoch for documents: ISO 8601, UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
