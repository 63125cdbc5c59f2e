"""Cost by size on two logarithmic axes: how a cost grows with a numeric factor."""

from __future__ import annotations

import math

import altair as alt

from equipoise.figures.building import Rows, condition_color, condition_shape, drawn_from, framed
from equipoise.figures.quantity import metric_name, unit_of
from equipoise.figures.trial_values import primary_metric
from equipoise.model.errors import UnusableInput
from equipoise.model.result import ConditionResult, ResultDocument

HOW_TO_READ = (
    "Both axes are logarithmic: a straight line is a power law and its slope the exponent, "
    "parallel lines differ by a constant factor."
)
HEIGHT = 300
LEAST_SIZES = 2


def numeric_factors(document: ResultDocument) -> tuple[str, ...]:
    """Factors whose levels are at least two different positive numbers, in the plan's order."""
    factors = dict.fromkeys(name for one in document.conditions for name in one.levels)
    return tuple(name for name in factors if len(_sizes(document, name)) >= LEAST_SIZES)


def size_scaling(
    document: ResultDocument, factor: str, metric: str | None = None
) -> alt.LayerChart:
    """Draw each condition's median with its interval over the level of one factor.

    Conditions that differ in this factor only share a line.

    Raises
    ------
    UnusableInput
        The factor has no two levels that are positive numbers.
    """
    metric = metric or primary_metric(document)
    if factor not in numeric_factors(document):
        raise UnusableInput(
            f"the factor {factor} has no two levels that are positive numbers",
            mend="name one of: " + (", ".join(numeric_factors(document)) or "there is none"),
        )
    divisor, unit = unit_of(
        metric,
        max(
            (m.metrics[metric].median for m in document.conditions if metric in m.metrics),
            default=1.0,
        ),
    )
    rows: Rows = []
    for condition in document.conditions:
        size = _size(condition, factor)
        summary = condition.metrics.get(metric)
        if size is None or summary is None or not 0 < summary.median < math.inf:
            continue
        low, high = summary.median_ci
        rows.append(
            {
                "size": size,
                "value": summary.median / divisor,
                "low": (summary.median if low is None else low) / divisor,
                "high": (summary.median if high is None else high) / divisor,
                "condition": _others(condition, factor),
            }
        )
    names = list(dict.fromkeys(str(row["condition"]) for row in rows))
    x = alt.X("size:Q", title=factor, scale=alt.Scale(type="log", nice=False, padding=20))
    name = metric_name(metric)
    y_title = f"{name}, in {unit}" if unit else name
    scale = alt.Scale(type="log", nice=True, zero=False)
    color, shape = condition_color(names), condition_shape(names)
    data = drawn_from(rows)
    y = alt.Y("value:Q", title=y_title, scale=scale)
    return framed(
        [
            data.mark_line(strokeWidth=2).encode(x=x, y=y, color=color),
            data.mark_rule(strokeWidth=2).encode(
                x=x, y=alt.Y("low:Q", title=y_title, scale=scale), y2="high:Q", color=color
            ),
            data.mark_point(filled=True, size=60, opacity=1).encode(
                x=x,
                y=y,
                color=color,
                shape=shape,
                tooltip=["condition:N", "size:Q", alt.Tooltip("value:Q", format=".5~g")],
            ),
        ],
        title=f"{name.capitalize()} by {factor}",
        notes=[],
        description=f"Median {name} by {factor}, both on logarithmic scales, with intervals.",
        height=HEIGHT,
    )


def _sizes(document: ResultDocument, factor: str) -> set[float]:
    sizes = {_size(condition, factor) for condition in document.conditions}
    return {size for size in sizes if size is not None}


def _size(condition: ConditionResult, factor: str) -> float | None:
    try:
        size = float(condition.levels.get(factor, ""))
    except ValueError:
        return None
    return size if 0 < size < math.inf else None


def _others(condition: ConditionResult, factor: str) -> str:
    others = [f"{name} {level}" for name, level in condition.levels.items() if name != factor]
    return ", ".join(others) or "all"
