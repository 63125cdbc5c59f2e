"""Slow runs: whether they allow ``equivalent``, and whether one condition has more of them.

A typical run hides runs that are slow and rare. Two rules and one test deal with them here:

- `means_allow_equivalence`: the ratio of means must lie within the smallest effect that matters,
  with its standard error; where only slow runs of *both* conditions forbid it, alike in number and
  size, the ratio of means itself suffices;
- `blocks_to_show`: number of runs among which a kind of slow run would have been seen;
- `slow_run_test`: a sequential test by the coin that slow runs come more often in one condition.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise.stats.arrays import FloatArray, median_of
from equipoise.stats.describe import ln_coin_mixture, ln_ratio_of_means

NORMAL_95 = 1.645
"""Standard errors of a one-sided bound at 95 %."""
SHARE_TO_SHOW = 0.05
BLOCKS_TO_SHOW = 59
"""Blocks before ``equivalent``: a slow run that comes in 5 % of runs is missed by so many with a
chance of at most 5 %."""
LOOKS_PER_DOUBLING = 3
"""Slow runs of both conditions are weighed after 59, 74, 93, 118 blocks and so on, not after each:
a sum that is looked at after every block is balanced after one of them sooner or later."""
ALIKE_SIZES = 2.0
"""Factor within which the typical delays of the slow runs of both conditions are alike."""
SPREADS = 5.0
"""Robust standard deviations above the median from which on a run is slow."""
MARGINS = 5.0
"""Multiples of the smallest effect that matters from which on a run is slow."""
FACTORS = (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)
"""Multiples of the median from which on a run is slow; beyond them powers of 10, and half of them.
"""
FIRST_THRESHOLD = 10
"""Blocks from which the first threshold is learnt; it is learnt again when they have doubled."""
LEVEL_SHARE = 0.2
"""Level of the test of slow runs, as a part of alpha: 1 % at alpha 5 %. It comes on top of alpha.
"""


class SlowRunCounts(Struct, frozen=True):
    """Number of runs of each condition that took over a multiple of their own median."""

    factor: float
    """The largest round multiple of the median that leaves out none of these runs."""
    baseline: int
    candidate: int
    runs: int
    """Runs of each condition."""


class SlowRunTest(Struct, frozen=True):
    """The coin's answer on which condition has slow runs more often."""

    baseline_only: int
    """Blocks in which only the baseline's run took longer than the threshold."""
    candidate_only: int
    e_value: float
    """E-value against "exchanging the two changes nothing", after the last block."""
    level: float
    """Largest chance that the test ever names one where exchanging them changes nothing."""
    side: int
    """1 if the candidate has slow runs more often, -1 if the baseline has, 0 if neither is shown.
    """


# -- whether the means allow "equivalent"


def means_allow_equivalence(baseline: FloatArray, candidate: FloatArray, margin: float) -> bool:
    """Return whether the means, and the slow runs, allow the verdict ``equivalent``.

    The ratio of means lies within the margin with its bound (`ln_bound_of_means`). Where the bound
    fails because of slow runs of both conditions that are balanced at the last planned number of
    blocks, the ratio of means within the margin suffices (`have_balanced_slow_runs`).

    Costs have shape (n,), +inf for a timeout; the margin is in log units.
    """
    if ln_bound_of_means([(1.0, baseline, candidate)]) <= margin:
        return True
    planned = planned_blocks(len(baseline))
    return have_balanced_slow_runs(baseline[:planned], candidate[:planned], margin)


