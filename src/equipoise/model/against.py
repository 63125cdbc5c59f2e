"""Two results that were not measured together, held against each other, as frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from equipoise.model.interval import Interval


@dataclass(frozen=True, slots=True)
class EnvironmentDifference:
    """One thing that is known of both environments and differs, or is known of one only."""

    name: str
    there: Any
    """Null where it is not known."""
    here: Any


@dataclass(frozen=True, slots=True)
class RowAgainst:
    """One condition in both results."""

    name: str
    metric: str
    there: float | None
    """The median."""
    here: float | None
    ratio: float | None
    """Here over there, of the cost: what is better when higher counts as its inverse."""
    ratio_ci: Interval
    p_value: float | None
    changed: bool | None
    """Null where it cannot be told, with the reason."""
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class Against:
    """This result, here, against another one, there."""

    run: str
    """Of the other result."""
    started: str
    rows: tuple[RowAgainst, ...]
    differences: tuple[EnvironmentDifference, ...]
    geometric_mean: float | None
    """Of the ratios."""
    geometric_mean_ci: Interval
    geometric_mean_rows: int
    min_effect: float
    """In percent: a change up to it is none."""
    alpha: float
    level: float | None
    """1 minus the coverage of each ``ratio_ci``."""
    between_sessions: float
    """By how much sessions were taken to differ beyond what they show of themselves, in percent."""
    scope: str
