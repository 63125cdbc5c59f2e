"""Slow runs: whether they allow ``equivalent``, and whether one condition has more of them.

The typical run does not show runs that are slow and rare. Two rules and one test deal with them:

- `means_allow_equivalence`: the ratio of means, with its standard error, must lie within the
  smallest effect that matters; if only slow runs of *both* conditions forbid it, similar in number
  and size, the ratio of means alone suffices;
- `blocks_to_show`: the number of runs in which a kind of slow run would have appeared;
- `slow_run_test`: a sequential test, by the coin, of whether slow runs are more frequent in one
  condition.
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
"""Minimum number of blocks for ``equivalent``: the chance that they miss a kind of slow run that
occurs in 5 % of runs is at most 5 %."""
ANALYSES_PER_DOUBLING = 3
"""Comparisons of the slow runs of both conditions while the blocks double: after 59, 74, 93, 118
blocks and so on. Compared after every block, they would be balanced sooner or later."""
ALIKE_SIZES = 2.0
"""Factor within which the typical delays of the slow runs of both conditions are similar."""
SLOW_SPREADS = 5.0
"""Robust standard deviations above the median from which on a run is slow."""
SLOW_MARGINS = 5.0
"""Multiples of the smallest effect that matters from which on a run is slow."""
ROUND_FACTORS = (
    1.02,
    1.05,
    1.1,
    1.15,
    1.2,
    1.3,
    1.4,
    1.5,
    1.75,
    2.0,
    2.5,
    3.0,
    4.0,
    5.0,
    7.0,
    10.0,
)
"""Multiples of the median from which on a run is slow; beyond them powers of 10, and half of them.
"""
FIRST_THRESHOLD = 10
"""Blocks from which the first threshold is learnt; it is learnt again after each doubling."""
LEVEL_SHARE = 0.2
"""Level of the test of slow runs over alpha: 1 % at alpha 5 %. It is added to alpha."""


class SlowRunCounts(Struct, frozen=True):
    """Number of runs of each condition that took over a multiple of their own median."""

    factor: float
    """Largest round multiple of the median that all of these runs exceed."""
    baseline: int
    candidate: int
    runs: int
    """Runs of each condition."""


class SlowRunTest(Struct, frozen=True):
    """Result of the test of which condition has slow runs more often."""

    baseline_only: int
    """Blocks in which only the baseline's run took longer than the threshold."""
    candidate_only: int
    e_value: float
    """E-value against "exchanging the two changes nothing", after the last block."""
    level: float
    """Maximum chance that the test ever names a condition if exchanging them changes nothing."""
    side: int
    """1 if the candidate has slow runs more often, -1 if the baseline has, 0 if neither is shown.
    """


# -- whether the means allow "equivalent"


def means_allow_equivalence(baseline: FloatArray, candidate: FloatArray, margin: float) -> bool:
    """Return whether the means and the slow runs allow the verdict ``equivalent``.

    They do if the bound of the ratio of means is within the margin (`ln_bound_of_means`). If the
    bound fails because of slow runs of both conditions, and these are balanced at the last planned
    number of blocks, a ratio of means within the margin suffices (`have_balanced_slow_runs`).

    Costs have shape (n,), +inf for a timeout; the margin is in log units.
    """
    if ln_bound_of_means([(1.0, baseline, candidate)]) <= margin:
        return True
    planned = planned_blocks(len(baseline))
    return have_balanced_slow_runs(baseline[:planned], candidate[:planned], margin)


def ln_bound_of_means(parts: Sequence[tuple[float, FloatArray, FloatArray]]) -> float:
    """Return the bound of the mean log ratio of means over hosts; a single host has weight 1.

    It is |Σ w·ln R̄| + 1.645·SE + E, with SE² = Σ w²·Σ(bᵢ/b̄ - aᵢ/ā)²/n² by the delta method, and E
    the largest single term w·|bᵢ/b̄ - aᵢ/ā|/n. After one slow run the normal bound of so skewed a
    mean is too small; E counts that run once more. The bound is infinite if a mean is not finite
    and positive, and 0 if nothing costs anything.

    Each part has a weight, the costs of the baseline and those of the candidate, shape (n,) each.
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
    """Return whether slow runs of both conditions are the only reason why the bound fails.

    Both conditions have slow runs; their numbers differ by at most the root of their sum; their
    typical delays are within a factor of 2; costs cut off at the threshold are within the bound;
    the ratio of means itself is within the margin. The threshold is the same for both conditions,
    so exchanging them changes nothing.
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
    """Return the last number of blocks, up to this one, at which slow runs of both are compared."""
    if blocks < BLOCKS_TO_SHOW:
        return 0
    analyses = math.floor(ANALYSES_PER_DOUBLING * math.log2(blocks / BLOCKS_TO_SHOW) + 1e-9)
    return int(BLOCKS_TO_SHOW * 2.0 ** (analyses / ANALYSES_PER_DOUBLING))