def ln_bound_of_means(parts: Sequence[tuple[float, FloatArray, FloatArray]]) -> float:
    """Return the bound of the mean log ratio of means over hosts, of one host with weight 1.

    |Σ w·ln R̄| + 1.645·SE + E, with SE² = Σ w²·Σ(bᵢ/b̄ - aᵢ/ā)²/n² by the delta method, and E the
    largest single term w·|bᵢ/b̄ - aᵢ/ā|/n: after one slow run the normal bound of so skewed a mean
    is too near, and this counts that run once more. Infinite where a mean is not finite and
    positive; 0 where nothing costs anything.

    Each part is a weight with the costs of the baseline and of the candidate, shape (n,) each.
    """
    estimate = variance = extreme = 0.0
    for weight, baseline, candidate in parts:
        if len(baseline) and not (baseline.any() or candidate.any()):
            continue
        ln_ratio = ln_ratio_of_means(baseline, candidate)
        if not math.isfinite(ln_ratio):
            return math.inf
        terms = (candidate / np.mean(candidate) - baseline / np.mean(baseline)) / len(baseline)
        estimate += weight * ln_ratio
        variance += weight**2 * float(terms @ terms)
        extreme = max(extreme, weight * float(np.max(np.abs(terms))))
    return abs(estimate) + NORMAL_95 * math.sqrt(variance) + extreme


def have_balanced_slow_runs(baseline: FloatArray, candidate: FloatArray, margin: float) -> bool:
    """Return whether only slow runs that both conditions have keep the means from the bound.

    Both have some; their numbers differ by at most the root of their sum; their typical delays
    are within a factor of 2; costs cut off at the threshold are within the bound; the ratio of
    means itself lies within the margin. The threshold is one for both conditions, so exchanging
    them changes nothing of this.
    """
    if len(baseline) < BLOCKS_TO_SHOW:
        return False
    both = np.concatenate([baseline, candidate])
    threshold = slow_factor(both, margin) * float(median_of(both))
    late, later = baseline[baseline > threshold], candidate[candidate > threshold]
    if not (len(late) and len(later)) or (len(late) - len(later)) ** 2 > len(late) + len(later):
        return False
    cut = [np.minimum(costs, threshold) for costs in (baseline, candidate)]
    if not ln_bound_of_means([(1.0, cut[0], cut[1])]) <= margin:
        return False
    delays = [float(median_of(costs) - median_of(both)) for costs in (late, later)]
    if not (math.isfinite(sum(delays)) and max(delays) <= ALIKE_SIZES * min(delays)):
        return False
    return abs(ln_ratio_of_means(baseline, candidate)) <= margin


def planned_blocks(blocks: int) -> int:
    """Return the last number of blocks, up to this one, at which slow runs of both are weighed."""
    if blocks < BLOCKS_TO_SHOW:
        return 0
    doublings = math.floor(LOOKS_PER_DOUBLING * math.log2(blocks / BLOCKS_TO_SHOW) + 1e-9)
    return int(BLOCKS_TO_SHOW * 2.0 ** (doublings / LOOKS_PER_DOUBLING))


def blocks_until_means_allow(
    baseline: FloatArray, candidate: FloatArray, margin: float
) -> int | None:
    """Return how many more blocks like these until the means allow ``equivalent``; 0 for now.

    The standard error then falls with the root of the number of blocks. ``None`` where the ratio
    of means lies beyond the margin, or is not known.
    """
    blocks = len(baseline)
    missing = max(0, BLOCKS_TO_SHOW - blocks)
    if means_allow_equivalence(baseline, candidate, margin):
        return missing
    bound, estimate = (
        ln_bound_of_means([(1.0, baseline, candidate)]),
        abs(ln_ratio_of_means(baseline, candidate)),
    )
    if not (math.isfinite(bound) and estimate < margin):
        return None
    # The whole of what is above the estimate falls at least with the root.
    growth = ((bound - estimate) / (margin - estimate)) ** 2
    return max(missing, math.ceil(blocks * (growth - 1.0)))


# -- which slow runs would have shown


def blocks_to_show(share: float, alpha: float) -> int:
    """Return the number of runs that miss a slow kind of run of this share with chance alpha.

    The smallest n with (1 - share)^n ≤ alpha; 299 for 1 % at alpha 0.05 (the rule of three:
    Hanley and Lippman-Hand 1983). The share is above 0 and below 1.
    """
    return max(1, math.ceil(math.log(alpha) / math.log1p(-share) - 1e-9))


def unseen_share(runs: int, alpha: float) -> float:
    """Return the share of runs that this many miss with chance alpha: 1 - alpha^(1/runs)."""
    return -math.expm1(math.log(alpha) / max(1, runs))


# -- slow runs as they were seen


