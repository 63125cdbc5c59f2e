"""Draw charts of covariate balance: before and after matching, and during a genetic search.

``sdiff`` is a standardized difference: a difference of means in percent of a standard deviation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from operator import itemgetter

import altair as alt
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from equipoise_matching.shared.chart_parts import (
    MAX_NAME_PIXELS,
    Rows,
    color_and_shape,
    frame,
    layer,
    linear,
    name_rows,
    plain_scale,
    point,
    rule,
    tooltips,
    top_legend,
)
from equipoise_matching.shared.density import density
from equipoise_matching.shared.numbers import joined
from equipoise_matching.shared.theme import color_of, shape_of

HOW_TO_READ_LOVE_PLOT = (
    "Each row is one covariate: the difference between treated and controls, in percent of the "
    "standard deviation of the treated. A covariate near 0 is balanced; the dashed lines mark 10 %."
)
HOW_TO_READ_SHARES = (
    "Each line is one covariate with two values, from its share among the controls to its share "
    "among the treated. A shorter line means better balance."
)
HOW_TO_READ_QQ_PLOT = (
    "Each mark is one quantile: the horizontal axis has its value among the controls, the vertical "
    "axis among the treated. On the dashed line, both groups have the same distribution."
)
HOW_TO_READ_DENSITY = (
    "Two hills of equal area, one of the treated and one of the controls: after matching above "
    "the line, before matching below it. The groups differ where the hills do not overlap."
)
HOW_TO_READ_COURSE = (
    "The difference between treated and controls in each covariate, in percent of the standard "
    "deviation of the treated: before matching, with the best weights of each generation, and, at "
    "the right end, after the search. The strong line follows the worst covariate of each "
    "generation; the dashed line marks 10 %."
)
HOW_TO_READ_VALUES = (
    "The line is the best value after each generation, and the points are the median candidate. "
    "While they differ, the population still has variety. The dashed line marks the last "
    "improvement above the tolerance."
)
LARGE_DIFFERENCE = 10.0
"""Common threshold of a large difference, in percent of a standard deviation (Austin 2009)."""
MAX_POINTS = 5000
"""Largest number of points of a chart; more points would not be visible."""
POSITION_BEFORE = -1
"""Position of the balance before matching on the axis of generations."""

_SIDES = ("before matching", "after matching")
_GROUPS = ("treated", "controls")
"""Names, in legends, of both sides of matching and of both groups."""
_SIDE_COLORS = (1, 0)
"""Index in the theme of the colour and the shape of each side."""
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3])
"""Dashes of the lines of the groups, so that colour is never the only difference."""

Floats = NDArray[np.float64]
Points = Sequence[tuple[float, float]]
"""Pairs of quantiles: first of the controls, then of the treated."""


def _color_and_shape(sides: Sequence[object]) -> tuple[alt.Color, alt.Shape]:
    """Return the encoding of the first sides of matching, as many as ``sides``."""
    count = len(sides)
    return color_and_shape("side", _SIDES[:count], _SIDE_COLORS[:count], top_legend())


class DifferenceUnit(Struct, frozen=True):
    """Unit of the differences in a love plot."""

    title: str
    """Title of the axis."""
    large: float
    """Threshold of a large difference, which the dashed lines mark."""
    number: str
    """Format of a difference in the description."""
    tooltip: tuple[str, str]
    """Title and format of a difference in a tooltip."""


class DifferenceSide(Struct, frozen=True):
    """The differences of every variable before matching, or after one match."""

    name: str
    differences: Sequence[float]
    color: int
    """Index in the theme of the colour and the shape."""
    label: str = ""
    """Name in the description; by default ``name``."""


PERCENT = DifferenceUnit(
    "standardized difference, %", LARGE_DIFFERENCE, "{:.1f} %", ("difference, %", ".2f")
)


def love_plot(
    variables: Sequence[str], before: Sequence[float], after: Sequence[float] | None = None
) -> alt.LayerChart:
    """Draw the standardized differences, with the largest before matching on top (Love 2004).

    The differences are in percent, one per variable. A note names infinite and unknown variables.
    """
    sides = [
        DifferenceSide(name, differences, color, label)
        for name, differences, color, label in zip(
            _SIDES, (before, after), _SIDE_COLORS, ("before", "after"), strict=True
        )
        if differences is not None
    ]
    return differences_plot(variables, sides, PERCENT)


def differences_plot(
    variables: Sequence[str], sides: Sequence[DifferenceSide], unit: DifferenceUnit
) -> alt.LayerChart:
    """Draw the differences of each side, with the largest of the first side on top."""
    first = sides[0].differences
    order = sorted(
        range(len(variables)),
        key=lambda i: -abs(first[i]) if math.isfinite(first[i]) else -math.inf,
    )
    rows: Rows = [
        {"variable": variables[i], "side": side.name, "sdiff": round(side.differences[i], 4)}
        for i in order
        for side in sides
        if math.isfinite(side.differences[i])
    ]
    unknown = [
        variables[i] for i in order if not all(math.isfinite(side.differences[i]) for side in sides)
    ]
    limit = 1.05 * max([2.0 * unit.large, *(abs(row["sdiff"]) for row in rows)])
    x = linear(alt.X, "sdiff", -limit, limit, title=unit.title)
    names, colors = [side.name for side in sides], [side.color for side in sides]
    legend = top_legend(labelLimit=MAX_NAME_PIXELS, columns=3)
    color, shape = color_and_shape("side", names, colors, legend)
    limits = [{"sdiff": end} for end in (-unit.large, unit.large)]
    texts = [
        f"{name}: "
        + ", ".join(
            f"{unit.number.format(side.differences[i])} {side.label or side.name}" for side in sides
        )
        for i, name in enumerate(variables)
    ]
    return frame(
        [
            layer([{"sdiff": 0.0}], rule(style="negligible"), x=x),
            layer(limits, rule(style="reference"), x=x),
            layer(
                rows,
                point(70),
                x=x,
                y=name_rows("variable", [variables[i] for i in order]),
                color=color,
                shape=shape,
                tooltip=tooltips(("variable:N",), ("side:N", "when"), ("sdiff:Q", *unit.tooltip)),
            ),
        ],
        title="Balance of the covariates",
        notes=[f"Not finite, so not drawn: {', '.join(unknown)}."] if unknown else [],
        description=f"Standardized differences of the covariates. {'; '.join(texts)}",
        height=22 * max(len(variables), 3),
    )


class Share(Struct, frozen=True):
    """Percentages of the controls, then of the treated, that have one of two values."""

    label: str
    before: tuple[float, float]
    after: tuple[float, float] | None

    def describe(self) -> str:
        """Return a sentence with the percentages."""
        control, treated = self.before
        shares_before = f"{treated:.1f} % of the treated and {control:.1f} % of the controls before"
        text = f"{self.label}: {shares_before}"
        if self.after is None:
            return text
        control, treated = self.after
        return f"{text}, {treated:.1f} % and {control:.1f} % after"


def shares(rows: Sequence[Share]) -> alt.LayerChart:
    """Draw a line from the share of the controls to the share of the treated for each covariate."""
    lines: Rows = [
        {
            "label": row.label,
            "side": side,
            "controls": round(percentages[0], 4),
            "treated": round(percentages[1], 4),
        }
        for row in rows
        for side, percentages in zip(_SIDES, (row.before, row.after), strict=True)
        if percentages is not None
    ]
    points: Rows = [
        {"label": line["label"], "side": line["side"], "arm": group, "share": line[group]}
        for line in lines
        for group in reversed(_GROUPS)
    ]
    sides = [side for side in _SIDES if any(line["side"] == side for line in lines)]
    channels = {
        "y": name_rows("label", [row.label for row in rows], paddingInner=0.3),
        "yOffset": alt.YOffset(
            "side:N", sort=None, scale=alt.Scale(domain=sides, paddingOuter=0.6)
        ),
        "color": alt.Color(
            "side:N",
            scale=alt.Scale(domain=sides, range=[color_of(1), color_of(0)][: len(sides)]),
            legend=top_legend(columns=1, symbolType="stroke"),
        ),
    }
    shape = alt.Shape(
        "arm:N",
        scale=alt.Scale(domain=list(reversed(_GROUPS)), range=[shape_of(1), shape_of(0)]),
        # The legend of shapes has a neutral colour, because the shapes occur in both colours.
        legend=top_legend(columns=1, symbolFillColor=color_of(5)),
    )
    x = linear(alt.X, "controls", 0, 100, title="share, %")
    share = alt.X("share:Q", scale=plain_scale(0, 100))
    tooltip = tooltips(
        ("label:N", "covariate"),
        ("side:N", "when"),
        ("arm:N", "group"),
        ("share:Q", "share, %", ".1f"),
    )
    return frame(
        [
            layer(lines, rule(2), x=x, x2="treated:Q", **channels),
            layer(points, point(60), x=share, shape=shape, tooltip=tooltip, **channels),
        ],
        title="Shares",
        description=(
            f"Shares of treated and controls. {'; '.join(row.describe() for row in rows)}"
        ),
        height=34 * max(len(rows), 2),
    )


def qq_plot(
    variable: str, before: Points, after: Points | None = None, *, notes: Sequence[str] = ()
) -> alt.LayerChart:
    """Draw quantiles of the treated against quantiles of the controls, before and after."""
    quantile_pairs = [before] if after is None else [before, after]
    rows: Rows = [
        {"control": control, "treated": treated, "side": side}
        for side, points in zip(_SIDES, quantile_pairs, strict=False)
        for control, treated in points
    ]
    quantiles = [row[group] for row in rows for group in ("control", "treated")]
    low, high = min(quantiles, default=0.0), max(quantiles, default=1.0)
    margin = 0.03 * (high - low) or 0.5 * abs(high) or 0.5
    low, high = low - margin, high + margin
    x = linear(alt.X, "control", low, high, title=f"{variable} of the controls")
    y = linear(alt.Y, "treated", low, high, title=f"{variable} of the treated")
    color, shape = _color_and_shape(quantile_pairs)
    tooltip = tooltips(
        ("control:Q", "control", ".5~g"), ("treated:Q", "treated", ".5~g"), ("side:N", "when")
    )
    diagonal = [{"control": end, "treated": end} for end in (low, high)]
    mark = point(36, opacity=0.7)
    return frame(
        [
            layer(diagonal, alt.MarkDef("line", style="reference"), x=x, y=y),
            layer(rows, mark, x=x, y=y, color=color, shape=shape, tooltip=tooltip),
        ],
        title=f"Quantiles of {variable}",
        notes=notes,
        description=f"Quantiles of {variable} among treated and controls. {HOW_TO_READ_QQ_PLOT}",
        height=420,
    )


class WeightedValues(Struct, frozen=True):
    """Values with their weights; ``None`` for equal weights."""

    values: Floats
    weights: Floats | None


Groups = Sequence[WeightedValues]
"""Values of one covariate in each arm: among the treated and among the controls."""


def group_density(
    variable: str,
    before: Groups,
    after: Groups | None,
    *,
    names: Sequence[str] = _GROUPS,
    title: str = "",
    notes: Sequence[str] = (),
) -> alt.LayerChart | None:
    """Draw the density of one covariate in each group; ``None`` if a group is too small.

    With ``after``, the densities before matching are drawn below the axis.
    """
    sides = [(1.0, before)] if after is None else [(1.0, after), (-1.0, before)]
    values = np.concatenate([group.values for _, groups in sides for group in groups])
    low, high = float(values.min()), float(values.max())
    margin = 0.04 * (high - low) or 0.5
    begin, width = low - margin, high - low + 2.0 * margin
    rows: Rows = []
    for sign, groups in sides:
        for name, group in zip(names, groups, strict=True):
            # Values become shares of the axis, because squares of large values would overflow.
            curve = density((group.values - begin) / width, 0.0, 1.0, group.weights)
            if curve is None:
                return None
            grid, heights = curve
            area = float(heights.sum() * (grid[1] - grid[0]))
            rows += [
                {
                    "arm": name,
                    "side": f"{name} {'up' if sign > 0 else 'down'}",
                    "at": float(f"{begin + width * position:.6g}"),
                    "height": round(sign * height / area, 4),
                }
                for position, height in zip(grid.tolist(), heights.tolist(), strict=True)
            ]
    y_limit = 1.08 * max(abs(row["height"]) for row in rows)
    y_title, bottom = "before ↓  ↑ after matching", -y_limit
    if after is None:
        y_title, bottom = "before matching", 0.0
    y = linear(
        alt.Y, "height", bottom, y_limit, title=y_title, labels=False, ticks=False, grid=False
    )
    x = linear(alt.X, "at", begin, begin + width, title=variable)
    legend = top_legend(symbolType="stroke")
    colors = alt.Scale(domain=list(names), range=[color_of(2 + i) for i in range(len(names))])
    dashes = alt.Scale(
        domain=list(names), range=[_DASHES[i % len(_DASHES)] for i in range(len(names))]
    )
    color = alt.Color("arm:N", scale=colors, legend=legend)
    # The lines differ in their dashes too: a chart never relies on colour alone.
    dash = alt.StrokeDash("arm:N", scale=dashes, legend=legend)
    curve_channels = {"x": x, "y": y, "color": color, "detail": "side:N"}
    return frame(
        [
            layer([{"height": 0.0}], rule(style="negligible"), y=y),
            layer(rows, alt.MarkDef("area", opacity=0.18), **curve_channels),
            layer(rows, alt.MarkDef("line", strokeWidth=2), strokeDash=dash, **curve_channels),
        ],
        title=title or f"Distribution of {variable}",
        notes=notes,
        description=(f"Distribution of {variable} among {joined(names)}. {HOW_TO_READ_DENSITY}"),
        height=260,
    )


def search_balance(
    variables: Sequence[str],
    before: Sequence[float],
    course: Sequence[tuple[int, Sequence[float]]],
    *,
    notes: Sequence[str] = (),
) -> alt.LayerChart:
    """Draw each covariate's standardized difference, without its sign, over the generations.

    ``course`` has for each generation its number, and the differences in percent with the best
    weights of the generation. The last differences are the result of the search.
    """
    stages = [(POSITION_BEFORE, before), *course]
    rows: Rows = [
        {"generation": generation, "variable": name, "sdiff": round(abs(value), 4)}
        for generation, values in stages
        for name, value in zip(variables, values, strict=True)
    ]
    unknown = {row["variable"] for row in rows if not math.isfinite(row["sdiff"])}
    rows = [row for row in rows if math.isfinite(row["sdiff"])]
    by_generation = itertools.groupby(rows, key=itemgetter("generation"))
    worst = [max(stage, key=itemgetter("sdiff")) for _, stage in by_generation]
    drawn_rows = _largest_differences(rows, MAX_POINTS // len(stages))
    if len(drawn_rows) < len(rows):
        count = len({row["variable"] for row in drawn_rows})
        notes = [
            *notes,
            f"Thin lines: the {count:,} of {len(variables):,} covariates with the largest "
            "differences. The strong line follows all.",
        ]
    if unknown:
        names = ", ".join(sorted(unknown))
        notes = [*notes, f"Not finite somewhere, so not drawn there: {names}."]
    end = max([1, *(generation for generation, _ in course)])
    x = linear(
        alt.X,
        "generation",
        POSITION_BEFORE - 0.3,
        end + 0.3,
        title="generation",
        values=[POSITION_BEFORE, *range(0, end + 1, max(1, math.ceil(end / 12)))],
        labelExpr="datum.value < 0 ? 'before' : format(datum.value, 'd')",
        labelFlush=True,
    )
    y_limit = 1.05 * max([2.0 * LARGE_DIFFERENCE, *(row["sdiff"] for row in rows)])
    y = linear(alt.Y, "sdiff", 0, y_limit, title="standardized difference, % (without sign)")
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
            layer(drawn_rows, lines, x=x, y=y, detail="variable:N", tooltip=tooltip),
            layer(worst, worst_line, x=x, y=y, tooltip=tooltip),
        ],
        title="Balance along the search",
        notes=notes,
        description=_describe_balance(worst),
        height=300,
    )


def search_values(rows: Rows, *, peak: int, title: str = "value") -> alt.LayerChart:
    """Draw the best and the median value over the generations.

    Each row has "generation", "best", "median" and "evaluations". ``peak`` is the generation of
    the last improvement, and ``title`` the title of the axis of values.
    """
    best = [row for row in rows if math.isfinite(row["best"])]
    median = [row for row in rows if math.isfinite(row["median"])]
    values = [row["best"] for row in best] + [row["median"] for row in median] or [0.0]
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 0.05 * (1.0 + abs(high))
    end = max([1, *(row["generation"] for row in rows)])
    x = linear(alt.X, "generation", 0, end, title="generation", tickMinStep=1)
    y = linear(alt.Y, "best", low - margin, high + margin, title=title)
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
    notes = ["Line: the best candidate. Diamonds: the median candidate."]
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
    largest: dict[str, float] = {}
    for row in rows:
        largest[row["variable"]] = max(largest.get(row["variable"], 0.0), row["sdiff"])
    drawn_variables = set(sorted(largest, key=lambda name: -largest[name])[: max(1, count)])
    return [row for row in rows if row["variable"] in drawn_variables]


def _describe_balance(worst: Rows) -> str:
    if not worst:
        return "Standardized differences of the covariates along a search; none is finite."
    first, last = worst[0], worst[-1]
    return (
        "The largest standardized difference of the covariates, without its sign: "
        f"{first['sdiff']:.1f} % ({first['variable']}) before matching, {last['sdiff']:.1f} % "
        f"({last['variable']}) by the weights of generation {last['generation']}"
    )
