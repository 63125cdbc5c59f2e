"""Parts of every chart: inline data, colours and shapes, axes, and the frame around the layers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from equipoise.figures.quantity import Quantity
from equipoise.figures.theme import PALETTE, WIDTH, color_of, configuration, shape_of
from equipoise.model.result import ResultDocument

Rows = list[dict[str, Any]]

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 (§2.2) cannot hold; vl-convert aborts the process over one in a name."""


def chart_of(rows: Sequence[Mapping[str, Any]]) -> alt.Chart:
    """Return a chart over rows, which it contains."""
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]))


def frame(
    layers: Sequence[alt.Chart],
    *,
    title: str,
    description: str,
    height: int,
    notes: Sequence[str] = (),
) -> alt.LayerChart:
    """Lay charts over each other under a title, in the light theme.

    Parameters
    ----------
    notes
        Lines of the subtitle: what a reader must know about the data of this figure.
    description
        Text for a screen reader.
    """
    chart = alt.LayerChart(
        layer=list(layers),
        title=alt.TitleParams(text=title, subtitle=list(notes)),
        description=description,
        width=WIDTH,
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        config=alt.Config.from_dict(configuration("light")),
    )
    specification = chart.to_dict()
    drawable = _drawable(specification)
    # Building the chart anew takes a second for 5,000 trials.
    return chart if drawable == specification else alt.LayerChart.from_dict(drawable)


def _drawable(value: Any) -> Any:
    """Replace each character that XML cannot hold by its escape sequence."""
    if isinstance(value, str):
        return _NO_XML.sub(lambda match: repr(match[0])[1:-1], value)
    if isinstance(value, dict):
        return {_drawable(key): _drawable(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_drawable(part) for part in value]
    return value


def top_legend(**changes: Any) -> alt.Legend:
    """Return a legend without a title above the chart."""
    return alt.Legend(**{"title": None, "orient": "top", "symbolOpacity": 1, **changes})


def condition_color(names: Sequence[str]) -> alt.Color:
    """Return the colour by condition, in the order of the plan, with a legend."""
    return alt.Color(
        "condition:N",
        scale=alt.Scale(domain=list(names), range=[color_of(i) for i in range(len(names))]),
        legend=_condition_legend(),
    )


def condition_shape(names: Sequence[str]) -> alt.Shape:
    """Return the shape by condition, in the order of the plan.

    Where the colours begin again, the shapes do not repeat with them.
    """
    shapes = [shape_of(place + place // len(PALETTE)) for place in range(len(names))]
    return alt.Shape(
        "condition:N",
        scale=alt.Scale(domain=list(names), range=shapes),
        # The same legend as for the colours: Vega then draws one for both.
        legend=_condition_legend(),
    )


def _condition_legend() -> alt.Legend:
    # Vega leaves out what is beyond 30 entries unless the limit is 0.
    return top_legend(columns=1, labelLimit=300, symbolLimit=0)


def color_and_shape(
    field: str, kinds: Sequence[str], places: Sequence[int], legend: alt.Legend | None
) -> tuple[alt.Color, alt.Shape]:
    """Return colour and shape by kind, with one legend for both.

    Parameters
    ----------
    field
        Field of each row that holds the kind.
    places
        Position in the palette of each kind.
    """
    colors = alt.Scale(domain=list(kinds), range=[color_of(place) for place in places])
    shapes = alt.Scale(domain=list(kinds), range=[shape_of(place) for place in places])
    return (
        alt.Color(f"{field}:N", scale=colors, legend=legend),
        alt.Shape(f"{field}:N", scale=shapes, legend=legend),
    )


def place_of(document: ResultDocument, name: str) -> int:
    """Return the position of a condition in the plan, which fixes its colour and shape."""
    names = [condition.name for condition in document.conditions]
    return names.index(name) if name in names else len(names)


def plain_scale(low: float, high: float, *, kind: Literal["linear", "log"]) -> alt.Scale:
    """Return a scale over exactly this range: never widened to round numbers or to zero."""
    # Vega warns of `zero` on a logarithmic scale, which has none.
    zero = False if kind == "linear" else alt.Undefined
    return alt.Scale(domain=[low, high], type=kind, nice=False, zero=zero)


def quantity_axis(quantity: Quantity, count: int) -> alt.Axis:
    """Return the axis of a quantity with about ``count`` labels."""
    return alt.Axis(
        title=quantity.title(),
        tickCount=count,
        values=quantity.ticks() or alt.Undefined,
        format="~r" if quantity.logarithmic else alt.Undefined,
    )


def quantity_scale(quantity: Quantity) -> alt.Scale:
    """Return the scale of a quantity over its drawn range."""
    kind: Literal["linear", "log"] = "log" if quantity.logarithmic else "linear"
    return plain_scale(quantity.low, quantity.high, kind=kind)
