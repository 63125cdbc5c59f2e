"""What every chart is built from: inline data, layers, and one frame around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from equipoise.figures.drawable import drawable
from equipoise.figures.quantity import Quantity
from equipoise.figures.theme import PALETTE, WIDTH, color_of, configuration, shape_of
from equipoise.model.result import ResultDocument

Rows = list[dict[str, Any]]


def drawn_from(rows: Sequence[Mapping[str, Any]]) -> alt.Chart:
    """A chart over rows that travel inside it."""
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]))


def framed(
    layers: Sequence[alt.Chart],
    *,
    title: str,
    notes: Sequence[str],
    description: str,
    height: int,
) -> alt.LayerChart:
    """Layers on one another under a title, in the light theme, of text that can be drawn.

    Parameters
    ----------
    notes
        What must be said of this figure's data, a line each: the subtitle.
    description
        What a screen reader says instead of the picture.
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
    drawn = drawable(specification)
    # Taking a chart to pieces and building it anew takes a second for 5,000 trials.
    return chart if drawn == specification else alt.LayerChart.from_dict(drawn)


def condition_color(names: Sequence[str]) -> alt.Color:
    """Colour by condition, in the order of the plan, with a legend that fits a phone."""
    return alt.Color(
        "condition:N",
        scale=alt.Scale(domain=list(names), range=[color_of(i) for i in range(len(names))]),
        legend=_legend(),
    )


def condition_shape(names: Sequence[str]) -> alt.Shape:
    """Shape by condition, in the order of the plan."""
    return alt.Shape(
        "condition:N",
        scale=alt.Scale(domain=list(names), range=[_apart(i) for i in range(len(names))]),
        # The same as that of the colours: Vega then draws one legend for both.
        legend=_legend(),
    )


def told_apart(
    field: str, kinds: Sequence[str], places: Sequence[int], legend: alt.Legend | None
) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape by kind, of these places in the palette, with one legend for both.

    Parameters
    ----------
    field
        What holds the kind in each row.
    places
        One for each of the kinds.
    """
    colors = alt.Scale(domain=list(kinds), range=[color_of(place) for place in places])
    shapes = alt.Scale(domain=list(kinds), range=[shape_of(place) for place in places])
    return (
        alt.Color(f"{field}:N", scale=colors, legend=legend),
        alt.Shape(f"{field}:N", scale=shapes, legend=legend),
    )


def _apart(place: int) -> str:
    """A shape; where the colours begin again, another one than the first of that colour had."""
    return shape_of(place + place // len(PALETTE))


def _legend() -> alt.Legend:
    return alt.Legend(
        title=None,
        orient="top",
        columns=1,
        labelLimit=300,
        symbolOpacity=1,
        symbolLimit=0,  # Vega leaves out what is beyond 30 entries otherwise.
    )


def place_of(document: ResultDocument, name: str) -> int:
    """The place of a condition in the plan, which fixes its colour and its shape."""
    names = [condition.name for condition in document.conditions]
    return names.index(name) if name in names else len(names)


def quantity_axis(quantity: Quantity, count: int) -> alt.Axis:
    """The axis of a quantity with about so many labels."""
    return alt.Axis(
        title=quantity.title(),
        tickCount=count,
        values=quantity.ticks() or alt.Undefined,
        format="~r" if quantity.logarithmic else alt.Undefined,
    )


def plain_scale(low: float, high: float, *, kind: Literal["linear", "log"]) -> alt.Scale:
    """A scale over exactly this range: never widened to round numbers or to zero."""
    # Vega warns of `zero` on a logarithmic scale, which has none.
    zero = False if kind == "linear" else alt.Undefined
    return alt.Scale(domain=[low, high], type=kind, nice=False, zero=zero)


def quantity_scale(quantity: Quantity) -> alt.Scale:
    """The scale of a quantity over its drawn range."""
    kind: Literal["linear", "log"] = "log" if quantity.logarithmic else "linear"
    return plain_scale(quantity.low, quantity.high, kind=kind)
