"""Operating system primitives: every process of every row."""

from __future__ import annotations

import statistics

import altair as alt
from msgspec.structs import replace

from equipoise.figures.building import (
    Rows,
    chart_of,
    color_and_shape,
    frame,
    quantity_scale,
    top_legend,
)
from equipoise.figures.quantity import Quantity, quantity_of, unit_of
from equipoise.figures.trial_values import analysed_values
from equipoise.model.primitives import CLASS, LATENCY, PLACEMENT, PRIMITIVE_METRICS
from equipoise.model.result import ResultDocument

HOW_TO_READ = (
    "Each dot is one process, the median of its batches; the line marks the median of the "
    "processes. On the logarithmic axis equal distances are equal ratios. Where two processes talk "
    "to each other, colour and shape show whether they ran on one CPU or on two."
)
PLACEMENTS = {"none": "one side", "same_cpu": "same CPU", "across_cpus": "across CPUs"}
_LABEL = (
    "datum.value >= 1000 ? format(datum.value / 1000, '~r') + ' ms' : "
    "datum.value >= 1 ? format(datum.value, '~r') + ' µs' : "
    "format(datum.value * 1000, '~r') + ' ns'"
)
"""Expression that labels each tick in the unit in which it reads well."""
ROW_HEIGHT = 17
HEAD_HEIGHT = 70


def are_primitives(document: ResultDocument) -> bool:
    """Return whether the document's conditions are probes that are not compared."""
    if document.comparisons or document.imported is not None or not document.conditions:
        return False
    return all(
        any(metric in one.metrics or metric in one.unknown for metric in PRIMITIVE_METRICS)
        for one in document.conditions
    )


def primitives(document: ResultDocument, metric: str) -> alt.LayerChart | None:
    """Draw every row that reports this metric; ``None`` where none does."""
    values = {name: own for name, own in analysed_values(document, metric).items() if own}
    if not values:
        return None
    quantity = _quantity(metric, values)
    y = alt.Y(
        "row:N",
        sort=list(values),
        title=None,
        axis=alt.Axis(labelLimit=240, labelOverlap=False, grid=True),
    )
    axis = alt.Axis(
        title=None,
        # A reader starts a long figure at its top.
        orient="top",
        values=quantity.ticks() or alt.Undefined,
        labelExpr=_LABEL if quantity.unit == "µs" else alt.Undefined,
    )
    x = alt.X("value:Q", scale=quantity_scale(quantity), axis=axis)
    placements = list(PLACEMENTS.values())
    legend = top_legend(columns=1)
    rows = _rows(document, values, quantity)
    shown = [one for one in placements if any(row["placement"] == one for row in rows)]
    places = [placements.index(one) for one in shown]
    color, shape = color_and_shape("placement", shown, places, legend if len(shown) > 1 else None)
    tooltip = [
        alt.Tooltip("class:N"),
        alt.Tooltip("row:N"),
        alt.Tooltip("placement:N"),
        alt.Tooltip("value:Q", title=quantity.unit or metric, format=".4~r"),
    ]
    medians = [
        {"row": name, "value": quantity.scaled(_median(document, name, metric))} for name in values
    ]
    name = "Time of one operation" if metric == LATENCY else "Bytes in a second"
    unit = "" if quantity.unit == "µs" else f"{quantity.unit}, "
    scale = f"{unit}{'logarithmic' if quantity.logarithmic else 'linear'} scale"
    return frame(
        [
            chart_of(rows)
            .mark_point(filled=True, size=28, opacity=0.55)
            .encode(x=x, y=y, color=color, shape=shape, tooltip=tooltip),
            chart_of(medians)
            .mark_tick(thickness=2, size=ROW_HEIGHT - 4, style="median-interval")
            .encode(x=x, y=y),
        ],
        title=f"{name} ({scale})",
        notes=[],
        description=f"{name}: {len(values)} primitives, a dot for each process, and the medians.",
        height=HEAD_HEIGHT + ROW_HEIGHT * len(values),
    )


def _quantity(metric: str, values: dict[str, list[float]]) -> Quantity:
    """Return the quantity in the unit of the middle row, with a range that holds every process."""
    medians = [statistics.median(own) for own in values.values()]
    divisor, unit = unit_of(metric, statistics.median(medians))
    quantity = quantity_of(metric, list(values.values()))
    rescaled = quantity.divisor / divisor
    quantity = replace(
        quantity,
        divisor=divisor,
        unit=unit,
        low=quantity.low * rescaled,
        high=quantity.high * rescaled,
    )
    shown = [quantity.scaled(value) for own in values.values() for value in own]
    return replace(
        quantity, low=min(quantity.low, *shown) * 0.95, high=max(quantity.high, *shown) * 1.05
    )


def _median(document: ResultDocument, name: str, metric: str) -> float:
    return next(one.metrics[metric].median for one in document.conditions if one.name == name)


def _rows(document: ResultDocument, values: dict[str, list[float]], quantity: Quantity) -> Rows:
    levels = {one.name: one.levels for one in document.conditions}
    return [
        {
            "row": name,
            "class": levels[name].get(CLASS, "").replace("_", " "),
            "placement": PLACEMENTS.get(levels[name].get(PLACEMENT, "none"), PLACEMENTS["none"]),
            "value": quantity.scaled(value),
        }
        for name, own in values.items()
        for value in own
    ]
