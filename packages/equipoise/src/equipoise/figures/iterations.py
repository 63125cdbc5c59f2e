"""Chart of the iterations within trials. A level is the mean of a stretch of equal iterations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt
import numpy as np
from msgspec import Struct

from equipoise.figures.building import condition_index, count_axis
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
"""Maximum number of points of a line; with more iterations, a point is a median of several."""
MAX_TRIALS = 10
_MAX_LINEAR_RATIO = 3.0
"""Maximum ratio of the largest to the smallest value on a linear axis."""
_MARGIN_SHARE = 0.05
"""Empty space at each end of an axis, as a share of the drawn range."""


class _Trial(Struct, frozen=True):
    block: int
    values: Sequence[float]
    """Value of each iteration."""
    shape: TrialIterations | None
    """Levels of the iterations; ``None`` if they could not be classified."""


def iterations(
    result: ResultDocument, condition: ConditionResult, metric: str
) -> alt.LayerChart | None:
    """Draw the first `MAX_TRIALS` analysed trials; ``None`` if no trial reports iterations."""
    all_trials = _reported_trials(result, condition, metric)
    trials = all_trials[:MAX_TRIALS]
    if not trials:
        return None
    values = np.concatenate([trial.values for trial in trials])
    divisor, unit = unit_of(metric, float(np.median(values)))
    max_length = max(len(trial.values) for trial in trials)
    group_size = max(1, math.ceil(max_length / MAX_POINTS))
    name = metric_name(metric)
    x = count_axis("iteration", 0.0, 1.0 + max_length, "iteration")
    y = _value_axis(name, unit, values / divisor)
    color = color_of(condition_index(result, condition.name))
    level_rows = _level_rows(trials, divisor)
    tooltip = tooltips(
        ("block:N", "block"),
        ("kind:N", "class of the trial"),
        ("iteration:Q", "from iteration"),
        ("end:Q", "to iteration"),
        ("value:Q", f"{name}, {unit}" if unit else name, ".5~r"),
    )
    thin_line = alt.MarkDef("line", strokeWidth=1, opacity=0.45, color=color, aria=False)
    change_rows = [row for row in level_rows if row["iteration"] > 1]
    layers = [
        layer(_point_rows(trials, group_size, divisor), thin_line, x=x, y=y, detail="block:N"),
        layer(level_rows, rule(2.5, color=color), x=x, x2="end:Q", y=y, tooltip=tooltip),
        layer(change_rows, point(40, color=color), x=x, y=y, tooltip=tooltip),
    ]
    notes = [f"{metric}: {condition.iterations[metric].summary}."]
    if group_size > 1:
        notes.append(f"Each point of a thin line is the median of {group_size} iterations.")
    if len(all_trials) > MAX_TRIALS:
        notes.append(f"The first {MAX_TRIALS} of {len(all_trials)} trials are drawn.")
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


def _reported_trials(
    result: ResultDocument, condition: ConditionResult, metric: str
) -> list[_Trial]:
    shapes = {trial.block: trial for trial in condition.iterations[metric].trials}
    return [
        _Trial(row.block, row.iterations[metric], shapes.get(row.block))
        for row in result.trials
        if row.analysed and row.condition == condition.name and row.iterations.get(metric)
    ]


def _point_rows(trials: Sequence[_Trial], group_size: int, divisor: float) -> Rows:
    """Return a row for each point of the thin lines: the median of ``group_size`` values."""
    return [
        {
            "iteration": 1 + start,
            "value": rounded(float(np.median(trial.values[start : start + group_size])) / divisor),
            "block": trial.block,
        }
        for trial in trials
        for start in range(0, len(trial.values), group_size)
    ]


def _level_rows(trials: Sequence[_Trial], divisor: float) -> Rows:
    return [
        {
            "iteration": 1 + stretch.begin,
            "end": stretch.end,
            "value": rounded(stretch.mean / divisor),
            "block": trial.block,
            "kind": trial.shape.kind,
        }
        for trial in trials
        if trial.shape is not None
        for stretch in trial.shape.stretches
    ]


def _value_axis(
    name: str, unit: str, values: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> alt.Y:
    """Return an axis over all values, also outliers, because outliers may show a warm-up."""
    title = f"{name}, in {unit}" if unit else name
    low, high = float(values.min()), float(values.max())
    if low > 0.0 and high > _MAX_LINEAR_RATIO * low:
        factor = (high / low) ** _MARGIN_SHARE
        low, high = low / factor, high * factor
        return alt.Y(
            "value:Q",
            title=f"{title} (logarithmic scale)",
            scale=plain_scale(low, high, kind="log"),
            axis=alt.Axis(values=log_ticks(low, high) or alt.Undefined, format="~r"),
        )
    margin = _MARGIN_SHARE * (high - low) or abs(high) * _MARGIN_SHARE or 1.0
    return linear(alt.Y, "value", low - margin, high + margin, title=title, tickCount=6)
