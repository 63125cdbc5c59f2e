"""Standardized differences of every covariate, before and after matching (Love 2004)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt

from equipoise.figures.building import Rows, drawn_from, framed, plain_scale
from equipoise.figures.theme import color_of, shape_of

HOW_TO_READ = (
    "Each row is one covariate: how far treated and controls lie apart, in percent of the "
    "standard deviation of the treated. Near 0 is balanced; the dashed lines stand at 10 %."
)
MUCH = 10.0
"""Percent: a common threshold for a difference that matters (Austin 2009)."""
_ROW_HEIGHT = 22
_SIDES = ("before matching", "after matching")


def love_plot(
    variables: Sequence[str], before: Sequence[float], after: Sequence[float] | None = None
) -> alt.LayerChart:
    """Draw the standardized differences, the largest before matching on top.

    Parameters
    ----------
    before, after
        In percent, one for each variable; what is not finite is not drawn, and said.
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
    reach = 1.05 * max([2.0 * MUCH, *(abs(row["sdiff"]) for row in rows)])
    x = alt.X(
        "sdiff:Q",
        scale=plain_scale(-reach, reach, kind="linear"),
        axis=alt.Axis(title="standardized difference, %"),
    )
    y = alt.Y(
        "variable:N",
        sort=None,
        scale=alt.Scale(domain=[variables[k] for k in order]),
        axis=alt.Axis(title=None, labelLimit=220),
    )
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1)
    domain = list(_SIDES[: len(sides)])
    # Before is drawn in the second colour: what stays in mind is what came of it.
    colors, shapes = [color_of(1), color_of(0)], [shape_of(1), shape_of(0)]
    points = (
        drawn_from(rows)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "side:N",
                scale=alt.Scale(domain=domain, range=colors[: len(sides)]),
                legend=legend,
            ),
            shape=alt.Shape(
                "side:N",
                scale=alt.Scale(domain=domain, range=shapes[: len(sides)]),
                legend=legend,
            ),
            tooltip=[
                alt.Tooltip("variable:N"),
                alt.Tooltip("side:N", title="when"),
                alt.Tooltip("sdiff:Q", title="difference, %", format=".2f"),
            ],
        )
    )
    lines = drawn_from([{"sdiff": at} for at in (-MUCH, MUCH)]).mark_rule(style="reference")
    zero = drawn_from([{"sdiff": 0.0}]).mark_rule(style="negligible")
    notes = [f"Not finite, so not drawn: {', '.join(unknown)}."] if unknown else []
    return framed(
        [zero.encode(x=x), lines.encode(x=x), points],
        title="Balance of the covariates",
        notes=notes,
        description=_description(variables, before, after),
        height=_ROW_HEIGHT * max(len(variables), 3),
    )


def _description(
    variables: Sequence[str], before: Sequence[float], after: Sequence[float] | None
) -> str:
    parts = []
    for k, name in enumerate(variables):
        words = f"{name}: {before[k]:.1f} % before"
        parts.append(words if after is None else f"{words}, {after[k]:.1f} % after")
    return "Standardized differences of the covariates. " + "; ".join(parts)
