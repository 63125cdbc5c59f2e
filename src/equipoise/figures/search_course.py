"""Balance before matching, along a genetic search for the weights, and after it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt

from equipoise.figures.building import Rows, drawn_from, framed, plain_scale
from equipoise.figures.limits import EVERY_TRIAL
from equipoise.figures.love_plot import MUCH
from equipoise.figures.theme import color_of

HOW_TO_READ = (
    "How far treated and controls lie apart in each covariate, in percent of the standard "
    "deviation of the treated: before matching, by the best weights of each generation, and, at "
    "the right end, after the search. The strong line is the covariate that is worst at the time; "
    "the dashed line stands at 10 %."
)
HEIGHT = 300
BEFORE = -1
"""Where on the axis of generations the data before matching stand."""


def search_course(
    variables: Sequence[str],
    before: Sequence[float],
    along: Sequence[tuple[int, Sequence[float]]],
    *,
    notes: Sequence[str] = (),
) -> alt.LayerChart:
    """Draw each covariate's standardized difference, without its sign, over the generations.

    Parameters
    ----------
    before
        In percent, one for each variable.
    along
        Generations in their order, each with the differences by its best weights; the last one's
        are those after the search. What is not finite is not drawn, and said.
    """
    stages = [(BEFORE, before), *along]
    rows: Rows = [
        {"generation": generation, "variable": name, "sdiff": round(abs(value), 4)}
        for generation, values in stages
        for name, value in zip(variables, values, strict=True)
        if math.isfinite(value)
    ]
    worst: Rows = []
    for generation, _ in stages:
        there = [row for row in rows if row["generation"] == generation]
        if there:
            worst.append(max(there, key=lambda row: float(row["sdiff"])))
    thin = _furthest_apart(rows, EVERY_TRIAL // len(stages))
    if len(thin) < len(rows):
        kept = len({row["variable"] for row in thin})
        notes = [
            *notes,
            f"Of {len(variables):,} covariates the {kept:,} that were furthest apart at some time "
            "have a thin line; the strong one looks at all.",
        ]
    last = max([1, *(generation for generation, _ in along)])
    x = alt.X(
        "generation:Q",
        scale=plain_scale(BEFORE - 0.3, last + 0.3, kind="linear"),
        axis=alt.Axis(
            title="generation",
            values=_labelled(last),
            labelExpr="datum.value < 0 ? 'before' : format(datum.value, 'd')",
            labelFlush=True,
        ),
    )
    top = 1.05 * max([2.0 * MUCH, *(float(row["sdiff"]) for row in rows)])
    y = alt.Y(
        "sdiff:Q",
        scale=plain_scale(0, top, kind="linear"),
        axis=alt.Axis(title="standardized difference, % (without sign)"),
    )
    tooltip = [
        alt.Tooltip("variable:N"),
        alt.Tooltip("generation:Q"),
        alt.Tooltip("sdiff:Q", title="difference, %", format=".2f"),
    ]
    layers = [
        drawn_from([{"sdiff": MUCH}]).mark_rule(style="reference").encode(y=y),
        drawn_from(thin)
        .mark_line(
            strokeWidth=1.2,
            opacity=0.55,
            color=color_of(5),
            point={"size": 14, "color": color_of(5)},
        )
        .encode(x=x, y=y, detail="variable:N", tooltip=tooltip),
        drawn_from(worst)
        .mark_line(strokeWidth=3, color=color_of(0), point={"size": 45, "color": color_of(0)})
        .encode(x=x, y=y, tooltip=tooltip),
    ]
    unknown = sorted(
        {
            name
            for _, values in stages
            for name, value in zip(variables, values, strict=True)
            if not math.isfinite(value)
        }
    )
    if unknown:
        notes = [*notes, f"Not finite somewhere, so not drawn there: {', '.join(unknown)}."]
    return framed(
        layers,
        title="Balance along the search",
        notes=notes,
        description=_description(worst),
        height=HEIGHT,
    )


def _furthest_apart(rows: Rows, count: int) -> Rows:
    """Those of so many covariates, the furthest apart at any time."""
    furthest: dict[str, float] = {}
    for row in rows:
        furthest[row["variable"]] = max(furthest.get(row["variable"], 0.0), float(row["sdiff"]))
    kept = set(sorted(furthest, key=lambda name: -furthest[name])[: max(1, count)])
    return [row for row in rows if row["variable"] in kept]


def _labelled(last: int) -> list[int]:
    step = max(1, math.ceil(last / 12))
    return [BEFORE, *range(0, last + 1, step)]


def _description(worst: Rows) -> str:
    if not worst:
        return "Standardized differences of the covariates along a search; none is finite."
    first, end = worst[0], worst[-1]
    return (
        "The largest standardized difference of the covariates, without its sign: "
        f"{first['sdiff']:.1f} % ({first['variable']}) before matching, {end['sdiff']:.1f} % "
        f"({end['variable']}) by the weights of generation {end['generation']}"
    )
