"""An axis for ratios: in percent where they are near 1, in times where they are not."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import altair as alt

from equipoise.figures.building import drawn_from, plain_scale
from equipoise.figures.quantity import rounded
from equipoise.figures.ticks import log_ticks

LOWER = "low"
"""The field of the channel: where a band or a bar begins."""

_PERCENT_BELOW = 2.0
_MARGIN = 0.08
_LEAST_SPAN = 0.002


@dataclass(frozen=True, slots=True)
class RatioAxis:
    """The drawn range of a ratio of costs."""

    low: float
    high: float
    """Ratios."""
    in_percent: bool

    def place(self, ratio: float) -> float:
        """A ratio as the data of the axis, moved to the edge if it lies beyond."""
        held = min(max(ratio, self.low), self.high)
        return rounded(100.0 * (held - 1.0) if self.in_percent else held)

    def low_place(self, ratio: float | None) -> float:
        """A lower bound; the edge if it is not known."""
        return self.place(self.low if ratio is None else ratio)

    def high_place(self, ratio: float | None) -> float:
        """An upper bound; the edge if it is not known."""
        return self.place(self.high if ratio is None else ratio)

    def channel(self, subject: str) -> alt.Y:
        """The vertical channel, of the field ``LOWER``; ``subject`` says the ratio of what."""
        return alt.Y(
            f"{LOWER}:Q", title=self._title(subject), scale=self._scale(), axis=self._axis()
        )

    def across(self, subject: str) -> alt.X:
        """The horizontal channel, of the same field."""
        return alt.X(
            f"{LOWER}:Q", title=self._title(subject), scale=self._scale(), axis=self._axis()
        )

    def landmarks(self, min_effect: float, along: alt.X | alt.Y) -> list[alt.Chart]:
        """The line of no difference, and around it what is too small to matter (in percent)."""
        margin = 1.0 + min_effect / 100.0
        line = drawn_from([{LOWER: self.place(1.0)}])
        band = drawn_from([{LOWER: self.place(1.0 / margin), "until": self.place(margin)}])
        end = alt.X2("until:Q") if isinstance(along, alt.X) else alt.Y2("until:Q")
        return [
            band.mark_rect(style="negligible", aria=False).encode(along, end),
            line.mark_rule(style="reference", aria=False).encode(along),
        ]

    def _title(self, subject: str) -> str:
        return f"{subject}: {'change, in %' if self.in_percent else 'times it (logarithmic)'}"

    def _scale(self) -> alt.Scale:
        kind: Literal["linear", "log"] = "linear" if self.in_percent else "log"
        return plain_scale(self.place(self.low), self.place(self.high), kind=kind)

    def _axis(self) -> alt.Axis:
        return alt.Axis(
            format="+~r" if self.in_percent else "~r",
            tickCount=6,
            values=alt.Undefined if self.in_percent else log_ticks(self.low, self.high),
            labelExpr="datum.value == 0 ? '0' : datum.label",
        )


def ratio_axis(ratios: Iterable[float | None], min_effect: float) -> RatioAxis:
    """The range of the finite ratios, of 1, and of what is too small to matter (in percent)."""
    margin = 1.0 + min_effect / 100.0
    finite = [one for one in ratios if one is not None and math.isfinite(one) and one > 0]
    low, high = min([*finite, 1.0 / margin, 1.0]), max([*finite, margin, 1.0])
    in_percent = high < _PERCENT_BELOW and low > 1.0 / _PERCENT_BELOW
    span = max(math.log(high / low), _LEAST_SPAN)
    step = math.exp(_MARGIN * span)
    return RatioAxis(low / step, high * step, in_percent)
