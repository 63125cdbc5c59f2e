"""Parts of every chart: inline data, marks, colours, shapes, axes, and the frame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import altair as alt

from .pictures import notebook_pictures
from .theme import WIDTH, color_of, configuration, shape_of

Rows = list[dict[str, Any]]
"""Data of a mark: values by the name of the field."""
Position = TypeVar("Position", alt.X, alt.Y)
"""Horizontal or vertical position of a mark."""
MAX_NAME_PIXELS = 220
"""Maximum width of a row's name."""
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 (§2.2) excludes; they would make vl-convert abort the process."""


class Picture(alt.LayerChart):
    """A chart that notebooks show as a picture, without a network.

    By default, altair's charts load a script from a network. If the user chose a renderer of
    altair, the notebook uses that renderer.
    """

    def _repr_mimebundle_(self, *_: Any, **options: Any) -> Any:
        if alt.renderers.active != "default":
            return super()._repr_mimebundle_(**options)
        return notebook_pictures(self.to_dict(validate=False))


def chart_of(rows: Sequence[Mapping[str, Any]]) -> alt.Chart:
    """Return a chart that contains its rows."""
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]))


def layer(rows: Sequence[Mapping[str, Any]], mark: alt.MarkDef, **channels: Any) -> alt.Chart:
    """Draw rows as one kind of mark; ``channels`` are arguments of ``encode``."""
    chart: alt.Chart = chart_of(rows).properties(mark=mark).encode(**channels)
    return chart


def labels(rows: Sequence[Mapping[str, Any]], text: str, **encoding: Any) -> list[alt.Chart]:
    """Draw the field ``text`` of the rows, with a background that hides lines.

    Put these layers above all lines. ``encoding["mark"]`` has properties of the text.
    """
    mark = {"aria": False, **encoding.pop("mark", {})}
    # The first layer is the background, the second layer the letters.
    styles = (["label", "label-ground"], "label")
    return [
        layer(rows, alt.MarkDef("text", style=style, **mark), text=text, **encoding)
        for style in styles
    ]


def label_strips(rows: Sequence[Mapping[str, Any]], y: alt.Y, offset: float = 0.0) -> alt.Chart:
    """Draw strips behind the names of rows, ``offset`` pixels below the rows, to hide lines.

    Put this layer above the grid and below measured values.
    """
    # Without clipping, the ends of this thick line would widen the chart.
    mark = alt.MarkDef("rule", style="label-strip", yOffset=offset, clip=True, aria=False)
    return layer(rows, mark, y=y)


def point(size: float, **style: Any) -> alt.MarkDef:
    """Return the mark of an estimate: a filled point."""
    return alt.MarkDef("point", **{"filled": True, "size": size, "opacity": 1, **style})


def rule(width: float | None = None, **style: Any) -> alt.MarkDef:
    """Return the mark of an interval or a reference: a line with a width in pixels."""
    return alt.MarkDef("rule", strokeWidth=alt.Undefined if width is None else width, **style)


def tooltips(*fields: tuple[str, ...]) -> list[alt.Tooltip]:
    """Return the tooltips of a mark. Each tuple has a field, and perhaps a title and a format."""
    names = ("shorthand", "title", "format")
    arguments: list[dict[str, Any]] = [dict(zip(names, field, strict=False)) for field in fields]
    return [alt.Tooltip(**keywords) for keywords in arguments]


def frame(
    layers: Sequence[alt.Chart],
    *,
    title: str,
    notes: Sequence[str] = (),
    description: str,
    height: int,
) -> alt.LayerChart:
    """Return layered charts with a title, in the light theme.

    ``notes`` explain the data, ``description`` is for a screen reader.
    """
    chart = Picture(
        layer=list(layers),
        title=alt.TitleParams(text=title, subtitle=list(notes)),
        description=description,
        width=WIDTH,
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        config=configuration("light"),
    )
    specification = chart.to_dict(validate=False)
    drawable = _drawable(specification)
    # Building the chart again takes a second for 5,000 trials.
    return chart if drawable == specification else Picture.from_dict(drawable)


def _drawable(value: Any) -> Any:
    """Replace each character that XML excludes by an escape sequence."""
    if isinstance(value, str):
        return _NOT_IN_XML.sub(lambda match: repr(match[0])[1:-1], value)
    if isinstance(value, dict):
        return {_drawable(key): _drawable(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_drawable(part) for part in value]
    return value


def top_legend(**changes: Any) -> alt.Legend:
    """Return a legend without a title above the chart."""
    return alt.Legend(**{"title": None, "orient": "top", "symbolOpacity": 1, **changes})


def color_and_shape(
    field: str,
    kinds: Sequence[str],
    color_indices: Sequence[int],
    legend: alt.Legend | None,
    shape_indices: Sequence[int] | None = None,
) -> tuple[alt.Color, alt.Shape]:
    """Return colour and shape by kind, with one legend for both.

    ``color_indices`` are indices in the palette; by default, ``shape_indices`` are the same.
    """
    colors = alt.Scale(domain=list(kinds), range=[*map(color_of, color_indices)])
    shapes = alt.Scale(domain=list(kinds), range=[*map(shape_of, shape_indices or color_indices)])
    return (
        alt.Color(f"{field}:N", scale=colors, legend=legend),
        alt.Shape(f"{field}:N", scale=shapes, legend=legend),
    )


def plain_scale(low: float, high: float, *, kind: Literal["linear", "log"] = "linear") -> alt.Scale:
    """Return a scale over exactly this range, not widened to round numbers or to zero."""
    # Vega warns about `zero` on a logarithmic scale.
    zero = False if kind == "linear" else alt.Undefined
    return alt.Scale(domain=[low, high], type=kind, nice=False, zero=zero)


def linear(
    channel: type[Position], field: str, low: float, high: float, *, title: str, **axis: Any
) -> Position:
    """Return the position of a field on a linear scale over exactly this range."""
    scale = plain_scale(low, high)
    return channel(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(**axis))


def name_rows(field: str, names: Sequence[str], **scale: Any) -> alt.Y:
    """Return the vertical positions of rows, one for each name, from top to bottom."""
    rows = alt.Scale(domain=list(names), **scale)
    axis = alt.Axis(title=None, labelLimit=MAX_NAME_PIXELS)
    return alt.Y(f"{field}:N", sort=None, scale=rows, axis=axis)
