"""Draw the balance of designs: several designs in one love plot, and mirrored histograms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from equipoise_matching.charts.balance import (
    DifferenceSide,
    DifferenceUnit,
    Floats,
    Groups,
    WeightedValues,
    differences_plot,
)
from equipoise_matching.shared.chart_parts import (
    Rows,
    frame,
    layer,
    linear,
    plain_scale,
    rule,
    tooltips,
    top_legend,
)
from equipoise_matching.shared.theme import color_of

HOW_TO_READ_HISTOGRAMS = (
    "Bars are shares of an arm's weight after matching: the treated above the line, the controls "
    "below it. Outlines are the shares before matching."
)
STANDARD_DEVIATIONS = DifferenceUnit(
    "difference of means, in standard deviations or raw", 0.1, "{:.3f}", ("difference", ".3f")
)
"""Unit of the differences of a design; 0.1 is the common threshold (Austin 2009)."""
DESIGN_COLORS = (0, 2, 3, 4, 5)
"""Index in the theme of the colour and the shape of each design; 1 is before matching."""
MAX_BINS = 40
"""Largest number of bins of a histogram."""
MIN_BINS = 10
_ARMS = ("treated", "controls")


def designs_love_plot(
    variables: Sequence[str], before: Sequence[float], after: Mapping[str, Sequence[float]]
) -> alt.LayerChart:
    """Draw the differences before matching, and after each design by its name."""
    sides = [DifferenceSide("before matching", before, 1, "before")]
    for (name, differences), color in zip(after.items(), DESIGN_COLORS, strict=False):
        sides.append(DifferenceSide(name, differences, color))
    return differences_plot(variables, sides, STANDARD_DEVIATIONS)


def mirrored_histograms(variable: str, before: Groups, after: Groups) -> alt.LayerChart:
    """Draw the weighted shares of bins: treated above the axis, controls below it."""
    edges = bin_edges(np.concatenate([group.values for group in before]))
    filled, outlined = (_bars(edges, groups) for groups in (after, before))
    low, high = float(edges[0]), float(edges[-1])
    limit = 1.05 * max(abs(row["share"]) for row in [*filled, *outlined])
    x = linear(alt.X, "low", low, high, title=variable)
    y = linear(
        alt.Y,
        "share",
        -limit,
        limit,
        title="controls ↓  share of the arm, %  ↑ treated",
        labelExpr="format(abs(datum.value), '.3~g')",
    )
    colors = alt.Scale(domain=list(_ARMS), range=[color_of(2), color_of(3)])
    channels = {
        "x": x,
        "x2": "high:Q",
        "y": y,
        "y2": "zero:Q",
        "tooltip": tooltips(
            ("arm:N",),
            ("low:Q", "from", ".5~g"),
            ("high:Q", "to", ".5~g"),
            ("size:Q", "share, %", ".2f"),
        ),
    }
    return frame(
        [
            layer(
                filled,
                alt.MarkDef("rect", opacity=0.55),
                color=alt.Color("arm:N", scale=colors, legend=top_legend()),
                **channels,
            ),
            layer(
                outlined,
                alt.MarkDef("rect", filled=False, strokeWidth=1.5, color=color_of(5)),
                **channels,
            ),
            layer([{"share": 0.0}], rule(1), y=alt.Y("share:Q", scale=plain_scale(-limit, limit))),
        ],
        title=f"Distribution of {variable}",
        notes=["Bars: after matching. Outlines: before."],
        description=(
            f"Histograms of {variable} among treated and controls. {HOW_TO_READ_HISTOGRAMS}"
        ),
        height=260,
    )


def bin_edges(values: Floats) -> Floats:
    """Return the edges of bins of equal width; few whole numbers have a bin each."""
    low, high = float(values.min()), float(values.max())
    if high - low < MAX_BINS and np.array_equal(values, np.round(values)):
        return np.arange(low - 0.5, high + 1.0)
    count = min(MAX_BINS, max(MIN_BINS, math.ceil(len(values) ** 0.5)))
    return np.linspace(low, high, count + 1)


def _bars(edges: Floats, groups: Groups) -> Rows:
    rows: Rows = []
    for name, sign, group in zip(_ARMS, (1.0, -1.0), groups, strict=True):
        shares = _shares(edges, group)
        rows += [
            {
                "arm": name,
                "low": float(f"{low:.6g}"),
                "high": float(f"{high:.6g}"),
                "share": round(sign * share, 4),
                "size": round(share, 4),
                "zero": 0.0,
            }
            for low, high, share in zip(
                edges[:-1].tolist(), edges[1:].tolist(), shares.tolist(), strict=True
            )
            if share
        ]
    return rows


def _shares(edges: Floats, group: WeightedValues) -> Floats:
    """Return the percentage of a group's weight in each bin."""
    counts, _ = np.histogram(group.values, bins=edges, weights=group.weights)
    return np.asarray(100.0 * counts / counts.sum(), dtype=np.float64)
