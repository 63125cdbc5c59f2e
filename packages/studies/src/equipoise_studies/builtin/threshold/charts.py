"""Charts of time against peak memory, with the front.

A threshold beats another if it is at least as good in time and in memory, and better in one of
them. The front contains the thresholds that no other threshold beats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt

from equipoise.figures.building import log_x, point_labels
from equipoise.figures.gallery import Figure
from equipoise.figures.quantity import unit_of
from equipoise.shared.chart_parts import frame, layer, point
from equipoise.shared.theme import color_of
from equipoise_studies.builtin.threshold.analysis import Point, points, threshold_text
from equipoise_studies.study_data import StudyData

HOW_TO_READ = (
    "Lower points are faster, and points further left need less memory. The line joins the "
    "thresholds that no other threshold beats. Another threshold beats each hollow point: it is at "
    "least as good in both, and better in one."
)


def figures(data: StudyData) -> Iterator[Figure]:
    """Yield a chart of time against peak memory for each workload."""
    for work in data.levels("work"):
        thresholds = points(data, work)
        if thresholds:
            yield Figure(f"front_{work}", HOW_TO_READ, front_chart(work, thresholds))


def front_chart(work: str, thresholds: Sequence[Point]) -> alt.LayerChart:
    """Draw the median time and the median peak memory of each threshold on one workload."""
    time_divisor, time_unit = unit_of("work_s", min(threshold.time_s for threshold in thresholds))
    peak_divisor, peak_unit = unit_of(
        "peak_bytes", min(threshold.peak_bytes for threshold in thresholds)
    )
    rows = [
        {
            "threshold": threshold_text(threshold.threshold),
            "peak": threshold.peak_bytes / peak_divisor,
            "time": threshold.time_s / time_divisor,
            "front": threshold.on_front,
        }
        for threshold in thresholds
    ]
    x_title = f"peak memory, in {peak_unit} (logarithmic scale)"
    x = log_x("peak:Q", x_title, 30, format="~r", tickCount=6)
    y = alt.Y(
        "time:Q",
        title=f"time, in {time_unit} (logarithmic scale)",
        scale=alt.Scale(type="log", nice=False, padding=20),
        axis=alt.Axis(format="~r", tickCount=6),
    )
    front = [row for row in rows if row["front"]]
    beaten = [row for row in rows if not row["front"]]
    step = alt.MarkDef("line", strokeWidth=2, color=color_of(0), interpolate="step-after")
    hollow = alt.MarkDef("point", filled=False, size=70, color=color_of(5))
    tooltip = ["threshold:N", "peak:Q", "time:Q"]
    return frame(
        [
            layer(front, step, x=x, y=y, order=alt.Order("peak:Q")),
            layer(front, point(80, color=color_of(0)), x=x, y=y, tooltip=tooltip),
            layer(beaten, hollow, x=x, y=y, tooltip=tooltip),
            *point_labels(rows, x, y, "threshold:N"),
        ],
        title=f"{work}: time against memory by threshold",
        description=f"Median time against median peak memory of {work} for each threshold.",
        height=360,
    )
