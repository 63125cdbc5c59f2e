"""Parts that the charts of several studies share: logarithmic axes, lines, and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from equipoise.figures.building import Rows, condition_color, condition_shape, labels, layer, point
from equipoise.figures.quantity import log_ticks


def log_x(field: str, title: str, padding: int, **axis: Any) -> alt.X:
    """Return a logarithmic horizontal axis; ``axis`` has the settings of its labels."""
    scale = alt.Scale(type="log", nice=False, padding=padding)
    return alt.X(field, title=f"{title} (logarithmic scale)", scale=scale, axis=alt.Axis(**axis))


def log_y(field: str, title: str, low: float, high: float) -> alt.Y:
    """Return a logarithmic vertical axis with labels at round numbers between two bounds."""
    return alt.Y(
        field,
        title=title,
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(values=log_ticks(low, high), format="~r"),
    )


def lines(
    rows: Rows,
    x: alt.X,
    y: alt.Y,
    names: Sequence[str],
    *,
    tooltip: Sequence[Any],
    width: float = 1.5,
    point_size: int = 45,
) -> tuple[alt.Chart, alt.Chart]:
    """Return the line and the points of each condition; ``names`` fix colours and shapes."""
    channels = {"x": x, "y": y, "color": condition_color(names)}
    shape = condition_shape(names)
    return (
        layer(rows, alt.MarkDef("line", strokeWidth=width), **channels),
        layer(rows, point(point_size), shape=shape, tooltip=tooltip, **channels),
    )


def point_labels(rows: Rows, x: alt.X, y: alt.Y, field: str) -> list[alt.Chart]:
    """Return the text of a field beside each point, with no line behind its letters."""
    mark = {"align": "left", "dx": 8, "dy": -6, "fontSize": 11, "fontWeight": "normal"}
    return labels(rows, field, x=x, y=y, mark=mark)
