"""Parts that all charts share: colours and shapes of conditions, axes, lines and bars.

A channel of a chart maps a field of the data to a position, a colour or a shape. The axis of ratios
shows changes in percent if all ratios are near 1, and factors (such as 3) if not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import altair as alt
from msgspec import Struct

from equipoise.figures.quantity import DrawnQuantity, log_ticks, rounded
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

_MAX_PERCENT_RATIO = 2.0
"""If a ratio or its inverse is larger, the axis shows factors, not percent."""
_MIN_LABEL_GAP_AT_ONE = 0.11
"""Minimum distance between the label at 1 and another label, as a share of the axis."""
_MARGIN_SHARE = 0.08
"""Empty space at each end of an axis, as a share of the drawn range."""
_MIN_LOG_SPAN = 0.002
"""Minimum range of an axis of ratios: logarithm of the largest over the smallest ratio."""


def condition_color(names: Sequence[str]) -> alt.Color:
    """Return the channel for the colours of conditions, with a legend in the order of the plan."""
    color, _ = _condition_channels(names)
    return color


def condition_shape(names: Sequence[str]) -> alt.Shape:
    """Return the channel for shapes; two conditions with the same colour have different shapes."""
    _, shape = _condition_channels(names)
    return shape


def _condition_channels(names: Sequence[str]) -> tuple[alt.Color, alt.Shape]:
    indices = range(len(names))
    # By default, Vega shows at most 30 entries of a legend.
    legend = top_legend(columns=1, labelLimit=300, symbolLimit=0)
    shape_indices = [index + index // len(PALETTE) for index in indices]
    return color_and_shape("condition", names, indices, legend, shape_indices)


def condition_index(result: ResultDocument, name: str) -> int:
    """Return the index of a condition in the plan; the index decides the colour and the shape."""
    names = [condition.name for condition in result.conditions]
    return names.index(name) if name in names else len(names)


def count_axis(field: str, low: float, high: float, title: str) -> alt.X:
    """Return a horizontal axis for whole numbers of trials, blocks or iterations."""
    ticks = {"tickMinStep": 1, "tickCount": 8, "format": "d", "grid": False}
    return linear(alt.X, field, low, high, title=title, **ticks)


def log_x_axis(field: str, title: str, padding: int, **label_settings: Any) -> alt.X:
    """Return a logarithmic horizontal axis."""
    scale = alt.Scale(type="log", nice=False, padding=padding)
    return alt.X(field, title=title, scale=scale, axis=alt.Axis(**label_settings))


def log_y_axis(title: str, low: float, high: float) -> alt.Y:
    """Return a logarithmic vertical axis, with labels at round numbers from ``low`` to ``high``."""
    scale = alt.Scale(type="log", nice=False, padding=12)
    axis = alt.Axis(values=log_ticks(low, high), format="~r")
    return alt.Y("value:Q", title=title, scale=scale, axis=axis)


def interval_bars(
    rows: Rows, x: alt.X, y: alt.Y, names: Sequence[str], width: float = 2
) -> alt.Chart:
    """Return a vertical bar for each row, from its field ``low`` to its field ``high``."""
    low = alt.Y("low:Q", title=y["title"], scale=y["scale"], axis=y["axis"])
    return layer(rows, rule(width), x=x, y=low, y2="high:Q", color=condition_color(names))


def positive_ends(rows: Rows) -> list[float]:
    """Return the ends of intervals that are above 0, for a logarithmic axis."""
    return [float(row[end]) for row in rows for end in ("low", "high") if row[end] > 0]


def lines_and_points(
    rows: Rows,
    x: alt.X,
    y: alt.Y,
    names: Sequence[str],
    *,
    tooltip: Sequence[Any],
    width: float = 1.5,
    point_size: int = 45,
) -> tuple[alt.Chart, alt.Chart]:
    """Return the line and the points of each condition; ``names`` decide colours and shapes."""
    channels = {"x": x, "y": y, "color": condition_color(names)}
    shape = condition_shape(names)
    return (
        layer(rows, alt.MarkDef("line", strokeWidth=width), **channels),
        layer(rows, point(point_size), shape=shape, tooltip=tooltip, **channels),
    )


def point_labels(rows: Rows, x: alt.X, y: alt.Y, field: str) -> list[alt.Chart]:
    """Return a text next to each point, over a background that hides lines."""
    mark = {"align": "left", "dx": 8, "dy": -6, "fontSize": 11, "fontWeight": "normal"}
    return labels(rows, field, x=x, y=y, mark=mark)


def quantity_axis(quantity: DrawnQuantity, label_count: int) -> alt.Axis:
    """Return the axis of a quantity with about ``label_count`` labels."""
    return alt.Axis(
        title=quantity.title(),
        tickCount=label_count,
        values=quantity.ticks() or alt.Undefined,
        format="~r" if quantity.is_logarithmic else alt.Undefined,
    )


def quantity_scale(quantity: DrawnQuantity) -> alt.Scale:
    """Return the scale of a quantity over its drawn range."""
    scale_type: Literal["linear", "log"] = "log" if quantity.is_logarithmic else "linear"
    return plain_scale(quantity.low, quantity.high, kind=scale_type)


class RatioAxis(Struct, frozen=True):
    """Axis of ratios of costs, in percent or as factors."""

    low: float
    """Smallest drawn ratio."""
    high: float
    """Largest drawn ratio."""
    in_percent: bool
    """Whether the axis shows changes in percent instead of factors."""

    def coordinate(self, ratio: float) -> float:
        """Return the coordinate of a ratio: the nearest edge, if it is outside of the range."""
        clipped = min(max(ratio, self.low), self.high)
        return rounded(100.0 * (clipped - 1.0) if self.in_percent else clipped)

    def coordinates(self, ratio: float | None, interval: Interval) -> dict[str, float | None]:
        """Return the coordinates of a ratio and its interval; the edge if an end is unknown."""
        low, high = interval
        return {
            "ratio": None if ratio is None else self.coordinate(ratio),
            "low": self.coordinate(self.low if low is None else low),
            "high": self.coordinate(self.high if high is None else high),
        }

    def edge_note(self, intervals: Iterable[Interval]) -> Iterator[str]:
        """Yield a note if an interval reaches beyond the drawn range."""
        if any(
            low is None or high is None or low < self.low or high > self.high
            for low, high in intervals
        ):
            yield "A bar that reaches the edge goes on beyond it."

    def channel(self, channel_type: type[Position], subject: str) -> Position:
        """Return a channel with this axis for bars that begin at the field ``low``.

        ``subject`` names the ratio in the title.
        """
        scale_type: Literal["linear", "log"] = "linear" if self.in_percent else "log"
        at_one = self.coordinate(1.0)
        # On a horizontal axis, a label in two lines needs less width.
        label = f"['{at_one:g}', 'equal']" if channel_type is alt.X else f"'equal  {at_one:g}'"
        axis = alt.Axis(
            format="+~r" if self.in_percent else "~r",
            tickCount=6,
            values=alt.Undefined if self.in_percent else list(self._ticks()),
            labelExpr=f"datum.value == {at_one:g} ? {label} : datum.label",
        )
        unit = "change, in %" if self.in_percent else "times it (logarithmic)"
        scale = plain_scale(self.coordinate(self.low), self.coordinate(self.high), kind=scale_type)
        return channel_type("low:Q", title=f"{subject}: {unit}", scale=scale, axis=axis)

    def _ticks(self) -> Iterator[float]:
        """Yield round ratios, except those whose labels would touch the label at 1."""
        gap = _MIN_LABEL_GAP_AT_ONE * math.log(self.high / self.low)
        for tick in log_ticks(self.low, self.high):
            if tick == 1.0 or abs(math.log(tick)) >= gap:
                yield tick

    def reference_marks(self, min_effect: float, channel: alt.X | alt.Y) -> list[alt.Chart]:
        """Draw a line at the ratio 1, and a strip over the ratios that are too near 1 to matter."""
        margin = 1.0 + min_effect / 100.0
        strip = [{"low": self.coordinate(1.0 / margin), "until": self.coordinate(margin)}]
        axis = "x" if isinstance(channel, alt.X) else "y"
        start, end = {axis: channel}, {f"{axis}2": "until:Q"}
        return [
            layer(strip, alt.MarkDef("rect", style="negligible", aria=False), **start, **end),
            layer([{"low": self.coordinate(1.0)}], rule(style="reference", aria=False), **start),
        ]


def ratio_axis(ratios: Iterable[float | None], min_effect: float) -> RatioAxis:
    """Return an axis with all finite ratios, and all ratios that are too near 1 to matter."""
    margin = 1.0 + min_effect / 100.0
    finite = [ratio for ratio in ratios if ratio is not None and math.isfinite(ratio) and ratio > 0]
    low, high = min([*finite, 1.0 / margin, 1.0]), max([*finite, margin, 1.0])
    in_percent = high < _MAX_PERCENT_RATIO and low > 1.0 / _MAX_PERCENT_RATIO
    padding = math.exp(_MARGIN_SHARE * max(math.log(high / low), _MIN_LOG_SPAN))
    return RatioAxis(low / padding, high * padding, in_percent)


RATIO_TOOLTIPS = tuple((f"{field}:Q", field, "+.4~r") for field in ("ratio", "low", "high"))
"""Fields of a ratio in the tooltip of its mark."""
