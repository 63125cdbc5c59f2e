"""Judge counts that repeat exactly, such as the instructions of a simulated processor.

Both conditions run once in each of n blocks. The counts *repeat exactly* if all n counts of the
baseline are one number, and all n counts of the candidate are one number. Then the ratio of both
numbers is the interval.

This claim is wrong with a chance of at most 4⁻ⁿ on each side, for n from 2 up, if the counts of
the runs are independent and a constant ratio e^θ lies between the conditions: the baseline counts x
with chance p(x), and the candidate x·e^θ. For if the counts repeat exactly with a ratio above e^θ,
all runs of the baseline counted some x, and all runs of the candidate y·e^θ with y > x. The chance
is the sum of p(x)ⁿ·p(y)ⁿ over such pairs. It is largest for two numbers with a chance of 1/2 each:
among three or more, merging the two smallest chances p and q raises the sum for n = 2, because it
adds p·q·(2·Σr² - p·q), and one of the other chances r is at least as large as p and q. Two numbers
give 1/16. Each further block repeats with a chance of at most p(x)·p(y) ≤ 1/4. Counts that repeat
in n blocks repeated in the first two, so the bound holds however long one looks.

The bets on the coin need no independence, but more blocks. Both claims share the level, so that it
holds for the one that is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace

from equipoise.stats.arrays import FloatArray
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import ComparisonVerdict, equivalence_level

MIN_BLOCKS = 2
"""Minimum number of blocks for the bound: a single run repeats nothing."""
_REPEAT_CHANCE = 0.25
"""Maximum chance that one more block repeats two numbers that equal conditions can have."""
_REPEAT_SHARE, _COIN_SHARE = 0.75, 0.25
"""Shares of the level for counts that repeat exactly, and for the bets on the coin."""


def repeats_exactly(blocks: PairedBlocks) -> bool:
    """Return whether all counts of the baseline are equal, and all counts of the candidate."""
    return (
        len(blocks) >= MIN_BLOCKS
        and _is_constant(blocks.baseline)
        and _is_constant(blocks.candidate)
    )


def _is_constant(counts: FloatArray) -> bool:
    return math.isfinite(counts[0]) and bool(np.all(counts == counts[0]))


def blocks_to_repeat(level: float) -> int:
    """Return the number of blocks that decide at a level if all counts repeat exactly."""
    # The interval has two sides.
    chance_of_a_side = _REPEAT_SHARE * level / 2
    return max(MIN_BLOCKS, math.ceil(math.log(chance_of_a_side) / math.log(_REPEAT_CHANCE)))


def judge_counts_function(
    comparisons: Sequence[PairedBlocks],
    judge_all_at: Callable[[float], list[ComparisonVerdict]],
) -> Callable[[float], list[ComparisonVerdict]]:
    """Return a function that judges all comparisons at a level, with exact intervals of counts.

    ``judge_all_at`` is the function for the bets on the coin.
    """

    def judge_counts(level: float) -> list[ComparisonVerdict]:
        required = blocks_to_repeat(level)
        return [
            replace(
                _with_exact_interval(blocks, judged)
                if len(blocks) >= required and repeats_exactly(blocks)
                else judged,
                level=level,
                equivalence_level=equivalence_level(level),
            )
            for blocks, judged in zip(comparisons, judge_all_at(_COIN_SHARE * level), strict=True)
        ]

    return judge_counts


def _with_exact_interval(blocks: PairedBlocks, judged: ComparisonVerdict) -> ComparisonVerdict:
    baseline, candidate = float(blocks.baseline[0]), float(blocks.candidate[0])
    if baseline == candidate:
        log_ratio = 0.0
    elif baseline == 0.0:
        log_ratio = math.inf
    else:
        log_ratio = math.log(candidate / baseline) if candidate else -math.inf
    return replace(
        judged,
        typical=log_ratio,
        low=log_ratio,
        high=log_ratio,
        equivalence_low=log_ratio,
        equivalence_high=log_ratio,
        ln_mean_ratio=log_ratio,
        ratio_is_constant=True,
    )
