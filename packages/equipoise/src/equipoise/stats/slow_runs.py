"""Slow runs: whether they allow the verdict ``equivalent``, and which condition has more of them.

The typical run does not show runs that are slow and rare. Three functions deal with slow runs:

- `means_allow_equivalence`: whether the ratio of means allows the verdict ``equivalent``.
- `blocks_to_show`: the number of runs in which a kind of slow run would have appeared.
- `slow_run_test`: a sequential test of whether one condition has slow runs more often.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise.stats.arrays import NORMAL_MAD, FloatArray, median_of
from equipoise.stats.describe import ln_coin_mixture, ln_ratio_of_means

NORMAL_95 = 1.645
"""Number of standard errors of a one-sided bound at 95 %."""
RARE_SHARE, MIN_RUNS_FOR_EQUIVALENT = 0.05, 59
"""Share of a rare kind of slow run; minimum number of runs of each condition for ``equivalent``.
The chance that 59 runs do not include a kind with a share of 5 % is at most 5 %."""
ANALYSES_PER_DOUBLING = 3
"""Number of comparisons of slow runs while the blocks double: after 59, 74, 93, 118 blocks and so
on. With more comparisons, chance would balance the slow runs too often."""
MAX_DELAY_RATIO = 2.0
"""Maximum ratio of the typical delays of both conditions' slow runs, if they are similar."""
MIN_SLOW_SPREADS, MIN_SLOW_MARGINS = 5.0, 5.0
"""Minimum distance of a slow run from the median, in robust standard deviations and in margins."""
SLOW_FACTORS = (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)
"""Multiples of the median above which a run may be slow. Larger multiples are 50, 100, 500 …"""
FIRST_THRESHOLD_BLOCKS = 10
"""Number of blocks that give the first threshold; each doubling gives a new threshold."""
LEVEL_SHARE = 0.2
"""Level of the slow-run test (its chance of a false answer) over alpha: 1 % at alpha 5 %."""


class SlowRunCounts(Struct, frozen=True):
    """Number of runs of each condition that took over a multiple of their own median."""

    factor: float
    """Largest round multiple of the median that all counted runs exceed."""
    baseline: int
    candidate: int
    runs: int
    """Number of runs of each condition."""


class SlowRunTest(Struct, frozen=True):
    """Result of the test of which condition has slow runs more often."""

    baseline_only: int
    """Number of blocks in which only the baseline's run took longer than the threshold."""
    candidate_only: int
    """Number of blocks in which only the candidate's run took longer than the threshold."""
    e_value: float
    """E-value against "exchanging the two changes nothing", after the last block."""
    level: float
    """Maximum chance that the test ever names a condition if exchanging them changes nothing."""
    side: int
    """1 if the candidate has slow runs more often, -1 if the baseline does, 0 if unknown."""


def means_allow_equivalence(baseline: FloatArray, candidate: FloatArray, margin: float) -> bool:
    """Return whether the means and the slow runs allow the verdict ``equivalent``.

    They allow it if the bound of the ratio of means (`ln_bound_of_means`) is within the margin.
    They also allow it if balanced slow runs are the only reason why the bound is outside
    (`have_balanced_slow_runs`).

    Costs have shape (n,), +inf for a timeout; the margin is in log units.
    """
    if ln_bound_of_means([(1.0, baseline, candidate)]) <= margin:
        return True
    planned = planned_blocks(len(baseline))
    return have_balanced_slow_runs(baseline[:planned], candidate[:planned], margin)


def ln_bound_of_means(hosts: Sequence[tuple[float, FloatArray, FloatArray]]) -> float:
    """Return the bound of the mean log ratio of means over hosts; a single host has weight 1.

    ``hosts`` has for each host its weight w and the costs aᵢ of the baseline and bᵢ of the
    candidate. Both have shape (n,); their means are ā and b̄. With sums Σ over hosts, the bound is
    |Σ w·ln(b̄/ā)| + 1.645·SE + E. SE² = Σ w²·Σᵢ(bᵢ/b̄ - aᵢ/ā)²/n² by the delta method. E is the
    largest single term w·|bᵢ/b̄ - aᵢ/ā|/n: it makes up for the skewness after one slow run. The
    bound is infinite if a mean is not finite and positive, and 0 if all costs are 0.
    """
    estimate = variance = largest_term = 0.0
    for weight, baseline, candidate in hosts:
        if len(baseline) and not (baseline.any() or candidate.any()):
            continue
        ln_ratio = ln_ratio_of_means(baseline, candidate)
        if not math.isfinite(ln_ratio):
            return math.inf
        deviations = (candidate / np.mean(candidate) - baseline / np.mean(baseline)) / len(baseline)
        estimate += weight * ln_ratio
        variance += weight**2 * float(deviations @ deviations)
        largest_term = max(largest_term, weight * float(np.max(np.abs(deviations))))
    return abs(estimate) + NORMAL_95 * math.sqrt(variance) + largest_term


