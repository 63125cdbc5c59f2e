"""The figures of what was found in a log: its effects, and the balance of its covariates."""

from __future__ import annotations

import math
from collections.abc import Iterator

import altair as alt

from equipoise.figures import love_plot
from equipoise.figures.estimates import Estimate, estimates
from equipoise.figures.gallery import Figure
from equipoise.model.observation_result import Bounds, ObservationResult

HOW_TO_READ = (
    "Each row is one estimate with its 95 % interval; the line stands at no difference. Among "
    "comparable rows is the answer; a placebo must lie on the line."
)
_KINDS = ("naive", "comparable", "by time", "placebo")


def observed_figures(document: ObservationResult) -> Iterator[Figure]:
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


def effects(document: ObservationResult) -> alt.LayerChart:
    """Draw the naive effect, the one among comparable rows, those by time, and the placebos.

    Placebo outcomes without a logarithm are left out beside ratios: they have no percent.
    """
    in_percent = document.naive.ratio is not None
    rows: list[Estimate] = []

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
        at, low, high = (
            100.0 * (one - 1.0) if in_percent else one for one in (value, *(ends or (value, value)))
        )
        rows.append(Estimate(label, kind, at, (low, high)))

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
    question = document.question
    return estimates(
        rows,
        _KINDS,
        unit="change, %" if in_percent else f"difference in {question.outcome}",
        title=f"{question.candidate} against {question.baseline}: {question.outcome}",
        notes=[f"About {document.about}."],
        description=document.summary,
    )


def _percent(difference: float | None) -> float:
    return math.inf if difference is None else 100.0 * difference
