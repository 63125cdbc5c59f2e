"""Shares of treated and controls that have something, before and after matching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from equipoise.figures.building import Rows, drawn_from, framed, plain_scale
from equipoise.figures.theme import color_of, shape_of

HOW_TO_READ = (
    "Each line is one covariate with two values: from the share of the controls that have it to "
    "that of the treated. The shorter the line, the more alike they are."
)
ROW_HEIGHT = 34
_SIDES = ("before matching", "after matching")
_ARMS = ("controls", "treated")


@dataclass(frozen=True, slots=True)
class Share:
    """Who has it, in percent."""

    label: str
    before: tuple[float, float]
    """Of the controls and of the treated."""
    after: tuple[float, float] | None


def shares(rows: Sequence[Share]) -> alt.LayerChart:
    """Draw a line from controls to treated for each covariate and side."""
    drawn: Rows = [
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
        {"label": row["label"], "side": row["side"], "arm": arm, "share": row[arm]}
        for row in drawn
        for arm in _ARMS
    ]
    sides = [side for side in _SIDES if any(row["side"] == side for row in drawn)]
    y = alt.Y(
        "label:N",
        sort=None,
        scale=alt.Scale(domain=[row.label for row in rows], paddingInner=0.3),
        axis=alt.Axis(title=None, labelLimit=220),
    )
    offset = alt.YOffset("side:N", sort=None, scale=alt.Scale(domain=sides, paddingOuter=0.6))
    color = alt.Color(
        "side:N",
        scale=alt.Scale(domain=sides, range=[color_of(1), color_of(0)][: len(sides)]),
        legend=alt.Legend(
            title=None, orient="top", columns=1, symbolOpacity=1, symbolType="stroke"
        ),
    )
    shape = alt.Shape(
        "arm:N",
        scale=alt.Scale(domain=list(_ARMS), range=[shape_of(1), shape_of(0)]),
        # It stands for both colours, in either theme.
        legend=alt.Legend(
            title=None, orient="top", columns=1, symbolOpacity=1, symbolFillColor=color_of(5)
        ),
    )
    scale = plain_scale(0, 100, kind="linear")
    lines = (
        drawn_from(drawn)
        .mark_rule(strokeWidth=2)
        .encode(
            x=alt.X("controls:Q", scale=scale, axis=alt.Axis(title="share, %")),
            x2="treated:Q",
            y=y,
            yOffset=offset,
            color=color,
        )
    )
    marks = (
        drawn_from(points)
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
                alt.Tooltip("arm:N", title="of the"),
                alt.Tooltip("share:Q", title="share, %", format=".1f"),
            ],
        )
    )
    return framed(
        [lines, marks],
        title="Shares",
        notes=[],
        description=f"Shares of treated and controls. {'; '.join(map(_words, rows))}",
        height=ROW_HEIGHT * max(len(rows), 2),
    )


def _words(row: Share) -> str:
    before = f"{row.label}: {row.before[1]:.1f} % of the treated and {row.before[0]:.1f} % of the"
    words = f"{before} controls before"
    if row.after is None:
        return words
    return f"{words}, {row.after[1]:.1f} % and {row.after[0]:.1f} % after"