def have_balanced_slow_runs(baseline: FloatArray, candidate: FloatArray, margin: float) -> bool:
    """Return whether slow runs in both conditions alone push the bound over the margin.

    Slow runs are balanced under these conditions. Both conditions have slow runs. The numbers of
    slow runs differ by at most the root of their sum. The typical delays differ by at most a factor
    of 2. The ratio of means is within the margin. So is the bound, after slow runs were clipped at
    their threshold.
    """
    if len(baseline) < MIN_RUNS_FOR_EQUIVALENT:
        return False
    all_costs = np.concatenate([baseline, candidate])
    threshold = slow_factor(all_costs, margin) * float(median_of(all_costs))
    slow_baseline, slow_candidate = baseline[baseline > threshold], candidate[candidate > threshold]
    if not (len(slow_baseline) and len(slow_candidate)) or (
        len(slow_baseline) - len(slow_candidate)
    ) ** 2 > len(slow_baseline) + len(slow_candidate):
        return False
    clipped_costs = [np.minimum(costs, threshold) for costs in (baseline, candidate)]
    if not ln_bound_of_means([(1.0, clipped_costs[0], clipped_costs[1])]) <= margin:
        return False
    delays = [
        float(median_of(costs) - median_of(all_costs)) for costs in (slow_baseline, slow_candidate)
    ]
    if not (math.isfinite(sum(delays)) and max(delays) <= MAX_DELAY_RATIO * min(delays)):
        return False
    return abs(ln_ratio_of_means(baseline, candidate)) <= margin


def planned_blocks(blocks: int) -> int:
    """Return the last number of blocks, up to ``blocks``, at which slow runs are compared."""
    if blocks < MIN_RUNS_FOR_EQUIVALENT:
        return 0
    analysis_number = math.floor(
        ANALYSES_PER_DOUBLING * math.log2(blocks / MIN_RUNS_FOR_EQUIVALENT) + 1e-9
    )
    return int(MIN_RUNS_FOR_EQUIVALENT * 2.0 ** (analysis_number / ANALYSES_PER_DOUBLING))


def blocks_until_means_allow(
    baseline: FloatArray, candidate: FloatArray, margin: float
) -> int | None:
    """Return how many more blocks would let the means allow ``equivalent``.

    The forecast assumes that further blocks are similar: the standard error falls with the root of
    the number of blocks. ``None`` if the ratio of means is unknown or outside the margin.
    """
    blocks = len(baseline)
    missing_blocks = max(0, MIN_RUNS_FOR_EQUIVALENT - blocks)
    if means_allow_equivalence(baseline, candidate, margin):
        return missing_blocks
    bound = ln_bound_of_means([(1.0, baseline, candidate)])
    estimate = abs(ln_ratio_of_means(baseline, candidate))
    if not (math.isfinite(bound) and estimate < margin):
        return None
    # The distance from estimate to bound falls at least as fast as the standard error.
    growth = ((bound - estimate) / (margin - estimate)) ** 2
    return max(missing_blocks, math.ceil(blocks * (growth - 1.0)))


def blocks_to_show(share: float, alpha: float) -> int:
    """Return the number of runs in which a kind of slow run would have appeared.

    ``share`` is the fraction of runs of this kind, between 0 and 1, both excluded. The result is
    the smallest n with (1 - share)^n ≤ alpha, the chance of missing this kind (Hanley and
    Lippman-Hand 1983).
    """
    return max(1, math.ceil(math.log(alpha) / math.log1p(-share) - 1e-9))


def unseen_share(runs: int, alpha: float) -> float:
    """Return the share of a kind of run that ``runs`` observed runs miss with the chance alpha."""
    return -math.expm1(math.log(alpha) / max(1, runs))


