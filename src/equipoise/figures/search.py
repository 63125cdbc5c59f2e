"""Charts of a genetic search: its best value, and the balance that its weights give."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from operator import itemgetter

import altair as alt

from equipoise.figures.balance import LARGE_DIFFERENCE
from equipoise.figures.building import Rows, frame, layer, linear, rule, tooltips
from equipoise.figures.theme import color_of
from equipoise.figures.values import EVERY_TRIAL

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

    Differences are in percent. ``along`` has the generations in their order, each with the
    differences by its best weights; the last ones are those after the search.
    """
    stages = [(BEFORE, before), *along]
    rows: Rows = [
        {"generation": generation, "variable": name, "sdiff": round(abs(value), 4)}
        for generation, values in stages
        for name, value in zip(variables, values, strict=True)
    ]
    unknown = {row["variable"] for row in rows if not math.isfinite(row["sdiff"])}
    rows = [row for row in rows if math.isfinite(row["sdiff"])]
    by_generation = itertools.groupby(rows, key=itemgetter("generation"))
    worst = [max(stage, key=itemgetter("sdiff")) for _, stage in by_generation]
    thin = _largest_differences(rows, EVERY_TRIAL // len(stages))
    if len(thin) < len(rows):
        count = len({row["variable"] for row in thin})
        notes = [
            *notes,
            f"Thin lines: the {count:,} of {len(variables):,} covariates with the largest "
            "differences. The strong line follows all.",
        ]
    if unknown:
        names = ", ".join(sorted(unknown))
        notes = [*notes, f"Not finite somewhere, so not drawn there: {names}."]
    last = max([1, *(generation for generation, _ in along)])
    x = linear(
        alt.X,
        "generation",
        BEFORE - 0.3,
        last + 0.3,
        title="generation",
        values=[BEFORE, *range(0, last + 1, max(1, math.ceil(last / 12)))],
        labelExpr="datum.value < 0 ? 'before' : format(datum.value, 'd')",
        labelFlush=True,
    )
    top = 1.05 * max([2.0 * LARGE_DIFFERENCE, *(row["sdiff"] for row in rows)])
    y = linear(alt.Y, "sdiff", 0, top, title="standardized difference, % (without sign)")
    tooltip = tooltips(("variable:N",), ("generation:Q",), ("sdiff:Q", "difference, %", ".2f"))
    weak, strong = color_of(5), color_of(0)
    lines = alt.MarkDef(
        "line", strokeWidth=1.2, opacity=0.55, color=weak, point={"size": 14, "color": weak}
    )
    worst_line = alt.MarkDef(
        "line", strokeWidth=3, color=strong, point={"size": 45, "color": strong}
    )
    return frame(
        [
            layer([{"sdiff": LARGE_DIFFERENCE}], rule(style="reference"), y=y),
            layer(thin, lines, x=x, y=y, detail="variable:N", tooltip=tooltip),
            layer(worst, worst_line, x=x, y=y, tooltip=tooltip),
        ],
        title="Balance along the search",
        notes=notes,
        description=_describe_balance(worst),
        height=300,
    )


def search_values(rows: Rows, *, peak: int, value: str = "value") -> alt.LayerChart:
    """Draw the best and the median value over the generations.

    Each row has "generation", "best", "median" and "evaluations" of one; ``peak`` is the generation
    of the last improvement, ``value`` the title of the axis.
    """
    best = [row for row in rows if math.isfinite(row["best"])]
    median = [row for row in rows if math.isfinite(row["median"])]
    values = [row["best"] for row in best] + [row["median"] for row in median] or [0.0]
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 0.05 * (1.0 + abs(high))
    last = max([1, *(row["generation"] for row in rows)])
    x = linear(alt.X, "generation", 0, last, title="generation", tickMinStep=1)
    y = linear(alt.Y, "best", low - margin, high + margin, title=value)
    tooltip = tooltips(
        ("generation:Q",),
        ("best:Q", "best", ".6g"),
        ("median:Q", "median", ".6g"),
        ("evaluations:Q", "evaluations", ","),
    )
    line = alt.MarkDef("line", color=color_of(0), interpolate="step-after", point=True)
    diamond = alt.MarkDef("point", color=color_of(1), shape="diamond", size=30)
    layers = [
        layer([{"generation": peak}], rule(style="reference"), x=x),
        layer(best, line, x=x, y=y, tooltip=tooltip),
        layer(median, diamond, x=x, y=alt.Y("median:Q", scale=y["scale"]), tooltip=tooltip),
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
        largest[row["variable"]] = max(largest.get(row["variable"], 0.0), row["sdiff"])
    drawn = set(sorted(largest, key=lambda name: -largest[name])[: max(1, count)])
    return [row for row in rows if row["variable"] in drawn]


def _describe_balance(worst: Rows) -> str:
    if not worst:
        return "Standardized differences of the covariates along a search; none is finite."
    first, end = worst[0], worst[-1]
    return (
        "The largest standardized difference of the covariates, without its sign: "
        f"{first['sdiff']:.1f} % ({first['variable']}) before matching, {end['sdiff']:.1f} % "
        f"({end['variable']}) by the weights of generation {end['generation']}"
    )
