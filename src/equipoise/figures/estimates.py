"""Estimates of one effect under each other, each with its interval, beside no difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from equipoise.figures.building import Rows, drawn_from, framed, plain_scale, told_apart

_ROW_HEIGHT = 26


@dataclass(frozen=True, slots=True)
class Estimate:
    """One row of the figure."""

    label: str
    kind: str
    at: float
    interval: tuple[float, float] | None
    """``None`` where there is none: a mark alone."""


def estimates(
    rows: Sequence[Estimate],
    kinds: Sequence[str],
    *,
    unit: str,
    title: str,
    notes: Sequence[str],
    description: str,
) -> alt.LayerChart:
    """Draw each estimate as a mark on its interval.

    Parameters
    ----------
    rows
        From top to bottom; what is not finite is not drawn.
    kinds
        Every kind that there may be: its place fixes its colour and its shape.
    unit
        Of the estimates: the title of their axis.
    """
    drawn: Rows = []
    for row in rows:
        low, high = row.interval or (row.at, row.at)
        if all(math.isfinite(one) for one in (row.at, low, high)):
            drawn.append(
                {"label": row.label, "kind": row.kind, "at": row.at, "low": low, "high": high}
            )
    labels = list(dict.fromkeys(row["label"] for row in drawn))
    shown = [kind for kind in kinds if any(row["kind"] == kind for row in drawn)]
    reach = 1.05 * max([1e-9, *(abs(row[end]) for row in drawn for end in ("low", "high"))])
    x_scale = plain_scale(-reach, reach, kind="linear")
    y = alt.Y(
        "label:N",
        sort=None,
        scale=alt.Scale(domain=labels),
        axis=alt.Axis(title=None, labelLimit=220),
    )
    places = [list(kinds).index(kind) for kind in shown]
    # Where each row is a kind of its own its label says it.
    by_label = labels == [row["kind"] for row in drawn]
    legend = None if by_label else alt.Legend(title=None, orient="top", symbolOpacity=1, columns=2)
    color, shape = told_apart("kind", shown, places, legend)
    data = drawn_from(drawn)
    bars = data.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", scale=x_scale, axis=alt.Axis(title=unit, labelBound=True)),
        x2="high:Q",
        y=y,
        color=color,
    )
    points = data.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("at:Q", scale=x_scale),
        y=y,
        color=color,
        shape=shape,
        tooltip=[
            alt.Tooltip("label:N"),
            alt.Tooltip("at:Q", title=unit, format=".3g"),
            alt.Tooltip("low:Q", title="from", format=".3g"),
            alt.Tooltip("high:Q", title="to", format=".3g"),
        ],
    )
    zero = drawn_from([{"at": 0.0}]).mark_rule(style="reference")
    return framed(
        [zero.encode(x=alt.X("at:Q", scale=x_scale)), bars, points],
        title=title,
        notes=notes,
        description=description,
        height=_ROW_HEIGHT * max(len(labels), 3),
    )
