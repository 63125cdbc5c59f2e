"""Draw Figure 1 of Sekhon (2006), and the measured and published ratios to the default."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import altair as alt

from equipoise.figures.building import (
    condition_color,
    interval_bars,
    lines_and_points,
    log_x_axis,
    log_y_axis,
)
from equipoise.figures.gallery import Figure
from equipoise.shared.chart_parts import Rows, chart_of, frame
from equipoise_studies.builtin.sekhon2006.analysis import (
    DEFAULT,
    MEASURED,
    PUBLISHED,
    figure_1_rows,
    ratio_rows,
)
from equipoise_studies.study_data import StudyData

HOW_TO_READ_SECONDS = (
    "A level line grows like N² log N, a rising line faster. Each allocator has a colour, each "
    "algorithm a kind of line; hollow marks are the article's, on 2006 hardware."
)
HOW_TO_READ_RATIOS = (
    "Above 1: slower than the default. Filled marks are ours, with the confidence sequence, or "
    "else the range over blocks; hollow marks are the article's."
)
_NOTE = "filled: here; hollow diamonds: published in 2006, on 2006 hardware"
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
"""Dashes of the lines of the algorithms: lengths of strokes and gaps, in pixels."""


def figures(data: StudyData) -> Iterator[Figure]:
    """Yield Figure 1 and the ratios to the default, both published and measured."""
    seconds, ratios = list(figure_1_rows(data)), list(ratio_rows(data))
    if seconds:
        yield Figure("figure_1", HOW_TO_READ_SECONDS, seconds_chart(seconds))
    if ratios:
        yield Figure("ratios", HOW_TO_READ_RATIOS, ratios_chart(ratios))


def seconds_chart(rows: Rows) -> alt.LayerChart:
    """Draw seconds over N² log N by rows."""
    values = [row["value"] for row in rows]
    title = "ns / (N² log N), best search"
    return frame(
        [*_layers(rows, log_y_axis(title, min(values) / 2, 2 * max(values)))],
        title="Figure 1: seconds over N² log N",
        notes=[_NOTE],
        description="Time of the best search over N squared log N, by rows, both logarithmic.",
        height=380,
    )


def ratios_chart(rows: Rows) -> alt.LayerChart:
    """Draw the ratio to the default by rows, with intervals."""
    ends = [1.0, *(row[end] for row in rows for end in ("low", "high"))]
    y = log_y_axis("times the default allocator", min(ends) / 2, 2 * max(ends))
    ours = [row for row in rows if row["source"] == MEASURED]
    return frame(
        [
            chart_of([{"value": 1.0}]).mark_rule(style="reference").encode(y=y),
            interval_bars(ours, _x(rows), y, _names(rows), width=1.5),
            *_layers(rows, y),
        ],
        title="Over the default allocator",
        notes=[_NOTE],
        description="Ratio of search time to that under glibc, by rows, ours and as published.",
        height=380,
    )


def _layers(rows: Rows, y: alt.Y) -> Iterator[alt.Chart]:
    x, names = _x(rows), _names(rows)
    algorithms = list(dict.fromkeys(row["algorithm"] for row in rows))
    dashes = [list(dash) for dash, _ in zip(itertools.cycle(_DASHES), algorithms, strict=False)]
    dash = alt.StrokeDash(
        "algorithm:N",
        scale=alt.Scale(domain=algorithms, range=dashes),
        legend=alt.Legend(title=None, orient="top", symbolType="stroke"),
    )
    tooltip = ["source:N", "algorithm:N", "condition:N", "rows:Q", alt.Tooltip("value:Q")]
    ours = [row for row in rows if row["source"] == MEASURED]
    line, points = lines_and_points(ours, x, y, names, tooltip=tooltip)
    yield line.encode(strokeDash=dash)
    yield points
    published = chart_of([row for row in rows if row["source"] == PUBLISHED])
    marks = published.mark_point(filled=False, size=120, strokeWidth=2, shape="diamond")
    yield marks.encode(x=x, y=y, color=condition_color(names), tooltip=tooltip)


def _x(rows: Rows) -> alt.X:
    sizes = sorted({row["rows"] for row in rows})
    return log_x_axis("rows:Q", "rows N (logarithmic scale)", padding=20, values=sizes, format=",")


def _names(rows: Rows) -> list[str]:
    """Return the allocators with the default first, so that all figures have the same colours."""
    return list(dict.fromkeys((DEFAULT, *(str(row["condition"]) for row in rows))))
