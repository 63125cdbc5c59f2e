"""The figures of what was found in a log: its effects, and the balance of its covariates."""

from __future__ import annotations

import math
from collections.abc import Iterator

import altair as alt

from equipoise.figures import love_plot
from equipoise.figures.building import Rows, drawn_from, framed, plain_scale
from equipoise.figures.gallery import Figure
from equipoise.figures.theme import color_of, shape_of
from equipoise.model.observed import Bounds, Observed

HOW_TO_READ = (
    "Each row is one estimate with its 95 % interval; the line stands at no difference. Among "
    "comparable rows is the answer; a placebo must lie on the line."
)
_ROW_HEIGHT = 26
_KINDS = ("naive", "comparable", "by time", "placebo")


def observed_figures(document: Observed) -> Iterator[Figure]:
    """The effects, then the balance."""
    yield Figure("effects", HOW_TO_READ, effects(document))
    balance = document.balance
    yield Figure(
        "balance",
        love_plot.HOW_TO_READ,
        love_plot.love_plot(
            [one.column for one in balance],
            [_percent(one.difference_before) for one in balance],
            [_percent(one.difference_after) for one in balance],
        ),
    )


def effects(document: Observed) -> alt.LayerChart:
    """Draw the naive effect, the one among comparable rows, those by time, and the placebos.

    Placebo outcomes without a logarithm are left out beside ratios: they have no percent.
    """
    in_percent = document.naive.ratio is not None
    rows: Rows = []

    def add(
        label: str,
        kind: str,
        ratio: float | None,
        ratio_ci: Bounds,
        difference: float | None,
        difference_ci: Bounds,
    ) -> None:
        value, ends = (ratio, ratio_ci) if in_percent else (difference, difference_ci)
        if value is None:
            return
        ends = ends or (value, value)
        at = [100.0 * (one - 1.0) if in_percent else one for one in (value, *ends)]
        if all(math.isfinite(one) for one in at):
            rows.append({"label": label, "kind": kind, "at": at[0], "low": at[1], "high": at[2]})

    naive = document.naive
    add("naive", _KINDS[0], naive.ratio, naive.ratio_ci, naive.difference, naive.difference_ci)
    if document.matched is not None:
        own = document.matched.effect
        add("comparable", _KINDS[1], own.ratio, own.ratio_ci, own.difference, own.difference_ci)
    for period in document.periods:
        label = f"from {period.begins}"
        add(
            label, _KINDS[2], period.ratio, period.ratio_ci, period.difference, period.difference_ci
        )
    for placebo in document.placebos:
        label = f"placebo {placebo.kind} {placebo.name}"
        add(
            label,
            _KINDS[3],
            placebo.ratio,
            placebo.ratio_ci,
            placebo.difference,
            placebo.difference_ci,
        )
    labels = list(dict.fromkeys(row["label"] for row in rows))
    kinds = [kind for kind in _KINDS if any(row["kind"] == kind for row in rows)]
    reach = 1.05 * max([1e-9, *(abs(row[end]) for row in rows for end in ("low", "high"))])
    unit = "change, %" if in_percent else f"difference in {document.question.outcome}"
    x_scale = plain_scale(-reach, reach, kind="linear")
    y = alt.Y(
        "label:N",
        sort=None,
        scale=alt.Scale(domain=labels),
        axis=alt.Axis(title=None, labelLimit=220),
    )
    places = [_KINDS.index(kind) for kind in kinds]
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1)
    color = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=kinds, range=[color_of(place) for place in places]),
        legend=legend,
    )
    shape = alt.Shape(
        "kind:N",
        scale=alt.Scale(domain=kinds, range=[shape_of(place) for place in places]),
        legend=legend,
    )
    data = drawn_from(rows)
    bars = data.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", scale=x_scale, axis=alt.Axis(title=unit)), x2="high:Q", y=y, color=color
    )
    points = data.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("at:Q", scale=x_scale),
        y=y,
        color=color,
        shape=shape,
        tooltip=[
            alt.Tooltip("label:N"),
            alt.Tooltip("at:Q", title=unit, format=".3g"),
            alt.Tooltip("low:Q", title="from", format=".3g"),
            alt.Tooltip("high:Q", title="to", format=".3g"),
        ],
    )
    zero = drawn_from([{"at": 0.0}]).mark_rule(style="reference")
    question = document.question
    return framed(
        [zero.encode(x=alt.X("at:Q", scale=x_scale)), bars, points],
        title=f"{question.candidate} against {question.baseline}: {question.outcome}",
        notes=[f"About {document.about}."],
        description=document.words,
        height=_ROW_HEIGHT * max(len(labels), 3),
    )


def _percent(difference: float | None) -> float:
    return math.inf if difference is None else 100.0 * difference
