"""Chart of the spread that each level adds. A level is, for example, the trial or the layout."""

from __future__ import annotations

import math
from collections.abc import Iterator

import altair as alt

from equipoise.figures.quantity import rounded
from equipoise.model.result import ResultDocument, VarianceByLevel
from equipoise.shared.chart_parts import (
    Rows,
    color_and_shape,
    frame,
    layer,
    point,
    rule,
    tooltips,
    top_legend,
)

HOW_TO_READ = (
    "Each mark is the standard deviation that one level adds, with its interval. The level at the "
    "right adds most: more units of it narrow the interval most. The first lines are the ratios "
    "within blocks, the other lines are the conditions."
)
MAX_ROWS = 12
"""Maximum number of ratios and conditions that the chart draws."""
ROW_HEIGHT = 26
"""Height in pixels of a level of a ratio or condition."""
HEAD_HEIGHT = 60
"""Height in pixels of the axis and the legend."""
_LINE_WIDTH, _MARK_AREA = 2, 70
"""Width of the line of an interval in pixels, and area of a mark in square pixels."""


def variance_by_level(result: ResultDocument) -> alt.LayerChart | None:
    """Draw the standard deviation of every level; ``None`` if there is only one level."""
    variances = list(_named_variances(result))
    if not variances:
        return None
    drawn_variances = variances[:MAX_ROWS]
    levels = list(
        dict.fromkeys(
            component.level for _, by_level in drawn_variances for component in by_level.components
        )
    )
    names = [name for name, _ in drawn_variances]
    rows: Rows = [
        {
            "name": name,
            "level": component.level,
            "deviation": _percent(component.variance),
            "low": _percent(component.variance_ci[0]),
            "high": _percent(component.variance_ci[1]),
            "share": rounded(component.share),
            "units": component.units,
        }
        for name, by_level in drawn_variances
        for component in by_level.components
    ]
    x = alt.X(
        "deviation:Q",
        title="standard deviation that the level adds, in percent",
        scale=alt.Scale(zero=True),
    )
    color, shape = color_and_shape("level", levels, range(len(levels)), top_legend())
    channels = {
        "y": alt.Y("name:N", sort=names, title=None, axis=alt.Axis(labelLimit=260, grid=True)),
        "yOffset": alt.YOffset("level:N", sort=levels),
        "color": color,
    }
    tooltip = tooltips(
        ("name:N", "of"),
        ("level:N",),
        ("units:Q", "units"),
        ("share:Q", "share of the variance", ".0%"),
        *((f"{field}:Q", field, ".3~r") for field in ("deviation", "low", "high")),
    )
    has_more = len(variances) > len(drawn_variances)
    return frame(
        [
            layer(rows, rule(_LINE_WIDTH), x="low:Q", x2="high:Q", **channels),
            layer(rows, point(_MARK_AREA), x=x, shape=shape, tooltip=tooltip, **channels),
        ],
        title="Which level the spread comes from",
        notes=[f"The first {len(drawn_variances)} of {len(variances)} rows are drawn."]
        if has_more
        else [],
        description=(
            f"Standard deviation added by each of the levels {', '.join(levels)}, with intervals, "
            f"for {', '.join(names)}."
        ),
        height=HEAD_HEIGHT + ROW_HEIGHT * len(levels) * len(drawn_variances),
    )


def _named_variances(result: ResultDocument) -> Iterator[tuple[str, VarianceByLevel]]:
    for comparison in result.comparisons:
        if comparison.by_level is not None and comparison.by_level.components:
            yield f"{comparison.candidate} against {comparison.baseline}", comparison.by_level
    for condition in result.conditions:
        for summary in condition.metrics.values():
            if summary.by_level is not None and summary.by_level.components:
                yield condition.name, summary.by_level


def _percent(variance: float) -> float:
    """Return the standard deviation of a logarithm as a percentage."""
    return rounded(100.0 * math.sqrt(max(0.0, variance)))
