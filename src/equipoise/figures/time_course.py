"""Every trial in the order in which it ran, with a running median: drift and disturbances."""

from __future__ import annotations

import math

import altair as alt
import numpy as np

from equipoise.figures.building import (
    Rows,
    chart_of,
    condition_color,
    condition_shape,
    frame,
    quantity_axis,
    quantity_scale,
)
from equipoise.figures.quantity import Quantity, quantity_of
from equipoise.figures.trial_values import (
    EVERY_TRIAL,
    analysed_values,
    known_values,
    primary_metric,
)
from equipoise.model.result import ResultDocument

HOW_TO_READ = (
    "Trials from first to last, with a running median for each condition. Lines that rise "
    "together show a drifting machine, which the order of the trials cancels; lines that part "
    "show a difference that changed. A dashed line marks a change of a condition's state, with "
    "its level before and after. Hollow marks are warm-up or left out."
)
HEIGHT = 280
BINS = 150
WITHIN, BEYOND, TIMED_OUT = "within", "beyond", "timed out"
_WINDOW_SHARE = 10
_MIN_WINDOW = 5
_MOST_LINE_POINTS = 400


def time_course(
    document: ResultDocument, metric: str | None = None, *, every_trial: int = EVERY_TRIAL
) -> alt.LayerChart:
    """Draw every finished trial over the order in which they ran.

    Parameters
    ----------
    metric
        By default that of the first comparison.
    every_trial
        Largest number of trials drawn one by one; bands from smallest to largest replace more.
    """
    metric = metric or primary_metric(document)
    values = analysed_values(document, metric)
    quantity = quantity_of(metric, list(values.values()))
    names = list(values)
    rows = _rows(document, metric, quantity)
    x = alt.X(
        "trial:Q",
        title="trial, in the order in which they ran",
        scale=alt.Scale(domain=[0, len(document.trials) + 1], nice=False),
        axis=alt.Axis(tickMinStep=1, tickCount=8, format="d", grid=False),
    )
    y = alt.Y("value:Q", scale=quantity_scale(quantity), axis=quantity_axis(quantity, 6))
    binned = len(rows) > every_trial
    color = condition_color(names)
    layers = [
        *(_bands(rows, x, y, color) if binned else _points(rows, x, y, names, color, quantity)),
        chart_of(_running_medians(rows, names))
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(x=x, y=y, color=color),
        *_states(document, metric, quantity, x, y, color),
    ]
    return frame(
        layers,
        title=f"Course of the {quantity.name} over the campaign",
        notes=_notes(rows, binned),
        description=(
            f"The {quantity.name} of {len(rows)} trials in the order in which they ran, with a "
            "running median for each condition."
        ),
        height=HEIGHT,
    )


def _rows(document: ResultDocument, metric: str, quantity: Quantity) -> Rows:
    known = {condition.name for condition in document.conditions}
    return [
        {
            "trial": number,
            "value": quantity.clipped(value),
            "condition": row.condition,
            "block": row.block,
            "analysed": row.analysed,
            **_edge(value, quantity),
        }
        for number, row, value in known_values(document, metric)
        if row.condition in known
    ]


def _edge(value: float, quantity: Quantity) -> dict[str, str]:
    """Return the kind of a trial and, beyond the axis, its text and its arrow."""
    if math.isinf(value):
        return {"kind": TIMED_OUT, "what": "timed out", "mark": "▲"}
    if quantity.beyond(value):
        what = f"{quantity.scaled(value):g} {quantity.unit}".strip()
        above = quantity.scaled(value) > quantity.high
        return {"kind": BEYOND, "what": what, "mark": "▲" if above else "▼"}
    return {"kind": WITHIN}


