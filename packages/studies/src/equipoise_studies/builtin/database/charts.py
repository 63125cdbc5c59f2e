"""Charts of throughput and latency by the number of clients, with a line for each setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt

from equipoise.figures.building import (
    condition_color,
    interval_bars,
    lines_and_points,
    log_x_axis,
    log_y_axis,
    positive_ends,
)
from equipoise.figures.gallery import Figure
from equipoise.figures.quantity import metric_name, unit_of
from equipoise.shared.chart_parts import Rows, chart_of, frame
from equipoise_studies.builtin.database.analysis import THROUGHPUT, Curve, curves_of, workloads
from equipoise_studies.study_data import StudyData

HOW_TO_READ = {
    THROUGHPUT: (
        "Each line is one setting, with the interval of its median at each number of clients. The "
        "dashed line of the same colour is its knee: to the left more clients increase the "
        "throughput, to the right they mostly wait."
    ),
    "latency_p99_s": (
        "Each line is one setting: 99 of 100 transactions took at most this time. Once throughput "
        "stops growing, more clients only wait longer."
    ),
}


def figures(data: StudyData) -> Iterator[Figure]:
    """Yield a chart of throughput and a chart of latency for each workload."""
    for workload in workloads(data):
        for metric, how_to_read in HOW_TO_READ.items():
            curves = [curve for curve in curves_of(data, metric, workload) if curve.points[1:]]
            if curves:
                title = f"{workload['server']}, {workload['work']}"
                yield Figure(
                    f"{metric.partition('_')[0]}_{workload['server']}_{workload['work']}",
                    how_to_read,
                    curve_chart(title, metric, curves),
                )


def curve_chart(title: str, metric: str, curves: Sequence[Curve]) -> alt.LayerChart:
    """Draw the median of each setting by the number of clients, with its interval and its knee."""
    divisor, unit = unit_of(metric, max(point.median for curve in curves for point in curve.points))
    rows: Rows = []
    for curve in curves:
        for point in curve.points:
            low, high = (point.median if end is None else end for end in point.interval)
            rows.append(
                {
                    "clients": point.clients,
                    "value": point.median / divisor,
                    "low": low / divisor,
                    "high": high / divisor,
                    "condition": curve.levels["setting"],
                }
            )
    settings = [curve.levels["setting"] for curve in curves]
    color = condition_color(settings)
    clients = sorted({int(row["clients"]) for row in rows})
    x = log_x_axis(
        "clients:Q", "clients (logarithmic scale)", padding=20, values=clients, format="d"
    )
    name, is_throughput = metric_name(metric), metric == THROUGHPUT
    if is_throughput:
        scale, axis = alt.Scale(zero=True), alt.Axis(format="~s")
        y = alt.Y("value:Q", title=f"{name}, {unit}", scale=scale, axis=axis)
    else:
        ends = positive_ends(rows)
        y = log_y_axis(f"{name}, in {unit}", min(ends) / 2, 2 * max(ends))
    tooltip = ["condition:N", "clients:Q", alt.Tooltip("value:Q", format=".5~r")]
    line, points = lines_and_points(rows, x, y, settings, tooltip=tooltip, width=2, point_size=60)
    layers = [line, interval_bars(rows, x, y, settings), points]
    knees = [
        {"clients": curve.knee.clients, "condition": curve.levels["setting"]}
        for curve in curves
        if is_throughput and curve.knee is not None
    ]
    if knees:
        layers.append(chart_of(knees).mark_rule(strokeDash=[5, 3]).encode(x=x, color=color))
    return frame(
        layers,
        title=f"{title}: {name} by clients",
        description=f"Median {name} of {title} by the number of clients, for each setting.",
        height=320,
    )
