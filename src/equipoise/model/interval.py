"""An interval as the result document has it."""

from __future__ import annotations

Interval = tuple[float | None, float | None]
"""Lower and upper bound; ``None`` where there is none yet."""


def excludes_one(interval: Interval) -> bool:
    """Return whether the interval of a ratio leaves out 1: "no difference"."""
    low, high = interval
    return (low is not None and low > 1.0) or (high is not None and high < 1.0)
