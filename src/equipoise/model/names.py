"""Lists of names within a sentence."""

from __future__ import annotations

from collections.abc import Sequence

MOST_NAMES = 5
"""Number of conditions that a sentence names."""


def joined(parts: Sequence[str], last: str = "and") -> str:
    """Return parts of a sentence as ``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def names_of(conditions: Sequence[str]) -> str:
    """Return names as ``a, b and c``; of many, the first and how many more there are."""
    more = len(conditions) - MOST_NAMES
    if more < 2:
        return joined(conditions)
    return joined([*conditions[:MOST_NAMES], f"{more} more"])
