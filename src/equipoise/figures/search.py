"""Charts of a genetic search: its best value, and the balance that its weights give."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt

from equipoise.figures.balance import LARGE_DIFFERENCE
from equipoise.figures.building import Rows, chart_of, frame, plain_scale
from equipoise.figures.theme import color_of
from equipoise.figures.trial_values import EVERY_TRIAL

HOW_TO_READ_BALANCE = (
    "The difference between treated and controls in each covariate, in percent of the standard "
    "deviation of the treated: before matching, by the best weights of each generation, and, at "
    "the right end, after the search. The strong line follows the worst covariate of each "
    "generation; the dashed line marks 10 %."
)
HOW_TO_READ_VALUES = (
    "The line is the best value after each generation, the points the median individual: while "
    "they lie apart, the population still has variety. The dashed line marks the last improvement "
    "that counted."
)
BEFORE = -1
"""Position of the data before matching on the axis of generations."""


def search_balance(
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
        Generations in their order, each with the differences by its best weights; the last ones
        are those after the search. A note names the covariates that are not finite.
    """
    stages = [(BEFORE, before), *along]
    rows: Rows = []
    unknown: set[str] = set()
    worst: Rows = []
    for generation, values in stages:
        finite: Rows = [
            {"generation": generation, "variable": name, "sdiff": round(abs(value), 4)}
            for name, value in zip(variables, values, strict=True)
            if math.isfinite(value)
        ]
        rows += finite
        unknown |= {*variables} - {row["variable"] for row in finite}
        if finite:
            worst.append(max(finite, key=lambda row: float(row["sdiff"])))
    thin = _largest_differences(rows, EVERY_TRIAL // len(stages))
    if len(thin) < len(rows):
        kept = len({row["variable"] for row in thin})
        notes = [
            *notes,
            f"Thin lines: the {kept:,} of {len(variables):,} covariates with the largest "
            "differences. The strong line follows all.",
        ]
    if unknown:
        names = ", ".join(sorted(unknown))
        notes = [*notes, f"Not finite somewhere, so not drawn there: {names}."]
    last = max([1, *(generation for generation, _ in along)])
    x = alt.X(
        "generation:Q",
        scale=plain_scale(BEFORE - 0.3, last + 0.3, kind="linear"),
        axis=alt.Axis(
            title="generation",
            values=[BEFORE, *range(0, last + 1, max(1, math.ceil(last / 12)))],
            labelExpr="datum.value < 0 ? 'before' : format(datum.value, 'd')",
            labelFlush=True,
        ),
    )
    top = 1.05 * max([2.0 * LARGE_DIFFERENCE, *(float(row["sdiff"]) for row in rows)])
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
    weak, strong = color_of(5), color_of(0)
    layers = [
        chart_of([{"sdiff": LARGE_DIFFERENCE}]).mark_rule(style="reference").encode(y=y),
        chart_of(thin)
        .mark_line(strokeWidth=1.2, opacity=0.55, color=weak, point={"size": 14, "color": weak})
        .encode(x=x, y=y, detail="variable:N", tooltip=tooltip),
        chart_of(worst)
        .mark_line(strokeWidth=3, color=strong, point={"size": 45, "color": strong})
        .encode(x=x, y=y, tooltip=tooltip),
    ]
    return frame(
        layers,
        title="Balance along the search",
        notes=notes,
        description=_describe_balance(worst),
        height=300,
    )


def search_values(rows: Rows, *, peak: int, value: str = "value") -> alt.LayerChart:
    """Draw the best and the median value over the generations.

    Parameters
    ----------
    rows
        One for each generation: "generation", "best", "median", "evaluations". A note counts the
        values that are not finite.
    peak
        The generation of the last improvement.
    value
        Title of the axis: what the search optimises.
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
    layers = [
        chart_of([{"generation": peak}]).mark_rule(style="reference").encode(x=x),
        chart_of(best)
        .mark_line(color=color_of(0), interpolate="step-after", point=True)
        .encode(x=x, y=alt.Y("best:Q", scale=scale, axis=alt.Axis(title=value)), tooltip=tooltip),
        chart_of(median)
        .mark_point(color=color_of(1), shape="diamond", size=30)
        .encode(x=x, y=alt.Y("median:Q", scale=scale), tooltip=tooltip),
    ]
    notes = ["Line: the best individual. Diamonds: the median individual."]
    missing = 2 * len(rows) - len(best) - len(median)
    if missing:
        notes.append(f"Not finite, so not drawn: {missing} values.")
    description = "A genetic search without a generation."
    if rows:
        description = (
            f"Best value of a genetic search: {rows[0]['best']:.6g} in generation 0, "
            f"{rows[-1]['best']:.6g} in generation {rows[-1]['generation']}; the last improvement "
            f"came in generation {peak}."
        )
    return frame(
        layers,
        title="The search, generation by generation",
        notes=notes,
        description=description,
        height=260,
    )


def _largest_differences(rows: Rows, count: int) -> Rows:
    """Return the rows of the ``count`` covariates with the largest differences at any time."""
    largest: dict[str, float] = {}
    for row in rows:
        largest[row["variable"]] = max(largest.get(row["variable"], 0.0), float(row["sdiff"]))
    kept = set(sorted(largest, key=lambda name: -largest[name])[: max(1, count)])
    return [row for row in rows if row["variable"] in kept]


def _describe_balance(worst: Rows) -> str:
    if not worst:
        return "Standardized differences of the covariates along a search; none is finite."
    first, end = worst[0], worst[-1]
    return (
        "The largest standardized difference of the covariates, without its sign: "
        f"{first['sdiff']:.1f} % ({first['variable']}) before matching, {end['sdiff']:.1f} % "
        f"({end['variable']}) by the weights of generation {end['generation']}"
    )
