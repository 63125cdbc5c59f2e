"""Draws all figures of a result, in the order in which a reader needs them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from equipoise.figures.values import MAX_DOTS, numeric_factors, paired_values, primary_metric
from equipoise.model.inverse_ratios import inverse_interval, with_ratios_of_values
from equipoise.model.kinds import kind_of
from equipoise.model.result import Comparison, ResultDocument
from equipoise.stats.sequence import SequencePoint
from equipoise.stats.shift import MIN_BLOCKS, shift_function

if TYPE_CHECKING:
    import altair as alt

ConfidenceSequences = Mapping[str, tuple[SequencePoint, ...]]
"""By candidate: the interval of the ratio on the primary metric after each block."""

_MAX_NAME_LENGTH = 80
"""Maximum length of a figure's name; a command in the name may be longer."""
_NOT_ALPHANUMERIC = re.compile("[^A-Za-z0-9]+")

DocumentT = TypeVar("DocumentT", bound=ResultDocument)


class Figure(Struct, frozen=True):
    """A chart with a name and an explanation."""

    name: str
    """Name for files and for links, such as ``time_course``."""
    how_to_read: str
    """Explanation for readers."""
    chart: alt.LayerChart


class KindFigures:
    """Figures of a comparison, which a kind of campaign may override."""

    def gallery(self, result: Any, sequences: ConfidenceSequences) -> Iterator[Figure] | None:
        """Draw the figures of a result; ``None`` means the figures of a comparison."""
        return None

    def chart(self, result: Any) -> alt.LayerChart | None:
        """Draw the main chart of a result; ``None`` means the chart of a comparison."""
        return None


def figures_of(result: ResultDocument) -> KindFigures:
    """Return the figure methods for a result's kind of campaign."""
    return kind_of(result).part("figures", KindFigures)


def gallery(
    result: ResultDocument, sequences: ConfidenceSequences, *, max_dots: int = MAX_DOTS
) -> Iterator[Figure]:
    """Draw every figure for which a result has numbers.

    Only candidates with ``sequences`` get a figure of their intervals. ``max_dots`` is the maximum
    number of trials that a figure draws one by one.
    """
    from equipoise.figures import ratios, scaling, variance_by_level
    from equipoise.figures.distributions import HOW_TO_READ as READ_DISTRIBUTIONS
    from equipoise.figures.distributions import distributions
    from equipoise.figures.time_course import HOW_TO_READ as READ_TIME_COURSE
    from equipoise.figures.time_course import time_course

    figures = figures_of(result).gallery(result, sequences)
    if figures is not None:
        yield from figures
        return
    if not result.conditions:
        return
    result, sequences = as_value_ratios(result, sequences)
    chart = distributions(result, max_dots=max_dots)
    yield Figure("distributions", READ_DISTRIBUTIONS, chart)
    yield from optional_figure("ratios", ratios.HOW_TO_READ_RATIOS, ratios.ratios(result))
    metric = primary_metric(result)
    comparisons = result.primary_comparisons
    # If fast and slow runs have different ratios, the shift function comes first.
    with_constant_ratio = [row for row in comparisons if row.ratio_is_constant]
    with_varying_ratio = [row for row in comparisons if not row.ratio_is_constant]
    yield from _shift_figures(result, with_varying_ratio)
    for comparison in comparisons:
        points = sequences.get(comparison.candidate)
        if points:
            chart = ratios.sequence(result, comparison, points)
            yield Figure("sequence", ratios.HOW_TO_READ_SEQUENCE, chart)
    yield from _shift_figures(result, with_constant_ratio)
    other_ratios = ratios.other_ratios(result)
    yield from optional_figure("other_ratios", ratios.HOW_TO_READ_METRICS, other_ratios)
    variance_chart = variance_by_level.variance_by_level(result)
    yield from optional_figure("variance_by_level", variance_by_level.HOW_TO_READ, variance_chart)
    yield Figure("time_course", READ_TIME_COURSE, time_course(result, max_dots=max_dots))
    yield from iteration_figures(result)
    for factor in numeric_factors(result, metric):
        chart = scaling.size_scaling(result, factor)
        yield Figure("size_scaling", scaling.HOW_TO_READ_SCALING, chart)
        normalised = scaling.size_normalised(result, factor)
        yield from optional_figure("size_normalised", scaling.HOW_TO_READ_NORMALISED, normalised)


def _shift_figures(result: ResultDocument, comparisons: Sequence[Comparison]) -> Iterator[Figure]:
    """Yield a figure with the ratio of each quantile (the shift function) for each comparison."""
    from equipoise.figures import ratios

    for comparison in comparisons:
        pairs = paired_values(result, comparison)
        if len(pairs.baseline) >= MIN_BLOCKS:
            shift = shift_function(pairs.baseline, pairs.candidate, seed=result.run.seed)
            chart = ratios.shift(result, comparison, shift)
            yield Figure("shift", ratios.HOW_TO_READ_SHIFT, chart)


def optional_figure(name: str, how_to_read: str, chart: alt.LayerChart | None) -> Iterator[Figure]:
    """Yield a figure, unless there is no chart."""
    if chart is not None:
        yield Figure(name, how_to_read, chart)


def as_value_ratios(
    result: DocumentT, sequences: ConfidenceSequences
) -> tuple[DocumentT, ConfidenceSequences]:
    """Return both with ratios of values, which are inverse costs if more of a metric is better."""
    inverted_metrics = result.more_is_better
    comparisons = tuple(
        with_ratios_of_values(comparison) if comparison.metric in inverted_metrics else comparison
        for comparison in result.comparisons
    )
    control = result.control
    if control is not None and control.comparison.metric in inverted_metrics:
        control = replace(control, comparison=with_ratios_of_values(control.comparison))
    if result.primary_metric in inverted_metrics:
        sequences = {
            candidate: tuple(map(_value_point, points)) for candidate, points in sequences.items()
        }
    return replace(result, comparisons=comparisons, control=control), sequences


def _value_point(point: SequencePoint) -> SequencePoint:
    low, high = inverse_interval((point.low, point.high))
    return SequencePoint(point.block, 1.0 / point.ratio if point.ratio else None, low, high)


def iteration_figures(result: ResultDocument) -> Iterator[Figure]:
    """Draw the iterations of each condition, for each metric with classified iterations."""
    from equipoise.figures import iterations

    for condition in result.conditions:
        for metric, shape in condition.iterations.items():
            chart = iterations.iterations(result, condition, metric) if shape.kind else None
            name = _NOT_ALPHANUMERIC.sub("_", f"iterations {condition.name} {metric}").strip("_")
            yield from optional_figure(name[:_MAX_NAME_LENGTH], iterations.HOW_TO_READ, chart)
