"""Throughput against the cost of one primitive, a point for each condition."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt

from equipoise.figures.building import chart_of, frame
from equipoise.figures.gallery import Figure
from equipoise.figures.quantity import unit_of
from equipoise.figures.theme import color_of
from equipoise.model.result import ResultDocument
from equipoise.studies.builtin.predicts.analysis import MOST_SHOWN, Primitive, primitives
from equipoise.studies.study_data import StudyData

HOW_TO_READ = (
    "Each point is one condition: the median cost of the primitive and the median throughput of "
    "the server under it. Points that fall from left to right move together; clusters are "
    "switches that turn both."
)
HEIGHT = 360


def figures(document: ResultDocument) -> Iterator[Figure]:
    """Yield throughput against the primitives that move with it most."""
    found = [one for one in primitives(StudyData(document)) if one.correlation is not None]
    for primitive in found[:MOST_SHOWN]:
        chart = beside_chart(primitive)
        yield Figure(f"beside_{primitive.name}", HOW_TO_READ, chart)


def beside_chart(primitive: Primitive) -> alt.LayerChart:
    """Draw one primitive beside the throughput."""
    divisor, unit = unit_of("latency_s", min(one.cost_s for one in primitive.points))
    data = chart_of(
        [
            {
                "condition": one.condition,
                "cost": one.cost_s / divisor,
                "throughput": one.throughput_per_s,
            }
            for one in primitive.points
        ]
    )
    x = alt.X(
        "cost:Q",
        title=f"{primitive.name}, in {unit} (logarithmic scale)",
        scale=alt.Scale(type="log", nice=False, padding=30),
        axis=alt.Axis(format="~r", tickCount=6),
    )
    y = alt.Y("throughput:Q", title="throughput, per s", axis=alt.Axis(format="~s"))
    title = f"The server's throughput beside {primitive.name}"
    return frame(
        [
            data.mark_point(filled=True, size=80, opacity=1, color=color_of(0)).encode(
                x=x,
                y=y,
                tooltip=["condition:N", "cost:Q", alt.Tooltip("throughput:Q", format=",.0f")],
            ),
            data.mark_text(align="left", dx=8, dy=-6, color=color_of(5)).encode(
                x=x, y=y, text="condition:N"
            ),
        ],
        title=title,
        notes=[],
        description=f"{title}: medians of each condition.",
        height=HEIGHT,
    )
