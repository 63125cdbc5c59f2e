"""The ratio with its confidence sequence, as it narrowed over the blocks."""

from __future__ import annotations

import altair as alt

from equipoise.figures.building import Rows, drawn_from, framed, place_of, plain_scale
from equipoise.figures.quantity import metric_name
from equipoise.figures.ratio_axis import ratio_axis
from equipoise.figures.theme import color_of
from equipoise.model.result import Comparison, ResultDocument
from equipoise.stats.sequence_point import SequencePoint

HOW_TO_READ = (
    "After each block the band holds every ratio that is still possible; it counts once it has "
    "left the dashed line of no difference, or lies within the grey strip of what is too small "
    "to matter. The bar at the right is the interval of the verdict."
)
HEIGHT = 260
MOST_POINTS = 400


def sequence(
    document: ResultDocument, comparison: Comparison, points: tuple[SequencePoint, ...]
) -> alt.LayerChart:
    """Draw the estimate and its interval after every block.

    Parameters
    ----------
    points
        Where the interval stood, a look each, in the order of the blocks. The axis follows the
        last two thirds of them: an early interval may run out of it. At least one.
    """
    late = points[len(points) // 3 :]
    axis = ratio_axis(
        [bound for one in late for bound in (one.low, one.high, one.ratio)],
        comparison.min_effect,
    )
    name = metric_name(comparison.metric)
    y = axis.channel(f"{name} against the baseline")
    shown = _thinned(points)
    rows: Rows = [
        {
            "block": one.block,
            "low": axis.low_place(one.low),
            "high": axis.high_place(one.high),
            "ratio": None if one.ratio is None else axis.place(one.ratio),
        }
        for one in shown
    ]
    known = [row for row in rows if row["ratio"] is not None]
    last = max(2, points[-1].block)
    x = alt.X(
        "block:Q",
        title="blocks so far",
        scale=plain_scale(0.5, last + 0.5, kind="linear"),
        axis=alt.Axis(tickMinStep=1, tickCount=8, format="d", grid=False),
    )
    color = color_of(place_of(document, comparison.candidate))
    tooltip = [
        alt.Tooltip("block:Q", title="block"),
        *(alt.Tooltip(f"{field}:Q", format="+.4~r") for field in ("ratio", "low", "high")),
    ]
    layers = [
        *axis.landmarks(comparison.min_effect, y),
        drawn_from(_steps(rows))
        .mark_area(color=color, opacity=0.25, aria=False)
        .encode(x=x, y=y, y2="high:Q"),
        drawn_from(rows[-1:])
        .mark_rule(color=color, strokeWidth=4)
        .encode(x=x, y=y, y2="high:Q", tooltip=tooltip),
        drawn_from(known)
        .mark_line(color=color, strokeWidth=2, point={"size": 14, "color": color})
        .encode(x=x, y=alt.Y("ratio:Q"), tooltip=tooltip),
    ]
    notes = []
    if len(points) > MOST_POINTS:
        notes.append(f"Drawn at {len(rows)} of {len(points)} looks.")
    if not known:
        notes.append("The interval is still unlimited: more blocks are needed.")
    return framed(
        layers,
        title=f"{comparison.candidate} against {comparison.baseline}, block by block",
        notes=notes,
        description=(
            f"Ratio of the {name} of {comparison.candidate} to that of {comparison.baseline} "
            f"with its confidence sequence over {len(points)} blocks."
        ),
        height=HEIGHT,
    )


def _steps(rows: Rows) -> Rows:
    """The corners of a band that is as wide as a block around each look."""
    begins = [0.5, *(row["block"] + 0.5 for row in rows[:-1])]
    return [
        {"block": corner, "low": row["low"], "high": row["high"]}
        for begin, row in zip(begins, rows, strict=True)
        for corner in (begin, row["block"] + 0.5)
    ]


def _thinned(points: tuple[SequencePoint, ...]) -> tuple[SequencePoint, ...]:
    """At most about ``MOST_POINTS`` looks, evenly spaced, the last among them."""
    step = -(-len(points) // MOST_POINTS) or 1
    return points[::-1][::step][::-1]
