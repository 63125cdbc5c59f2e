"""What one malloc and free cost by the size of the block, with the steps to the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt

from equipoise.figures.building import chart_of, condition_color, condition_shape, frame
from equipoise.figures.gallery import Figure
from equipoise.figures.quantity import unit_of
from equipoise.model.result import ResultDocument
from equipoise.studies.builtin.ridiculousfish2006.analysis import (
    BY_BLOCK,
    AxisScale,
    block_rows,
    steps,
)
from equipoise.studies.study_data import StudyData

HOW_TO_READ = (
    "One line for each allocator. A dashed rule stands where an allocator's blocks begin to go "
    "back to the kernel when they are freed."
)
HEIGHT = 340


def figures(document: ResultDocument) -> Iterator[Figure]:
    """Yield a chart of each cost by block size."""
    measured = StudyData(document)
    for metric, name, scale in BY_BLOCK:
        rows = tuple(block_rows(measured, metric))
        if rows:
            yield Figure(
                f"by_block_{metric}",
                HOW_TO_READ,
                by_block(rows, steps(measured), name=name, metric=metric, scale=scale),
            )


def by_block(
    rows: Sequence[dict[str, Any]],
    steps: Mapping[str, float | None],
    *,
    name: str,
    metric: str,
    scale: AxisScale,
) -> alt.LayerChart:
    """Draw medians by block size on a logarithmic horizontal axis.

    Parameters
    ----------
    rows
        ``condition``, ``size`` in bytes and ``value``.
    steps
        For each allocator where its step is.
    scale
        ``log``, ``linear`` or ``symlog`` (a logarithm that holds zero).
    """
    positive = [row for row in rows if row["value"] > 0 or scale != "log"]
    divisor, unit = unit_of(metric, min((abs(row["value"]) for row in positive), default=1.0))
    shown = [{**row, "value": row["value"] / divisor} for row in positive]
    names = list(dict.fromkeys(str(row["condition"]) for row in rows))
    sizes = sorted({row["size"] for row in rows})
    x = alt.X(
        "size:Q",
        title="block (logarithmic scale)",
        scale=alt.Scale(type="log", base=2, nice=False, padding=15),
        axis=alt.Axis(
            values=sizes,
            labelExpr=(
                "datum.value >= 1048576 ? format(datum.value / 1048576, '~r') + ' MB' : "
                "format(datum.value / 1024, '~r') + ' KB'"
            ),
        ),
    )
    y = alt.Y(
        "value:Q",
        title=f"{name}, in {unit}" if unit else name,
        scale=alt.Scale(type=scale, nice=False, padding=12),
        axis=alt.Axis(format="~r" if scale == "linear" else "~s", tickCount=6),
    )
    color, shape = condition_color(names), condition_shape(names)
    data = chart_of(shown)
    lines = [
        {"size": size, "condition": allocator}
        for allocator, size in steps.items()
        if size is not None and allocator in names and sizes[0] <= size <= sizes[-1]
    ]
    return frame(
        [
            chart_of(lines).mark_rule(strokeDash=[4, 4], opacity=0.6).encode(x=x, color=color),
            data.mark_line(strokeWidth=1.5).encode(x=x, y=y, color=color),
            data.mark_point(filled=True, size=45, opacity=1).encode(
                x=x, y=y, color=color, shape=shape, tooltip=["condition:N", "size:Q", "value:Q"]
            ),
        ],
        title=f"{name.capitalize()} by block size",
        notes=[],
        description=f"Median {name} of a malloc and free by the size of the block.",
        height=HEIGHT,
    )
