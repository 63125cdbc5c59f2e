"""How a genetic search came to its best value, generation by generation."""

from __future__ import annotations

import math

import altair as alt

from equipoise.figures.building import Rows, drawn_from, framed, plain_scale
from equipoise.figures.theme import color_of

HOW_TO_READ = (
    "The line is the best value after each generation, the points the middle individual: while "
    "they lie apart the population still has variety. The dashed line marks the last improvement "
    "that counted."
)
_HEIGHT = 260


def genoud_history(rows: Rows, *, peak: int, value: str = "value") -> alt.LayerChart:
    """Draw the best value and the median over the generations.

    Parameters
    ----------
    rows
        A generation each: "generation", "best", "median", "evaluations". What is not finite is
        not drawn, and said.
    peak
        The generation of the last improvement.
    value
        What it is that is searched for, for its axis.
    """
    best = [row for row in rows if math.isfinite(row["best"])]
    median = [row for row in rows if math.isfinite(row["median"])]
    values = [row["best"] for row in best] + [row["median"] for row in median] or [0.0]
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 0.05 * (1.0 + abs(high))
    last = max([1, *(row["generation"] for row in rows)])
    x = alt.X(
        "generation:Q",
        scale=plain_scale(0, last, kind="linear"),
        axis=alt.Axis(title="generation", tickMinStep=1),
    )
    scale = plain_scale(low - margin, high + margin, kind="linear")
    tooltip = [
        alt.Tooltip("generation:Q"),
        alt.Tooltip("best:Q", format=".6g"),
        alt.Tooltip("median:Q", format=".6g"),
        alt.Tooltip("evaluations:Q", format=","),
    ]
    line = (
        drawn_from(best)
        .mark_line(color=color_of(0), interpolate="step-after", point=True)
        .encode(x=x, y=alt.Y("best:Q", scale=scale, axis=alt.Axis(title=value)), tooltip=tooltip)
    )
    points = (
        drawn_from(median)
        .mark_point(color=color_of(1), shape="diamond", size=30)
        .encode(x=x, y=alt.Y("median:Q", scale=scale), tooltip=tooltip)
    )
    mark = drawn_from([{"generation": peak}]).mark_rule(style="reference").encode(x=x)
    left_out = len(rows) - len(best) + len(rows) - len(median)
    notes = ["Line: the best individual. Diamonds: the median individual."]
    if left_out:
        notes.append(f"Not finite, so not drawn: {left_out} values.")
    return framed(
        [mark, line, points],
        title="The search, generation by generation",
        notes=notes,
        description=_description(rows, peak),
        height=_HEIGHT,
    )


def _description(rows: Rows, peak: int) -> str:
    if not rows:
        return "A genetic search without a generation."
    return (
        f"Best value of a genetic search: {rows[0]['best']:.6g} in generation 0, "
        f"{rows[-1]['best']:.6g} in generation {rows[-1]['generation']}; the last improvement "
        f"came in generation {peak}."
    )
