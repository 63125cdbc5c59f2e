"""Charts of an observation: its effects, and the balance of its columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from equipoise_matching.observation.result import ObservationResult
from equipoise_matching.shared.pictures import require_figures

if TYPE_CHECKING:
    from altair import LayerChart

_KINDS = ("naive", "comparable", "by time", "placebo")
"""Kinds of effects, in the order of their colours (``ObservationResult.effects``)."""


def effects_chart(result: ObservationResult) -> LayerChart:
    """Draw the naive effect, the effect among comparable rows and by period, and the placebos.

    A chart in percent leaves out placebo outcomes without a ratio.
    """
    require_figures()
    from equipoise_matching.charts.estimates import Mark, estimates

    in_percent = result.naive.ratio is not None
    rows = []
    for label, kind, effect in result.effects:
        value, interval = effect.difference, effect.difference_ci
        if in_percent:
            value, interval = effect.ratio, effect.ratio_ci
        if value is None:
            continue
        low, high = interval or (value, value)
        if in_percent:
            value, low, high = (100.0 * (ratio - 1.0) for ratio in (value, low, high))
        rows.append(Mark(label, kind, value, (low, high)))
    question = result.question
    return estimates(
        rows,
        _KINDS,
        unit="change, %" if in_percent else f"difference in {question.outcome}",
        title=f"{question.candidate} against {question.baseline}: {question.outcome}",
        notes=[f"About {result.scope}."],
        description=result.summary,
    )


def balance_chart(result: ObservationResult) -> LayerChart:
    """Draw the standardized differences of every column, before and after matching."""
    require_figures()
    from equipoise_matching.charts.balance import love_plot

    balance = result.balance
    return love_plot(
        [column.column for column in balance],
        [_percent(column.difference_before) for column in balance],
        [_percent(column.difference_after) for column in balance],
    )


def _percent(difference: float | None) -> float:
    return math.inf if difference is None else 100.0 * difference