def slow_factor(costs: FloatArray, margin: float) -> float:
    """Return the multiple of the median from which on a run is slow, a round one.

    At least five robust standard deviations of the log costs above it, and five times the margin:
    slower runs of a smaller size must be so frequent, to move the mean by the margin, that they
    are no longer rare.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(costs[np.isfinite(costs) & (costs > 0.0)])
    spread = 0.0
    if len(logs):
        spread = 1.4826 * float(median_of(np.abs(logs - median_of(logs))))
    return _round_factor(max(math.exp(min(SPREADS * spread, 50.0)), 1.0 + MARGINS * margin))


def _round_factor(factor: float) -> float:
    """Return the least round multiple from ``factor`` on."""
    if factor <= FACTORS[-1]:
        return FACTORS[bisect.bisect_left(FACTORS, factor)]
    power = 10.0 ** math.floor(math.log10(factor))
    return next(step * power for step in (1.0, 5.0, 10.0) if step * power >= factor)


def slow_run_counts(baseline: FloatArray, candidate: FloatArray, margin: float) -> SlowRunCounts:
    """Count the runs of each condition that took far longer than their own median.

    A description, of costs of shape (n,) each, from 0 up. The multiple of the median is the larger
    one of both conditions, raised as long as it leaves out no run that it counted.
    """
    medians = [float(median_of(costs)) for costs in (baseline, candidate)]
    factor = max(slow_factor(costs, margin) for costs in (baseline, candidate))

    def counted(least: float) -> list[int]:
        pairs = zip((baseline, candidate), medians, strict=True)
        return [int(np.sum(costs > least * median)) for costs, median in pairs]

    counts = counted(factor)
    if any(counts):
        for larger in FACTORS:
            if larger > factor and counted(larger) == counts:
                factor = larger
    return SlowRunCounts(factor, counts[0], counts[1], len(baseline))


# -- which condition has more of them


def slow_run_test(
    baseline: FloatArray, candidate: FloatArray, *, margin: float, alpha: float
) -> SlowRunTest:
    """Test by the coin whether slow runs come more often in one of two conditions.

    The threshold of a block is learnt from the costs of both conditions in earlier blocks: from
    the first 10, then from 20, 40 and so on. In a block in which exactly one of the two runs
    exceeds it, that run is the candidate's with chance ½ if exchanging the two changes nothing,
    whatever came before. The wealth of a bettor, ∏(1 ± λ) over these blocks, mixed over λ = 2p - 1
    with p by beta(½, ½), is an e-value (Robbins 1970); a condition is named where it ever reached
    1/level, so with chance ``level`` at most at any stop (Ville 1939). The level is a fifth of
    alpha, apart from alpha.

    A constant ratio other than 1 is no exchange: the test is about conditions whose typical runs
    take the same.

    Costs have shape (n,); a timeout, +inf, exceeds every threshold.
    """
    signs = _discordant_signs(baseline, candidate, margin)
    level = LEVEL_SHARE * alpha
    named = won = 0
    logarithm = 0.0
    for count, sign in enumerate(signs, start=1):
        won += sign > 0
        logarithm = ln_coin_mixture(won, count)
        if not named and logarithm >= -math.log(level):
            named = 1 if 2 * won > count else -1
    e_value = math.exp(min(logarithm, 700.0))
    return SlowRunTest(len(signs) - won, won, e_value, level, named)


def _discordant_signs(baseline: FloatArray, candidate: FloatArray, margin: float) -> list[int]:
    """Return 1 for a block in which only the candidate's run was slow, -1 for only the baseline's.

    In the order of the blocks; other blocks are left out.
    """
    signs: list[int] = []
    begin = FIRST_THRESHOLD
    while begin < len(baseline):
        end = min(2 * begin, len(baseline))
        past = np.concatenate([baseline[:begin], candidate[:begin]])
        threshold = slow_factor(past, margin) * float(median_of(past))
        exceeds = (candidate[begin:end] > threshold).astype(int)
        exceeds -= baseline[begin:end] > threshold
        signs.extend(int(sign) for sign in exceeds[exceeds != 0])
        begin = end
    return signs
