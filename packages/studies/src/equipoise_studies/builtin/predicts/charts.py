"""Throughput against the cost of one primitive, a point for each condition."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt

from equipoise.figures.building import log_x_axis, point_labels
from equipoise.figures.gallery import Figure
from equipoise.figures.quantity import unit_of
from equipoise.shared.chart_parts import frame, layer, point
from equipoise.shared.theme import color_of
from equipoise_studies.builtin.predicts.analysis import Primitive, primitives
from equipoise_studies.study_data import StudyData

HOW_TO_READ = (
    "Each point is one condition: the median cost of the primitive and the median throughput of "
    "the server. If the points fall from left to right, the two correlate; clusters show switches "
    "that change both."
)
MAX_CHARTS = 3
"""Maximum number of charts, one for each primitive."""


def figures(data: StudyData) -> Iterator[Figure]:
    """Yield charts of the throughput against the primitives with the strongest correlations."""
    ranked = [primitive for primitive in primitives(data) if primitive.correlation is not None]
    for primitive in ranked[:MAX_CHARTS]:
        yield Figure(f"beside_{primitive.name}", HOW_TO_READ, throughput_chart(primitive))


def throughput_chart(primitive: Primitive) -> alt.LayerChart:
    """Draw the throughput against the cost of one primitive."""
    divisor, unit = unit_of("latency_s", min(point.cost_s for point in primitive.points))
    rows = [
        {
            "condition": point.condition,
            "cost": point.cost_s / divisor,
            "throughput": point.throughput_per_s,
        }
        for point in primitive.points
    ]
    x_title = f"{primitive.name}, in {unit} (logarithmic scale)"
    x = log_x_axis("cost:Q", x_title, padding=30, format="~r", tickCount=6)
    y = alt.Y("throughput:Q", title="throughput, per s", axis=alt.Axis(format="~s"))
    tooltip = ["condition:N", "cost:Q", alt.Tooltip("throughput:Q", format=",.0f")]
    title = f"The server's throughput against {primitive.name}"
    return frame(
        [
            layer(rows, point(size=80, color=color_of(0)), x=x, y=y, tooltip=tooltip),
            *point_labels(rows, x, y, "condition:N"),
        ],
        title=title,
        description=f"{title}: medians of each condition.",
        height=360,
    )
