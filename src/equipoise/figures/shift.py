"""The shift function: the ratio of the two distributions, quantile by quantile."""

from __future__ import annotations

import math

import altair as alt

from equipoise.figures.building import Rows, drawn_from, framed, place_of
from equipoise.figures.quantity import metric_name
from equipoise.figures.ratio_axis import ratio_axis
from equipoise.figures.theme import color_of
from equipoise.model.result import Comparison, ResultDocument
from equipoise.stats.shift import ShiftFunction

HOW_TO_READ = (
    "From the fastest tenth of the runs (left) to the slowest (right): a level line is the same "
    "change for all runs, a sloping one means that fast and slow runs differ in different ways. "
    "Each bar is an interval for that point alone."
)
HEIGHT = 260


def shift(
    document: ResultDocument, comparison: Comparison, numbers: ShiftFunction
) -> alt.LayerChart:
    """Draw the quantile ratios of one comparison with their bootstrap bands."""
    known = [index for index, one in enumerate(numbers.ratio) if not math.isnan(one)]
    axis = ratio_axis(
        [
            *map(float, numbers.ratio[known]),
            *map(float, numbers.low[known]),
            *map(float, numbers.high[known]),
        ],
        comparison.min_effect,
    )
    name = metric_name(comparison.metric)
    y = axis.channel(f"{name} against the baseline")
    rows: Rows = [
        {
            "share": round(float(numbers.quantiles[index]), 4),
            "ratio": axis.place(float(numbers.ratio[index])),
            "low": axis.place(float(numbers.low[index])),
            "high": axis.place(float(numbers.high[index])),
        }
        for index in known
    ]
    x = alt.X(
        "share:Q",
        title="quantile: share of the runs that were faster",
        scale=alt.Scale(domain=[0.0, 1.0], nice=False),
        axis=alt.Axis(
            format=".0%", values=[round(float(one), 4) for one in numbers.quantiles], grid=False
        ),
    )
    color = color_of(place_of(document, comparison.candidate))
    data = drawn_from(rows)
    at = alt.Y("ratio:Q")
    tooltip = [
        alt.Tooltip("share:Q", title="quantile", format=".0%"),
        *(alt.Tooltip(f"{field}:Q", format="+.4~r") for field in ("ratio", "low", "high")),
    ]
    layers = [
        *axis.landmarks(comparison.min_effect, y),
        data.mark_area(color=color, opacity=0.15, aria=False).encode(x=x, y=y, y2="high:Q"),
        data.mark_rule(color=color, strokeWidth=2).encode(x=x, y=y, y2="high:Q"),
        data.mark_line(color=color, strokeWidth=1.5).encode(x=x, y=at),
        data.mark_point(color=color, filled=True, size=60, opacity=1).encode(
            x=x, y=at, tooltip=tooltip
        ),
    ]
    missing = len(numbers.ratio) - len(known)
    notes = [] if comparison.disagreement is None else [f"{comparison.disagreement}."]
    if missing:
        notes.append(f"{missing} of the quantiles are timeouts on both sides: no ratio.")
    return framed(
        layers,
        title=f"{comparison.candidate} against {comparison.baseline}, from fast runs to slow ones",
        notes=notes,
        description=(
            f"Ratio of {comparison.candidate} to {comparison.baseline} at "
            f"{len(numbers.quantiles)} quantiles, with intervals, over {numbers.blocks} blocks."
        ),
        height=HEIGHT,
    )
