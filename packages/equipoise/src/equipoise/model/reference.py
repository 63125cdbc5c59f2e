"""A result compared with a result of another session, row by row (``--against``)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from equipoise.model.quantities import Interval


class EnvironmentDifference(Struct, frozen=True):
    """A fact that differs between two environments, or that one of them lacks."""

    name: str
    reference_value: Any
    """Null if unknown."""
    value: Any
    """Value in this result; null if unknown."""


class ReferenceRow(Struct, frozen=True):
    """One condition and metric in both results."""

    name: str
    metric: str
    reference_median: float | None
    """Median in the reference result."""
    median: float | None
    ratio: float | None
    """Cost over reference cost; if more of a metric is better, the cost is the inverse."""
    ratio_ci: Interval
    p_value: float | None
    changed: bool | None
    """Whether the row changed; null if unknown."""
    unknown: str | None = None
    """Reason why the change is unknown."""


class ReferenceComparison(Struct, frozen=True):
    """A result compared with a reference result."""

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
    """Percentage up to which a change counts as no change."""
    alpha: float
    significance_level: float | None
    """1 minus the coverage of each ``ratio_ci``."""
    between_sessions: float
    """Assumed difference between sessions in percent, in addition to their spread and drift."""
    scope: str