def slow_factor(costs: FloatArray, margin: float) -> float:
    """Return a round multiple of the median; a run above it is slow.

    The log cost of a slow run is at least five robust standard deviations and five margins above
    the median. Runs with a smaller delay change the mean only if they are frequent.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(costs[np.isfinite(costs) & (costs > 0.0)])
    log_spread = 0.0
    if len(logs):
        log_spread = NORMAL_MAD * float(median_of(np.abs(logs - median_of(logs))))
    return _round_factor(
        max(math.exp(min(MIN_SLOW_SPREADS * log_spread, 50.0)), 1.0 + MIN_SLOW_MARGINS * margin)
    )


def _round_factor(factor: float) -> float:
    """Return the smallest round multiple, as in ``SLOW_FACTORS``, that is at least ``factor``."""
    if factor <= SLOW_FACTORS[-1]:
        return SLOW_FACTORS[bisect.bisect_left(SLOW_FACTORS, factor)]
    power = 10.0 ** math.floor(math.log10(factor))
    return next(first * power for first in (1.0, 5.0, 10.0) if first * power >= factor)


def slow_run_counts(baseline: FloatArray, candidate: FloatArray, margin: float) -> SlowRunCounts:
    """Count the runs of each condition that took far longer than their own median.

    The multiple of the median is the larger `slow_factor` of both, raised as long as the counts
    stay the same. Costs, 0 or more, have shape (n,).
    """
    medians = [float(median_of(costs)) for costs in (baseline, candidate)]
    factor = max(slow_factor(costs, margin) for costs in (baseline, candidate))

    def count_slow(multiple: float) -> list[int]:
        pairs = zip((baseline, candidate), medians, strict=True)
        return [int(np.sum(costs > multiple * median)) for costs, median in pairs]

    counts = count_slow(factor)
    if any(counts):
        for larger in SLOW_FACTORS:
            if larger > factor and count_slow(larger) == counts:
                factor = larger
    return SlowRunCounts(factor, counts[0], counts[1], len(baseline))


def slow_run_test(
    baseline: FloatArray, candidate: FloatArray, *, margin: float, alpha: float
) -> SlowRunTest:
    """Test whether slow runs are more frequent in one of two conditions.

    The threshold of a block comes from both conditions in the first 10 blocks, later in the first
    20, 40 and so on. Assume that exchanging the two conditions changes nothing. If only one run of
    a block exceeds the threshold, it is then the candidate's with chance ½. Bets on this coin,
    mixed over beta(½, ½), give an e-value (Robbins 1970). The test names a condition once the
    e-value reaches 1/level. So the chance of a false name is at most ``level`` at any stop (Ville
    1939). The level, a fifth of alpha, is in addition to the alpha of the verdicts.

    The test is only for conditions whose typical runs take the same time.

    Costs have shape (n,); a timeout, +inf, exceeds every threshold.
    """
    slow_signs = _slow_signs(baseline, candidate, margin)
    level = LEVEL_SHARE * alpha
    side = candidate_only = 0
    ln_e_value = 0.0
    for count, sign in enumerate(slow_signs, start=1):
        candidate_only += sign > 0
        ln_e_value = ln_coin_mixture(candidate_only, count)
        if not side and ln_e_value >= -math.log(level):
            side = 1 if 2 * candidate_only > count else -1
    e_value = math.exp(min(ln_e_value, 700.0))
    return SlowRunTest(len(slow_signs) - candidate_only, candidate_only, e_value, level, side)


def _slow_signs(baseline: FloatArray, candidate: FloatArray, margin: float) -> list[int]:
    """Return 1 for a block in which only the candidate's run was slow, -1 for only the baseline's.

    The signs are in the order of the blocks; other blocks are left out.
    """
    signs: list[int] = []
    begin = FIRST_THRESHOLD_BLOCKS
    while begin < len(baseline):
        end = min(2 * begin, len(baseline))
        past_costs = np.concatenate([baseline[:begin], candidate[:begin]])
        threshold = slow_factor(past_costs, margin) * float(median_of(past_costs))
        block_signs = (candidate[begin:end] > threshold).astype(int)
        block_signs -= baseline[begin:end] > threshold
        signs.extend(int(sign) for sign in block_signs[block_signs != 0])
        begin = end
    return signs
