"""A comparison's interval as a strip that needs no script: where it lies beside no difference."""

from __future__ import annotations

import math
from dataclasses import dataclass

from equipoise.model.result import Comparison
from equipoise.report.units import percent_change

_MARGIN = 0.12
_LEAST_HALF_SPAN = 0.002
_ROOM_FOR_A_WORD = 35.0
"""In percent of the width of a phone, for two short words side by side."""


@dataclass(frozen=True, slots=True)
class Strip:
    """Places from 0 to 100, in percent of the width."""

    no_difference: float
    negligible: tuple[float, float]
    """Begin and width of what is too small to matter."""
    interval: tuple[float, float]
    """Begin and width."""
    open_low: bool
    open_high: bool
    estimate: float | None
    names_low: bool
    names_high: bool
    """Whether there is room for a word at the end of the line beside that of no difference."""
    description: str


def strip_of(comparison: Comparison) -> Strip | None:
    """The strip of one comparison; ``None`` while its interval is unlimited on both sides."""
    low, high = comparison.ratio_ci
    if low is None and high is None:
        return None
    margin = math.log1p(comparison.min_effect / 100.0)
    bounds = [math.log(one) for one in (low, high, comparison.ratio) if one is not None and one > 0]
    left, right = (
        min([-margin, -_LEAST_HALF_SPAN, *bounds]),
        max([margin, _LEAST_HALF_SPAN, *bounds]),
    )
    space = _MARGIN * (right - left)
    left, right = left - space, right + space

    def place(log_ratio: float) -> float:
        return round(100.0 * (log_ratio - left) / (right - left), 2)

    begin = 0.0 if not low else place(math.log(low))
    end = 100.0 if high is None else place(math.log(high))
    ratio = comparison.ratio
    return Strip(
        no_difference=place(0.0),
        negligible=(place(-margin), round(place(margin) - place(-margin), 2)),
        interval=(begin, round(end - begin, 2)),
        open_low=not low,
        open_high=high is None,
        estimate=None if not ratio else place(math.log(ratio)),
        names_low=place(0.0) > _ROOM_FOR_A_WORD,
        names_high=place(0.0) < 100.0 - _ROOM_FOR_A_WORD,
        description=(
            "The interval of the ratio on a line on which the middle mark is no difference: "
            f"{'unlimited' if low is None else percent_change(low)} to "
            f"{'unlimited' if high is None else percent_change(high)}."
        ),
    )
