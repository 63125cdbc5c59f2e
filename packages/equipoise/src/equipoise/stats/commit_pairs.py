"""What searches and curves over commits share: pairs of commits, and what a build costs."""

from __future__ import annotations

Pair = tuple[int, int]
"""Two commits by index, the earlier one first."""
CHEAP_BUILD = 2.0
"""Trials; a build that costs less hardly counts when a pair is chosen."""
NARROW = 0.5
"""Half-width of the interval of a named step, in steps, that is narrow enough."""
