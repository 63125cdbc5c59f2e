"""An interval as the result document has it."""

from __future__ import annotations

Interval = tuple[float | None, float | None]
"""Its lower and its upper bound; ``None`` where there is none yet."""