def blocks_until_means_allow(
    baseline: FloatArray, candidate: FloatArray, margin: float
) -> int | None:
    """Return how many more blocks like these the means need to allow ``equivalent``.

    The standard error falls with the root of the number of blocks. ``None`` if the ratio of means
    is beyond the margin, or unknown.
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
    # The distance from the estimate to the bound falls at least with the root.
    growth = ((bound - estimate) / (margin - estimate)) ** 2
    return max(missing, math.ceil(blocks * (growth - 1.0)))


# -- which slow runs would have appeared


def blocks_to_show(share: float, alpha: float) -> int:
    """Return the number of runs that miss a kind of slow run with this share with chance alpha.

    It is the smallest n with (1 - share)^n ≤ alpha: 299 for 1 % at alpha 0.05 (the rule of three:
    Hanley and Lippman-Hand 1983). The share is between 0 and 1, both excluded.
    """
    return max(1, math.ceil(math.log(alpha) / math.log1p(-share) - 1e-9))


def unseen_share(runs: int, alpha: float) -> float:
    """Return the share of slow runs that ``runs`` miss with chance alpha: 1 - alpha^(1/runs)."""
    return -math.expm1(math.log(alpha) / max(1, runs))


# -- slow runs that were observed


def slow_factor(costs: FloatArray, margin: float) -> float:
    """Return the round multiple of the median from which on a run is slow.

    It is at least five robust standard deviations of the log costs, and five times the margin,
    above the median. Runs with a smaller delay would have to be frequent to move the mean by the
    margin.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(costs[np.isfinite(costs) & (costs > 0.0)])
    spread = 0.0
    if len(logs):
        spread = 1.4826 * float(median_of(np.abs(logs - median_of(logs))))
    return _round_factor(
        max(math.exp(min(SLOW_SPREADS * spread, 50.0)), 1.0 + SLOW_MARGINS * margin)
    )


def _round_factor(factor: float) -> float:
    """Return the smallest round multiple from ``factor`` on."""
    if factor <= ROUND_FACTORS[-1]:
        return ROUND_FACTORS[bisect.bisect_left(ROUND_FACTORS, factor)]
    power = 10.0 ** math.floor(math.log10(factor))
    return next(step * power for step in (1.0, 5.0, 10.0) if step * power >= factor)


def slow_run_counts(baseline: FloatArray, candidate: FloatArray, margin: float) -> SlowRunCounts:
    """Count the runs of each condition that took far longer than their own median.

    This is description. Costs have shape (n,) each, from 0 up. The multiple of the median is the
    larger one of both conditions, raised as long as the counts stay the same.
    """
    medians = [float(median_of(costs)) for costs in (baseline, candidate)]
    factor = max(slow_factor(costs, margin) for costs in (baseline, candidate))

    def counted(least: float) -> list[int]:
        pairs = zip((baseline, candidate), medians, strict=True)
        return [int(np.sum(costs > least * median)) for costs, median in pairs]

    counts = counted(factor)
    if any(counts):
        for larger in ROUND_FACTORS:
            if larger > factor and counted(larger) == counts:
                factor = larger
    return SlowRunCounts(factor, counts[0], counts[1], len(baseline))


# -- which condition has more of them


def slow_run_test(
    baseline: FloatArray, candidate: FloatArray, *, margin: float, alpha: float
) -> SlowRunTest:
    """Test by the coin whether slow runs are more frequent in one of two conditions.

    The threshold of a block is learnt from the costs of both conditions in earlier blocks: from the
    first 10, then from 20, 40 and so on. If exactly one run of a block exceeds it, and exchanging
    the two changes nothing, that run is the candidate's with chance ½, whatever came before. The
    wealth of a bettor, ∏(1 ± λ) over these blocks, mixed over λ = 2p - 1 with p by beta(½, ½), is
    an e-value (Robbins 1970). A condition is named if the e-value ever reached 1/level, so the
    chance of a false name is at most ``level`` at any stop (Ville 1939). The level is a fifth of
    alpha, in addition to alpha.

    The test is for conditions whose typical runs take the same time: with a constant ratio other
    than 1, exchanging the two does change something.

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

    The signs are in the order of the blocks; other blocks are left out.
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
