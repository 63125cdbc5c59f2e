"""Distributions side by side: every trial a dot, the density, the median and its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import altair as alt
import numpy as np
from numpy.typing import NDArray

from equipoise.figures.building import (
    Rows,
    chart_of,
    frame,
    plain_scale,
    quantity_axis,
    quantity_scale,
)
from equipoise.figures.density import density
from equipoise.figures.quantity import Quantity, quantity_of, rounded
from equipoise.figures.theme import color_of
from equipoise.figures.trial_values import (
    EVERY_TRIAL,
    analysed_values,
    known_values,
    primary_metric,
)
from equipoise.model.result import ConditionResult, ResultDocument

HOW_TO_READ = (
    "Each dot is one trial, and the hill above shows where trials are dense (all hills have the "
    "same height). The ring is the median, the thick bar its interval. Where there are several "
    "modes, each has a ▾ and its share of the trials. Further left costs less."
)
Floats = NDArray[np.float64]

ROW_HEIGHT = 112
BINS = 80
_HILL = 0.40
_DOTS = 0.34
_GAP = 0.07
_LABEL_AT = 0.5
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def distributions(
    document: ResultDocument, metric: str | None = None, *, every_trial: int = EVERY_TRIAL
) -> alt.LayerChart:
    """Draw the analysed trials of every condition on one axis.

    Parameters
    ----------
    metric
        By default that of the first comparison.
    every_trial
        Largest number of trials drawn as dots; bars of counts replace more.
    """
    metric = metric or primary_metric(document)
    values = analysed_values(document, metric)
    quantity = quantity_of(metric, list(values.values()))
    count = sum(len(group) for group in values.values())
    binned = count > every_trial
    rows = len(values)
    x = alt.X("x:Q", scale=quantity_scale(quantity), axis=quantity_axis(quantity, 8))
    y_scale = plain_scale(0.5 - rows, 0.62, kind="linear")
    y = alt.Y("y:Q", scale=y_scale, axis=None)
    layers = [
        *_hills(values, quantity, x, y),
        *(
            _bars(values, quantity, x, y)
            if binned
            else _dots(document, metric, values, quantity, x, y)
        ),
        *_edges(document, metric, values, quantity, x, y),
        *_medians(document.conditions, metric, quantity, x, y),
        *_modes(document.conditions, metric, quantity, x, y),
        _labels(values, y),
    ]
    return frame(
        layers,
        title=f"Distribution of the {quantity.name}",
        notes=_notes(document, metric, quantity, count, binned),
        description=_description(document, metric, quantity),
        height=ROW_HEIGHT * max(rows, 1),
    )


def _hills(
    values: dict[str, list[float]], quantity: Quantity, x: alt.X, y: alt.Y
) -> list[alt.Chart]:
    charts = []
    for index, group in enumerate(values.values()):
        hill = _density(group, quantity)
        if hill is None:
            continue
        rows: Rows = [
            {
                "x": rounded(math.exp(place) if quantity.logarithmic else place),
                "y": round(_HILL * height - index, 4),
                "base": -index,
            }
            for place, height in zip(*hill, strict=True)
        ]
        charts.append(
            chart_of(rows)
            .mark_area(color=color_of(index), opacity=0.35, line=False, aria=False)
            .encode(x=x, y=y, y2="base:Q")
        )
    return charts


def _dots(
    document: ResultDocument,
    metric: str,
    values: dict[str, list[float]],
    quantity: Quantity,
    x: alt.X,
    y: alt.Y,
) -> list[alt.Chart]:
    rows: dict[str, Rows] = {name: [] for name in values}
    crowding = {name: _crowding(group, quantity) for name, group in values.items()}
    for _, row, value in known_values(document, metric):
        if not row.analysed or row.condition not in rows or not math.isfinite(value):
            continue
        if quantity.beyond(value):
            continue
        own = rows[row.condition]
        # Golden-ratio steps spread neighbours in time evenly, without a random source.
        spread = (len(own) * _GOLDEN) % 1.0 * crowding[row.condition](value)
        index = list(values).index(row.condition)
        own.append(
            {
                "x": quantity.shown(value),
                "y": round(-index - _GAP - _DOTS * spread, 3),
                "block": row.block,
            }
        )
    return [
        chart_of(own)
        .mark_circle(
            color=color_of(index), size=_dot_size(len(own)), opacity=0.7, clip=True, aria=False
        )
        .encode(
            x=x,
            y=y,
            tooltip=[
                alt.Tooltip("x:Q", title=quantity.title(), format=".5~r"),
                alt.Tooltip("block:Q", title="block"),
            ],
        )
        for index, own in enumerate(rows.values())
        if own
    ]


def _crowding(group: list[float], quantity: Quantity) -> Callable[[float], float]:
    """Return a function that gives the density of trials around a value, from 0 to 1."""
    hill = _density(group, quantity)
    if hill is None:
        return lambda value: 0.6
    return lambda value: float(np.interp(quantity.place(quantity.shown(value)), *hill))


def _density(group: list[float], quantity: Quantity) -> tuple[Floats, Floats] | None:
    """Return the density of a group of values over the drawn range."""
    places = np.array([quantity.place(quantity.clipped(value)) for value in group])
    return density(places, quantity.place(quantity.low), quantity.place(quantity.high))


def _dot_size(count: int) -> float:
    return float(np.clip(6000 / max(count, 1), 8, 36))


def _bars(
    values: dict[str, list[float]], quantity: Quantity, x: alt.X, y: alt.Y
) -> list[alt.Chart]:
    low, high = quantity.place(quantity.low), quantity.place(quantity.high)
    charts = []
    for index, group in enumerate(values.values()):
        places = [quantity.place(quantity.shown(v)) for v in group if not quantity.beyond(v)]
        counts, edges = np.histogram(places, bins=BINS, range=(low, high))
        back = np.exp(edges) if quantity.logarithmic else edges
        rows: Rows = [
            {
                "x": rounded(float(back[bin_])),
                "until": rounded(float(back[bin_ + 1])),
                "y": -index - _GAP,
                "base": round(-index - _GAP - _DOTS * int(counts[bin_]) / int(counts.max()), 4),
                "trials": int(counts[bin_]),
            }
            for bin_ in np.flatnonzero(counts)
        ]
        charts.append(
            chart_of(rows)
            .mark_rect(color=color_of(index), opacity=0.8, aria=False)
            .encode(x=x, x2="until:Q", y=y, y2="base:Q", tooltip=["trials:Q"])
        )
    return charts


def _edges(
    document: ResultDocument,
    metric: str,
    values: dict[str, list[float]],
    quantity: Quantity,
    x: alt.X,
    y: alt.Y,
) -> list[alt.Chart]:
    """Draw trials that lie beyond the axis or timed out as arrows at its edge."""
    numbers: dict[tuple[int, bool, str], int] = {}
    for _, row, value in known_values(document, metric):
        if not row.analysed or row.condition not in values or not quantity.beyond(value):
            continue
        kind = "timed out" if math.isinf(value) else "beyond"
        key = (list(values).index(row.condition), quantity.shown(value) > quantity.high, kind)
        numbers[key] = numbers.get(key, 0) + 1
    charts = []
    for (index, right, kind), number in numbers.items():
        lift = _HILL * (0.5 if kind == "timed out" else 0.15)
        rows: Rows = [
            {
                "x": quantity.high if right else quantity.low,
                "y": -index + lift,
                "words": f"{number} {kind} ▸" if right else f"◂ {number} {kind}",
            }
        ]
        charts.append(
            chart_of(rows)
            .mark_text(style="label", align="right" if right else "left", fontSize=12)
            .encode(x=x, y=y, text="words:N")
        )
    return charts


def _medians(
    conditions: tuple[ConditionResult, ...], metric: str, quantity: Quantity, x: alt.X, y: alt.Y
) -> list[alt.Chart]:
    points: Rows = []
    bars: Rows = []
    for index, condition in enumerate(conditions):
        summary = condition.metrics.get(metric)
        if summary is None or not math.isfinite(summary.median):
            continue
        points.append({"x": quantity.clipped(summary.median), "y": -index})
        low, high = summary.median_ci
        if low is None and high is None:
            continue
        bars.append(
            {
                "x": quantity.low if low is None else quantity.clipped(low),
                "until": quantity.high if high is None else quantity.clipped(high),
                "y": -index,
            }
        )
    if not points:
        return []
    return [
        chart_of(bars).mark_rule(style="median-interval").encode(x=x, x2="until:Q", y=y),
        chart_of(points)
        .mark_point(style="median", filled=True, size=60, opacity=1)
        .encode(x=x, y=y, tooltip=[alt.Tooltip("x:Q", title="median", format=".5~r")]),
    ]


def _modes(
    conditions: Sequence[ConditionResult], metric: str, quantity: Quantity, x: alt.X, y: alt.Y
) -> list[alt.Chart]:
    """Draw the position and the share of each mode, where there are several."""
    summaries = [condition.metrics.get(metric) for condition in conditions]
    rows: Rows = [
        {
            "x": quantity.clipped(mode.at),
            "y": _HILL - index,
            "words": f"{mode.share:.0%} ▾" if place == 0 else f"▾ {mode.share:.0%}",
            "first": place == 0,
        }
        for index, summary in enumerate(summaries)
        if summary is not None and len(summary.modes) > 1
        for place, mode in enumerate(summary.modes)
    ]
    # The lowest mode has its share to the left, so that near modes leave room for each other.
    return [
        chart_of(side)
        .mark_text(
            style="label",
            fontSize=11,
            dy=-6,
            dx=5 if left else -5,
            align="right" if left else "left",
            aria=False,
        )
        .encode(x=x, y=y, text="words:N")
        for left in (True, False)
        if (side := [row for row in rows if row["first"] is left])
    ]


def _labels(values: dict[str, list[float]], y: alt.Y) -> alt.Chart:
    rows: Rows = [
        {
            "y": _LABEL_AT - index,
            "words": name if group else f"{name} (no trial to show)",
        }
        for index, (name, group) in enumerate(values.items())
    ]
    chart: alt.Chart = (
        chart_of(rows)
        .mark_text(style="label", align="left", limit=alt.ExprRef("width - 8"))
        .encode(x=alt.value(4), y=y, text="words:N")
    )
    return chart


def _notes(
    document: ResultDocument, metric: str, quantity: Quantity, count: int, binned: bool
) -> list[str]:
    lines = []
    if binned:
        lines.append(f"{count} trials are too many for a dot each: bars show their counts.")
    unknown = sum(row.analysed for row in document.trials) - sum(
        row.analysed for _, row, _ in known_values(document, metric)
    )
    if unknown:
        lines.append(f"{unknown} analysed trials have no known {quantity.name}.")
    if quantity.logarithmic:
        lines.append("The axis is logarithmic: the conditions lie far apart.")
    return lines


def _description(document: ResultDocument, metric: str, quantity: Quantity) -> str:
    parts = []
    for condition in document.conditions:
        summary = condition.metrics.get(metric)
        if summary is not None and math.isfinite(summary.median):
            shown = f"median {quantity.shown(summary.median):g} {quantity.unit}"
            parts.append(f"{condition.name}: {shown.strip()}, {condition.trials} trials")
    return f"Distribution of the {quantity.name} by condition. " + "; ".join(parts)
