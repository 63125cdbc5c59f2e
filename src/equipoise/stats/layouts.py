"""The verdict on layouts in general, from a campaign over some that were drawn.

The betting engine is exact about the layouts of a campaign and says nothing about others: where
layouts differ by 3 to 5 %, the mean of 12 of them differs from 1 for certain. The claim about
layouts in general takes the layout for the unit: Student's t over the mean log ratios of the
layouts, whose effects are taken to be about normal.

Such an interval holds for one analysis. So the analyses are planned: the first is after 2 blocks in
each layout, and each next one after twice as many. The j-th has level alpha/2^j, so the chance that
any of them ever misses is at most alpha, whenever the campaign stops; the verdict is from their
intersection. More blocks never outweigh that layouts are few: for that, draw more layouts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from equipoise._native import student_quantile, verdict_rules
from equipoise.model.plan import Plan
from equipoise.stats.arrays import FloatArray, IntArray
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import (
    ComparisonVerdict,
    equivalence_level,
    judge_by,
    margin_of,
)

FIRST_ANALYSIS = 2
"""Blocks in each layout at the first analysis."""
_EVERYTHING = (-math.inf, math.inf)


def judges_across_layouts(plan: Plan) -> bool:
    """Return whether the verdicts of a plan are about layouts in general.

    Those of the first engine are about the layouts that were drawn.
    """
    return bool(plan.layouts) and verdict_rules(plan.judgement.engine).across_layouts


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

    Parameters
    ----------
    comparisons
        The blocks of each candidate.
    layouts
        For each comparison, shape (n,): the layout of each block, from 1.
    count
        Layouts of the campaign, from 2 up.
    min_effect, alpha
        As for ``judge``.
    """
    margin, level = margin_of(min_effect), alpha / max(1, len(comparisons))
    return tuple(
        _judge_one(blocks, np.asarray(places, dtype=np.int64), count, margin, level)
        for blocks, places in zip(comparisons, layouts, strict=True)
    )


def _judge_one(
    blocks: PairedBlocks,
    places: IntArray,
    count: int,
    margin: float,
    level: float,
) -> ComparisonVerdict:
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.log(blocks.candidate) - np.log(blocks.baseline)
    analyses = planned_analyses(differences, places, count) if count > 1 else []
    interval, equivalence, typical = _EVERYTHING, _EVERYTHING, None
    for number, means in enumerate(analyses, start=1):
        part, typical = level / 2**number, float(np.mean(means))
        interval = _intersection(interval, _student(means, blocks.tolerance, part))
        wider = equivalence_level(blocks, part)
        equivalence = _intersection(equivalence, _student(means, blocks.tolerance, wider))
    return judge_by(blocks, margin, level, interval, equivalence, typical)


def planned_analyses(differences: FloatArray, places: IntArray, count: int) -> list[FloatArray]:
    """Return the mean of each layout at each analysis so far, shape (count,) each.

    The analysis after r blocks in each layout is of the first r of each, so it does not depend on
    when the campaign stopped. None comes after a difference without a number.
    """
    by_layout = [differences[places == place] for place in range(1, count + 1)]
    fewest = min(len(one) for one in by_layout)
    analyses: list[FloatArray] = []
    blocks = FIRST_ANALYSIS
    while blocks <= fewest:
        means = np.array([np.mean(one[:blocks]) for one in by_layout])
        if not np.isfinite(means).all():
            break
        analyses.append(means)
        blocks *= 2
    return analyses


def _student(means: FloatArray, tolerance: float, level: float) -> tuple[float, float]:
    """Return the interval of the mean over layouts; a coarse clock widens it by what it hides."""
    middle, error = float(np.mean(means)), float(np.std(means, ddof=1)) / math.sqrt(len(means))
    reach = tolerance
    if error > 0.0:
        reach += error * student_quantile(1.0 - level / 2.0, len(means) - 1)
    return middle - reach, middle + reach


def _intersection(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return what two intervals share; the later one where they share nothing."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return (low, high) if low <= high else other
