"""The verdict on layouts in general, from a campaign over some drawn layouts.

The betting engine is exact for the layouts of a campaign, but its result does not hold for other
layouts: if layouts differ by 3 to 5 %, the mean of 12 of them certainly differs from 1. For a claim
about layouts in general, the layout is the unit: Student's t over the mean log ratios of the
layouts. Few layouts with skewed effects would make that interval too narrow, so it is widened to
include Hall's (1992), which corrects for the skewness of the layouts.

Such an interval is valid for a single analysis. So the analyses are planned: the first is after 2
blocks in each layout, and each next one after twice as many. The j-th has level alpha/2^j, so the
chance that any of them ever misses is at most alpha, whenever the campaign stops. The verdict comes
from their intersection. More blocks cannot make up for few layouts: draw more layouts instead.
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

FIRST_ANALYSIS = 2
"""Blocks in each layout at the first analysis."""
FEW_LAYOUTS = 6
"""Number of layouts from which on their skewness can be estimated well enough."""
LEVEL_OF_FEW = 0.8
"""Fraction of the level that is used with fewer layouts (docs/methods/layouts.md)."""
_WHOLE_LINE = (-math.inf, math.inf)
_MIN_SLOPE = 1e-9
"""Slope below which the correction for skewness is lost in rounding."""


class LayoutAnalysis(Struct, frozen=True):
    """One planned analysis."""

    centres: FloatArray
    """Shape (layouts,): log ratio of each layout; not finite where timeouts leave none."""
    tolerance: float
    """Log difference that the resolution of the metric can hide, in the last block."""

    @property
    def is_possible(self) -> bool:
        """Whether every layout has a number."""
        return bool(np.isfinite(self.centres).all())


def judge_across_layouts(
    comparisons: Sequence[PairedBlocks],
    layouts: Sequence[IntArray | Sequence[int]],
    *,
    count: int,
    min_effect: float,
    alpha: float,
) -> tuple[ComparisonVerdict, ...]:
    """Judge each candidate against the baseline across layouts.

    Several comparisons share alpha evenly (Bonferroni): the chance of any wrong verdict is at most
    alpha.

    For each comparison of n blocks, ``layouts`` gives the layout of each block, from 1 to
    ``count``; the other parameters are those of ``judge``.
    """
    margin, level = margin_of(min_effect), alpha / max(1, len(comparisons))
    return tuple(
        _judge_comparison(blocks, np.asarray(places, dtype=np.int64), count, margin, level)
        for blocks, places in zip(comparisons, layouts, strict=True)
    )


def _judge_comparison(
    blocks: PairedBlocks,
    places: IntArray,
    count: int,
    margin: float,
    level: float,
) -> ComparisonVerdict:
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.log(blocks.candidate) - np.log(blocks.baseline)
    analyses = planned_analyses(differences, places, count, blocks.tolerances) if count > 1 else []
    interval, equivalence, typical = _WHOLE_LINE, _WHOLE_LINE, None
    for number, analysis in enumerate(analyses, start=1):
        if not analysis.is_possible:
            continue
        part, typical = level / 2**number, float(np.mean(analysis.centres))
        interval = _intersection(interval, _interval(analysis, part))
        wider = equivalence_level(part)
        equivalence = _intersection(equivalence, _interval(analysis, wider))
    judged = judge_by_intervals(blocks, margin, level, interval, equivalence, typical)
    return replace(judged, lost_analyses=sum(not analysis.is_possible for analysis in analyses))


def planned_analyses(
    differences: FloatArray, places: IntArray, count: int, tolerances: FloatArray
) -> list[LayoutAnalysis]:
    """Return the planned analyses that are due.

    The analysis after r blocks in each layout uses the first r of each, so it does not depend on
    when the campaign stopped. A layout's log ratio is the mean over its blocks, or the median if
    one of them timed out. A block in which both conditions timed out is a tie and is left out.

    The arrays have shape (n,), one element for each block: its log ratio, infinite if one condition
    timed out, NaN if both did; its layout, from 1 to ``count``; its tie tolerance.
    """
    of_layout = [np.flatnonzero(places == place) for place in range(1, count + 1)]
    fewest = min(len(positions) for positions in of_layout)
    analyses: list[LayoutAnalysis] = []
    blocks = FIRST_ANALYSIS
    while blocks <= fewest:
        used = [positions[:blocks] for positions in of_layout]
        centres = np.array([_centre(differences[positions]) for positions in used])
        last = max(int(positions[-1]) for positions in used)
        analyses.append(LayoutAnalysis(centres, float(tolerances[last])))
        blocks *= 2
    return analyses


def _centre(differences: FloatArray) -> float:
    known = differences[~np.isnan(differences)]
    if not len(known):
        return math.nan
    with np.errstate(invalid="ignore"):
        return float(np.mean(known) if np.isfinite(known).all() else np.median(known))


def _interval(analysis: LayoutAnalysis, level: float) -> tuple[float, float]:
    """Return the interval of the mean over layouts, widened by what a coarse clock can hide."""
    means = analysis.centres
    middle, error = float(np.mean(means)), float(np.std(means, ddof=1)) / math.sqrt(len(means))
    below = above = 0.0
    if error > 0.0:
        share = LEVEL_OF_FEW if len(means) < FEW_LAYOUTS else 1.0
        reach = student_quantile(1.0 - share * level / 2.0, len(means) - 1)
        skewness = _skewness(means)
        below = error * max(reach, _hall(reach, skewness, len(means)))
        above = error * max(reach, -_hall(-reach, skewness, len(means)))
    return middle - below - analysis.tolerance, middle + above + analysis.tolerance


def _skewness(values: FloatArray) -> float:
    """Return the adjusted skewness of a sample that is not constant; 0 for fewer than three."""
    count = len(values)
    if count < 3:
        return 0.0
    centred = values - np.mean(values)
    skewness = np.mean(centred**3) / np.mean(centred**2) ** 1.5
    return float(skewness) * math.sqrt(count * (count - 1)) / (count - 2)


def _hall(quantile: float, skewness: float, count: int) -> float:
    """Return the studentized mean whose transformed value is a quantile.

    Hall (1992) transforms the studentized mean by a cubic that removes its skewness and never
    falls; this is the inverse.
    """
    slope = skewness / (3.0 * math.sqrt(count))
    if abs(slope) < _MIN_SLOPE:
        return quantile
    return (math.cbrt(1.0 + 3.0 * slope * (quantile - slope / 2.0)) - 1.0) / slope


def _intersection(earlier: tuple[float, float], later: tuple[float, float]) -> tuple[float, float]:
    """Return the intersection of two intervals; if it is empty, the later interval."""
    low, high = max(earlier[0], later[0]), min(earlier[1], later[1])
    return (low, high) if low <= high else later
