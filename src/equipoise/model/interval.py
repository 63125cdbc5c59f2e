"""An interval as the result document has it."""

from __future__ import annotations

Interval = tuple[float | None, float | None]
"""Lower and upper bound; ``None`` where there is none yet."""
