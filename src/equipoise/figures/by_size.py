"""What figures by size are drawn of: a line, bars and marks for each combination of levels."""

from __future__ import annotations

import altair as alt

from equipoise.figures.building import Rows, condition_color, condition_shape, drawn_from
from equipoise.figures.ticks import log_ticks

MOST_LABELS = 8


def lines_by_size(
    rows: Rows, factor: str, y_title: str, scale: alt.Scale, axis: alt.Axis
) -> list[alt.Chart]:
    """The layers over rows of ``size``, ``value``, ``low``, ``high`` and ``condition``."""
    names = list(dict.fromkeys(str(row["condition"]) for row in rows))
    sizes = sorted({float(row["size"]) for row in rows})
    x = alt.X(
        "size:Q",
        title=factor,
        scale=alt.Scale(type="log", nice=False, padding=20),
        axis=alt.Axis(
            values=sizes if len(sizes) <= MOST_LABELS else log_ticks(sizes[0], sizes[-1]),
            format=",",
        ),
    )
    y = alt.Y("value:Q", title=y_title, scale=scale, axis=axis)
    low = alt.Y("low:Q", title=y_title, scale=scale, axis=axis)
    color, shape = condition_color(names), condition_shape(names)
    data = drawn_from(rows)
    return [
        data.mark_line(strokeWidth=2).encode(x=x, y=y, color=color),
        data.mark_rule(strokeWidth=2).encode(x=x, y=low, y2="high:Q", color=color),
        data.mark_point(filled=True, size=60, opacity=1).encode(
            x=x,
            y=y,
            color=color,
            shape=shape,
            tooltip=["condition:N", "size:Q", alt.Tooltip("value:Q", format=".5~r")],
        ),
    ]
