"""Draw estimates of one effect, one below the other, with intervals and a line at 0."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt
from msgspec import Struct

from equipoise_matching.shared.chart_parts import (
    Rows,
    color_and_shape,
    frame,
    layer,
    linear,
    name_rows,
    point,
    rule,
    tooltips,
    top_legend,
)

HOW_TO_READ_EFFECTS = (
    "Each row is one estimate with its 95 % interval; the line marks no difference. The answer is "
    "the estimate among comparable {unit}. The interval of a placebo must include the line."
)


class Mark(Struct, frozen=True):
    """One row of the chart: an estimate. ``interval`` is ``None`` for a mark without a line."""

    label: str
    kind: str
    """One of the ``kinds`` of ``estimates``, which decides the colour and the shape."""
    estimate: float
    interval: tuple[float, float] | None


def estimates(
    rows: Sequence[Mark],
    kinds: Sequence[str],
    *,
    unit: str,
    title: str,
    notes: Sequence[str],
    description: str,
) -> alt.LayerChart:
    """Draw each finite estimate as a mark on its interval, from top to bottom.

    The index of a kind in ``kinds`` decides its colour and shape; ``unit`` titles the axis.
    """
    marks: Rows = []
    for row in rows:
        low, high = row.interval or (row.estimate, row.estimate)
        if all(map(math.isfinite, (row.estimate, low, high))):
            marks.append(
                {"label": row.label, "kind": row.kind, "at": row.estimate, "low": low, "high": high}
            )
    labels = list(dict.fromkeys(row["label"] for row in marks))
    indices = [i for i, kind in enumerate(kinds) if any(row["kind"] == kind for row in marks)]
    limit = 1.05 * max([1e-9, *(abs(row[end]) for row in marks for end in ("low", "high"))])
    x = linear(alt.X, "low", -limit, limit, title=unit, labelBound=True)
    at = alt.X("at:Q", scale=x["scale"])
    y = name_rows("label", labels)
    # If each row has its own kind, a legend would repeat the labels.
    legend = None if labels == [row["kind"] for row in marks] else top_legend(columns=2)
    color, shape = color_and_shape("kind", [kinds[i] for i in indices], indices, legend)
    tooltip = tooltips(
        ("label:N",), ("at:Q", unit, ".3g"), ("low:Q", "from", ".3g"), ("high:Q", "to", ".3g")
    )
    return frame(
        [
            layer([{"at": 0.0}], rule(style="reference"), x=at),
            layer(marks, rule(2), x=x, x2="high:Q", y=y, color=color),
            layer(marks, point(70), x=at, y=y, color=color, shape=shape, tooltip=tooltip),
        ],
        title=title,
        notes=notes,
        description=description,
        height=26 * max(len(labels), 3),
    )
