"""Curves against the number of clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt

from equipoise.figures.building import Rows, chart_of, condition_color, condition_shape, frame
from equipoise.figures.gallery import Figure
from equipoise.figures.quantity import log_ticks, metric_name, unit_of
from equipoise.model.result import ResultDocument
from equipoise.studies.builtin.database.analysis import THROUGHPUT, Curve, curves_of, places
from equipoise.studies.study_data import StudyData

HOW_TO_READ = {
    THROUGHPUT: (
        "Each line is one setting, with the interval of its median at each number of clients. The "
        "dashed line of the same colour is its knee: left of it more clients bring more "
        "throughput, right of it they mostly wait."
    ),
    "latency_p99_s": (
        "Each line is one setting: 99 of 100 transactions took no longer. Where throughput does "
        "not grow any more, more clients only wait longer."
    ),
}
HEIGHT = 320


def figures(document: ResultDocument) -> Iterator[Figure]:
    """Yield throughput and latency by the number of clients, for each server and work."""
    measured = StudyData(document)
    for where in places(measured):
        for metric, how_to_read in HOW_TO_READ.items():
            curves = [one for one in curves_of(measured, metric, where) if len(one.points) > 1]
            if curves:
                title = f"{where['server']}, {where['work']}"
                yield Figure(
                    f"{metric.partition('_')[0]}_{where['server']}_{where['work']}",
                    how_to_read,
                    curve_chart(title, metric, curves),
                )


def curve_chart(title: str, metric: str, curves: Sequence[Curve]) -> alt.LayerChart:
    """Draw the medians of every setting by the number of clients, with their intervals."""
    divisor, unit = unit_of(metric, max(point.median for one in curves for point in one.points))
    rows: Rows = []
    knees: Rows = []
    for curve in curves:
        for point in curve.points:
            low, high = point.interval
            rows.append(
                {
                    "clients": point.clients,
                    "value": point.median / divisor,
                    "low": (point.median if low is None else low) / divisor,
                    "high": (point.median if high is None else high) / divisor,
                    "condition": curve.levels["setting"],
                }
            )
        if metric == THROUGHPUT and curve.knee is not None:
            knees.append({"clients": curve.knee.clients, "condition": curve.levels["setting"]})
    names = [curve.levels["setting"] for curve in curves]
    color, shape = condition_color(names), condition_shape(names)
    clients = sorted({int(row["clients"]) for row in rows})
    x = alt.X(
        "clients:Q",
        title="clients (logarithmic scale)",
        scale=alt.Scale(type="log", nice=False, padding=20),
        axis=alt.Axis(values=clients, format="d"),
    )
    name = metric_name(metric)
    y_title = f"{name}, {unit}" if metric == THROUGHPUT else f"{name}, in {unit}"
    scale, axis = _vertical(metric, rows)
    data = chart_of(rows)
    y = alt.Y("value:Q", title=y_title, scale=scale, axis=axis)
    low_y = alt.Y("low:Q", title=y_title, scale=scale, axis=axis)
    layers = [
        data.mark_line(strokeWidth=2).encode(x=x, y=y, color=color),
        data.mark_rule(strokeWidth=2).encode(x=x, y=low_y, y2="high:Q", color=color),
        data.mark_point(filled=True, size=60, opacity=1).encode(
            x=x,
            y=y,
            color=color,
            shape=shape,
            tooltip=["condition:N", "clients:Q", alt.Tooltip("value:Q", format=".5~r")],
        ),
    ]
    if knees:
        layers.append(chart_of(knees).mark_rule(strokeDash=[5, 3]).encode(x=x, color=color))
    return frame(
        layers,
        title=f"{title}: {name} by clients",
        notes=[],
        description=f"Median {name} of {title} by the number of clients, for each setting.",
        height=HEIGHT,
    )


def _vertical(metric: str, rows: Rows) -> tuple[alt.Scale, alt.Axis]:
    """Return an axis from zero for throughput, a logarithmic one for latency, which spans more."""
    if metric == THROUGHPUT:
        return alt.Scale(zero=True), alt.Axis(format="~s")
    ends = [float(row[end]) for row in rows for end in ("low", "high") if row[end] > 0]
    ticks = log_ticks(min(ends) / 2, 2 * max(ends))
    return alt.Scale(type="log", nice=False, padding=12), alt.Axis(values=ticks, format="~r")