def _points(
    rows: Rows, x: alt.X, y: alt.Y, names: list[str], color: alt.Color, quantity: Quantity
) -> list[alt.Chart]:
    tooltip = [
        alt.Tooltip("condition:N"),
        alt.Tooltip("value:Q", title=quantity.title(), format=".5~r"),
        alt.Tooltip("block:Q"),
    ]
    within = [row for row in rows if row["kind"] == WITHIN]
    edge = [row for row in rows if row["kind"] != WITHIN]
    shape = condition_shape(names)
    size = float(np.clip(8000 / max(len(rows), 1), 8, 34))
    return [
        chart_of([row for row in within if row["analysed"]])
        .mark_point(filled=True, size=size, opacity=0.55, aria=False)
        .encode(x=x, y=y, color=color, shape=shape, tooltip=tooltip),
        chart_of([row for row in within if not row["analysed"]])
        .mark_point(filled=False, size=size + 12, opacity=0.8, aria=False)
        .encode(x=x, y=y, color=color, shape=shape, tooltip=tooltip),
        chart_of(edge)
        .mark_text(fontSize=11, aria=False)
        .encode(
            x=x,
            y=y,
            color=color,
            text="mark:N",
            tooltip=["condition:N", "block:Q", alt.Tooltip("what:N", title=quantity.name)],
        ),
    ]


def _bands(rows: Rows, x: alt.X, y: alt.Y, color: alt.Color) -> list[alt.Chart]:
    grouped: dict[tuple[str, int], list[tuple[int, float]]] = {}
    width = -(-len(rows) // BINS)
    for row in rows:
        key = (row["condition"], row["trial"] // width)
        grouped.setdefault(key, []).append((row["trial"], row["value"]))
    bins: Rows = [
        {
            "condition": name,
            "trial": round(sum(number for number, _ in members) / len(members), 1),
            "value": min(value for _, value in members),
            "most": max(value for _, value in members),
            "trials": len(members),
        }
        for (name, _), members in grouped.items()
    ]
    return [
        chart_of(bins)
        .mark_area(opacity=0.25, aria=False)
        .encode(x=x, y=y, y2="most:Q", color=color)
    ]


def _running_medians(rows: Rows, names: list[str]) -> Rows:
    points: Rows = []
    for name in names:
        own = [row for row in rows if row["condition"] == name and row["analysed"]]
        half = max(_MIN_WINDOW, len(own) // _WINDOW_SHARE) // 2
        if len(own) <= 2 * half:
            continue
        values = np.array([row["value"] for row in own])
        windows = np.lib.stride_tricks.sliding_window_view(values, 2 * half + 1)
        step = -(-len(windows) // _MOST_LINE_POINTS)
        points += [
            {
                "trial": own[half + at]["trial"],
                "value": float(np.median(windows[at])),
                "condition": name,
            }
            for at in range(0, len(windows), step)
        ]
    return points


def _states(
    document: ResultDocument, metric: str, quantity: Quantity, x: alt.X, y: alt.Y, color: alt.Color
) -> list[alt.Chart]:
    """Draw the levels of conditions that had several, and where they changed."""
    levels: Rows = []
    for condition in document.conditions:
        summary = condition.metrics.get(metric)
        states = () if summary is None else summary.states or ()
        numbers = [
            number
            for number, row, value in known_values(document, metric)
            if row.analysed and row.condition == condition.name and math.isfinite(value)
        ]
        if len(states) < 2 or len(numbers) <= states[-1].begin:
            continue
        begins = [numbers[one.begin] for one in states]
        levels += [
            {
                "trial": begin,
                "until": until,
                "value": quantity.clipped(state.level),
                "condition": condition.name,
                "first": begin == begins[0],
            }
            for state, begin, until in zip(states, begins, [*begins[1:], numbers[-1]], strict=True)
        ]
    if not levels:
        return []
    return [
        chart_of(levels)
        .mark_rule(strokeWidth=2, aria=False)
        .encode(x=x, x2="until:Q", y=y, color=color),
        chart_of([row for row in levels if not row["first"]])
        .mark_rule(strokeDash=[4, 3], strokeWidth=1.5)
        .encode(x=x, color=color, tooltip=["condition:N", alt.Tooltip("trial:Q")]),
    ]


def _notes(rows: Rows, binned: bool) -> list[str]:
    notes = []
    if binned:
        notes.append(
            f"{len(rows)} trials are too many to draw each: bands reach from the smallest to the "
            "largest of neighbouring trials."
        )
    for kind, text in (
        (TIMED_OUT, "timed out"),
        (BEYOND, "lie beyond the axis"),
    ):
        count = sum(row["kind"] == kind for row in rows)
        if count:
            shown = "drawn at the edge" if binned else "marked at the edge (▲)"
            notes.append(f"{count} of {len(rows)} trials {text}: {shown}.")
    return notes
