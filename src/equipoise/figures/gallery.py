"""The figures of a result, in the order in which a reader needs them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.figures.limits import EVERY_TRIAL
from equipoise.model.result import ResultDocument
from equipoise.stats.sequence_point import SequencePoint
from equipoise.stats.shift import LEAST_BLOCKS, shift_function

if TYPE_CHECKING:
    import altair as alt

Sequences = Mapping[str, tuple[SequencePoint, ...]]
"""For each candidate, where its interval on the primary metric stood after each block."""

MOST_LETTERS = 80
"""Of a name: a command may be very long."""
_NO_WORD = re.compile("[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart and how to read it."""

    name: str
    """Of the kind of figure, for file names and anchors."""
    how_to_read: str
    chart: alt.LayerChart


def gallery(
    document: ResultDocument, sequences: Sequences, *, every_trial: int = EVERY_TRIAL
) -> Iterator[Figure]:
    """Draw every figure that the document has the numbers for.

    Parameters
    ----------
    sequences
        May lack a candidate: its sequence is not drawn then.
    every_trial
        Beyond so many trials a figure bins them and says so.
    """
    from equipoise.figures import (
        distributions,
        ratios,
        sequence,
        shift,
        size_normalised,
        size_scaling,
        time_course,
        variance_by_level,
    )
    from equipoise.figures.size_values import numeric_factors
    from equipoise.figures.trial_values import pairs_of, primary_metric

    if not document.conditions:
        return
    yield Figure(
        "distributions",
        distributions.HOW_TO_READ,
        distributions.distributions(document, every_trial=every_trial),
    )
    compared = ratios.ratios(document)
    if compared is not None:
        yield Figure("ratios", ratios.HOW_TO_READ, compared)
    metric = primary_metric(document)
    primary = [one for one in document.comparisons if one.metric == metric]
    for comparison in primary:
        points = sequences.get(comparison.candidate)
        if points:
            chart = sequence.sequence(document, comparison, points)
            yield Figure("sequence", sequence.HOW_TO_READ, chart)
    for comparison in primary:
        pairs = pairs_of(document, comparison)
        if len(pairs.baseline) >= LEAST_BLOCKS:
            numbers = shift_function(pairs.baseline, pairs.candidate, seed=document.run.seed)
            yield Figure("shift", shift.HOW_TO_READ, shift.shift(document, comparison, numbers))
    others = ratios.other_ratios(document)
    if others is not None:
        yield Figure("other_ratios", ratios.HOW_TO_READ_METRICS, others)
    by_level = variance_by_level.variance_by_level(document)
    if by_level is not None:
        yield Figure("variance_by_level", variance_by_level.HOW_TO_READ, by_level)
    yield Figure(
        "time_course",
        time_course.HOW_TO_READ,
        time_course.time_course(document, every_trial=every_trial),
    )
    yield from iteration_figures(document)
    for factor in numeric_factors(document, metric):
        chart = size_scaling.size_scaling(document, factor)
        yield Figure("size_scaling", size_scaling.HOW_TO_READ, chart)
        flat = size_normalised.size_normalised(document, factor)
        if flat is not None:
            yield Figure("size_normalised", size_normalised.HOW_TO_READ, flat)


def iteration_figures(document: ResultDocument) -> Iterator[Figure]:
    """Draw the iterations of each condition that reported enough to be classed, on each metric."""
    from equipoise.figures import iterations

    for condition in document.conditions:
        for metric, shape in condition.iterations.items():
            chart = iterations.iterations(document, condition, metric) if shape.kind else None
            if chart is not None:
                name = _NO_WORD.sub("_", f"iterations {condition.name} {metric}").strip("_")
                yield Figure(name[:MOST_LETTERS], iterations.HOW_TO_READ, chart)
