"""Quantiles of the treated against quantiles of the controls, before and after matching."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from equipoise.figures.building import Rows, drawn_from, framed, plain_scale
from equipoise.figures.theme import color_of, shape_of

HOW_TO_READ = (
    "Each mark is one quantile: of the controls to the right, of the treated upwards. On the "
    "dashed line both groups are distributed alike."
)
HEIGHT = 420
Points = Sequence[tuple[float, float]]
_SIDES = ("before matching", "after matching")


def qq_plot(
    variable: str, before: Points, after: Points | None = None, *, notes: Sequence[str] = ()
) -> alt.LayerChart:
    """Draw the quantiles.

    Parameters
    ----------
    variable
        Its name, which the axes carry.
    before, after
        ``(quantile of the controls, quantile of the treated)`` at the same levels.
    notes
        What must be said of them, a line each.
    """
    sides = [before] if after is None else [before, after]
    rows: Rows = [
        {"control": control, "treated": treated, "side": name}
        for name, points in zip(_SIDES, sides, strict=False)
        for control, treated in points
    ]
    everything = [number for row in rows for number in (row["control"], row["treated"])]
    low, high = min(everything, default=0.0), max(everything, default=1.0)
    margin = 0.03 * (high - low) or 0.5 * abs(high) or 0.5
    scale = plain_scale(low - margin, high + margin, kind="linear")
    x = alt.X("control:Q", scale=scale, axis=alt.Axis(title=f"{variable} of the controls"))
    y = alt.Y("treated:Q", scale=scale, axis=alt.Axis(title=f"{variable} of the treated"))
    domain = list(_SIDES[: len(sides)])
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1)
    line = [{"control": at, "treated": at} for at in (low - margin, high + margin)]
    diagonal = drawn_from(line).mark_line(style="reference").encode(x=x, y=y)
    points = (
        drawn_from(rows)
        .mark_point(filled=True, size=36, opacity=0.7)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "side:N",
                scale=alt.Scale(domain=domain, range=[color_of(1), color_of(0)][: len(sides)]),
                legend=legend,
            ),
            shape=alt.Shape(
                "side:N",
                scale=alt.Scale(domain=domain, range=[shape_of(1), shape_of(0)][: len(sides)]),
                legend=legend,
            ),
            tooltip=[
                alt.Tooltip("control:Q", format=".5~g"),
                alt.Tooltip("treated:Q", format=".5~g"),
                alt.Tooltip("side:N", title="when"),
            ],
        )
    )
    return framed(
        [diagonal, points],
        title=f"Quantiles of {variable}",
        notes=notes,
        description=f"Quantiles of {variable} among treated and controls. {HOW_TO_READ}",
        height=HEIGHT,
    )
