"""The numbers of a study's result by levels of factors, and their text in tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct

from equipoise.figures.quantity import unit_of
from equipoise.figures.values import analysed_values, trials_with_values
from equipoise.model.quantities import FACTOR_FROM, Interval, reads_as_factor
from equipoise.model.result import (
    Comparison,
    ConditionResult,
    Findings,
    FindingTable,
    MetricSummary,
    ResultDocument,
)
from equipoise.stats.arrays import FloatArray
from equipoise.stats.resolution import Resolution
from equipoise.stats.sequence import BASELINE_FIRST, CANDIDATE_FIRST, PairedBlocks
from equipoise.stats.verdict import judge

UNKNOWN = "–"
"""Text of a cell without a number."""
ALPHA = 0.05
"""Chance that the interval of a ratio misses it; several ratios have no correction."""


class Ratio(Struct, frozen=True):
    """Ratio of one condition to another on a metric, within blocks."""

    ratio: float
    """Typical ratio; the median over blocks if there are too few blocks."""
    ratio_ci: Interval
    """Confidence sequence at 95 % for this pair alone; ``None`` for an unknown bound."""
    e_value: float
    smallest: float
    largest: float
    """Largest ratio within one block."""
    blocks: int

    @property
    def is_certainly_above(self) -> bool:
        """Whether the interval is above 1."""
        return self.ratio_ci[0] is not None and self.ratio_ci[0] > 1.0

    @property
    def is_certainly_below(self) -> bool:
        """Whether the interval is below 1."""
        return self.ratio_ci[1] is not None and self.ratio_ci[1] < 1.0

    @property
    def is_certain(self) -> bool:
        """Whether the interval excludes 1."""
        return self.is_certainly_above or self.is_certainly_below

    def text(self) -> str:
        """Return the ratio with its interval, or with the range over blocks."""
        return f"{factor_text(self.ratio)} ({self.interval_text()})"

    def interval_text(self) -> str:
        """Return the interval or, without an interval, the range over blocks."""
        low, high = self.ratio_ci
        if low is not None and high is not None:
            return f"{factor_text(low)} to {factor_text(high)}"
        if self.blocks == 1:
            return "1 block"
        return (
            f"{factor_text(self.smallest)} to {factor_text(self.largest)} in {self.blocks} blocks"
        )


class StudyData(Struct, frozen=True):
    """A result document, with methods that find numbers by levels of factors."""

    document: ResultDocument

    def levels(self, factor: str) -> tuple[str, ...]:
        """Return the levels of a factor in the campaign, in the order of the plan."""
        all_levels = (condition.levels for condition in self.document.conditions)
        return tuple(dict.fromkeys(levels[factor] for levels in all_levels if factor in levels))

    def condition(self, **levels: str) -> ConditionResult | None:
        """Return the first condition that has these levels, or ``None``."""
        matching = (
            condition
            for condition in self.document.conditions
            if levels.items() <= condition.levels.items()
        )
        return next(matching, None)

    def combinations(self, *factors: str) -> Iterator[dict[str, str]]:
        """Yield the combinations of levels of these factors that have a condition."""
        for levels in itertools.product(*map(self.levels, factors)):
            combination = dict(zip(factors, levels, strict=True))
            if self.condition(**combination) is not None:
                yield combination

    def summary(self, metric: str, **levels: str) -> MetricSummary | None:
        """Return the distribution of a metric; ``None`` if the metric was not measured."""
        condition = self.condition(**levels)
        return None if condition is None else condition.metrics.get(metric)

    def median(self, metric: str, **levels: str) -> float | None:
        """Return the median of a metric; ``None`` if the metric was not measured."""
        summary = self.summary(metric, **levels)
        return None if summary is None else summary.median

    def medians(self, metric: str, factor: str, **other_levels: str) -> dict[str, float]:
        """Return the medians of a metric by level of a factor; unmeasured levels are left out."""
        medians = {
            level: self.median(metric, **{**other_levels, factor: level})
            for level in self.levels(factor)
        }
        return {level: median for level, median in medians.items() if median is not None}

    def values(self, metric: str, **levels: str) -> FloatArray:
        """Return a metric's values in the analysed trials that ended, shape (n,)."""
        condition = self.condition(**levels)
        by_condition = analysed_values(self.document, metric)
        return np.array(by_condition[condition.name] if condition else [], np.float64)

    def iterations(self, metric: str, **levels: str) -> FloatArray:
        """Return a metric's iterations in all analysed trials; those of a trial are dependent."""
        condition = self.condition(**levels)
        values = (
            value
            for row in self.document.trials
            if condition and row.analysed and row.condition == condition.name
            for value in row.iterations.get(metric, [])
        )
        return np.fromiter(values, np.float64)

    def comparison(self, metric: str, **levels: str) -> Comparison | None:
        """Return the comparison whose candidate has these levels, or ``None``."""
        condition = self.condition(**levels)
        name = None if condition is None else condition.name
        matching = (
            comparison
            for comparison in self.document.comparisons
            if (comparison.metric, comparison.candidate) == (metric, name)
        )
        return next(matching, None)

    def ratio(
        self, metric: str, factor: str, candidate: str, baseline: str, /, **other_levels: str
    ) -> Ratio | None:
        """Return the ratio of two levels of a factor, at the same levels of other factors.

        ``None`` if the two levels never ran in the same block.
        """
        numerator = self.condition(**{**other_levels, factor: candidate})
        denominator = self.condition(**{**other_levels, factor: baseline})
        if numerator is None or denominator is None or numerator.name == denominator.name:
            return None
        pairs = self._pairs(metric, numerator.name, denominator.name)
        if len(pairs) == 0:
            return None
        verdict = judge([pairs], min_effect=0.0, alpha=ALPHA)[0]
        ratios = pairs.candidate / pairs.baseline
        return Ratio(
            ratio=float(np.median(ratios)) if verdict.ratio is None else verdict.ratio,
            ratio_ci=verdict.ratio_ci,
            e_value=verdict.e_value,
            smallest=float(ratios.min()),
            largest=float(ratios.max()),
            blocks=len(pairs),
        )

    def ratios(
        self, metric: str, factor: str, candidate: str, baseline: str, /, by: str, **levels: str
    ) -> dict[str, Ratio]:
        """Return the ratio (see ``ratio``) at each level of ``by``; unknown ratios are left out."""
        ratios = {
            level: self.ratio(metric, factor, candidate, baseline, **{**levels, by: level})
            for level in self.levels(by)
        }
        return {level: ratio for level, ratio in ratios.items() if ratio is not None}

    def _pairs(self, metric: str, candidate: str, baseline: str) -> PairedBlocks:
        """Return the blocks in which two conditions, given by name, both have a value above 0."""
        blocks: dict[int, dict[str, tuple[int, float]]] = {}
        for _, row, value in trials_with_values(self.document, metric):
            if row.analysed and row.condition in (candidate, baseline) and 0 < value < math.inf:
                blocks.setdefault(row.block, {})[row.condition] = (row.position, value)
        pairs = [
            (block[baseline], block[candidate]) for block in blocks.values() if len(block) == 2
        ]
        # Tuples compare by their first item: the position of the trial in the block.
        return PairedBlocks(
            [cost for (_, cost), _ in pairs],
            [cost for _, (_, cost) in pairs],
            [BASELINE_FIRST if first < second else CANDIDATE_FIRST for first, second in pairs],
            resolution=Resolution(self.document.resolutions.get(metric)),
        )


