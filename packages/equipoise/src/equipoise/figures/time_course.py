"""Chart of all trials in the order in which they ran, which shows drift and disturbances."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from equipoise.figures.building import (
    condition_color,
    condition_shape,
    count_axis,
    quantity_axis,
    quantity_scale,
)
from equipoise.figures.quantity import DrawnQuantity, drawn_quantity
from equipoise.figures.values import MAX_DOTS, analysed_values, primary_metric, trials_with_values
from equipoise.model.result import ResultDocument
from equipoise.shared.chart_parts import Rows, frame, layer, rule, tooltips

HOW_TO_READ = (
    "Trials from first to last, with a running median for each condition. Lines that rise "
    "together show a drifting machine, which the order of the trials cancels; lines that part "
    "show a difference that changed. A dashed line marks a change of a condition's state, with "
    "its level before and after. Hollow marks are warm-up or left out."
)
HEIGHT = 280
BIN_COUNT = 150
"""Number of bins of trials if bands replace the dots."""
ON_AXIS, BEYOND_AXIS, TIMED_OUT = "within", "beyond", "timed out"
"""Kinds of trials: on the axis, beyond the axis, or timed out."""
_WINDOW_COUNT = 10
"""Number of windows of the running median that together hold all trials of a condition."""
_MIN_WINDOW_TRIALS = 5
"""Minimum number of trials in the window of the running median."""
_MAX_LINE_POINTS = 400
"""Maximum number of points of a running median."""


def time_course(result: ResultDocument, *, max_dots: int = MAX_DOTS) -> alt.LayerChart:
    """Draw every finished trial in the order in which the trials ran.

    With more than ``max_dots`` trials, bands from minimum to maximum replace the dots.
    """
    metric = primary_metric(result)
    values = analysed_values(result, metric)
    quantity = drawn_quantity(metric, list(values.values()))
    names = list(values)
    rows = _rows(result, metric, quantity)
    axes = {
        "x": count_axis(
            "trial", 0, len(result.trials) + 1, "trial, in the order in which they ran"
        ),
        "y": alt.Y("value:Q", scale=quantity_scale(quantity), axis=quantity_axis(quantity, 6)),
        "color": condition_color(names),
    }
    is_binned = len(rows) > max_dots
    line = alt.MarkDef("line", strokeWidth=2.5, clip=True)
    layers = [
        *(_bands(rows, axes) if is_binned else _points(rows, axes, names, quantity)),
        layer(_running_medians(rows, names), line, **axes),
        *_state_marks(result, metric, quantity, axes),
    ]
    return frame(
        layers,
        title=f"Course of the {quantity.name} over the campaign",
        notes=_notes(rows, is_binned),
        description=(
            f"The {quantity.name} of {len(rows)} trials in the order in which they ran, with a "
            "running median for each condition."
        ),
        height=HEIGHT,
    )


def _rows(result: ResultDocument, metric: str, quantity: DrawnQuantity) -> Rows:
    """Return a row for each finished trial; an outlier is drawn at the edge of the axis."""
    names = {condition.name for condition in result.conditions}
    return [
        {
            "trial": trial_number,
            "value": quantity.clipped(value),
            "condition": row.condition,
            "block": row.block,
            "analysed": row.analysed,
            **_edge_fields(value, quantity),
        }
        for trial_number, row, value in trials_with_values(result, metric)
        if row.condition in names
    ]


def _edge_fields(value: float, quantity: DrawnQuantity) -> dict[str, str]:
    """Return the kind of a trial; if its value is not on the axis, also a text and an arrow."""
    if math.isinf(value):
        return {"kind": TIMED_OUT, "what": "timed out", "mark": "▲"}
    if quantity.is_beyond(value):
        value_text = f"{quantity.scaled(value):g} {quantity.unit}".strip()
        is_above = quantity.scaled(value) > quantity.high
        return {"kind": BEYOND_AXIS, "what": value_text, "mark": "▲" if is_above else "▼"}
    return {"kind": ON_AXIS}


def _points(
    rows: Rows, axes: Mapping[str, Any], names: list[str], quantity: DrawnQuantity
) -> list[alt.Chart]:
    tooltip = tooltips(
        ("condition:N",), ("value:Q", quantity.title(), ".5~r"), ("block:Q", "block")
    )
    on_axis = [row for row in rows if row["kind"] == ON_AXIS]
    at_edge = [row for row in rows if row["kind"] != ON_AXIS]
    shape = condition_shape(names)
    size = float(np.clip(8000 / max(len(rows), 1), 8, 34))
    analysed = alt.MarkDef("point", filled=True, size=size, opacity=0.55, aria=False)
    hollow = alt.MarkDef("point", filled=False, size=size + 12, opacity=0.8, aria=False)
    return [
        *(
            layer(
                [row for row in on_axis if row["analysed"] is is_analysed],
                mark,
                shape=shape,
                tooltip=tooltip,
                **axes,
            )
            for is_analysed, mark in ((True, analysed), (False, hollow))
        ),
        layer(
            at_edge,
            alt.MarkDef("text", fontSize=11, aria=False),
            text="mark:N",
            tooltip=tooltips(("condition:N",), ("block:Q",), ("what:N", quantity.name)),
            **axes,
        ),
    ]


def _bands(rows: Rows, axes: Mapping[str, Any]) -> list[alt.Chart]:
    """Draw a band for each condition, from the minimum to the maximum of neighbouring trials."""
    trials_per_bin = math.ceil(len(rows) / BIN_COUNT)
    groups: dict[tuple[str, int], Rows] = {}
    for row in rows:
        groups.setdefault((row["condition"], row["trial"] // trials_per_bin), []).append(row)
    bins: Rows = [
        {
            "condition": name,
            "trial": round(sum(row["trial"] for row in members) / len(members), 1),
            "value": min(row["value"] for row in members),
            "most": max(row["value"] for row in members),
            "trials": len(members),
        }
        for (name, _), members in groups.items()
    ]
    return [layer(bins, alt.MarkDef("area", opacity=0.25, aria=False), y2="most:Q", **axes)]


def _running_medians(rows: Rows, names: list[str]) -> Rows:
    points: Rows = []
    for name in names:
        trials = [row for row in rows if row["condition"] == name and row["analysed"]]
        half_width = max(_MIN_WINDOW_TRIALS, len(trials) // _WINDOW_COUNT) // 2
        if len(trials) <= 2 * half_width:
            continue
        values = np.array([row["value"] for row in trials])
        windows = np.lib.stride_tricks.sliding_window_view(values, 2 * half_width + 1)
        stride = math.ceil(len(windows) / _MAX_LINE_POINTS)
        medians = np.median(windows[::stride], axis=1).tolist()
        centres = trials[half_width : half_width + len(windows) : stride]
        points += [
            {"trial": row["trial"], "value": median, "condition": name}
            for row, median in zip(centres, medians, strict=True)
        ]
    return points


def _state_marks(
    result: ResultDocument, metric: str, quantity: DrawnQuantity, axes: Mapping[str, Any]
) -> list[alt.Chart]:
    """Draw the level of each state, and a dashed line at each change of state."""
    state_rows: Rows = []
    for condition in result.conditions:
        summary = condition.metrics.get(metric)
        states = () if summary is None else summary.states or ()
        trial_numbers = [
            number
            for number, row, value in trials_with_values(result, metric)
            if row.analysed and row.condition == condition.name and math.isfinite(value)
        ]
        if len(states) < 2 or len(trial_numbers) <= states[-1].first_trial:
            continue
        starts = [trial_numbers[state.first_trial] for state in states]
        ends = [*starts[1:], trial_numbers[-1]]
        state_rows += [
            {
                "trial": start,
                "until": until,
                "value": quantity.clipped(state.mean),
                "condition": condition.name,
                "first": start == starts[0],
            }
            for state, start, until in zip(states, starts, ends, strict=True)
        ]
    if not state_rows:
        return []
    changes = [row for row in state_rows if not row["first"]]
    dashed_line = rule(1.5, strokeDash=[4, 3])
    tooltip = tooltips(("condition:N",), ("trial:Q",))
    return [
        layer(state_rows, rule(2, aria=False), x2="until:Q", **axes),
        layer(changes, dashed_line, x=axes["x"], color=axes["color"], tooltip=tooltip),
    ]


def _notes(rows: Rows, is_binned: bool) -> list[str]:
    notes = []
    edge_phrase = "marked at the edge (▲)"
    if is_binned:
        edge_phrase = "drawn at the edge"
        notes.append(
            f"{len(rows)} trials are too many to draw each: bands reach from the smallest to the "
            "largest of neighbouring trials."
        )
    counts = Counter(row["kind"] for row in rows)
    for kind, event in ((TIMED_OUT, "timed out"), (BEYOND_AXIS, "lie beyond the axis")):
        if counts[kind]:
            notes.append(f"{counts[kind]} of {len(rows)} trials {event}: {edge_phrase}.")
    return notes
