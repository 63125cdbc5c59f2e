"""The verdict on memory layouts in general (docs/methods/layouts.md).

The betting engine's result holds only for the layouts of a campaign. For a claim about layouts in
general, each layout gives one value: the mean of its log ratios. The interval is Student's t over
these values, widened to include Hall's (1992) interval, which corrects for skewness.

Such an interval is valid for a single analysis, so the analyses are planned. The first analysis is
after 2 blocks in each layout, and each later analysis is after twice as many. The interval of
analysis j has the *level* (1 minus the coverage) alpha/2^j. So the chance that any interval misses
the ratio is at most alpha. The verdict comes from the intersection of the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise._native import student_quantile
from equipoise.stats.arrays import FloatArray, IntArray
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import (
    ComparisonVerdict,
    equivalence_level,
    judge_by_intervals,
    margin_of,
)

FIRST_ANALYSIS_BLOCKS = 2
"""Number of blocks in each layout at the first analysis."""
FEW_LAYOUTS = 6
"""Below this number of layouts, the skewness of their log ratios is known only roughly."""
FEW_LAYOUTS_LEVEL_SHARE = 0.8
"""Fraction of the level that is used below ``FEW_LAYOUTS`` layouts (docs/methods/layouts.md)."""
_UNBOUNDED = (-math.inf, math.inf)
"""Interval before the first analysis."""
_MIN_SKEWNESS_SLOPE = 1e-9
"""Slope of `_inverse_of_hall` below which rounding is larger than the correction."""


class LayoutAnalysis(Struct, frozen=True):
    """One planned analysis across layouts."""

    log_ratios: FloatArray
    """Shape (layouts,): log ratio of each layout; not finite if timeouts leave no ratio."""
    tolerance: float
    """Tolerance of the last block, by which the interval is wider (`stats.resolution`)."""

    @property
    def is_possible(self) -> bool:
        """Whether every layout has a finite log ratio."""
        return bool(np.isfinite(self.log_ratios).all())


def judge_across_layouts(
    comparisons: Sequence[PairedBlocks],
    layouts: Sequence[IntArray | Sequence[int]],
    *,
    layout_count: int,
    min_effect: float,
    alpha: float,
) -> tuple[ComparisonVerdict, ...]:
    """Judge each candidate against the baseline across layouts.

    ``layouts`` has, for each comparison, the layout of each of its blocks: a number from 1 to
    ``layout_count``. Several comparisons share alpha evenly (Bonferroni). ``min_effect`` is the
    smallest effect that matters, in percent.
    """
    margin, level = margin_of(min_effect), alpha / max(1, len(comparisons))
    return tuple(
        _judge_comparison(
            blocks, np.asarray(layouts_of_blocks, dtype=np.int64), layout_count, margin, level
        )
        for blocks, layouts_of_blocks in zip(comparisons, layouts, strict=True)
    )


def _judge_comparison(
    blocks: PairedBlocks, layouts: IntArray, layout_count: int, margin: float, level: float
) -> ComparisonVerdict:
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.log(blocks.candidate) - np.log(blocks.baseline)
    analyses: list[LayoutAnalysis] = []
    if layout_count > 1:
        analyses = planned_analyses(differences, layouts, layout_count, blocks.tolerances)
    interval, equivalence_interval, typical = _UNBOUNDED, _UNBOUNDED, None
    for number, analysis in enumerate(analyses, start=1):
        if not analysis.is_possible:
            continue
        analysis_level, typical = level / 2**number, float(np.mean(analysis.log_ratios))
        interval = _intersection(interval, _interval_across_layouts(analysis, analysis_level))
        narrower = _interval_across_layouts(analysis, equivalence_level(analysis_level))
        equivalence_interval = _intersection(equivalence_interval, narrower)
    judged = judge_by_intervals(blocks, margin, level, interval, equivalence_interval, typical)
    return replace(judged, lost_analyses=sum(not analysis.is_possible for analysis in analyses))


def planned_analyses(
    differences: FloatArray, layouts: IntArray, layout_count: int, tolerances: FloatArray
) -> list[LayoutAnalysis]:
    """Return the planned analyses for which there are enough blocks.

    The analysis after r blocks in each layout uses the first r blocks of each layout. A layout's
    log ratio is the mean over these blocks, or the median if a trial timed out. A block in which
    both conditions timed out is left out.

    The arrays have shape (n,). ``differences`` are the blocks' log ratios: infinite if one
    condition timed out, NaN if both did. ``layouts`` are the blocks' layouts, from 1 up.
    """
    positions_by_layout = [
        np.flatnonzero(layouts == layout) for layout in range(1, layout_count + 1)
    ]
    fewest_blocks = min(len(positions) for positions in positions_by_layout)
    analyses: list[LayoutAnalysis] = []
    blocks = FIRST_ANALYSIS_BLOCKS
    while blocks <= fewest_blocks:
        used_positions = [positions[:blocks] for positions in positions_by_layout]
        log_ratios = [_layout_log_ratio(differences[positions]) for positions in used_positions]
        last_position = max(int(positions[-1]) for positions in used_positions)
        analyses.append(LayoutAnalysis(np.array(log_ratios), float(tolerances[last_position])))
        blocks *= 2
    return analyses


def _layout_log_ratio(differences: FloatArray) -> float:
    known = differences[~np.isnan(differences)]
    if not len(known):
        return math.nan
    with np.errstate(invalid="ignore"):
        return float(np.mean(known) if np.isfinite(known).all() else np.median(known))


def _interval_across_layouts(analysis: LayoutAnalysis, level: float) -> tuple[float, float]:
    """Return the interval of the mean over layouts, widened by the tolerance of the clock."""
    log_ratios, count = analysis.log_ratios, len(analysis.log_ratios)
    mean, error = float(np.mean(log_ratios)), float(np.std(log_ratios, ddof=1)) / math.sqrt(count)
    width_below = width_above = 0.0
    if error > 0.0:
        level_share = FEW_LAYOUTS_LEVEL_SHARE if count < FEW_LAYOUTS else 1.0
        quantile = student_quantile(1.0 - level_share * level / 2.0, count - 1)
        skewness = _skewness(log_ratios)
        width_below = error * max(quantile, _inverse_of_hall(quantile, skewness, count))
        width_above = error * max(quantile, -_inverse_of_hall(-quantile, skewness, count))
    return mean - width_below - analysis.tolerance, mean + width_above + analysis.tolerance


def _skewness(values: FloatArray) -> float:
    """Return the adjusted skewness of values that are not all equal; 0 for one or two values."""
    count = len(values)
    if count < 3:
        return 0.0
    centred = values - np.mean(values)
    skewness = np.mean(centred**3) / np.mean(centred**2) ** 1.5
    return float(skewness) * math.sqrt(count * (count - 1)) / (count - 2)


def _inverse_of_hall(quantile: float, skewness: float, count: int) -> float:
    """Return the inverse of Hall's (1992) cubic, which removes the skewness of a mean."""
    slope = skewness / (3.0 * math.sqrt(count))
    if abs(slope) < _MIN_SKEWNESS_SLOPE:
        return quantile
    return (math.cbrt(1.0 + 3.0 * slope * (quantile - slope / 2.0)) - 1.0) / slope


def _intersection(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Return the intersection of two intervals; if it is empty, the second interval."""
    low, high = max(first[0], second[0]), min(first[1], second[1])
    return (low, high) if low <= high else second
