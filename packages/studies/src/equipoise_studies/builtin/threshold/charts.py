"""Charts of time against peak memory; a line connects the front (``analysis.py``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt

from equipoise.figures.building import log_x_axis, point_labels
from equipoise.figures.gallery import Figure
from equipoise.figures.quantity import unit_of
from equipoise.shared.chart_parts import frame, layer, point
from equipoise.shared.theme import color_of
from equipoise_studies.builtin.threshold.analysis import Point, points_of, threshold_text
from equipoise_studies.study_data import StudyData

HOW_TO_READ = (
    "Lower points are faster, and points further left need less memory. The line joins the "
    "thresholds that no other threshold beats. Another threshold beats each hollow point: it is at "
    "least as good in both, and better in one."
)


def figures(data: StudyData) -> Iterator[Figure]:
    """Yield a chart of time against peak memory for each workload."""
    for work in data.levels("work"):
        points = points_of(data, work)
        if points:
            yield Figure(f"front_{work}", HOW_TO_READ, front_chart(work, points))


def front_chart(work: str, points: Sequence[Point]) -> alt.LayerChart:
    """Draw the median time and the median peak memory of each threshold on one workload."""
    time_divisor, time_unit = unit_of("work_s", min(medians.time_s for medians in points))
    peak_divisor, peak_unit = unit_of("peak_bytes", min(medians.peak_bytes for medians in points))
    rows = [
        {
            "threshold": threshold_text(medians.threshold),
            "peak": medians.peak_bytes / peak_divisor,
            "time": medians.time_s / time_divisor,
            "front": medians.on_front,
        }
        for medians in points
    ]
    x_title = f"peak memory, in {peak_unit} (logarithmic scale)"
    x = log_x_axis("peak:Q", x_title, padding=30, format="~r", tickCount=6)
    y = alt.Y(
        "time:Q",
        title=f"time, in {time_unit} (logarithmic scale)",
        scale=alt.Scale(type="log", nice=False, padding=20),
        axis=alt.Axis(format="~r", tickCount=6),
    )
    front = [row for row in rows if row["front"]]
    beaten = [row for row in rows if not row["front"]]
    step_line = alt.MarkDef("line", strokeWidth=2, color=color_of(0), interpolate="step-after")
    hollow = alt.MarkDef("point", filled=False, size=70, color=color_of(5))
    tooltip = ["threshold:N", "peak:Q", "time:Q"]
    return frame(
        [
            layer(front, step_line, x=x, y=y, order=alt.Order("peak:Q")),
            layer(front, point(size=80, color=color_of(0)), x=x, y=y, tooltip=tooltip),
            layer(beaten, hollow, x=x, y=y, tooltip=tooltip),
            *point_labels(rows, x, y, "threshold:N"),
        ],
        title=f"{work}: time against memory by threshold",
        description=f"Median time against median peak memory of {work} for each threshold.",
        height=360,
    )
