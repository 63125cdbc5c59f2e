"""What the page says of the shape of the distributions: modes, states, iterations, statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from equipoise.figures.theme import color_of
from equipoise.model.result import Comparison, ConditionResult, MetricSummary, ResultDocument
from equipoise.report.primitives import is_of_primitives, metric_of
from equipoise.report.shape import (
    drift_words,
    iteration_words,
    modes_words,
    states_words,
    steady_words,
)
from equipoise.report.units import percent_change, shower, significant

MOST_TABLES = 3
"""Of answers: a study may have hundreds of comparisons."""
STATISTICS = {"minimum": "Minimum", "p50": "Median", "mean": "Mean"}
LEAST_TRIALS = 20
"""Fewer say nothing of tails and neighbours."""
_SKEWED_FROM = 2.0
_DEPENDENT_FROM = 0.3


@dataclass(frozen=True, slots=True)
class ConditionShape:
    """One condition, in sentences."""

    name: str
    color: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswersTable:
    """What each statistic alone would have said of one comparison."""

    title: str
    disagreement: str | None
    rows: tuple[tuple[str, str, str], ...]
    """Statistic, change, what it says."""


@dataclass(frozen=True, slots=True)
class ShapeView:
    """All of it, for one campaign."""

    conditions: tuple[ConditionShape, ...]
    steady: tuple[str, ...]
    """Comparisons in the steady state, or why there are none."""
    answers: tuple[AnswersTable, ...]


def shape_view(document: ResultDocument, primary: Sequence[Comparison], metric: str) -> ShapeView:
    """Put the shapes into words.

    Parameters
    ----------
    primary
        The comparisons on ``metric``.
    """
    smallest = min((one.min_effect for one in primary), default=0.0)
    by_themselves = is_of_primitives(document)

    def metric_for(condition: ConditionResult) -> str:
        return metric_of(condition) or metric if by_themselves else metric

    # Where there are many, those that disagree come first.
    answered = sorted((one for one in primary if one.answers), key=lambda one: not one.disagreement)
    return ShapeView(
        conditions=tuple(
            ConditionShape(one.name, color_of(index), tuple(_lines(one, metric_for(one), smallest)))
            for index, one in enumerate(document.conditions)
        ),
        steady=tuple(steady_words(one) for one in document.steady_state),
        answers=tuple(_answers(one) for one in answered[:MOST_TABLES]),
    )


def _lines(condition: ConditionResult, metric: str, min_effect: float) -> Iterator[str]:
    summary = condition.metrics.get(metric)
    if summary is not None:
        yield modes_words(metric, summary) or f"1 mode: {shower(metric)(summary.modes[0].at)}"
        if (states := states_words(metric, summary)) is not None:
            yield f"change of state: {states}"
        if (drift := drift_words(summary, min_effect)) is not None:
            yield f"drift: {drift}"
        if condition.trials >= LEAST_TRIALS:
            yield from _sides_and_neighbours(summary)
    yield from iteration_words(condition)


def _sides_and_neighbours(summary: MetricSummary) -> Iterator[str]:
    if summary.tail is not None and summary.tail >= _SKEWED_FROM:
        yield f"its upper tail is {significant(summary.tail, 2)} times as long as its lower one"
    if summary.autocorrelation is not None and summary.autocorrelation >= _DEPENDENT_FROM:
        alike = significant(summary.autocorrelation, 2)
        yield f"neighbouring trials are alike: correlation {alike}"


def _answers(one: Comparison) -> AnswersTable:
    return AnswersTable(
        title=f"{one.candidate} against {one.baseline}",
        disagreement=one.disagreement,
        rows=tuple(
            (
                STATISTICS.get(answer.statistic, f"{answer.statistic.removeprefix('p')} %"),
                "–" if answer.ratio is None else percent_change(answer.ratio),
                answer.says,
            )
            for answer in one.answers
        ),
    )
