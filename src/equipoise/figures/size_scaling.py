"""Cost by size on two logarithmic axes: how a cost grows with a numeric factor."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt

from equipoise.figures.building import Rows, framed
from equipoise.figures.by_size import lines_by_size
from equipoise.figures.quantity import metric_name, unit_of
from equipoise.figures.size_values import (
    law_sentence,
    measured_sizes,
    numeric_factors,
    other_levels,
    scaling_laws,
)
from equipoise.figures.ticks import log_ticks
from equipoise.figures.trial_values import primary_metric
from equipoise.model.errors import UnusableInput
from equipoise.model.result import ResultDocument

HOW_TO_READ = (
    "Both axes are logarithmic: a straight line is a power law and its slope the exponent, "
    "parallel lines differ by a constant factor. The fitted exponents are given "
    "with their intervals."
)
HEIGHT = 300
MOST_LAWS = 4
"""More would hide the picture; the page's table has all."""


def size_scaling(
    document: ResultDocument, factor: str, metric: str | None = None
) -> alt.LayerChart:
    """Draw each condition's median with its interval over the level of one factor.

    Conditions that differ in this factor only share a line.

    Raises
    ------
    UnusableInput
        The factor has no two measured levels that are positive numbers.
    """
    metric = metric or primary_metric(document)
    if factor not in numeric_factors(document, metric):
        raise UnusableInput(
            f"the factor {factor} has no two measured levels that are positive numbers",
            hint="name one of: "
            + (", ".join(numeric_factors(document, metric)) or "there is none"),
        )
    measured = measured_sizes(document, factor, metric)
    divisor, unit = unit_of(metric, max(summary.median for _, _, summary in measured))
    rows: Rows = []
    for size, condition, summary in measured:
        low, high = summary.median_ci
        rows.append(
            {
                "size": size,
                "value": summary.median / divisor,
                "low": (summary.median if low is None else low) / divisor,
                "high": (summary.median if high is None else high) / divisor,
                "condition": other_levels(condition, factor),
            }
        )
    name = metric_name(metric)
    bounds = [float(row[end]) for row in rows for end in ("low", "high") if row[end] > 0]
    return framed(
        lines_by_size(
            rows,
            factor,
            f"{name}, in {unit}" if unit else name,
            alt.Scale(type="log", nice=False, padding=12),
            alt.Axis(values=log_ticks(min(bounds) / 2, 2 * max(bounds)), format="~r"),
        ),
        title=f"{name.capitalize()} by {factor}",
        notes=list(_notes(document, factor, metric)),
        description=f"Median {name} by {factor}, both on logarithmic scales, with intervals.",
        height=HEIGHT,
    )


def _notes(document: ResultDocument, factor: str, metric: str) -> Iterator[str]:
    laws = scaling_laws(document, factor, metric)
    for name, law in list(laws.items())[:MOST_LAWS]:
        yield f"{name}: {law_sentence(law)}"
    if len(laws) > MOST_LAWS:
        yield f"and {len(laws) - MOST_LAWS} more lines"
