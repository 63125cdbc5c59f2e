"""Chart of operating system primitives: every process of every row."""

from __future__ import annotations

import statistics

import altair as alt
from msgspec.structs import replace

from equipoise.figures.building import quantity_scale
from equipoise.figures.quantity import DrawnQuantity, drawn_quantity
from equipoise.figures.values import LATENCY_METRIC, analysed_values
from equipoise.model.result import ResultDocument
from equipoise.shared.chart_parts import (
    Rows,
    color_and_shape,
    frame,
    layer,
    point,
    tooltips,
    top_legend,
)
from equipoise_studies.primitives.rows import CLASS, PLACEMENT

HOW_TO_READ = (
    "Each dot is one process, the median of its batches; the line marks the median of the "
    "processes. On the logarithmic axis equal distances are equal ratios. If two processes "
    "communicate, colour and shape show whether they ran on one CPU or on two."
)
PLACEMENTS = {"none": "one side", "same_cpu": "same CPU", "across_cpus": "across CPUs"}
"""Placements with their names in the legend."""
_TICK_LABEL = (
    "datum.value >= 1000 ? format(datum.value / 1000, '~r') + ' ms' : "
    "datum.value >= 1 ? format(datum.value, '~r') + ' µs' : "
    "format(datum.value * 1000, '~r') + ' ns'"
)
"""Expression that labels each tick in a suitable unit."""
ROW_HEIGHT = 17
"""Height of a row, in pixels."""
HEAD_HEIGHT = 70
"""Height of the axis and the legend above the rows, in pixels."""


def primitives(document: ResultDocument, metric: str) -> alt.LayerChart | None:
    """Draw every row that reports this metric; ``None`` if no row does."""
    values = {name: group for name, group in analysed_values(document, metric).items() if group}
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
        # A long chart is read from its top, so the axis is there.
        orient="top",
        values=quantity.ticks() or alt.Undefined,
        labelExpr=_TICK_LABEL if quantity.unit == "µs" else alt.Undefined,
    )
    x = alt.X("value:Q", scale=quantity_scale(quantity), axis=axis)
    rows = _rows(document, values, quantity)
    placements = list(PLACEMENTS.values())
    indices = sorted({placements.index(row["placement"]) for row in rows})
    legend = top_legend(columns=1) if len(indices) > 1 else None
    placement_names = [placements[index] for index in indices]
    color, shape = color_and_shape("placement", placement_names, indices, legend)
    tooltip = tooltips(
        ("class:N",), ("row:N",), ("placement:N",), ("value:Q", quantity.unit or metric, ".4~r")
    )
    medians = [
        {"row": condition.name, "value": quantity.scaled(condition.metrics[metric].median)}
        for condition in document.conditions
        if condition.name in values
    ]
    name = "Time of one operation" if metric == LATENCY_METRIC else "Bytes in a second"
    unit = "" if quantity.unit == "µs" else f"{quantity.unit}, "
    scale = f"{unit}{'logarithmic' if quantity.is_logarithmic else 'linear'} scale"
    dots = point(size=28, opacity=0.55)
    tick = alt.MarkDef("tick", thickness=2, size=ROW_HEIGHT - 4, style="median-interval")
    return frame(
        [
            layer(rows, dots, x=x, y=y, color=color, shape=shape, tooltip=tooltip),
            layer(medians, tick, x=x, y=y),
        ],
        title=f"{name} ({scale})",
        description=f"{name}: {len(values)} primitives, a dot for each process, and the medians.",
        height=HEAD_HEIGHT + ROW_HEIGHT * len(values),
    )


def _quantity(metric: str, values: dict[str, list[float]]) -> DrawnQuantity:
    """Return the values in the unit of the middle row, and the range of all processes."""
    groups = list(values.values())
    quantity = drawn_quantity(metric, groups, statistics.median(map(statistics.median, groups)))
    scaled = [quantity.scaled(value) for group in groups for value in group]
    return replace(
        quantity, low=min(quantity.low, *scaled) * 0.95, high=max(quantity.high, *scaled) * 1.05
    )


def _rows(
    document: ResultDocument, values: dict[str, list[float]], quantity: DrawnQuantity
) -> Rows:
    levels = {condition.name: condition.levels for condition in document.conditions}
    return [
        {
            "row": name,
            "class": levels[name].get(CLASS, "").replace("_", " "),
            "placement": PLACEMENTS.get(levels[name].get(PLACEMENT, "none"), PLACEMENTS["none"]),
            "value": quantity.scaled(value),
        }
        for name, group in values.items()
        for value in group
    ]
