"""The verdict on candidates, valid after any number of interim analyses.

docs/methods/verdict.md defines the verdicts. Effects are log ratios of a cost, candidate over
baseline. "Within ±min_effect" means within ±ln(1 + min_effect/100). So exchanging candidate and
baseline only exchanges the verdicts ``faster`` and ``slower``.

The *level* of an interval is 1 minus its coverage. A *running* interval has the ratios that no
interim analysis excluded, an interval *at the stop* those that the last analysis does not exclude.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise._native import (
    EQUIVALENCE_BLOCKS,
    EQUIVALENCE_LEVELS,
    BettingSequence,
    smallest_effects,
)
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import Interval
from equipoise.model.result import Verdict
from equipoise.shared.spelling import option
from equipoise.stats.arrays import FloatArray
from equipoise.stats.describe import ln_ratio_of_means, ln_ratios_without_one_block
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.slow_runs import (
    MIN_RUNS_FOR_EQUIVALENT,
    blocks_until_means_allow,
    means_allow_equivalence,
)

CONTINUATIONS = 40
"""Number of simulated continuations for the forecast of one comparison."""
MAX_CONTINUATIONS = 800
"""Maximum number of continuations for all undecided comparisons together."""
MIN_CONTINUATIONS = 8
"""Minimum number of continuations of each undecided comparison."""
FORECAST_GROWTH = 20
"""Maximum length of a continuation, as a multiple of the blocks so far."""
MIN_FORECAST_BLOCKS, MAX_FORECAST_BLOCKS = 200, 4000
"""Bounds of this maximum length."""
_MAX_WON_BLOCKS = 200
"""Number of won blocks that suffices to exclude a ratio at any level in use."""
MIN_WIDTH_SHARE = 0.7
"""Minimum width of a trusted running interval, over the width of the interval at the stop."""
MAX_LEVEL = 0.999_999
"""Maximum level of an interval; the engine needs levels below 1."""
Judged = TypeVar("Judged")


class LogRatioIntervals(Struct, frozen=True):
    """A typical log ratio, candidate over baseline, with its two intervals."""

    typical: float | None
    """Huber centre of the block differences. It is ±inf if at least half of them are infinite, and
    ``None`` if every block is a tie of timeouts."""
    low: float
    high: float
    """Bounds of the interval; a bound is infinite if no ratio on its side is excluded yet. Both are
    infinite with the same sign if every finite ratio is excluded."""
    equivalence_low: float
    equivalence_high: float
    """Bounds of the interval that decides on ``equivalent`` and at a gate. The level holds for each
    side alone (docs/methods/verdict.md), so the interval covers with 1 - 2·level."""

    @property
    def ratio(self) -> float | None:
        """Typical ratio; ``None`` if it is not finite."""
        return None if self.typical is None else finite_ratio(self.typical)

    @property
    def ratio_ci(self) -> Interval:
        """Bounds of the interval as ratios; ``None`` for a bound that is not finite."""
        return (finite_ratio(self.low), finite_ratio(self.high))

    @property
    def equivalence_ci(self) -> Interval:
        """Bounds of the interval that decides on ``equivalent``, as in ``ratio_ci``."""
        return (finite_ratio(self.equivalence_low), finite_ratio(self.equivalence_high))


class ComparisonVerdict(LogRatioIntervals, frozen=True):
    """Verdict on one candidate and one metric; log ratios, candidate over baseline."""

    verdict: Verdict
    level: float
    """1 minus the coverage of the interval: alpha, or less among several comparisons."""
    equivalence_level: float
    """1 minus the coverage of the interval that decides on ``equivalent``."""
    means_forbid_equivalence: bool
    """Whether only the means or the slow runs forbid ``equivalent`` (`stats.slow_runs`)."""
    ln_e_value: float
    """Logarithm of the e-value against "no difference" at the stop."""
    blocks: int
    ln_mean_ratio: float
    """Logarithm of the ratio of means; ±inf if one condition has timeouts, NaN if both have."""
    ratio_is_constant: bool
    """False if no constant ratio agrees with all blocks, or if the estimate is outside the running
    interval: ``low`` and ``high`` are then the interval at the stop."""
    lost_analyses: int = 0
    """Number of planned analyses across layouts that were impossible because of timeouts."""

    @property
    def e_value(self) -> float:
        """E-value against "no difference", capped at the largest float."""
        return e_value_of(self.ln_e_value)

    @property
    def width_percent(self) -> float | None:
        """Percentage by which the upper bound exceeds the lower; ``None`` if it is not finite.

        It is 100·(high/low - 1) for the bounds as ratios, which does not change if candidate and
        baseline are exchanged.
        """
        log_width = self.high - self.low
        return 100.0 * math.expm1(log_width) if math.isfinite(log_width) else None


def judge(
    comparisons: Sequence[PairedBlocks], *, min_effect: float, alpha: float
) -> tuple[ComparisonVerdict, ...]:
    """Judge each candidate against the baseline (docs/methods/several-comparisons.md).

    A single comparison has the whole ``alpha`` and the running confidence sequence. K comparisons
    share alpha. The largest possible number R of them is selected, with e-values of at least
    K/(alpha·R) (e-BH: Wang and Ramdas 2022). Their intervals at the stop have the level alpha·R/K
    (e-BY: Xu, Wang and Ramdas 2022). The comparisons that are not selected are ``undecided``, with
    intervals at alpha/K. The false-discovery rate and the false-coverage rate are at most alpha.

    ``min_effect`` is the smallest effect that matters, in percent; with 0 nothing is equivalent.

    Raise `UnusableInput` unless ``min_effect`` is 0 or more and ``alpha`` is between 0 and 1.
    """
    judge_all_at = judge_function(comparisons, min_effect, alpha)
    count = len(comparisons)
    decided = select_most(judge_all_at, lambda judged: judged.verdict != "undecided", alpha, count)
    at_smallest_level = judge_all_at(alpha / count) if len(decided) < count else []
    return tuple(
        decided[index]
        if index in decided
        else replace(at_smallest_level[index], verdict="undecided")
        for index in range(count)
    )


def judge_function(
    comparisons: Sequence[PairedBlocks], min_effect: float, alpha: float
) -> Callable[[float], list[ComparisonVerdict]]:
    """Return a function that takes a level and judges all comparisons at this level."""
    margin = margin_of(min_effect)
    check_alpha(alpha)
    judge_one = judge_alone if len(comparisons) == 1 else judge_at_stop
    return lambda level: [judge_one(blocks, margin, level) for blocks in comparisons]


def select_most(
    judge_all_at: Callable[[float], list[Judged]],
    meets_condition: Callable[[Judged], bool],
    alpha: float,
    tested_count: int,
) -> dict[int, Judged]:
    """Select as many comparisons as possible that meet a condition; return them by index.

    If R of K = ``tested_count`` comparisons are selected, all R meet the condition at alpha·R/K.
    """
    selected_count = tested_count
    while selected_count:
        verdicts = judge_all_at(alpha * selected_count / tested_count)
        selected = {
            index: judged for index, judged in enumerate(verdicts) if meets_condition(judged)
        }
        if len(selected) >= selected_count:
            return selected
        # A lower level selects no more comparisons, so no number between both counts is possible.
        selected_count = len(selected)
    return {}


def earliest_block(alpha: float, comparisons: int = 1) -> int:
    """Return the smallest number of blocks after which any verdict is possible; 7 at alpha 0.05.

    If all comparisons are decided in the same block, each has the full alpha.
    """
    check_alpha(alpha)
    levels = [alpha * selected / comparisons for selected in range(1, comparisons + 1)]
    return min(blocks_to_win(level) for level in levels)


def decisive_block(alpha: float, comparisons: int) -> int:
    """Return the smallest number of blocks that can decide one comparison while others are open."""
    check_alpha(alpha)
    return blocks_to_win(alpha / max(1, comparisons))


def blocks_to_go(
    comparisons: Sequence[PairedBlocks],
    verdicts: Sequence[ComparisonVerdict],
    *,
    min_effect: float,
    alpha: float,
    seed: int,
) -> tuple[int | None, ...]:
    """Forecast how many more blocks would decide each undecided comparison.

    The forecast is the median over simulated continuations of the campaign. They draw blocks of the
    campaign with new coins, and assume that the current estimate is true. If this estimate is
    within the margin, the forecast includes the blocks that the means need for ``equivalent``. A
    comparison has no forecast if it is decided, if its means forbid ``equivalent``, or if half of
    the continuations reach no verdict.

    ``comparisons`` and ``verdicts`` are argument and result of ``judge``; ``seed`` is below 2^64.
    """
    margin, count = margin_of(min_effect), len(verdicts)
    decided_count = sum(judged.verdict != "undecided" for judged in verdicts)
    level = alpha * min(decided_count + 1, count) / count if count else alpha
    continuations_share = MAX_CONTINUATIONS // max(1, count - decided_count)
    continuations = max(MIN_CONTINUATIONS, min(CONTINUATIONS, continuations_share))

    def forecast(blocks: PairedBlocks, typical: float | None) -> int | None:
        max_blocks = min(
            max(FORECAST_GROWTH * len(blocks), MIN_FORECAST_BLOCKS), MAX_FORECAST_BLOCKS
        )
        engine = blocks.engine
        simulate = engine.blocks_to_go_running if count == 1 else engine.blocks_to_go_at_stop
        remaining = simulate(level, margin, max_blocks, continuations, seed)
        if remaining is None or typical is None or abs(typical) >= margin:
            return remaining
        needed = blocks_until_means_allow(blocks.own_baseline, blocks.candidate, margin)
        return None if needed is None or needed > max_blocks else max(remaining, needed)

    return tuple(
        forecast(blocks, judged.typical)
        if judged.verdict == "undecided" and len(blocks) and not judged.means_forbid_equivalence
        else None
        for blocks, judged in zip(comparisons, verdicts, strict=True)
    )


def typical_ratio(blocks: PairedBlocks) -> float | None:
    """Return the typical ratio as `judge` estimates it; ``None`` if it is not finite or unknown."""
    log_ratio = typical_log_ratio(blocks)
    return None if log_ratio is None else finite_ratio(log_ratio)


def typical_log_ratio(blocks: PairedBlocks) -> float | None:
    """Return the Huber centre of the block differences, as in `ComparisonVerdict.typical`."""
    key = ("centre", 0.0, 0.0)
    if key not in blocks.verdicts:
        blocks.verdicts[key] = blocks.engine.centre()
    centre: tuple[float, float] | None = blocks.verdicts[key]
    return None if centre is None else centre[0]


def is_precise(judged: ComparisonVerdict, precision: float) -> bool:
    """Return whether the interval is at most ``precision`` percent wide (``--precision``)."""
    return judged.width_percent is not None and judged.width_percent <= precision


def margin_of(min_effect: float) -> float:
    """Return ln(1 + min_effect/100): the smallest effect that matters, in log units.

    Raise `UnusableInput` if it is negative or not a number.
    """
    if not (math.isfinite(min_effect) and min_effect >= 0):
        raise UnusableInput(
            f"the smallest effect that matters cannot be {min_effect} percent",
            hint=f"give a number from 0 up, such as {option('min_effect', 1)}",
        )
    return math.log1p(min_effect / 100.0)


def e_value_of(ln_e_value: float) -> float:
    """Return an e-value from its logarithm, capped at the largest float."""
    return math.exp(min(ln_e_value, math.log(sys.float_info.max)))


def finite_ratio(log_ratio: float) -> float | None:
    """Return e to the log ratio; ``None`` if the result is not a finite float."""
    if not math.isfinite(log_ratio) or log_ratio > math.log(sys.float_info.max):
        return None
    return math.exp(log_ratio)


def judge_alone(blocks: PairedBlocks, margin: float, alpha: float) -> ComparisonVerdict:
    """Judge the only comparison of a campaign, by the running confidence sequence at ``alpha``."""
    cached: ComparisonVerdict | None = blocks.verdicts.get(("alone", margin, alpha))
    if cached is None:
        trusted = _trusted_interval(blocks.engine, alpha)
        level = equivalence_level(alpha)
        # Both intervals are running, or both are at the stop: so the second lies within the first.
        equivalence_interval = (
            blocks.engine.interval_at_stop(level)
            if trusted.is_at_stop
            else _nonempty_interval(blocks.engine, level)[0]
        )
        judged = judge_by_intervals(blocks, margin, alpha, trusted.interval, equivalence_interval)
        is_constant = trusted.ratio_is_constant and judged.ratio_is_constant
        cached = replace(judged, ratio_is_constant=is_constant)
        blocks.verdicts["alone", margin, alpha] = cached
    return cached


def judge_at_stop(blocks: PairedBlocks, margin: float, level: float) -> ComparisonVerdict:
    """Judge one of several comparisons, by its interval at the stop."""
    cached: ComparisonVerdict | None = blocks.verdicts.get(("at stop", margin, level))
    if cached is None:
        # An interval without 0 implies an e-value of at least 1/level: no second test is needed.
        interval = blocks.engine.interval_at_stop(level)
        equivalence_interval = blocks.engine.interval_at_stop(equivalence_level(level))
        cached = judge_by_intervals(blocks, margin, level, interval, equivalence_interval)
        blocks.verdicts["at stop", margin, level] = cached
    return cached


def judge_unadjusted(
    blocks: PairedBlocks, judged: ComparisonVerdict, *, min_effect: float, compared: int
) -> ComparisonVerdict:
    """Judge a comparison without adjustment by covariates, for display next to its verdict.

    The level is the verdict's level. ``compared`` is the number of comparisons that share alpha.
    """
    judge_one = judge_alone if compared == 1 else judge_at_stop
    return judge_one(blocks.unadjusted(), margin_of(min_effect), judged.level)


def running_interval(engine: BettingSequence, level: float) -> tuple[tuple[float, float], bool]:
    """Return the running interval, or the interval at the stop if the running one is not trusted.

    Also return whether a constant ratio fits all blocks. The running interval is trusted if it
    contains the estimate and has at least 0.7 times the width of the interval at the stop.
    """
    trusted = _trusted_interval(engine, level)
    return trusted.interval, trusted.ratio_is_constant


class _TrustedInterval(Struct, frozen=True):
    """The running interval or, if the running interval is not trusted, the interval at the stop."""

    interval: tuple[float, float]
    ratio_is_constant: bool
    is_at_stop: bool


def _trusted_interval(engine: BettingSequence, level: float) -> _TrustedInterval:
    interval, is_constant = _nonempty_interval(engine, level)
    if not is_constant:
        return _TrustedInterval(interval, ratio_is_constant=False, is_at_stop=True)
    running = _TrustedInterval(interval, ratio_is_constant=True, is_at_stop=False)
    low, high = interval
    if low == -math.inf and high == math.inf:
        return running
    centre = engine.centre()
    if centre is not None and not low <= centre[0] <= high:
        interval_at_stop = engine.interval_at_stop(level)
        return _TrustedInterval(interval_at_stop, ratio_is_constant=False, is_at_stop=True)
    if math.isinf(low) or math.isinf(high):
        return running
    stop_low, stop_high = engine.interval_at_stop(level)
    if high - low < MIN_WIDTH_SHARE * (stop_high - stop_low):
        return _TrustedInterval((stop_low, stop_high), ratio_is_constant=True, is_at_stop=True)
    return running


def _nonempty_interval(engine: BettingSequence, level: float) -> tuple[tuple[float, float], bool]:
    """Return the running interval and True; if it is empty, the interval at the stop and False."""
    low, high = engine.running_interval(level)
    if low <= high:
        return (low, high), True
    return engine.interval_at_stop(level), False


def equivalence_level(level: float) -> float:
    """Return the level of the interval that decides on ``equivalent``."""
    return min(EQUIVALENCE_LEVELS * level, MAX_LEVEL)


def judge_by_intervals(
    blocks: PairedBlocks,
    margin: float,
    level: float,
    interval: tuple[float, float],
    equivalence_interval: tuple[float, float],
    estimate: float | None = None,
) -> ComparisonVerdict:
    """Return the verdict from an estimate (by default the robust centre) and its intervals."""
    centre = typical_log_ratio(blocks)
    typical = estimate
    is_constant = True
    if typical is None and centre is not None:
        typical = centre
        # The result reports an estimate outside its interval, and does not move it.
        is_constant = interval[0] <= typical <= interval[1]
    verdict, means_forbid_equivalence = verdict_by_intervals(
        interval,
        equivalence_interval,
        typical,
        margin,
        blocks=len(blocks),
        runs=len(blocks),
        means_allow=lambda: means_allow_equivalence(blocks.own_baseline, blocks.candidate, margin),
        means_contradict=lambda side: _means_contradict(blocks, side, margin),
    )
    return ComparisonVerdict(
        verdict=verdict,
        typical=typical,
        low=interval[0],
        high=interval[1],
        equivalence_low=equivalence_interval[0],
        equivalence_high=equivalence_interval[1],
        level=level,
        equivalence_level=equivalence_level(level),
        means_forbid_equivalence=means_forbid_equivalence,
        ln_e_value=blocks.engine.ln_e_value(),
        blocks=len(blocks),
        ln_mean_ratio=_ln_mean_ratio(blocks),
        ratio_is_constant=is_constant,
    )


def _ln_mean_ratio(blocks: PairedBlocks) -> float:
    """Return ln of the ratio of means; 0 if all costs are 0. It is computed once for all levels."""
    key = ("means", 0.0, 0.0)
    if key not in blocks.verdicts:
        baseline, candidate = blocks.baseline, blocks.candidate
        costs_nothing = len(blocks) and not (baseline.any() or candidate.any())
        blocks.verdicts[key] = 0.0 if costs_nothing else ln_ratio_of_means(baseline, candidate)
    ln_ratio: float = blocks.verdicts[key]
    return ln_ratio


def verdict_by_intervals(
    interval: tuple[float, float],
    equivalence_interval: tuple[float, float],
    typical: float | None,
    margin: float,
    *,
    blocks: int,
    runs: int,
    means_allow: Callable[[], bool],
    means_contradict: Callable[[float], bool],
) -> tuple[Verdict, bool]:
    """Return the verdict, and whether only the means forbid ``equivalent``.

    ``blocks`` is the number of blocks on the host with the fewest blocks; ``runs`` is the number of
    blocks on all hosts, in which a slow run could appear. ``means_allow`` returns whether the means
    and the slow runs allow ``equivalent``. ``means_contradict`` takes a side, 1 for slower or -1
    for faster. It returns whether the means lie beyond the margin on the opposite side.
    """
    (low, high), (equivalence_low, equivalence_high) = interval, equivalence_interval
    is_within = -margin <= equivalence_low and equivalence_high <= margin
    is_within = is_within and margin > 0
    is_within = is_within and blocks >= EQUIVALENCE_BLOCKS and runs >= MIN_RUNS_FOR_EQUIVALENT
    if is_within and means_allow():
        return "equivalent", False
    if typical is not None and low > 0 and typical > 0 and typical >= margin:
        return "mixed" if means_contradict(1.0) else "slower", False
    if typical is not None and high < 0 and typical < 0 and typical <= -margin:
        return "mixed" if means_contradict(-1.0) else "faster", False
    return "undecided", is_within


def _means_contradict(blocks: PairedBlocks, side: float, margin: float) -> bool:
    """Return whether the ratio of means, also without any one block, is beyond the other margin."""
    if not side * ln_ratio_of_means(blocks.baseline, blocks.candidate) < -margin:
        return False
    ratios_without_one = ln_ratios_without_one_block(blocks.baseline, blocks.candidate)
    return bool(np.all(side * ratios_without_one < -margin))


@functools.cache
def blocks_to_win(level: float) -> int:
    """Return the number of blocks that exclude a ratio if a bettor wins all of them."""
    block_count = BettingSequence(
        np.ones(_MAX_WON_BLOCKS), np.ones(_MAX_WON_BLOCKS, dtype=np.int8), np.zeros(_MAX_WON_BLOCKS)
    ).blocks_to_exclude(0.0, level)
    assert block_count is not None, "the level is too small for 200 won blocks"
    return block_count


def check_alpha(alpha: float) -> None:
    """Raise `UnusableInput` if alpha is not between 0 and 1."""
    if not 0.0 < alpha < 1.0:
        raise UnusableInput(
            f"alpha cannot be {alpha}",
            hint=f"give a number between 0 and 1, such as {option('alpha', 0.05)}",
        )


SIMULATED_CAMPAIGNS = 60
"""Number of campaigns that `smallest_effect` simulates."""
DETECTED_SHARE = 0.9
"""Share of the simulated campaigns that must detect the effect."""
MAX_SIMULATED_BLOCKS = 100_000
"""Maximum length of a simulated campaign; a longer campaign detects at least as much."""
MAX_EFFECT = 1.0
"""Maximum effect, 100 %: a ratio of 2."""


def smallest_effect(
    differences: FloatArray, blocks: int, *, alpha: float, seed: int
) -> float | None:
    """Return the smallest log ratio that nine of ten campaigns of this length detect.

    The engine judges simulated campaigns of ``blocks`` blocks, at most 100,000. They draw their
    blocks, with new coins, from ``differences``, shape (n,): finite block differences of campaigns
    without an effect. The result is ``None`` if the effect exceeds ln 2, or with too few blocks for
    a verdict.
    """
    if min(blocks, len(differences)) < earliest_block(alpha):
        return None
    effects = smallest_effects(
        np.asarray(differences - np.median(differences), dtype=np.float64),
        math.log1p(MAX_EFFECT),
        blocks=min(blocks, MAX_SIMULATED_BLOCKS),
        level=alpha,
        campaigns=SIMULATED_CAMPAIGNS,
        seed=seed,
    )
    smallest_log_ratio = effects[math.ceil(DETECTED_SHARE * SIMULATED_CAMPAIGNS) - 1]
    return smallest_log_ratio if math.isfinite(smallest_log_ratio) else None
