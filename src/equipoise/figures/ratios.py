"""Every comparison of a result with its interval, a row each, and the control beside them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import altair as alt

from equipoise.figures.building import Rows, drawn_from, framed, told_apart
from equipoise.figures.quantity import metric_name
from equipoise.figures.ratio_axis import RatioAxis, ratio_axis
from equipoise.figures.trial_values import primary_metric
from equipoise.model.result import Comparison, ResultDocument, SampleComparison

HOW_TO_READ = (
    "Each row is one comparison: the mark is the ratio, the bar its interval. What lies right of "
    "the dashed line costs more, within the grey strip it is too small to matter. The control is "
    "the baseline against itself: what its bar still holds may be noise."
)
HOW_TO_READ_METRICS = (
    "Each row is another metric of one comparison: the mark is the ratio, the bar its interval. "
    "What lies right of the dashed line is more of it, within the grey strip it is too small to "
    "matter. The verdict rests on none of them."
)
MOST_ROWS = 40
ROW_HEIGHT = 38
ABOVE = 14
"""Pixels by which a name stands above its bar."""
COMPARED, CONTROL = "compared", "control"
_WIDEST = 4.0
"""A bar is drawn in full up to so many typical ones beyond the outermost mark."""


@dataclass(frozen=True, slots=True)
class _Row:
    label: str
    kind: str
    ratio: float | None
    low: float | None
    high: float | None
    says: str


def ratios(document: ResultDocument) -> alt.LayerChart | None:
    """Draw the comparisons on the primary metric and the control.

    ``None`` where there is a single comparison and no control: the verdict shows that one.
    """
    metric = primary_metric(document)
    compared = [one for one in document.comparisons if one.metric == metric]
    rows = [_row(one, COMPARED, _label(one, compared)) for one in compared]
    if document.imported is not None:
        foreign = document.imported.comparisons
        rows += [_row(one, COMPARED, _label(one, foreign)) for one in foreign]
    notes = []
    if document.control is not None:
        own = document.control.comparison
        rows.append(_row(own, CONTROL, f"control: {own.baseline} against itself"))
        floor = document.control.noise_floor
        if floor is not None:
            notes.append(
                f"The noise floor: the control's interval reaches {100 * (floor - 1):.3g} % from "
                "no difference; less than that may be noise here."
            )
    if len(rows) < 2:
        return None
    name = metric_name(metric)
    return _drawn(
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
    several = len({(one.baseline, one.candidate) for one in others}) > 1
    rows = [
        _row(
            one,
            COMPARED,
            f"{metric_name(one.metric)}: {_label(one, others)}"
            if several
            else metric_name(one.metric),
        )
        for one in others
    ]
    if not rows:
        return None
    smallest = max(one.min_effect for one in others)
    title = "The other metrics with their intervals"
    return _drawn(rows, title, "against the baseline", [], smallest)


def _drawn(
    rows: Sequence[_Row], title: str, subject: str, notes: list[str], min_effect: float
) -> alt.LayerChart:
    shown = rows[:MOST_ROWS]
    # The control stands last, and is what the others are held against.
    if len(rows) > MOST_ROWS:
        shown = [*rows[: MOST_ROWS - 1], rows[-1]]
        notes = [*notes, f"{len(shown)} of {len(rows)} are drawn; the document holds all."]
    axis = ratio_axis(_extent(shown), min_effect)
    if any(_runs_out(one, axis) for one in shown):
        notes = [*notes, "A bar that reaches the edge goes on beyond it."]
    labels = list(dict.fromkeys(one.label for one in shown))
    kinds = [kind for kind in (COMPARED, CONTROL) if any(one.kind == kind for one in shown)]
    data: Rows = [
        {
            "label": one.label,
            "kind": one.kind,
            "ratio": None if one.ratio is None else axis.place(one.ratio),
            "low": axis.low_place(one.low),
            "high": axis.high_place(one.high),
            "says": one.says,
        }
        for one in shown
    ]
    x = axis.across(subject)
    y = alt.Y("label:N", sort=None, scale=alt.Scale(domain=labels), axis=None)
    places = [0 if kind == COMPARED else 5 for kind in kinds]
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1) if len(kinds) > 1 else None
    color, shape = told_apart("kind", kinds, places, legend)
    tooltip = [
        alt.Tooltip("label:N", title="of"),
        alt.Tooltip("says:N", title="verdict"),
        *(alt.Tooltip(f"{field}:Q", format="+.4~r") for field in ("ratio", "low", "high")),
    ]
    bars = drawn_from(data)
    marks = drawn_from([row for row in data if row["ratio"] is not None])
    names = drawn_from([{"label": label} for label in labels])
    layers = [
        *axis.landmarks(min_effect, x),
        # Above its bar, not beside it: a command is longer than half a phone.
        names.mark_text(
            style="label", align="left", dy=-ABOVE, limit=alt.ExprRef("width - 8")
        ).encode(x=alt.value(4), y=y, text="label:N"),
        bars.mark_rule(strokeWidth=3).encode(x=x, x2="high:Q", y=y, color=color, tooltip=tooltip),
        marks.mark_point(filled=True, size=80, opacity=1).encode(
            x=alt.X("ratio:Q"), y=y, color=color, shape=shape, tooltip=tooltip
        ),
    ]
    return framed(
        layers,
        title=title,
        notes=notes,
        description=f"{title}. " + "; ".join(_words(one) for one in shown) + ".",
        height=ROW_HEIGHT * len(labels),
    )


def _row(one: Comparison | SampleComparison, kind: str, label: str) -> _Row:
    low, high = one.ratio_ci
    says = one.verdict if isinstance(one, Comparison) else "imported"
    return _Row(label, kind, one.ratio, low, high, says if kind == COMPARED else "no verdict")


def _label(
    one: Comparison | SampleComparison, among: Sequence[Comparison | SampleComparison]
) -> str:
    """The candidate; with its baseline where there are several."""
    alone = len({other.baseline for other in among}) == 1
    return one.candidate if alone and len(among) > 1 else f"{one.candidate} against {one.baseline}"


def _extent(rows: Sequence[_Row]) -> Iterator[float | None]:
    """The ratios, and of their intervals what is not much further out than is usual here."""
    yield from (one.ratio for one in rows)
    known = [math.log(one.ratio) for one in rows if one.ratio]
    reach = [
        abs(math.log(end) - math.log(one.ratio))
        for one in rows
        if one.ratio
        for end in (one.low, one.high)
        if end
    ]
    most = max(map(abs, known), default=0.0) + _WIDEST * (statistics.median(reach) if reach else 0)
    for one in rows:
        for end in (one.low, one.high):
            if end and abs(math.log(end)) <= most:
                yield end


def _runs_out(one: _Row, axis: RatioAxis) -> bool:
    low, high = one.low, one.high
    return low is None or high is None or low < axis.low or high > axis.high


def _words(one: _Row) -> str:
    ratio = "unknown" if one.ratio is None else f"{one.ratio:.4g}"
    ends = ("unlimited" if end is None else f"{end:.4g}" for end in (one.low, one.high))
    return f"{one.label}: ratio {ratio}, {' to '.join(ends)}"
