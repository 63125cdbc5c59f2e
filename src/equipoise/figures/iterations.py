"""The iterations of every trial of one condition, with their change-points."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
from msgspec import Struct

from equipoise.figures.building import Rows, chart_of, frame, place_of, plain_scale
from equipoise.figures.quantity import log_ticks, metric_name, rounded, unit_of
from equipoise.figures.theme import color_of
from equipoise.model.result import ConditionResult, ResultDocument, TrialIterations

HOW_TO_READ = (
    "Each thin line is one trial over its iterations; the thick lines are its levels, and a dot "
    "marks each change of level. A warm-up falls to one level and stays there; lines that keep "
    "stepping up and down have no steady state."
)
HEIGHT = 260
MOST_POINTS = 200
"""Points of each line; a longer series is drawn as medians of stretches."""
MOST_TRIALS = 10
_LOGARITHMIC_FROM = 3.0
"""Ratio of the largest to the smallest value above which the axis is logarithmic."""
_MARGIN = 0.05


class _Series(Struct, frozen=True):
    """Values of one trial, and its shape; ``None`` if it was not classified."""

    block: int
    values: Sequence[float]
    shape: TrialIterations | None


def iterations(
    document: ResultDocument, condition: ConditionResult, metric: str
) -> alt.LayerChart | None:
    """Draw the first ``MOST_TRIALS`` analysed trials; ``None`` without an iteration.

    Parameters
    ----------
    condition
        One of the document's conditions.
    metric
        One of ``condition.iterations``.
    """
    series = _series(document, condition, metric)
    shown = series[:MOST_TRIALS]
    if not shown:
        return None
    values = np.concatenate([one.values for one in shown])
    divisor, unit = unit_of(metric, float(np.median(values)))
    stretch = max(1, -(-max(len(one.values) for one in shown) // MOST_POINTS))
    name = metric_name(metric)
    x = alt.X(
        "iteration:Q",
        title="iteration",
        scale=plain_scale(0.0, 1.0 + max(len(one.values) for one in shown), kind="linear"),
        axis=alt.Axis(tickMinStep=1, tickCount=8, format="d", grid=False),
    )
    y = _vertical(name, unit, values / divisor)
    color = color_of(place_of(document, condition.name))
    levels = _levels(shown, divisor)
    layers = [
        chart_of(_points(shown, stretch, divisor))
        .mark_line(strokeWidth=1, opacity=0.45, color=color, aria=False)
        .encode(x=x, y=y, detail="block:N"),
        chart_of(levels)
        .mark_rule(strokeWidth=2.5, color=color)
        .encode(x=x, x2="end:Q", y=y, tooltip=_tooltip(name, unit)),
        chart_of([row for row in levels if row["iteration"] > 1])
        .mark_point(filled=True, size=40, opacity=1, color=color)
        .encode(x=x, y=y, tooltip=_tooltip(name, unit)),
    ]
    notes = [f"{metric}: {condition.iterations[metric].summary}."]
    if stretch > 1:
        notes.append(f"Each point of a thin line is the median of {stretch} iterations.")
    if len(series) > MOST_TRIALS:
        notes.append(f"The first {MOST_TRIALS} of {len(series)} trials are drawn.")
    return frame(
        layers,
        title=f"Iterations of {condition.name}",
        notes=notes,
        description=(
            f"The {name} of each iteration of {len(shown)} trials of {condition.name}, with "
            f"change-points: {condition.iterations[metric].summary}."
        ),
        height=HEIGHT,
    )


def _series(document: ResultDocument, condition: ConditionResult, metric: str) -> list[_Series]:
    shapes = {one.block: one for one in condition.iterations[metric].trials}
    return [
        _Series(row.block, row.iterations[metric], shapes.get(row.block))
        for row in document.trials
        if row.analysed and row.condition == condition.name and row.iterations.get(metric)
    ]


def _points(shown: Sequence[_Series], stretch: int, divisor: float) -> Rows:
    return [
        {
            "iteration": 1 + begin,
            "value": rounded(float(np.median(one.values[begin : begin + stretch])) / divisor),
            "block": one.block,
        }
        for one in shown
        for begin in range(0, len(one.values), stretch)
    ]


def _levels(shown: Sequence[_Series], divisor: float) -> Rows:
    return [
        {
            "iteration": 1 + stretch.begin,
            "end": stretch.end,
            "value": rounded(stretch.level / divisor),
            "block": one.block,
            "kind": one.shape.kind,
        }
        for one in shown
        if one.shape is not None
        for stretch in one.shape.stretches
    ]


def _tooltip(name: str, unit: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("block:N", title="block"),
        alt.Tooltip("kind:N", title="class of the trial"),
        alt.Tooltip("iteration:Q", title="from iteration"),
        alt.Tooltip("end:Q", title="to iteration"),
        alt.Tooltip("value:Q", title=f"{name}, {unit}" if unit else name, format=".5~r"),
    ]


def _vertical(name: str, unit: str, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> alt.Y:
    """Return an axis over the whole range: a warm-up shows in the first iterations."""
    title = f"{name}, in {unit}" if unit else name
    low, high = float(values.min()), float(values.max())
    if low > 0.0 and high > _LOGARITHMIC_FROM * low:
        factor = (high / low) ** _MARGIN
        return alt.Y(
            "value:Q",
            title=f"{title} (logarithmic scale)",
            scale=plain_scale(low / factor, high * factor, kind="log"),
            axis=alt.Axis(
                values=log_ticks(low / factor, high * factor) or alt.Undefined, format="~r"
            ),
        )
    margin = _MARGIN * (high - low) or abs(high) * _MARGIN or 1.0
    return alt.Y(
        "value:Q",
        title=title,
        scale=plain_scale(low - margin, high + margin, kind="linear"),
        axis=alt.Axis(tickCount=6),
    )
