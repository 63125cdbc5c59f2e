"""The figures of a result, in the order in which a reader needs them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from equipoise.figures.values import (
    EVERY_TRIAL,
    numeric_factors,
    pairs_of,
    primary_metric,
)
from equipoise.model.kinds import kind_of
from equipoise.model.metrics import as_values, inverse_interval
from equipoise.model.result import Comparison, ResultDocument
from equipoise.stats.sequence import SequencePoint
from equipoise.stats.shift import MIN_BLOCKS, shift_function

if TYPE_CHECKING:
    import altair as alt

Sequences = Mapping[str, tuple[SequencePoint, ...]]
"""Interval on the primary metric after each block, by candidate."""

_MAX_NAME = 80
"""Letters of a figure's name: a command may be very long."""
_NO_WORD = re.compile("[^A-Za-z0-9]+")


Document = TypeVar("Document", bound=ResultDocument)


class Figure(Struct, frozen=True):
    """A chart and how to read it."""

    name: str
    """Name of the kind of figure, for file names and anchors."""
    how_to_read: str
    chart: alt.LayerChart


class FiguresKind:
    """The figures of an ordinary comparison; a kind of campaign overrides what it draws instead."""

    def gallery(self, document: Any, sequences: Sequences) -> Iterator[Figure] | None:
        """Draw the figures of a document of the kind; ``None`` for those of a comparison."""
        return None

    def chart(self, document: Any) -> alt.LayerChart | None:
        """Draw the one chart of the whole document; ``None`` for that of a comparison."""
        return None


def figures_kind(document: ResultDocument) -> FiguresKind:
    """Return how the kind of a document draws."""
    return kind_of(document).part("figures", FiguresKind)


def gallery(
    document: ResultDocument, sequences: Sequences, *, every_trial: int = EVERY_TRIAL
) -> Iterator[Figure]:
    """Draw every figure that the document has the numbers for.

    A candidate without a sequence gets no figure of it. A figure draws at most ``every_trial``
    trials one by one.
    """
    from equipoise.figures import ratios, scaling, variance_by_level
    from equipoise.figures.distributions import HOW_TO_READ as READ_DISTRIBUTIONS
    from equipoise.figures.distributions import distributions
    from equipoise.figures.time_course import HOW_TO_READ as READ_TIME_COURSE
    from equipoise.figures.time_course import time_course

    own = figures_kind(document).gallery(document, sequences)
    if own is not None:
        yield from own
        return
    if not document.conditions:
        return
    document, sequences = of_values(document, sequences)
    chart = distributions(document, every_trial=every_trial)
    yield Figure("distributions", READ_DISTRIBUTIONS, chart)
    yield from figure_of("ratios", ratios.HOW_TO_READ_RATIOS, ratios.ratios(document))
    metric = primary_metric(document)
    primary = document.primary_comparisons
    yield from _shifts(document, [row for row in primary if not row.ratio_is_constant])
    for comparison in primary:
        points = sequences.get(comparison.candidate)
        if points:
            chart = ratios.sequence(document, comparison, points)
            yield Figure("sequence", ratios.HOW_TO_READ_SEQUENCE, chart)
    yield from _shifts(document, [row for row in primary if row.ratio_is_constant])
    yield from figure_of("other_ratios", ratios.HOW_TO_READ_METRICS, ratios.other_ratios(document))
    by_level = variance_by_level.variance_by_level(document)
    yield from figure_of("variance_by_level", variance_by_level.HOW_TO_READ, by_level)
    yield Figure("time_course", READ_TIME_COURSE, time_course(document, every_trial=every_trial))
    yield from iteration_figures(document)
    for factor in numeric_factors(document, metric):
        chart = scaling.size_scaling(document, factor)
        yield Figure("size_scaling", scaling.HOW_TO_READ_SCALING, chart)
        normalised = scaling.size_normalised(document, factor)
        yield from figure_of("size_normalised", scaling.HOW_TO_READ_NORMALISED, normalised)


def _shifts(document: ResultDocument, comparisons: Sequence[Comparison]) -> Iterator[Figure]:
    """Yield the ratios of comparisons quantile by quantile."""
    from equipoise.figures import ratios

    for comparison in comparisons:
        pairs = pairs_of(document, comparison)
        if len(pairs.baseline) >= MIN_BLOCKS:
            numbers = shift_function(pairs.baseline, pairs.candidate, seed=document.run.seed)
            chart = ratios.shift(document, comparison, numbers)
            yield Figure("shift", ratios.HOW_TO_READ_SHIFT, chart)


def figure_of(name: str, how_to_read: str, chart: alt.LayerChart | None) -> Iterator[Figure]:
    """Yield a figure unless its chart has nothing to show."""
    if chart is not None:
        yield Figure(name, how_to_read, chart)


def of_values(document: Document, sequences: Sequences) -> tuple[Document, Sequences]:
    """Return both with ratios of values where more of a metric is better, not of its cost."""
    increasing = document.more_is_better
    comparisons = tuple(
        as_values(comparison) if comparison.metric in increasing else comparison
        for comparison in document.comparisons
    )
    control = document.control
    if control is not None and control.comparison.metric in increasing:
        control = replace(control, comparison=as_values(control.comparison))
    if document.primary_metric in increasing:
        sequences = {
            candidate: tuple(map(_of_value, points)) for candidate, points in sequences.items()
        }
    return replace(document, comparisons=comparisons, control=control), sequences


def _of_value(point: SequencePoint) -> SequencePoint:
    low, high = inverse_interval((point.low, point.high))
    return SequencePoint(point.block, 1.0 / point.ratio if point.ratio else None, low, high)


def iteration_figures(document: ResultDocument) -> Iterator[Figure]:
    """Draw the iterations of each condition with a class, on each metric."""
    from equipoise.figures import iterations

    for condition in document.conditions:
        for metric, shape in condition.iterations.items():
            chart = iterations.iterations(document, condition, metric) if shape.kind else None
            name = _NO_WORD.sub("_", f"iterations {condition.name} {metric}").strip("_")
            yield from figure_of(name[:_MAX_NAME], iterations.HOW_TO_READ, chart)
