"""Charts of ratios: all comparisons, one comparison by block, and one comparison by quantile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.figures.building import RATIO_TOOLTIPS, condition_index, count_axis, ratio_axis
from equipoise.figures.quantity import metric_name, values_on_axis
from equipoise.figures.values import primary_metric
from equipoise.model.quantities import counted
from equipoise.model.result import Comparison, ResultDocument, SampleComparison
from equipoise.shared.chart_parts import (
    Rows,
    color_and_shape,
    frame,
    label_strips,
    labels,
    layer,
    point,
    rule,
    tooltips,
    top_legend,
)
from equipoise.shared.theme import color_of
from equipoise.stats.sequence import SequencePoint
from equipoise.stats.shift import ShiftFunction

HOW_TO_READ_RATIOS = (
    "Each row is one comparison: the mark is the ratio, the bar its interval. Right of the dashed "
    "line the candidate takes or has more; within the grey strip the difference is too small to "
    "matter. The control is the baseline against itself: a difference within its bar may be noise."
)
HOW_TO_READ_METRICS = (
    "Each row is another metric of one comparison: the mark is the ratio, the bar its interval. "
    "Right of the dashed line the candidate has more of it; within the grey strip the difference "
    "is too small to matter. The verdict rests on none of them."
)
HOW_TO_READ_SEQUENCE = (
    "After each block the band holds every ratio that is still possible. The result is certain "
    "once the band has left the dashed line of no difference, or is within the grey strip of "
    "differences too small to matter. The bar at the right is the interval of the verdict."
)
HOW_TO_READ_SHIFT = (
    "From the fastest tenth of the runs (left) to the slowest (right): a level line is the same "
    "change for all runs, a sloping one means that fast and slow runs differ in different ways. "
    "Each bar is an interval for that point alone."
)
COMPARISON_KIND, CONTROL_KIND = "compared", "control"
"""Kinds of rows, which the legend names."""
_COLOR_INDEX_BY_KIND = {COMPARISON_KIND: 0, CONTROL_KIND: 5}
"""Index of the colour of each kind in the palette; the control is grey."""
MAX_ROWS = 40
MAX_INTERIM_ANALYSES = 400
_ROW_HEIGHT = 38
"""Height of a row in pixels."""
_LABEL_OFFSET = 14
"""Pixels between a name and the bar below."""
_CHART_HEIGHT = 260
"""Height in pixels of a chart of one comparison."""

AnyComparison = Comparison | SampleComparison


class _Row(Struct, frozen=True):
    label: str
    comparison: AnyComparison
    kind: str = COMPARISON_KIND
    """`COMPARISON_KIND` or `CONTROL_KIND`."""
    kind_name: str = ""
    """Name of the kind of campaign, which a comparison without a verdict shows."""

    def describe(self) -> str:
        ratio, ends = self.comparison.ratio, self.comparison.ratio_ci
        end_texts = ("unlimited" if end is None else f"{end:.4g}" for end in ends)
        estimate = "unknown" if ratio is None else f"{ratio:.4g}"
        return f"{self.label}: ratio {estimate}, {' to '.join(end_texts)}"

    def verdict(self) -> str:
        if self.kind == CONTROL_KIND:
            return "no verdict"
        if isinstance(self.comparison, Comparison):
            return self.comparison.verdict
        return self.kind_name


def ratios(result: ResultDocument) -> alt.LayerChart | None:
    """Draw the comparisons on the primary metric, and the control.

    Return ``None`` for a single comparison without a control: the answer shows its interval.
    """
    metric = primary_metric(result)
    comparisons = result.primary_comparisons
    rows = _rows(comparisons)
    rows += [replace(row, kind_name=result.kind.name) for row in _rows(result.samples)]
    notes = []
    if result.control is not None:
        control = result.control.comparison
        rows.append(_Row(f"control: {control.baseline} against itself", control, CONTROL_KIND))
        floor = result.control.noise_floor
        if floor is not None:
            notes.append(
                f"The noise floor: the control's interval reaches {100 * (floor - 1):.3g} % from "
                "no difference; a smaller difference may be noise."
            )
    if len(rows) < 2:
        return None
    name = metric_name(metric)
    title = f"{name.capitalize()}: every comparison with its interval"
    min_effect = max((comparison.min_effect for comparison in comparisons), default=0.0)
    return _draw(rows, title, f"{name} against the baseline", notes, min_effect)


def other_ratios(result: ResultDocument) -> alt.LayerChart | None:
    """Draw the comparisons on the other metrics; ``None`` if there are none."""
    comparisons = result.other_comparisons
    if not comparisons:
        return None
    has_several_pairs = len({(other.baseline, other.candidate) for other in comparisons}) > 1
    rows = []
    for row, comparison in zip(_rows(comparisons), comparisons, strict=True):
        name = metric_name(comparison.metric)
        rows.append(_Row(f"{name}: {row.label}" if has_several_pairs else name, comparison))
    min_effect = max(other.min_effect for other in comparisons)
    return _draw(
        rows, "The other metrics with their intervals", "against the baseline", [], min_effect
    )


def _rows(comparisons: Sequence[AnyComparison]) -> list[_Row]:
    """Return a row for each comparison; the labels name the baselines if they differ."""
    has_one_baseline = (
        len(comparisons) > 1 and len({comparison.baseline for comparison in comparisons}) == 1
    )
    return [
        _Row(
            comparison.candidate
            if has_one_baseline
            else f"{comparison.candidate} against {comparison.baseline}",
            comparison,
        )
        for comparison in comparisons
    ]


def sequence(
    result: ResultDocument, comparison: Comparison, points: tuple[SequencePoint, ...]
) -> alt.LayerChart:
    """Draw the estimate and its interval after every block.

    ``points`` has at least one interim analysis. The axis fits the last two thirds of the points,
    so an early interval may be cut off.
    """
    late_points = points[len(points) // 3 :]
    axis = ratio_axis(
        [bound for point in late_points for bound in (point.low, point.high, point.ratio)],
        comparison.min_effect,
    )
    name = metric_name(comparison.metric)
    y = axis.channel(alt.Y, f"{name} against the baseline")
    stride = math.ceil(len(points) / MAX_INTERIM_ANALYSES)
    rows: Rows = [
        {"block": point.block, **axis.coordinates(point.ratio, (point.low, point.high))}
        # Take evenly spaced points, including the last point.
        for point in points[::-1][::stride][::-1]
    ]
    known_rows = [row for row in rows if row["ratio"] is not None]
    # The band has steps: each interval begins where the previous interval ends.
    starts = [0.5, *(row["block"] + 0.5 for row in rows[:-1])]
    band = [
        {"block": edge, "low": row["low"], "high": row["high"]}
        for start, row in zip(starts, rows, strict=True)
        for edge in (start, row["block"] + 0.5)
    ]
    x = count_axis("block", 0.5, max(2, points[-1].block) + 0.5, "blocks so far")
    color = color_of(condition_index(result, comparison.candidate))
    tooltip = tooltips(("block:Q", "block"), *RATIO_TOOLTIPS)
    line = alt.MarkDef("line", color=color, strokeWidth=2, point={"size": 14, "color": color})
    layers = [
        *axis.reference_marks(comparison.min_effect, y),
        layer(
            band, alt.MarkDef("area", color=color, opacity=0.25, aria=False), x=x, y=y, y2="high:Q"
        ),
        layer(rows[-1:], rule(4, color=color), x=x, y=y, y2="high:Q", tooltip=tooltip),
        layer(known_rows, line, x=x, y="ratio:Q", tooltip=tooltip),
    ]
    notes = []
    if len(points) > MAX_INTERIM_ANALYSES:
        notes.append(f"{len(rows)} of {len(points)} interim analyses are drawn.")
    if not known_rows:
        notes.append("The interval is still unlimited: more blocks are needed.")
    return frame(
        layers,
        title=f"{comparison.candidate} against {comparison.baseline}, block by block",
        notes=notes,
        description=(
            f"Ratio of the {name} of {comparison.candidate} to that of {comparison.baseline} "
            f"with its confidence sequence over {counted(len(points), 'block')}."
        ),
        height=_CHART_HEIGHT,
    )


def shift(
    result: ResultDocument, comparison: Comparison, estimates: ShiftFunction
) -> alt.LayerChart:
    """Draw the shift function of a comparison: the ratio of each quantile, with its interval."""
    is_known = ~np.isnan(estimates.ratio)
    columns = (estimates.quantiles, estimates.ratio, estimates.low, estimates.high)
    points = np.column_stack(columns)[is_known]
    axis = ratio_axis(points[:, 1:].ravel().tolist(), comparison.min_effect)
    y = axis.channel(alt.Y, f"{metric_name(comparison.metric)} against the baseline")
    rows: Rows = [
        {"share": round(share, 4), **axis.coordinates(ratio, (low, high))}
        for share, ratio, low, high in points.tolist()
    ]
    x = alt.X(
        "share:Q",
        title="quantile: share of the runs that were faster",
        scale=alt.Scale(domain=[0.0, 1.0], nice=False),
        axis=alt.Axis(format=".0%", values=estimates.quantiles.round(4).tolist(), grid=False),
    )
    color = color_of(condition_index(result, comparison.candidate))
    tooltip = tooltips(("share:Q", "quantile", ".0%"), *RATIO_TOOLTIPS)
    area = alt.MarkDef("area", color=color, opacity=0.15, aria=False)
    line = alt.MarkDef("line", color=color, strokeWidth=1.5)
    layers = [
        *axis.reference_marks(comparison.min_effect, y),
        layer(rows, area, x=x, y=y, y2="high:Q"),
        layer(rows, rule(2, color=color), x=x, y=y, y2="high:Q"),
        layer(rows, line, x=x, y="ratio:Q"),
        layer(rows, point(60, color=color), x=x, y="ratio:Q", tooltip=tooltip),
    ]
    missing_count = len(estimates.ratio) - len(rows)
    notes = [] if comparison.disagreement is None else [f"{comparison.disagreement}."]
    if missing_count:
        notes.append(f"{missing_count} of the quantiles have no ratio: both sides timed out.")
    return frame(
        layers,
        title=f"{comparison.candidate} against {comparison.baseline}, from fast runs to slow ones",
        notes=notes,
        description=(
            f"Ratio of {comparison.candidate} to {comparison.baseline} at "
            f"{len(estimates.quantiles)} quantiles, with intervals, over {estimates.blocks} blocks."
        ),
        height=_CHART_HEIGHT,
    )


def _draw(
    rows: Sequence[_Row], title: str, subject: str, notes: list[str], min_effect: float
) -> alt.LayerChart:
    drawn_rows = rows[:MAX_ROWS]
    # The control is the last row, and it is always drawn.
    if len(rows) > MAX_ROWS:
        drawn_rows = [*rows[: MAX_ROWS - 1], rows[-1]]
        notes = [*notes, f"{len(drawn_rows)} of {len(rows)} comparisons are drawn."]
    ratio_bars = [(row.comparison.ratio, row.comparison.ratio_ci) for row in drawn_rows]
    axis = ratio_axis(values_on_axis(ratio_bars), min_effect)
    notes = [*notes, *axis.edge_note(row.comparison.ratio_ci for row in drawn_rows)]
    names = list(dict.fromkeys(row.label for row in drawn_rows))
    kinds = list(dict.fromkeys(row.kind for row in drawn_rows))
    bar_rows: Rows = [
        {
            "label": row.label,
            "kind": row.kind,
            "says": row.verdict(),
            **axis.coordinates(row.comparison.ratio, row.comparison.ratio_ci),
        }
        for row in drawn_rows
    ]
    x = axis.channel(alt.X, subject)
    y = alt.Y("label:N", sort=None, scale=alt.Scale(domain=names), axis=None)
    color_indices = [_COLOR_INDEX_BY_KIND[kind] for kind in kinds]
    legend = top_legend() if len(kinds) > 1 else None
    color, shape = color_and_shape("kind", kinds, color_indices, legend)
    tooltip = tooltips(("label:N", "of"), ("says:N", "verdict"), *RATIO_TOOLTIPS)
    channels: dict[str, Any] = {"y": y, "color": color, "tooltip": tooltip}
    label_rows = [{"label": label} for label in names]
    name_mark = {"align": "left", "dy": -_LABEL_OFFSET, "limit": alt.ExprRef("width - 8")}
    layers = [
        *axis.reference_marks(min_effect, x),
        label_strips(label_rows, y, -_LABEL_OFFSET),
        layer(bar_rows, rule(3), x=x, x2="high:Q", **channels),
        layer(
            [row for row in bar_rows if row["ratio"] is not None],
            point(80),
            x="ratio:Q",
            shape=shape,
            **channels,
        ),
        # Names are above the bars, because long commands need the full width of a phone.
        *labels(label_rows, "label:N", x=alt.value(4), y=y, mark=name_mark),
    ]
    return frame(
        layers,
        title=title,
        notes=notes,
        description=f"{title}. " + "; ".join(row.describe() for row in drawn_rows) + ".",
        height=_ROW_HEIGHT * len(names),
    )
