"""What every chart is built from: inline data, layers, and one frame around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from equipoise.figures.theme import WIDTH, color_of, configuration, shape_of
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
    """Layers on one another under a title, in the light theme.

    Parameters
    ----------
    notes
        What must be said of this figure's data, a line each: the subtitle.
    description
        What a screen reader says instead of the picture.
    """
    return alt.LayerChart(
        layer=list(layers),
        title=alt.TitleParams(text=title, subtitle=list(notes)),
        description=description,
        width=WIDTH,
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        config=alt.Config.from_dict(configuration("light")),
    )


def condition_color(names: Sequence[str]) -> alt.Color:
    """Colour by condition, in the order of the plan, with a legend that fits a phone."""
    return alt.Color(
        "condition:N",
        scale=alt.Scale(domain=list(names), range=[color_of(i) for i in range(len(names))]),
        legend=alt.Legend(title=None, orient="top", columns=1, labelLimit=300, symbolOpacity=1),
    )


def condition_shape(names: Sequence[str]) -> alt.Shape:
    """Shape by condition, in the order of the plan."""
    return alt.Shape(
        "condition:N",
        scale=alt.Scale(domain=list(names), range=[shape_of(i) for i in range(len(names))]),
        legend=None,
    )


def place_of(document: ResultDocument, name: str) -> int:
    """The place of a condition in the plan, which fixes its colour and its shape."""
    names = [condition.name for condition in document.conditions]
    return names.index(name) if name in names else len(names)
