"""Ratios of costs as ratios of values, for metrics of which more is better.

The cost of such a metric (a throughput, for example) is the inverse of its value. All computations
use costs. Readers see values, so every ratio and interval is inverted before it is shown.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.quantities import Interval
from equipoise.model.result import Comparison

ComparisonT = TypeVar("ComparisonT", bound=Comparison)
EstimateT = TypeVar("EstimateT", bound=Struct)
"""Struct with a ``ratio`` and its interval ``ratio_ci``."""


def inverse_ratio(ratio: float | None) -> float | None:
    """Return 1 over a ratio; ``None`` if it is unknown or 0."""
    return 1.0 / ratio if ratio else None


def inverse_interval(interval: Interval) -> Interval:
    """Return the interval of 1 over a ratio; the inverse of an end at 0 is unlimited (``None``)."""
    low, high = interval
    return (1.0 / high if high else None, 1.0 / low if low else None)


def with_ratios_of_values(comparison: ComparisonT) -> ComparisonT:
    """Return a comparison whose ratios of costs are replaced by ratios of values."""
    layouts_claim = comparison.in_drawn_layouts
    return replace(
        with_inverse_ratio(comparison),
        equivalence_ci=inverse_interval(comparison.equivalence_ci),
        mean_ratio=inverse_ratio(comparison.mean_ratio),
        mean_ratio_ci=inverse_interval(comparison.mean_ratio_ci),
        answers=tuple(
            replace(answer, ratio=inverse_ratio(answer.ratio)) for answer in comparison.answers
        ),
        **comparison.additional_values(),
        in_drawn_layouts=None if layouts_claim is None else with_inverse_ratio(layouts_claim),
    )


def with_inverse_ratio(estimate: EstimateT) -> EstimateT:
    """Return a struct whose ``ratio`` and ``ratio_ci`` are inverted."""
    fields: Any = estimate
    return replace(
        estimate, ratio=inverse_ratio(fields.ratio), ratio_ci=inverse_interval(fields.ratio_ci)
    )
