"""The iterations of every trial of one condition, with their change-points."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
from msgspec import Struct

from equipoise.figures.building import count_axis, place_of
from equipoise.figures.quantity import log_ticks, metric_name, rounded, unit_of
from equipoise.model.iterations import TrialIterations
from equipoise.model.result import ConditionResult, ResultDocument
from equipoise.shared.chart_parts import (
    Rows,
    frame,
    layer,
    linear,
    plain_scale,
    point,
    rule,
    tooltips,
)
from equipoise.shared.theme import color_of

HOW_TO_READ = (
    "Each thin line is one trial over its iterations; the thick lines are its levels, and a dot "
    "marks each change of level. A warm-up falls to one level and stays there; lines that keep "
    "stepping up and down have no steady state."
)
HEIGHT = 260
MAX_POINTS = 200
"""Points of each line; a longer series is drawn as medians of stretches."""
MAX_TRIALS = 10
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
    """Draw the first ``MAX_TRIALS`` analysed trials; ``None`` without an iteration."""
    series = _series(document, condition, metric)
    trials = series[:MAX_TRIALS]
    if not trials:
        return None
    values = np.concatenate([trial.values for trial in trials])
    divisor, unit = unit_of(metric, float(np.median(values)))
    longest = max(len(trial.values) for trial in trials)
    stretch = max(1, -(-longest // MAX_POINTS))
    name = metric_name(metric)
    x = count_axis("iteration", 0.0, 1.0 + longest, "iteration")
    y = _vertical(name, unit, values / divisor)
    color = color_of(place_of(document, condition.name))
    levels = _levels(trials, divisor)
    tooltip = tooltips(
        ("block:N", "block"),
        ("kind:N", "class of the trial"),
        ("iteration:Q", "from iteration"),
        ("end:Q", "to iteration"),
        ("value:Q", f"{name}, {unit}" if unit else name, ".5~r"),
    )
    thin = alt.MarkDef("line", strokeWidth=1, opacity=0.45, color=color, aria=False)
    changes = [row for row in levels if row["iteration"] > 1]
    layers = [
        layer(_points(trials, stretch, divisor), thin, x=x, y=y, detail="block:N"),
        layer(levels, rule(2.5, color=color), x=x, x2="end:Q", y=y, tooltip=tooltip),
        layer(changes, point(40, color=color), x=x, y=y, tooltip=tooltip),
    ]
    notes = [f"{metric}: {condition.iterations[metric].summary}."]
    if stretch > 1:
        notes.append(f"Each point of a thin line is the median of {stretch} iterations.")
    if len(series) > MAX_TRIALS:
        notes.append(f"The first {MAX_TRIALS} of {len(series)} trials are drawn.")
    return frame(
        layers,
        title=f"Iterations of {condition.name}",
        notes=notes,
        description=(
            f"The {name} of each iteration of {len(trials)} trials of {condition.name}, with "
            f"change-points: {condition.iterations[metric].summary}."
        ),
        height=HEIGHT,
    )


def _series(document: ResultDocument, condition: ConditionResult, metric: str) -> list[_Series]:
    shapes = {trial.block: trial for trial in condition.iterations[metric].trials}
    return [
        _Series(row.block, row.iterations[metric], shapes.get(row.block))
        for row in document.trials
        if row.analysed and row.condition == condition.name and row.iterations.get(metric)
    ]


def _points(trials: Sequence[_Series], stretch: int, divisor: float) -> Rows:
    return [
        {
            "iteration": 1 + begin,
            "value": rounded(float(np.median(trial.values[begin : begin + stretch])) / divisor),
            "block": trial.block,
        }
        for trial in trials
        for begin in range(0, len(trial.values), stretch)
    ]


def _levels(trials: Sequence[_Series], divisor: float) -> Rows:
    return [
        {
            "iteration": 1 + stretch.begin,
            "end": stretch.end,
            "value": rounded(stretch.level / divisor),
            "block": trial.block,
            "kind": trial.shape.kind,
        }
        for trial in trials
        if trial.shape is not None
        for stretch in trial.shape.stretches
    ]


def _vertical(name: str, unit: str, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> alt.Y:
    """Return an axis over the whole range: a warm-up shows in the first iterations."""
    title = f"{name}, in {unit}" if unit else name
    low, high = float(values.min()), float(values.max())
    if low > 0.0 and high > _LOGARITHMIC_FROM * low:
        factor = (high / low) ** _MARGIN
        low, high = low / factor, high * factor
        return alt.Y(
            "value:Q",
            title=f"{title} (logarithmic scale)",
            scale=plain_scale(low, high, kind="log"),
            axis=alt.Axis(values=log_ticks(low, high) or alt.Undefined, format="~r"),
        )
    margin = _MARGIN * (high - low) or abs(high) * _MARGIN or 1.0
    return linear(alt.Y, "value", low - margin, high + margin, title=title, tickCount=6)