def ratio_text(ratio: Ratio | None, unknown: str = "") -> str:
    """Return a ratio with its interval, or ``unknown`` without a ratio."""
    return unknown if ratio is None else ratio.text()


def findings_of(
    tables: Iterable[FindingTable], paragraphs: Iterable[str], answer: str = ""
) -> Findings:
    """Return the findings of a study, without empty tables and paragraphs."""
    return Findings(
        tuple(table for table in tables if table.rows),
        tuple(paragraph for paragraph in paragraphs if paragraph),
        answer,
    )


def factor_text(ratio: float) -> str:
    """Return a ratio as text: ``×2.31``, or ``+3.1 %`` if it is near 1."""
    if ratio >= FACTOR_FROM:
        return f"×{number_text(ratio)}"
    if reads_as_factor(ratio):
        return f"÷{number_text(1.0 / ratio)}"
    change = 100.0 * (ratio - 1.0)
    return f"{change:+.0f} %" if abs(change) >= 10 else f"{change:+.1f} %"


def quantity_text(metric: str, value: float | None) -> str:
    """Return a value with its unit, which follows from the end of the metric's name."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    divisor, unit = unit_of(metric, value)
    return f"{number_text(value / divisor)} {unit}".strip()


def number_text(value: float) -> str:
    """Return a number with three significant digits, as ``1e+07`` if it is very large or small."""
    if not math.isfinite(value):
        return "unlimited"
    if abs(value) >= 100:
        return f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.2e}"
    return f"{value:.3g}"


def size_text(byte_count: float) -> str:
    """Return bytes in powers of two, such as ``15 KB`` or ``128 KB``."""
    for unit, power in (("MB", 20), ("KB", 10)):
        if byte_count >= 1 << power:
            return f"{number_text(byte_count / (1 << power))} {unit}"
    return f"{byte_count:.0f} B"
