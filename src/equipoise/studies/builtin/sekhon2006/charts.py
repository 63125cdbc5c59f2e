"""Figure 1 of the article, and the ratios to the default beside the published ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from equipoise.figures.building import chart_of, condition_color, condition_shape, frame
from equipoise.figures.gallery import Figure
from equipoise.figures.quantity import log_ticks
from equipoise.model.result import ResultDocument
from equipoise.studies.builtin.sekhon2006.analysis import HERE, THERE, figure_1_rows, ratio_rows
from equipoise.studies.study_data import StudyData

HOW_TO_READ_SECONDS = (
    "A level line grows as N² log N does, a rising one faster. One colour for each allocator, one "
    "kind of line for each algorithm; hollow marks are the article's, on the machines of 2006."
)
HOW_TO_READ_RATIOS = (
    "Above 1: slower than the default. Filled marks with their interval are ours (the confidence "
    "sequence, or the range over blocks where there is none yet); hollow ones the article's."
)
HEIGHT = 380
DEFAULT = "glibc"

_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])


def figures(document: ResultDocument) -> Iterator[Figure]:
    """Yield Figure 1 and the ratios to the default, published and ours."""
    measured = StudyData(document)
    lines = tuple(figure_1_rows(measured))
    if lines:
        yield Figure("figure_1", HOW_TO_READ_SECONDS, seconds_chart(lines))
    ratios = tuple(ratio_rows(measured))
    if ratios:
        yield Figure("ratios", HOW_TO_READ_RATIOS, ratios_chart(ratios))


def seconds_chart(rows: Sequence[dict[str, Any]]) -> alt.LayerChart:
    """Draw seconds over N² log N by rows."""
    y_scale, y_axis = _log_scale([row["value"] for row in rows])
    y = alt.Y("value:Q", title="ns / (N² log N), best search", scale=y_scale, axis=y_axis)
    return _chart(
        rows,
        y,
        title="Figure 1: seconds over N² log N",
        description="Time of the best search over N squared log N, by rows, both logarithmic.",
    )


def ratios_chart(rows: Sequence[dict[str, Any]]) -> alt.LayerChart:
    """Draw the ratio to the default by rows, with intervals."""
    y_scale, y_axis = _log_scale([row[end] for row in rows for end in ("low", "high")] + [1.0])
    y = alt.Y("value:Q", title="times the default allocator", scale=y_scale, axis=y_axis)
    chart = _chart(
        rows,
        y,
        title="Over the default allocator",
        description="Ratio of search time to that under glibc, by rows, ours and as published.",
    )
    data = chart_of([row for row in rows if row["source"] == HERE])
    bars = data.mark_rule(strokeWidth=1.5).encode(
        x=_x(rows),
        y=alt.Y("low:Q", title="times the default allocator", scale=y_scale, axis=y_axis),
        y2="high:Q",
        color=condition_color(_names(rows)),
    )
    none = chart_of([{"value": 1.0}]).mark_rule(style="reference").encode(y=y)
    chart.layer = [none, bars, *chart.layer]
    return chart


def _chart(
    rows: Sequence[dict[str, Any]], y: alt.Y, *, title: str, description: str
) -> alt.LayerChart:
    x, color = _x(rows), condition_color(_names(rows))
    algorithms = list(dict.fromkeys(row["algorithm"] for row in rows))
    dash = alt.StrokeDash(
        "algorithm:N",
        scale=alt.Scale(
            domain=algorithms,
            range=[list(_DASHES[i % len(_DASHES)]) for i in range(len(algorithms))],
        ),
        legend=alt.Legend(title=None, orient="top", symbolType="stroke"),
    )
    here = chart_of([row for row in rows if row["source"] == HERE])
    there = chart_of([row for row in rows if row["source"] == THERE])
    tooltip = ["source:N", "algorithm:N", "condition:N", "rows:Q", alt.Tooltip("value:Q")]
    return frame(
        [
            here.mark_line(strokeWidth=1.5).encode(x=x, y=y, color=color, strokeDash=dash),
            here.mark_point(filled=True, size=45, opacity=1).encode(
                x=x, y=y, color=color, shape=condition_shape(_names(rows)), tooltip=tooltip
            ),
            there.mark_point(filled=False, size=120, strokeWidth=2, shape="diamond").encode(
                x=x, y=y, color=color, tooltip=tooltip
            ),
        ],
        title=title,
        notes=["filled: here; hollow diamonds: published in 2006, on machines of then"],
        description=description,
        height=HEIGHT,
    )


def _x(rows: Sequence[dict[str, Any]]) -> alt.X:
    sizes = sorted({row["rows"] for row in rows})
    return alt.X(
        "rows:Q",
        title="rows N (logarithmic scale)",
        scale=alt.Scale(type="log", nice=False, padding=20),
        axis=alt.Axis(values=sizes, format=","),
    )


def _names(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names, the default first: an allocator has one colour in both figures."""
    return list(dict.fromkeys((DEFAULT, *(str(row["condition"]) for row in rows))))


def _log_scale(values: Sequence[float]) -> tuple[alt.Scale, alt.Axis]:
    scale = alt.Scale(type="log", nice=False, padding=12)
    return scale, alt.Axis(values=log_ticks(min(values) / 2, 2 * max(values)), format="~r")
