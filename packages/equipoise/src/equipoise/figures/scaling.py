"""Charts of the cost by size: on logarithmic axes, and divided by a simple law such as N log N.

A size is a level of a factor, if all levels are numbers. Conditions that differ only in this factor
share a line, and each line has its own fitted law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from equipoise.figures.building import (
    interval_bars,
    lines_and_points,
    log_x_axis,
    log_y_axis,
    positive_ends,
)
from equipoise.figures.quantity import log_ticks, metric_name, rounded, unit_of
from equipoise.figures.values import (
    SizeCost,
    costs_by_size,
    law_sentence,
    numeric_factors,
    other_levels,
    primary_metric,
    scaling_laws,
)
from equipoise.model.errors import UnusableInput
from equipoise.model.result import ResultDocument
from equipoise.shared.chart_parts import Rows, frame, layer, rule, tooltips
from equipoise.stats.scaling import SIMPLE_EXPONENTS, ScalingLaw, describe_law

HOW_TO_READ_SCALING = (
    "Both axes are logarithmic: a straight line is a power law and its slope the exponent; "
    "parallel lines differ by a constant factor. The fitted exponents are given "
    "with their intervals."
)
HOW_TO_READ_NORMALISED = (
    "Each cost is divided by the same law of the size and by the first line's cost at its "
    "smallest size: a level line grows as that law does, a rising one faster, and a line at 2 "
    "costs twice as much as the first did. Bars are the medians' intervals."
)
MAX_LAWS = 4
"""Maximum number of fitted laws in the notes; a table of the page has all laws."""
_MAX_LABELS = 8
"""Maximum number of sizes with a label each; with more sizes, round numbers have labels."""
_MAX_LINEAR_RATIO = 4.0
"""Maximum ratio of the largest to the smallest value on a linear axis."""
_COST_FIELDS = ("value", "low", "high")
"""Fields of a row that are costs."""


def size_scaling(result: ResultDocument, factor: str) -> alt.LayerChart:
    """Draw the median of each condition, with an interval, over the levels of one factor.

    Raise `UnusableInput` if fewer than two measured levels of the factor are positive numbers.
    """
    metric = primary_metric(result)
    factors = numeric_factors(result, metric)
    if factor not in factors:
        raise UnusableInput(
            f"the factor {factor} has fewer than two measured levels that are positive numbers",
            hint=f"draw one of these factors: {', '.join(factors)}"
            if factors
            else "run a study with a factor whose levels are sizes",
        )
    measured = costs_by_size(result, factor, metric)
    divisor, unit = unit_of(metric, max(summary.median for _, _, summary in measured))
    rows = [_row(size_cost, factor, divisor) for size_cost in measured]
    name, ends = metric_name(metric), positive_ends(rows)
    laws = scaling_laws(result, factor, metric)
    notes = [f"{line}: {law_sentence(law)}" for line, law in list(laws.items())[:MAX_LAWS]]
    if len(laws) > MAX_LAWS:
        notes.append(f"and {len(laws) - MAX_LAWS} more lines")
    return frame(
        _lines(
            rows,
            factor,
            log_y_axis(f"{name}, in {unit}" if unit else name, min(ends) / 2, 2 * max(ends)),
        ),
        title=f"{name.capitalize()} by {factor}",
        notes=notes,
        description=f"Median {name} by {factor}, both on logarithmic scales, with intervals.",
        height=300,
    )


def size_normalised(result: ResultDocument, factor: str) -> alt.LayerChart | None:
    """Draw the median of each condition, divided by a simple law of one factor.

    It is the simple law that is nearest to the fitted law of the first line. Return ``None`` if no
    line has a law.
    """
    metric = primary_metric(result)
    laws = scaling_laws(result, factor, metric)
    if not laws:
        return None
    exponent, log_power = _nearest_simple_law(next(iter(laws.values())))
    # A law may have the factor log(size), which is 0 at the size 1.
    measured = [
        (size, condition, summary)
        for size, condition, summary in costs_by_size(result, factor, metric)
        if size > 1
    ]

    def simple_law(size: float) -> float:
        return float(size**exponent * math.log(size) ** log_power)

    _, first_condition, _ = measured[0]
    first_line = other_levels(first_condition, factor)
    sizes_and_medians = (
        (size, summary.median)
        for size, condition, summary in measured
        if other_levels(condition, factor) == first_line
    )
    min_size, median = min(sizes_and_medians, key=lambda pair: pair[0])
    unit_cost = median / simple_law(min_size)
    rows = [_row(size_cost, factor, unit_cost * simple_law(size_cost[0])) for size_cost in measured]
    rows = [
        {key: rounded(value) if key in _COST_FIELDS else value for key, value in row.items()}
        for row in rows
    ]
    law_text, name = describe_law(exponent, log_power), metric_name(metric)
    subject = name if law_text == "constant" else f"{name} over {law_text.replace('N', factor)}"
    y = _normalised_y(f"{subject}, the first is 1", positive_ends(rows))
    reference_line = layer([{"value": 1.0}], rule(style="reference", aria=False), y=y)
    return frame(
        [reference_line, *_lines(rows, factor, y)],
        title=f"{name.capitalize()} by {factor}, normalised",
        description=f"Median {subject}, by {factor}, with intervals.",
        height=260,
    )


def _row(size_cost: SizeCost, factor: str, divisor: float) -> dict[str, Any]:
    size, condition, summary = size_cost
    low, high = (summary.median if end is None else end for end in summary.median_ci)
    costs = {"value": summary.median / divisor, "low": low / divisor, "high": high / divisor}
    return {"size": size, **costs, "condition": other_levels(condition, factor)}


def _lines(rows: Rows, factor: str, y: alt.Y) -> list[alt.Chart]:
    """Draw a line, bars and points for each combination of the levels of other factors."""
    names = list(dict.fromkeys(str(row["condition"]) for row in rows))
    sizes = sorted({float(row["size"]) for row in rows})
    labels = sizes if len(sizes) <= _MAX_LABELS else log_ticks(sizes[0], sizes[-1])
    x = log_x_axis("size:Q", factor, 20, values=labels, format=",")
    tooltip = tooltips(("condition:N",), ("size:Q",), ("value:Q", "value", ".5~r"))
    line, points = lines_and_points(rows, x, y, names, tooltip=tooltip, width=2, point_size=60)
    return [line, interval_bars(rows, x, y, names), points]


def _normalised_y(title: str, ends: Sequence[float]) -> alt.Y:
    if max(ends) > _MAX_LINEAR_RATIO * min(ends):
        return log_y_axis(title, 0.95 * min(ends), 1.05 * max(ends))
    scale = alt.Scale(zero=False, nice=False, padding=12)
    return alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(format="~r"))


def _nearest_simple_law(law: ScalingLaw) -> tuple[float, int]:
    """Return the simple law nearest to a fitted law: the exponents of size and of log(size).

    If some simple laws fit the measured sizes (``law.simple_laws``), only these laws are possible.
    """
    exponents = {exponent.log_power: exponent.exponent for exponent in law.exponents}
    candidates = law.simple_laws or tuple((exponent, 0) for exponent in SIMPLE_EXPONENTS)
    return min(candidates, key=lambda candidate: abs(candidate[0] - exponents[candidate[1]]))
