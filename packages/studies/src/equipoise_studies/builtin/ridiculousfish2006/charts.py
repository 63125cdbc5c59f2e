"""Charts of the costs of one malloc and free by the size of the block.

A rule marks the size from which an allocator returns freed blocks to the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import altair as alt

from equipoise.figures.building import condition_color, lines_and_points
from equipoise.figures.gallery import Figure
from equipoise.figures.quantity import unit_of
from equipoise.shared.chart_parts import Rows, chart_of, frame
from equipoise_studies.builtin.ridiculousfish2006.analysis import (
    COSTS,
    Cost,
    block_rows,
    kernel_sizes,
)
from equipoise_studies.study_data import StudyData

HOW_TO_READ = (
    "One line for each allocator. A dashed rule marks the smallest size of the blocks that go back "
    "to the kernel when they are freed."
)


def figures(data: StudyData) -> Iterator[Figure]:
    """Yield a chart of each cost by block size."""
    for cost in COSTS:
        rows = list(block_rows(data, cost.metric))
        if rows:
            chart = block_chart(cost, rows, kernel_sizes(data))
            yield Figure(f"by_block_{cost.metric}", HOW_TO_READ, chart)


def block_chart(cost: Cost, rows: Rows, kernel_sizes: Mapping[str, float | None]) -> alt.LayerChart:
    """Draw medians by block size; ``rows`` have ``condition``, ``size`` in bytes and ``value``."""
    drawable = [row for row in rows if row["value"] > 0 or cost.scale != "log"]
    smallest = min((abs(row["value"]) for row in drawable), default=1.0)
    divisor, unit = unit_of(cost.metric, smallest)
    allocators = list(dict.fromkeys(str(row["condition"]) for row in rows))
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
        title=f"{cost.name}, in {unit}" if unit else cost.name,
        scale=alt.Scale(type=cost.scale, nice=False, padding=12),
        axis=alt.Axis(format="~r" if cost.scale == "linear" else "~s", tickCount=6),
    )
    rules = [
        {"size": size, "condition": allocator}
        for allocator, size in kernel_sizes.items()
        if size is not None and allocator in allocators and sizes[0] <= size <= sizes[-1]
    ]
    dashes = chart_of(rules).mark_rule(strokeDash=[4, 4], opacity=0.6)
    scaled = [{**row, "value": row["value"] / divisor} for row in drawable]
    tooltip = ["condition:N", "size:Q", "value:Q"]
    return frame(
        [
            dashes.encode(x=x, color=condition_color(allocators)),
            *lines_and_points(scaled, x, y, allocators, tooltip=tooltip),
        ],
        title=f"{cost.name.capitalize()} by block size",
        description=f"Median {cost.name} of a malloc and free by the size of the block.",
        height=340,
    )
