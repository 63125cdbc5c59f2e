"""Numbers and lists of names for sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

Interval = tuple[float | None, float | None]
"""Lower and upper bound; ``None`` for a bound that does not exist yet."""
MAX_LISTED_VALUES = 6
"""Maximum number of values in a list of a sentence."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|(?:[nµm]?s|min|h|[kKMGT]?i?B)\b)")
"""Space between a number and its unit."""


def significant(value: float, digits: int = 3) -> str:
    """Return a number with ``digits`` significant digits, without an exponent if readable."""
    if not math.isfinite(value):
        return "unlimited"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    # Round first: 9.999 with three digits is 10.0, not 10.00.
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{value:.{decimals}f}"


def amount(value: float) -> str:
    """Return a number in the unit of a user's column: ``1,794``, ``0.0124``."""
    return f"{value:,.0f}" if 99.95 <= abs(value) < 1e12 else f"{value:.3g}"


def signed_amount(value: float) -> str:
    """Return a number with its sign: ``+1,794``."""
    return f"{'+' if value >= 0 else '-'}{amount(abs(value))}"


def joined(parts: Iterable[str], last: str = "and") -> str:
    """Return parts of a sentence as ``a, b and c``; ``last`` is the word before the last part."""
    *first_parts, last_part = tuple(parts) or ("",)
    return f"{', '.join(first_parts)} {last} {last_part}" if first_parts else last_part


def listed(values: Sequence[str], max_count: int = MAX_LISTED_VALUES, separator: str = ", ") -> str:
    """Return values as ``a, b, c``; of more than ``max_count``, ``a, b and 7 more``.

    Use ``"; "`` as the separator of clauses.
    """
    text, hidden_count = separator.join(values[:max_count]), len(values) - max_count
    conjunction = "; and" if separator == "; " else " and"
    return f"{text}{conjunction} {hidden_count} more" if hidden_count > 0 else text


def unbroken(text: str) -> str:
    """Return text without line breaks between a number and its unit: ``5 %``, ``12 ms``.

    Do not use this function for a command, because a reader copies the command with its spaces.
    """
    return _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text)
