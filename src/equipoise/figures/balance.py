"""Charts of covariate balance: how treated and controls differ before and after matching."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from equipoise.figures.building import (
    Rows,
    chart_of,
    color_and_shape,
    frame,
    plain_scale,
    top_legend,
)
from equipoise.figures.density import density
from equipoise.figures.theme import color_of, shape_of

HOW_TO_READ_LOVE_PLOT = (
    "Each row is one covariate: the difference between treated and controls, in percent of the "
    "standard deviation of the treated. Near 0 is balanced; the dashed lines mark 10 %."
)
HOW_TO_READ_SHARES = (
    "Each line is one covariate with two values: from the share of the controls that have it to "
    "the share of the treated. A shorter line means better balance."
)
HOW_TO_READ_QQ_PLOT = (
    "Each mark is one quantile: of the controls to the right, of the treated upwards. On the "
    "dashed line both groups have the same distribution."
)
HOW_TO_READ_DENSITY = (
    "Two hills of equal area, one of the treated and one of the controls: after matching above "
    "the line, before matching below it. The groups differ where the hills do not overlap."
)
LARGE_DIFFERENCE = 10.0
"""Percent: a common threshold for a difference that matters (Austin 2009)."""

_SIDES = ("before matching", "after matching")
_LABEL_LIMIT = 220

Floats = NDArray[np.float64]
Points = Sequence[tuple[float, float]]


def _sides(count: int) -> tuple[alt.Color, alt.Shape]:
    """Return colour and shape of before and after; after has the first colour of the palette."""
    return color_and_shape("side", _SIDES[:count], (1, 0)[:count], top_legend())


def love_plot(
    variables: Sequence[str], before: Sequence[float], after: Sequence[float] | None = None
) -> alt.LayerChart:
    """Draw the standardized differences, the largest before matching on top (Love 2004).

    Parameters
    ----------
    before, after
        In percent, one for each variable; a note names those that are not finite.
    """
    sides = [before] if after is None else [before, after]
    order = sorted(
        range(len(variables)),
        key=lambda k: -abs(before[k]) if math.isfinite(before[k]) else -math.inf,
    )
    rows: Rows = [
        {"variable": variables[k], "side": name, "sdiff": round(side[k], 4)}
        for k in order
        for name, side in zip(_SIDES, sides, strict=False)
        if math.isfinite(side[k])
    ]
    unknown = [variables[k] for k in order if not all(math.isfinite(side[k]) for side in sides)]
    reach = 1.05 * max([2.0 * LARGE_DIFFERENCE, *(abs(row["sdiff"]) for row in rows)])
    x = alt.X(
        "sdiff:Q",
        scale=plain_scale(-reach, reach, kind="linear"),
        axis=alt.Axis(title="standardized difference, %"),
    )
    y = alt.Y(
        "variable:N",
        sort=None,
        scale=alt.Scale(domain=[variables[k] for k in order]),
        axis=alt.Axis(title=None, labelLimit=_LABEL_LIMIT),
    )
    color, shape = _sides(len(sides))
    points = (
        chart_of(rows)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x=x,
            y=y,
            color=color,
            shape=shape,
            tooltip=[
                alt.Tooltip("variable:N"),
                alt.Tooltip("side:N", title="when"),
                alt.Tooltip("sdiff:Q", title="difference, %", format=".2f"),
            ],
        )
    )
    limits = [{"sdiff": end} for end in (-LARGE_DIFFERENCE, LARGE_DIFFERENCE)]
    parts = []
    for k, name in enumerate(variables):
        text = f"{name}: {before[k]:.1f} % before"
        parts.append(text if after is None else f"{text}, {after[k]:.1f} % after")
    return frame(
        [
            chart_of([{"sdiff": 0.0}]).mark_rule(style="negligible").encode(x=x),
            chart_of(limits).mark_rule(style="reference").encode(x=x),
            points,
        ],
        title="Balance of the covariates",
        notes=[f"Not finite, so not drawn: {', '.join(unknown)}."] if unknown else [],
        description=f"Standardized differences of the covariates. {'; '.join(parts)}",
        height=22 * max(len(variables), 3),
    )


class Share(Struct, frozen=True):
    """Percentages of the controls and of the treated that have one of two values."""

    label: str
    before: tuple[float, float]
    after: tuple[float, float] | None

    def describe(self) -> str:
        """Return the percentages in words."""
        text = (
            f"{self.label}: {self.before[1]:.1f} % of the treated and {self.before[0]:.1f} % of "
            "the controls before"
        )
        if self.after is None:
            return text
        return f"{text}, {self.after[1]:.1f} % and {self.after[0]:.1f} % after"


def shares(rows: Sequence[Share]) -> alt.LayerChart:
    """Draw a line from controls to treated for each covariate, before and after."""
    groups = ("controls", "treated")
    lines: Rows = [
        {
            "label": row.label,
            "side": side,
            "controls": round(ends[0], 4),
            "treated": round(ends[1], 4),
        }
        for row in rows
        for side, ends in zip(_SIDES, (row.before, row.after), strict=True)
        if ends is not None
    ]
    points: Rows = [
        {"label": line["label"], "side": line["side"], "arm": group, "share": line[group]}
        for line in lines
        for group in groups
    ]
    sides = [side for side in _SIDES if any(line["side"] == side for line in lines)]
    y = alt.Y(
        "label:N",
        sort=None,
        scale=alt.Scale(domain=[row.label for row in rows], paddingInner=0.3),
        axis=alt.Axis(title=None, labelLimit=_LABEL_LIMIT),
    )
    offset = alt.YOffset("side:N", sort=None, scale=alt.Scale(domain=sides, paddingOuter=0.6))
    color = alt.Color(
        "side:N",
        scale=alt.Scale(domain=sides, range=[color_of(1), color_of(0)][: len(sides)]),
        legend=top_legend(columns=1, symbolType="stroke"),
    )
    shape = alt.Shape(
        "arm:N",
        scale=alt.Scale(domain=list(groups), range=[shape_of(1), shape_of(0)]),
        # One neutral colour, since the shapes occur in both colours.
        legend=top_legend(columns=1, symbolFillColor=color_of(5)),
    )
    scale = plain_scale(0, 100, kind="linear")
    return frame(
        [
            chart_of(lines)
            .mark_rule(strokeWidth=2)
            .encode(
                x=alt.X("controls:Q", scale=scale, axis=alt.Axis(title="share, %")),
                x2="treated:Q",
                y=y,
                yOffset=offset,
                color=color,
            ),
            chart_of(points)
            .mark_point(filled=True, size=60, opacity=1)
            .encode(
                x=alt.X("share:Q", scale=scale),
                y=y,
                yOffset=offset,
                color=color,
                shape=shape,
                tooltip=[
                    alt.Tooltip("label:N", title="covariate"),
                    alt.Tooltip("side:N", title="when"),
                    alt.Tooltip("arm:N", title="group"),
                    alt.Tooltip("share:Q", title="share, %", format=".1f"),
                ],
            ),
        ],
        title="Shares",
        notes=[],
        description=(
            f"Shares of treated and controls. {'; '.join(row.describe() for row in rows)}"
        ),
        height=34 * max(len(rows), 2),
    )


def qq_plot(
    variable: str, before: Points, after: Points | None = None, *, notes: Sequence[str] = ()
) -> alt.LayerChart:
    """Draw quantiles of the treated against quantiles of the controls.

    Parameters
    ----------
    variable
        Name of the covariate, for the axes.
    before, after
        ``(quantile of the controls, quantile of the treated)`` at the same levels.
    notes
        Lines of the subtitle.
    """
    sides = [before] if after is None else [before, after]
    rows: Rows = [
        {"control": control, "treated": treated, "side": name}
        for name, points in zip(_SIDES, sides, strict=False)
        for control, treated in points
    ]
    quantiles = [row[group] for row in rows for group in ("control", "treated")]
    low, high = min(quantiles, default=0.0), max(quantiles, default=1.0)
    margin = 0.03 * (high - low) or 0.5 * abs(high) or 0.5
    low, high = low - margin, high + margin
    scale = plain_scale(low, high, kind="linear")
    x = alt.X("control:Q", scale=scale, axis=alt.Axis(title=f"{variable} of the controls"))
    y = alt.Y("treated:Q", scale=scale, axis=alt.Axis(title=f"{variable} of the treated"))
    color, shape = _sides(len(sides))
    points = (
        chart_of(rows)
        .mark_point(filled=True, size=36, opacity=0.7)
        .encode(
            x=x,
            y=y,
            color=color,
            shape=shape,
            tooltip=[
                alt.Tooltip("control:Q", format=".5~g"),
                alt.Tooltip("treated:Q", format=".5~g"),
                alt.Tooltip("side:N", title="when"),
            ],
        )
    )
    diagonal = chart_of([{"control": end, "treated": end} for end in (low, high)])
    return frame(
        [diagonal.mark_line(style="reference").encode(x=x, y=y), points],
        title=f"Quantiles of {variable}",
        notes=notes,
        description=f"Quantiles of {variable} among treated and controls. {HOW_TO_READ_QQ_PLOT}",
        height=420,
    )


class Weighted(Struct, frozen=True):
    """Values with their weights; ``None`` for equal weights."""

    values: Floats
    weights: Floats | None


class Arms(Struct, frozen=True):
    """Values of one covariate in both groups."""

    treated: Weighted
    controls: Weighted


def group_density(variable: str, before: Arms, after: Arms | None) -> alt.LayerChart | None:
    """Draw the density of one covariate in both groups; ``None`` if a group is too small.

    Parameters
    ----------
    variable
        Name of the covariate, for the axis.
    before, after
        In the unit of the covariate. With ``after``, the hills before matching point down.
    """
    groups = ("treated", "controls")
    sides = [(1.0, before)] if after is None else [(1.0, after), (-1.0, before)]
    values = [arm.values for _, arms in sides for arm in (arms.treated, arms.controls)]
    low, high = min(float(arm.min()) for arm in values), max(float(arm.max()) for arm in values)
    margin = 0.04 * (high - low) or 0.5
    begin, width = low - margin, high - low + 2.0 * margin
    rows: Rows = []
    for sign, arms in sides:
        for name, arm in zip(groups, (arms.treated, arms.controls), strict=True):
            # Values as shares of the axis: squares of very large values would overflow.
            hill = density((arm.values - begin) / width, 0.0, 1.0, arm.weights)
            if hill is None:
                return None
            grid, heights = hill
            area = float(heights.sum() * (grid[1] - grid[0]))
            rows += [
                {
                    "arm": name,
                    "side": f"{name} {'up' if sign > 0 else 'down'}",
                    "at": float(f"{begin + width * place:.6g}"),
                    "height": round(sign * height / area, 4),
                }
                for place, height in zip(grid.tolist(), heights.tolist(), strict=True)
            ]
    top = 1.08 * max(abs(row["height"]) for row in rows)
    legend = top_legend(symbolType="stroke")
    color = alt.Color(
        "arm:N",
        scale=alt.Scale(domain=list(groups), range=[color_of(2), color_of(3)]),
        legend=legend,
    )
    # Colour is never the only difference.
    dash = alt.StrokeDash(
        "arm:N", scale=alt.Scale(domain=list(groups), range=[[1, 0], [6, 3]]), legend=legend
    )
    x = alt.X(
        "at:Q",
        scale=plain_scale(begin, begin + width, kind="linear"),
        axis=alt.Axis(title=variable),
    )
    title = "before matching" if after is None else "before ↓  ↑ after matching"
    y = alt.Y(
        "height:Q",
        scale=plain_scale(0.0 if after is None else -top, top, kind="linear"),
        axis=alt.Axis(title=title, labels=False, ticks=False, grid=False),
    )
    hills = chart_of(rows)
    return frame(
        [
            chart_of([{"height": 0.0}]).mark_rule(style="negligible").encode(y=y),
            hills.mark_area(opacity=0.18).encode(x=x, y=y, color=color, detail="side:N"),
            hills.mark_line(strokeWidth=2).encode(
                x=x, y=y, color=color, detail="side:N", strokeDash=dash
            ),
        ],
        title=f"Distribution of {variable}",
        notes=[],
        description=(
            f"Distribution of {variable} among treated and controls. {HOW_TO_READ_DENSITY}"
        ),
        height=260,
    )
