"""How one covariate is distributed among treated and controls, before and after matching."""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt
import numpy as np
from numpy.typing import NDArray

from equipoise.figures.building import Rows, drawn_from, framed, plain_scale
from equipoise.figures.density import density
from equipoise.figures.theme import color_of

HOW_TO_READ = (
    "Two hills of equal area, of the treated and of the controls: after matching above the line, "
    "before it below. What they do not share is where the groups differ."
)
HEIGHT = 260
_ARMS = ("treated", "controls")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Weighted:
    """Values and what each counts."""

    values: Floats
    weights: Floats | None


@dataclass(frozen=True, slots=True)
class Arms:
    """Both groups."""

    treated: Weighted
    controls: Weighted


def group_density(variable: str, before: Arms, after: Arms | None) -> alt.LayerChart | None:
    """Draw the hills; ``None`` where a group is too small for one.

    Parameters
    ----------
    variable
        Its name, which the axis carries.
    before, after
        In the unit of the covariate; with ``after`` those before point down, without it up.
    """
    sides = [(1.0, before)] if after is None else [(1.0, after), (-1.0, before)]
    everything = [arm.values for _, arms in sides for arm in (arms.treated, arms.controls)]
    low = min(float(one.min()) for one in everything)
    high = max(float(one.max()) for one in everything)
    margin = 0.04 * (high - low) or 0.5
    begin, width = low - margin, high - low + 2.0 * margin
    rows: Rows = []
    for sign, arms in sides:
        for name, arm in zip(_ARMS, (arms.treated, arms.controls), strict=True):
            # In shares of the axis: squares of very large values would overflow.
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
    scale = plain_scale(-top if after is not None else 0.0, top, kind="linear")
    color = alt.Color(
        "arm:N",
        scale=alt.Scale(domain=list(_ARMS), range=[color_of(2), color_of(3)]),
        legend=_legend(),
    )
    x = alt.X(
        "at:Q",
        scale=plain_scale(begin, begin + width, kind="linear"),
        axis=alt.Axis(title=variable),
    )
    words = "before ↓  ↑ after matching" if after is not None else "before matching"
    y = alt.Y(
        "height:Q", scale=scale, axis=alt.Axis(title=words, labels=False, ticks=False, grid=False)
    )
    hills = drawn_from(rows)
    return framed(
        [
            drawn_from([{"height": 0.0}]).mark_rule(style="negligible").encode(y=y),
            hills.mark_area(opacity=0.18).encode(x=x, y=y, color=color, detail="side:N"),
            hills.mark_line(strokeWidth=2).encode(
                x=x, y=y, color=color, detail="side:N", strokeDash=_dash()
            ),
        ],
        title=f"Distribution of {variable}",
        notes=[],
        description=f"Distribution of {variable} among treated and controls. {HOW_TO_READ}",
        height=HEIGHT,
    )


def _dash() -> alt.StrokeDash:
    """Colour is never the only difference."""
    return alt.StrokeDash(
        "arm:N", scale=alt.Scale(domain=list(_ARMS), range=[[1, 0], [6, 3]]), legend=_legend()
    )


def _legend() -> alt.Legend:
    return alt.Legend(title=None, orient="top", symbolOpacity=1, symbolType="stroke")
