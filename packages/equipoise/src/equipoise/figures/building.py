"""Parts of every chart: inline data, colours and shapes, axes, and the frame around the layers.

An axis of ratios has no difference in its middle: in percent near 1, in times beyond.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import altair as alt
from msgspec import Struct

from equipoise.figures.quantity import Quantity, log_ticks, rounded
from equipoise.model.quantities import Interval
from equipoise.model.result import ResultDocument
from equipoise.shared.chart_parts import (
    Position,
    Rows,
    color_and_shape,
    labels,
    layer,
    linear,
    plain_scale,
    point,
    rule,
    top_legend,
)
from equipoise.shared.theme import PALETTE

_PERCENT_BELOW = 2.0
"""Ratio below which the axis shows percent."""
_ROOM_AT_ONE = 0.11
"""Part of an axis of ratios around 1 that has no other label."""
_MARGIN = 0.08
_MIN_SPAN = 0.002


def condition_color(names: Sequence[str]) -> alt.Color:
    """Return the colour by condition, in the order of the plan, with a legend."""
    return _condition(names)[0]


def condition_shape(names: Sequence[str]) -> alt.Shape:
    """Return the shape by condition, in the order of the plan; its legend is that of the colours.

    Where the colours begin again, the shapes do not repeat with them.
    """
    return _condition(names)[1]


def _condition(names: Sequence[str]) -> tuple[alt.Color, alt.Shape]:
    places = range(len(names))
    # Vega leaves out what is beyond 30 entries unless the limit is 0.
    legend = top_legend(columns=1, labelLimit=300, symbolLimit=0)
    shapes = [place + place // len(PALETTE) for place in places]
    return color_and_shape("condition", names, places, legend, shapes)


def place_of(document: ResultDocument, name: str) -> int:
    """Return the position of a condition in the plan, which fixes its colour and shape."""
    names = [condition.name for condition in document.conditions]
    return names.index(name) if name in names else len(names)


def count_axis(field: str, low: float, high: float, title: str) -> alt.X:
    """Return the horizontal position of trials, blocks or iterations, which have whole numbers."""
    ticks = {"tickMinStep": 1, "tickCount": 8, "format": "d", "grid": False}
    return linear(alt.X, field, low, high, title=title, **ticks)


def log_x(field: str, title: str, padding: int, **axis: Any) -> alt.X:
    """Return a logarithmic horizontal axis; ``axis`` has the settings of its labels."""
    scale = alt.Scale(type="log", nice=False, padding=padding)
    return alt.X(field, title=title, scale=scale, axis=alt.Axis(**axis))


def log_y(title: str, low: float, high: float) -> alt.Y:
    """Return a logarithmic vertical axis with labels at round numbers between two bounds."""
    scale = alt.Scale(type="log", nice=False, padding=12)
    axis = alt.Axis(values=log_ticks(low, high), format="~r")
    return alt.Y("value:Q", title=title, scale=scale, axis=axis)


def bars(rows: Rows, x: alt.X, y: alt.Y, names: Sequence[str], width: float = 2) -> alt.Chart:
    """Return the interval of each point of a line, from ``low`` to ``high``, on the axis ``y``."""
    low = alt.Y("low:Q", title=y["title"], scale=y["scale"], axis=y["axis"])
    return layer(rows, rule(width), x=x, y=low, y2="high:Q", color=condition_color(names))


def ends_of(rows: Rows) -> list[float]:
    """Return the ends of the bars that a logarithmic axis can show."""
    return [float(row[end]) for row in rows for end in ("low", "high") if row[end] > 0]


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
    """Return the text of a field next to each point, with no line behind its letters."""
    mark = {"align": "left", "dx": 8, "dy": -6, "fontSize": 11, "fontWeight": "normal"}
    return labels(rows, field, x=x, y=y, mark=mark)


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


class RatioAxis(Struct, frozen=True):
    """An axis for ratios of costs: in percent near 1, in times beyond."""

    low: float
    high: float
    """The drawn range of ratios."""
    in_percent: bool

    def place(self, ratio: float) -> float:
        """Return the position of a ratio, moved to the edge if it is beyond."""
        clipped = min(max(ratio, self.low), self.high)
        return rounded(100.0 * (clipped - 1.0) if self.in_percent else clipped)

    def places(self, ratio: float | None, interval: Interval) -> dict[str, float | None]:
        """Return the positions of a ratio and of its interval; an unknown end is at the edge."""
        low, high = interval
        return {
            "ratio": None if ratio is None else self.place(ratio),
            "low": self.place(self.low if low is None else low),
            "high": self.place(self.high if high is None else high),
        }

    def edge_note(self, intervals: Iterable[Interval]) -> Iterator[str]:
        """Yield the meaning of a bar at the edge, where an interval goes beyond the drawn range."""
        if any(
            low is None or high is None or low < self.low or high > self.high
            for low, high in intervals
        ):
            yield "A bar that reaches the edge goes on beyond it."

    def position(self, channel: type[Position], subject: str) -> Position:
        """Return the position of the field ``low``; ``subject`` names the ratio."""
        kind: Literal["linear", "log"] = "linear" if self.in_percent else "log"
        equal = self.place(1.0)
        # Below each other where labels are side by side, on a phone without any room to spare.
        label = f"['{equal:g}', 'equal']" if channel is alt.X else f"'equal  {equal:g}'"
        axis = alt.Axis(
            format="+~r" if self.in_percent else "~r",
            tickCount=6,
            values=alt.Undefined if self.in_percent else list(self._ticks()),
            labelExpr=f"datum.value == {equal:g} ? {label} : datum.label",
        )
        unit = "change, in %" if self.in_percent else "times it (logarithmic)"
        scale = plain_scale(self.place(self.low), self.place(self.high), kind=kind)
        return channel("low:Q", title=f"{subject}: {unit}", scale=scale, axis=axis)

    def _ticks(self) -> Iterator[float]:
        """Yield round ratios; none so near to 1 that its label has no room next to that of 1."""
        room = _ROOM_AT_ONE * math.log(self.high / self.low)
        for tick in log_ticks(self.low, self.high):
            if tick == 1.0 or abs(math.log(tick)) >= room:
                yield tick

    def landmarks(self, min_effect: float, along: alt.X | alt.Y) -> list[alt.Chart]:
        """Draw no difference as a line, and what is too small to matter (percent) as a strip."""
        margin = 1.0 + min_effect / 100.0
        strip = [{"low": self.place(1.0 / margin), "until": self.place(margin)}]
        axis = "x" if isinstance(along, alt.X) else "y"
        place, end = {axis: along}, {f"{axis}2": "until:Q"}
        return [
            layer(strip, alt.MarkDef("rect", style="negligible", aria=False), **place, **end),
            layer([{"low": self.place(1.0)}], rule(style="reference", aria=False), **place),
        ]


def ratio_axis(ratios: Iterable[float | None], min_effect: float) -> RatioAxis:
    """Return an axis over the finite ratios, 1, and what is too small to matter (percent)."""
    margin = 1.0 + min_effect / 100.0
    finite = [ratio for ratio in ratios if ratio is not None and math.isfinite(ratio) and ratio > 0]
    low, high = min([*finite, 1.0 / margin, 1.0]), max([*finite, margin, 1.0])
    in_percent = high < _PERCENT_BELOW and low > 1.0 / _PERCENT_BELOW
    step = math.exp(_MARGIN * max(math.log(high / low), _MIN_SPAN))
    return RatioAxis(low / step, high * step, in_percent)


RATIO_TOOLTIPS = tuple((f"{field}:Q", field, "+.4~r") for field in ("ratio", "low", "high"))
"""Fields of a ratio that the tooltip of its mark shows."""
