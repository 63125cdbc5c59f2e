"""Charts of ratios: all comparisons, one comparison block by block, and quantile by quantile."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import altair as alt
from msgspec import Struct

from equipoise.figures.building import (
    Rows,
    chart_of,
    color_and_shape,
    frame,
    place_of,
    plain_scale,
    top_legend,
)
from equipoise.figures.quantity import log_ticks, metric_name, rounded
from equipoise.figures.theme import color_of
from equipoise.figures.trial_values import primary_metric
from equipoise.model.result import Comparison, ResultDocument, SampleComparison
from equipoise.stats.sequence import SequencePoint
from equipoise.stats.shift import ShiftFunction

HOW_TO_READ_RATIOS = (
    "Each row is one comparison: the mark is the ratio, the bar its interval. Right of the dashed "
    "line the candidate costs more; within the grey strip the difference is too small to matter. "
    "The control compares the baseline with itself: a difference within its bar may be noise."
)
HOW_TO_READ_METRICS = (
    "Each row is another metric of one comparison: the mark is the ratio, the bar its interval. "
    "Right of the dashed line the candidate has more of it; within the grey strip the difference "
    "is too small to matter. The verdict rests on none of them."
)
HOW_TO_READ_SEQUENCE = (
    "After each block the band holds every ratio that is still possible. The result is certain "
    "once the band has left the dashed line of no difference, or lies within the grey strip of "
    "differences too small to matter. The bar at the right is the interval of the verdict."
)
HOW_TO_READ_SHIFT = (
    "From the fastest tenth of the runs (left) to the slowest (right): a level line is the same "
    "change for all runs, a sloping one means that fast and slow runs differ in different ways. "
    "Each bar is an interval for that point alone."
)
COMPARED, CONTROL = "compared", "control"
MOST_ROWS = 40
MOST_POINTS = 400
_ROW_HEIGHT = 38
_LABEL_OFFSET = 14
"""Pixels by which a name stands above its bar."""
_HEIGHT = 260
_WIDEST = 4.0
"""Typical bar lengths beyond the outermost mark up to which a bar is drawn in full."""

_LOW = "low"
"""Field of the axis: the lower end of a band or a bar."""
_PERCENT_BELOW = 2.0
"""Ratio below which the axis shows percent."""
_MARGIN = 0.08
_SMALLEST_SPAN = 0.002


def ratios(document: ResultDocument) -> alt.LayerChart | None:
    """Draw the comparisons on the primary metric and the control.

    ``None`` where there is a single comparison and no control: the verdict shows it already.
    """
    metric = primary_metric(document)
    compared = [one for one in document.comparisons if one.metric == metric]
    rows = [_row(one, COMPARED, _label(one, compared)) for one in compared]
    if document.imported is not None:
        imported = document.imported.comparisons
        rows += [_row(one, COMPARED, _label(one, imported)) for one in imported]
    notes = []
    if document.control is not None:
        control = document.control.comparison
        rows.append(_row(control, CONTROL, f"control: {control.baseline} against itself"))
        floor = document.control.noise_floor
        if floor is not None:
            notes.append(
                f"The noise floor: the control's interval reaches {100 * (floor - 1):.3g} % from "
                "no difference; a smaller difference may be noise."
            )
    if len(rows) < 2:
        return None
    name = metric_name(metric)
    return _draw(
        rows,
        f"{name.capitalize()}: every comparison with its interval",
        f"{name} against the baseline",
        notes,
        max((one.min_effect for one in compared), default=0.0),
    )


def other_ratios(document: ResultDocument) -> alt.LayerChart | None:
    """Draw the comparisons on the other metrics; ``None`` where there is none."""
    metric = primary_metric(document)
    others = [one for one in document.comparisons if one.metric != metric]
    if not others:
        return None
    several = len({(one.baseline, one.candidate) for one in others}) > 1
    rows = []
    for one in others:
        name = metric_name(one.metric)
        rows.append(_row(one, COMPARED, f"{name}: {_label(one, others)}" if several else name))
    smallest = max(one.min_effect for one in others)
    title = "The other metrics with their intervals"
    return _draw(rows, title, "against the baseline", [], smallest)


def sequence(
    document: ResultDocument, comparison: Comparison, points: tuple[SequencePoint, ...]
) -> alt.LayerChart:
    """Draw the estimate and its interval after every block.

    Parameters
    ----------
    points
        One interval for each interim analysis, in the order of the blocks; at least one. The
        axis follows the last two thirds of them: an early interval may be cut off.
    """
    late = points[len(points) // 3 :]
    axis = ratio_axis(
        [bound for point in late for bound in (point.low, point.high, point.ratio)],
        comparison.min_effect,
    )
    name = metric_name(comparison.metric)
    y = axis.vertical(f"{name} against the baseline")
    step = -(-len(points) // MOST_POINTS)
    rows: Rows = [
        {
            "block": point.block,
            "low": axis.low_place(point.low),
            "high": axis.high_place(point.high),
            "ratio": None if point.ratio is None else axis.place(point.ratio),
        }
        # Evenly spaced, the last one included.
        for point in points[::-1][::step][::-1]
    ]
    known = [row for row in rows if row["ratio"] is not None]
    begins = [0.5, *(row["block"] + 0.5 for row in rows[:-1])]
    band = [
        {"block": corner, "low": row["low"], "high": row["high"]}
        for begin, row in zip(begins, rows, strict=True)
        for corner in (begin, row["block"] + 0.5)
    ]
    x = alt.X(
        "block:Q",
        title="blocks so far",
        scale=plain_scale(0.5, max(2, points[-1].block) + 0.5, kind="linear"),
        axis=alt.Axis(tickMinStep=1, tickCount=8, format="d", grid=False),
    )
    color = color_of(place_of(document, comparison.candidate))
    tooltip = [alt.Tooltip("block:Q", title="block"), *_ratio_tooltips()]
    layers = [
        *axis.landmarks(comparison.min_effect, y),
        chart_of(band)
        .mark_area(color=color, opacity=0.25, aria=False)
        .encode(x=x, y=y, y2="high:Q"),
        chart_of(rows[-1:])
        .mark_rule(color=color, strokeWidth=4)
        .encode(x=x, y=y, y2="high:Q", tooltip=tooltip),
        chart_of(known)
        .mark_line(color=color, strokeWidth=2, point={"size": 14, "color": color})
        .encode(x=x, y=alt.Y("ratio:Q"), tooltip=tooltip),
    ]
    notes = []
    if len(points) > MOST_POINTS:
        notes.append(f"Drawn at {len(rows)} of {len(points)} interim analyses.")
    if not known:
        notes.append("The interval is still unlimited: more blocks are needed.")
    return frame(
        layers,
        title=f"{comparison.candidate} against {comparison.baseline}, block by block",
        notes=notes,
        description=(
            f"Ratio of the {name} of {comparison.candidate} to that of {comparison.baseline} "
            f"with its confidence sequence over {len(points)} blocks."
        ),
        height=_HEIGHT,
    )


def shift(
    document: ResultDocument, comparison: Comparison, numbers: ShiftFunction
) -> alt.LayerChart:
    """Draw the quantile ratios of one comparison with their bootstrap bands."""
    known = [index for index, ratio in enumerate(numbers.ratio) if not math.isnan(ratio)]
    values = [part[index] for part in (numbers.ratio, numbers.low, numbers.high) for index in known]
    axis = ratio_axis(map(float, values), comparison.min_effect)
    y = axis.vertical(f"{metric_name(comparison.metric)} against the baseline")
    rows: Rows = [
        {
            "share": round(float(numbers.quantiles[index]), 4),
            "ratio": axis.place(float(numbers.ratio[index])),
            "low": axis.place(float(numbers.low[index])),
            "high": axis.place(float(numbers.high[index])),
        }
        for index in known
    ]
    quantiles = [round(float(quantile), 4) for quantile in numbers.quantiles]
    x = alt.X(
        "share:Q",
        title="quantile: share of the runs that were faster",
        scale=alt.Scale(domain=[0.0, 1.0], nice=False),
        axis=alt.Axis(format=".0%", values=quantiles, grid=False),
    )
    color = color_of(place_of(document, comparison.candidate))
    data, ratio = chart_of(rows), alt.Y("ratio:Q")
    tooltip = [alt.Tooltip("share:Q", title="quantile", format=".0%"), *_ratio_tooltips()]
    layers = [
        *axis.landmarks(comparison.min_effect, y),
        data.mark_area(color=color, opacity=0.15, aria=False).encode(x=x, y=y, y2="high:Q"),
        data.mark_rule(color=color, strokeWidth=2).encode(x=x, y=y, y2="high:Q"),
        data.mark_line(color=color, strokeWidth=1.5).encode(x=x, y=ratio),
        data.mark_point(color=color, filled=True, size=60, opacity=1).encode(
            x=x, y=ratio, tooltip=tooltip
        ),
    ]
    missing = len(numbers.ratio) - len(known)
    notes = [] if comparison.disagreement is None else [f"{comparison.disagreement}."]
    if missing:
        notes.append(f"{missing} of the quantiles are timeouts on both sides: no ratio.")
    return frame(
        layers,
        title=f"{comparison.candidate} against {comparison.baseline}, from fast runs to slow ones",
        notes=notes,
        description=(
            f"Ratio of {comparison.candidate} to {comparison.baseline} at "
            f"{len(numbers.quantiles)} quantiles, with intervals, over {numbers.blocks} blocks."
        ),
        height=_HEIGHT,
    )


class RatioAxis(Struct, frozen=True):
    """An axis for ratios of costs: in percent near 1, in times beyond."""

    low: float
    high: float
    """The drawn range of ratios."""
    in_percent: bool

    def place(self, ratio: float) -> float:
        """Return the position of a ratio, moved to the edge if it lies beyond."""
        clipped = min(max(ratio, self.low), self.high)
        return rounded(100.0 * (clipped - 1.0) if self.in_percent else clipped)

    def low_place(self, ratio: float | None) -> float:
        """Return the position of a lower bound; the edge if it is not known."""
        return self.place(self.low if ratio is None else ratio)

    def high_place(self, ratio: float | None) -> float:
        """Return the position of an upper bound; the edge if it is not known."""
        return self.place(self.high if ratio is None else ratio)

    def vertical(self, subject: str) -> alt.Y:
        """Return the vertical channel of the field ``low``; ``subject`` names the ratio."""
        title, scale, axis = self._parts(subject)
        return alt.Y(f"{_LOW}:Q", title=title, scale=scale, axis=axis)

    def horizontal(self, subject: str) -> alt.X:
        """Return the horizontal channel of the same field."""
        title, scale, axis = self._parts(subject)
        return alt.X(f"{_LOW}:Q", title=title, scale=scale, axis=axis)

    def landmarks(self, min_effect: float, along: alt.X | alt.Y) -> list[alt.Chart]:
        """Draw no difference as a line, and what is too small to matter (percent) as a strip."""
        margin = 1.0 + min_effect / 100.0
        line = chart_of([{_LOW: self.place(1.0)}])
        strip = chart_of([{_LOW: self.place(1.0 / margin), "until": self.place(margin)}])
        end = alt.X2("until:Q") if isinstance(along, alt.X) else alt.Y2("until:Q")
        return [
            strip.mark_rect(style="negligible", aria=False).encode(along, end),
            line.mark_rule(style="reference", aria=False).encode(along),
        ]

    def _parts(self, subject: str) -> tuple[str, alt.Scale, alt.Axis]:
        kind: Literal["linear", "log"] = "linear" if self.in_percent else "log"
        axis = alt.Axis(
            format="+~r" if self.in_percent else "~r",
            tickCount=6,
            values=alt.Undefined if self.in_percent else log_ticks(self.low, self.high),
            labelExpr="datum.value == 0 ? '0' : datum.label",
        )
        unit = "change, in %" if self.in_percent else "times it (logarithmic)"
        scale = plain_scale(self.place(self.low), self.place(self.high), kind=kind)
        return f"{subject}: {unit}", scale, axis


def ratio_axis(ratios: Iterable[float | None], min_effect: float) -> RatioAxis:
    """Return an axis over the finite ratios, 1, and what is too small to matter (percent)."""
    margin = 1.0 + min_effect / 100.0
    finite = [ratio for ratio in ratios if ratio is not None and math.isfinite(ratio) and ratio > 0]
    low, high = min([*finite, 1.0 / margin, 1.0]), max([*finite, margin, 1.0])
    in_percent = high < _PERCENT_BELOW and low > 1.0 / _PERCENT_BELOW
    step = math.exp(_MARGIN * max(math.log(high / low), _SMALLEST_SPAN))
    return RatioAxis(low / step, high * step, in_percent)


def _ratio_tooltips() -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{field}:Q", format="+.4~r") for field in ("ratio", "low", "high")]


class _Row(Struct, frozen=True):
    label: str
    kind: str
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str

    def describe(self) -> str:
        ratio = "unknown" if self.ratio is None else f"{self.ratio:.4g}"
        ends = ("unlimited" if end is None else f"{end:.4g}" for end in (self.low, self.high))
        return f"{self.label}: ratio {ratio}, {' to '.join(ends)}"


def _draw(
    rows: Sequence[_Row], title: str, subject: str, notes: list[str], min_effect: float
) -> alt.LayerChart:
    shown = rows[:MOST_ROWS]
    # The control is the last row, and the others are compared with it.
    if len(rows) > MOST_ROWS:
        shown = [*rows[: MOST_ROWS - 1], rows[-1]]
        notes = [*notes, f"{len(shown)} of {len(rows)} are drawn; the document holds all."]
    axis = ratio_axis(_extent(shown), min_effect)
    if any(
        row.low is None or row.high is None or row.low < axis.low or row.high > axis.high
        for row in shown
    ):
        notes = [*notes, "A bar that reaches the edge goes on beyond it."]
    labels = list(dict.fromkeys(row.label for row in shown))
    kinds = [kind for kind in (COMPARED, CONTROL) if any(row.kind == kind for row in shown)]
    data: Rows = [
        {
            "label": row.label,
            "kind": row.kind,
            "ratio": None if row.ratio is None else axis.place(row.ratio),
            "low": axis.low_place(row.low),
            "high": axis.high_place(row.high),
            "says": row.verdict,
        }
        for row in shown
    ]
    x = axis.horizontal(subject)
    y = alt.Y("label:N", sort=None, scale=alt.Scale(domain=labels), axis=None)
    color, shape = color_and_shape(
        "kind",
        kinds,
        [0 if kind == COMPARED else 5 for kind in kinds],
        top_legend() if len(kinds) > 1 else None,
    )
    tooltip = [
        alt.Tooltip("label:N", title="of"),
        alt.Tooltip("says:N", title="verdict"),
        *_ratio_tooltips(),
    ]
    layers = [
        *axis.landmarks(min_effect, x),
        # Above its bar, not beside it: a command is longer than half a phone.
        chart_of([{"label": label} for label in labels])
        .mark_text(style="label", align="left", dy=-_LABEL_OFFSET, limit=alt.ExprRef("width - 8"))
        .encode(x=alt.value(4), y=y, text="label:N"),
        chart_of(data)
        .mark_rule(strokeWidth=3)
        .encode(x=x, x2="high:Q", y=y, color=color, tooltip=tooltip),
        chart_of([row for row in data if row["ratio"] is not None])
        .mark_point(filled=True, size=80, opacity=1)
        .encode(x=alt.X("ratio:Q"), y=y, color=color, shape=shape, tooltip=tooltip),
    ]
    return frame(
        layers,
        title=title,
        notes=notes,
        description=f"{title}. " + "; ".join(row.describe() for row in shown) + ".",
        height=_ROW_HEIGHT * len(labels),
    )


def _row(comparison: Comparison | SampleComparison, kind: str, label: str) -> _Row:
    verdict = comparison.verdict if isinstance(comparison, Comparison) else "imported"
    return _Row(
        label,
        kind,
        comparison.ratio,
        *comparison.ratio_ci,
        verdict if kind == COMPARED else "no verdict",
    )


def _label(
    comparison: Comparison | SampleComparison, among: Sequence[Comparison | SampleComparison]
) -> str:
    """Return the candidate, with its baseline where there are several."""
    if len(among) > 1 and len({other.baseline for other in among}) == 1:
        return comparison.candidate
    return f"{comparison.candidate} against {comparison.baseline}"


def _extent(rows: Sequence[_Row]) -> Iterator[float | None]:
    """Return the ratios, and the ends of the intervals that are not unusually far out."""
    yield from (row.ratio for row in rows)
    known = [math.log(row.ratio) for row in rows if row.ratio]
    reach = [
        abs(math.log(end) - math.log(row.ratio))
        for row in rows
        if row.ratio
        for end in (row.low, row.high)
        if end
    ]
    most = max(map(abs, known), default=0.0) + _WIDEST * (statistics.median(reach) if reach else 0)
    for row in rows:
        for end in (row.low, row.high):
            if end and abs(math.log(end)) <= most:
                yield end
