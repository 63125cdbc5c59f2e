"""An axis of ratios: no difference in its middle, in percent near 1 and in times beyond."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import altair as alt
from msgspec import Struct

from equipoise.figures.building import Position, layer, plain_scale, rule
from equipoise.figures.quantity import log_ticks, rounded

_PERCENT_BELOW = 2.0
"""Ratio below which the axis shows percent."""
_MARGIN = 0.08
_SMALLEST_SPAN = 0.002


class RatioAxis(Struct, frozen=True):
    """An axis for ratios of costs: in percent near 1, in times beyond."""

    low: float
    high: float
    """The drawn range of ratios."""
    in_percent: bool

    def place(self, ratio: float) -> float:
        """Return the position of a ratio, moved to the edge if it lies beyond."""
        clipped = min(max(ratio, self.low), self.high)
        return rounded(100.0 * (clipped - 1.0) if self.in_percent else clipped)

    def low_place(self, ratio: float | None) -> float:
        """Return the position of a lower bound; the edge if it is not known."""
        return self.place(self.low if ratio is None else ratio)

    def high_place(self, ratio: float | None) -> float:
        """Return the position of an upper bound; the edge if it is not known."""
        return self.place(self.high if ratio is None else ratio)

    def position(self, channel: type[Position], subject: str) -> Position:
        """Return the position of the field ``low``; ``subject`` names the ratio."""
        kind: Literal["linear", "log"] = "linear" if self.in_percent else "log"
        axis = alt.Axis(
            format="+~r" if self.in_percent else "~r",
            tickCount=6,
            values=alt.Undefined if self.in_percent else log_ticks(self.low, self.high),
            labelExpr="datum.value == 0 ? '0' : datum.label",
        )
        unit = "change, in %" if self.in_percent else "times it (logarithmic)"
        scale = plain_scale(self.place(self.low), self.place(self.high), kind=kind)
        return channel("low:Q", title=f"{subject}: {unit}", scale=scale, axis=axis)

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
    step = math.exp(_MARGIN * max(math.log(high / low), _SMALLEST_SPAN))
    return RatioAxis(low / step, high * step, in_percent)


RATIO_TOOLTIPS = tuple((f"{field}:Q", field, "+.4~r") for field in ("ratio", "low", "high"))
"""What a reader sees of a ratio at its mark."""
