"""A result held beside that of another session, row by row (``--against``)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from equipoise.model.quantities import Interval


class EnvironmentDifference(Struct, frozen=True):
    """One thing that is known of both environments and differs, or is known of one only."""

    name: str
    there: Any
    """Null where it is not known."""
    here: Any


class ReferenceRow(Struct, frozen=True):
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


class ReferenceComparison(Struct, frozen=True):
    """A result (here) beside a reference result (there)."""

    run: str
    """Id of the reference result's run."""
    started: str
    rows: tuple[ReferenceRow, ...]
    differences: tuple[EnvironmentDifference, ...]
    geometric_mean: float | None
    """Geometric mean of the ratios of all rows."""
    geometric_mean_ci: Interval
    geometric_mean_rows: int
    min_effect: float
    """Percent up to which a change counts as none."""
    alpha: float
    level: float | None
    """1 minus the coverage of each ``ratio_ci``."""
    between_sessions: float
    """Percent by which sessions are taken to differ beyond what they show of themselves."""
    scope: str
