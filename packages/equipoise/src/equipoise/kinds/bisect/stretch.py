"""Search one stretch of a bisection: confirm the gap between two commits, then find the culprit.

The own pair of a commit is this commit and the latest ancestor that runs. The step of the commit is
the difference between these two commits. The order of a block is 1 if the earlier commit ran first,
else -1. The search has three parts:

1. Blocks of both ends confirm the gap.
2. Bets (crates/verdict/src/bisection) choose pairs, until they find a candidate for the culprit.
3. More blocks of the own pair of the candidate measure its step.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from equipoise._native import EQUIVALENCE_BLOCKS, BisectionSearch
from equipoise.kinds.bisect.terms import UnconfirmedReason
from equipoise.model.quantities import Interval
from equipoise.revisions.terms import CHEAP_BUILD_TRIALS, MAX_STEP_HALF_WIDTH, IndexPair
from equipoise.stats.resolution import PastValues, Resolution
from equipoise.stats.sequence import PairedBlocks, block_differences
from equipoise.stats.verdict import (
    ComparisonVerdict,
    e_value_of,
    earliest_block,
    equivalence_level,
    judge_alone,
)

StretchVerdict = Literal[
    "confirming", "no difference", "searching", "culprit", "several", "undecided"
]
"""``several``: no single commit explains the gap. ``undecided``: no block is left, or an end of the
stretch does not run."""

COST_OF_CHEAP_BUILD = 0.2
COST_OF_BUILD = 0.5
"""Costs of a build, in trials, for the choice of the next pair."""

# Both factors multiply the number of blocks of the own pair when the candidate was found.
MAX_NARROWING_FACTOR = 2
"""Factor for the maximum number of blocks that narrow the interval of a step."""
MAX_EXCEEDING_FACTOR = 4
"""Factor for the maximum number of blocks that compare a step with ``min_effect``."""


class OwnPairs:
    """Counter of the own pairs that have run; the bisections of a campaign share one counter."""

    def __init__(self) -> None:
        self.count = 0


class MeasuredStep(Struct, frozen=True):
    """The step of a candidate, from commit ``first - 1`` to commit ``last``."""

    first: int
    """First commit that may have made the step."""
    last: int
    """Commit that runs; the commits from ``first`` to ``last - 1`` do not run."""
    pair_number: int
    """Number k of the own pair: the first own pair that ran has k = 1 (docs/methods/bisect.md)."""
    e_value: float
    """Evidence that the step is larger than ``margin``, in the direction of the gap; at least
    k(k + 1)/alpha."""
    margin: float
    """Smallest step, in log units, that the bets can find."""
    blocks: int
    """Number of blocks of the own pair."""
    ratio: float | None
    """Cost of commit ``last`` over the cost of commit ``first - 1``; ``None`` if not finite."""
    ratio_ci: Interval
    significance_level: float
    """1 minus the coverage of ``ratio_ci``: alpha/(k(k + 1))."""
    share_of_gap: float | None
    """Logarithm of ``ratio`` over the logarithm of the whole gap; ``None`` if unknown."""
    share_ci: Interval
    """Interval of ``share_of_gap``, with coverage 1 - alpha."""


class UnconfirmedStep(Struct, frozen=True):
    """The step of a candidate that is not named, and why."""

    step: MeasuredStep
    reason: UnconfirmedReason


class StretchState(Struct, frozen=True):
    """The state of the search of one stretch."""

    first: int
    """Earlier end of the stretch; the culprit is a later commit."""
    last: int
    """Later end of the stretch; the culprit may be this commit."""
    verdict: StretchVerdict
    gap: ComparisonVerdict
    """Cost of the last commit over the cost of the first commit."""
    blocks: int
    blocks_to_go: int | None
    """Rough forecast of the remaining blocks; ``None`` before and after the search."""


class Stretch:
    """The search between two commits. Every commit is an index along the line of commits.

    A gap within ± ``margin``, in log units, counts as equal. ``prior`` has the weights of the
    commits after the first; an empty ``prior`` means equal weights. ``withdrawn`` has the commits
    of the line that do not run. ``max_blocks`` is the maximum number of blocks.
    """

    def __init__(
        self,
        first: int,
        last: int,
        *,
        alpha: float,
        margin: float,
        prior: Sequence[float],
        withdrawn: Collection[int],
        resolution: Resolution,
        max_blocks: int | None,
    ) -> None:
        self.first, self.last = first, last
        self.blocks = 0
        is_end_withdrawn = first in withdrawn or last in withdrawn
        self.verdict: StretchVerdict = "undecided" if is_end_withdrawn else "confirming"
        self.bets: BisectionSearch | None = None
        """``None`` until the gap is confirmed."""
        self.split: int | None = None
        """Commit at which a stretch without a single culprit is split."""
        self.candidate_pair: IndexPair | None = None
        """Own pair of the candidate; ``None`` until the bets find a candidate."""
        self.pair_numbers: dict[IndexPair, int] = {}
        """Number k of each own pair that has run."""
        self._alpha, self._margin, self._max_blocks = alpha, margin, max_blocks
        self._prior, self._withdrawn = prior, set(withdrawn)
        self.resolution, self._past_costs = resolution, PastValues(resolution)
        self.gap = self._empty_blocks()
        self._confirming_blocks: list[tuple[float, float]] = []
        """Log difference and order (1 or -1) of each block that confirmed the gap."""
        self._own_blocks: dict[IndexPair, PairedBlocks] = {}
        # The fraction of the gap needs an interval of the gap at half of alpha.
        self._min_gap_blocks = earliest_block(0.5 * alpha)
        # Minimum blocks for an interval of the step; blocks of the own pair at the discovery.
        self._min_step_blocks = self._discovery_blocks = 0
        # False once a commit of the candidate's own pair does not run.
        self._can_measure_step = True

    @property
    def fixed_pair(self) -> IndexPair | None:
        """The only pair that can run now; ``None`` if there is a choice of pairs."""
        return (self.first, self.last) if self.bets is None else self.candidate_pair

    @property
    def is_open(self) -> bool:
        """Whether the stretch needs more blocks, to find a candidate or to measure the step."""
        if self.candidate_pair is not None:
            return not self._is_step_known(self.candidate_pair)
        return self.verdict in ("confirming", "searching")

    def set_resolution(self, resolution: Resolution) -> None:
        """Set the resolution of the metric; do nothing once a block has a finite cost."""
        if self._past_costs.is_empty:
            self.resolution, self._past_costs = resolution, PastValues(resolution)
            self.gap.set_resolution(resolution)

    def next_pair(self, built: Collection[int], build_trials: float) -> IndexPair:
        """Return the pair that runs next; the stretch must be open."""
        if self.bets is None:
            return self.first, self.last
        if self.candidate_pair is not None:
            return self.candidate_pair
        build_cost = COST_OF_CHEAP_BUILD if build_trials < CHEAP_BUILD_TRIALS else COST_OF_BUILD
        built_inside = [
            commit - self.first for commit in built if self.first <= commit <= self.last
        ]
        earlier, later = self.bets.choose(built_inside, build_cost)
        return self.first + earlier, self.first + later

    def can_use(self, pair: IndexPair) -> bool:
        """Return whether this stretch can use a block of a pair that another search chose.

        A stretch does not use an own pair that has not run yet: after each new own pair, later
        candidates need more evidence.
        """
        if self.fixed_pair is not None:
            return pair == self.fixed_pair
        earlier, later = pair
        is_inside = self.first <= earlier and later <= self.last
        is_own_pair = self._withdrawn.issuperset(range(earlier + 1, later))
        is_whole_gap = pair == (self.first, self.last)
        return is_inside and not is_whole_gap and (pair in self.pair_numbers or not is_own_pair)

    def add(
        self,
        pair: IndexPair,
        costs: tuple[float, float],
        order: int,
        block_number: int,
        own_pairs: OwnPairs,
    ) -> None:
        """Add a block; ``block_number`` counts the blocks of the whole bisection, from 1."""
        fixed_pair = self.fixed_pair
        if not self.first <= pair[0] < pair[1] <= self.last or fixed_pair not in (None, pair):
            expected_pair = fixed_pair or f"two commits from {self.first} to {self.last}"
            raise ValueError(f"{pair} is not the pair that runs now: {expected_pair}")
        self.blocks += 1
        if self.bets is None:
            self._add_to_gap(costs, order)
        elif self.candidate_pair is not None:
            self._add_past_costs(costs)
            self._own_blocks[self.candidate_pair].append(*costs, order)
        else:
            self._add_to_bets(self.bets, pair, costs, order, block_number, own_pairs)
        is_used_up = self._max_blocks is not None and self.blocks >= self._max_blocks
        if self._is_in_progress and is_used_up:
            self.verdict = "undecided"

    def withdraw(self, commit: int) -> None:
        """Withdraw a commit that does not run; if it is an end, the stretch stays undecided."""
        self._withdrawn.add(commit)
        if not self._is_in_progress:
            self._can_measure_step = self._can_measure_step and commit not in (
                self.candidate_pair or ()
            )
        elif commit in (self.first, self.last):
            self.verdict = "undecided"
        elif self.bets is not None and self.first < commit < self.last:
            self.bets.withdraw(commit - self.first)
            for pair in [pair for pair in self._own_blocks if commit in pair]:
                del self._own_blocks[pair], self.pair_numbers[pair]
            self._conclude(self.bets)

    def judge_gap(self) -> ComparisonVerdict:
        """Return the verdict on the last commit compared with the first."""
        return judge_alone(self.gap, self._margin, self._alpha)

    def state(self) -> StretchState:
        """Return the state of the search."""
        return StretchState(
            first=self.first,
            last=self.last,
            verdict=self.verdict,
            gap=self.judge_gap(),
            blocks=self.blocks,
            blocks_to_go=self._blocks_to_go(),
        )

    def candidate_step(self, gap: PairedBlocks) -> MeasuredStep | None:
        """Return the step of the candidate, if any; ``gap`` has the blocks of the whole gap."""
        if self.candidate_pair is None or self.bets is None:
            return None
        blocks, level = self._own_blocks[self.candidate_pair], self._level_of(self.candidate_pair)
        step = judge_alone(blocks, 0.0, level)
        # The fraction has an interval from two intervals, each at half of its level.
        step_at_half = judge_alone(blocks, 0.0, 0.5 * level)
        gap_at_half = judge_alone(gap, 0.0, 0.5 * self._alpha)
        share, share_ci = share_of_gap(
            step.typical,
            (step_at_half.low, step_at_half.high),
            gap_at_half.typical,
            (gap_at_half.low, gap_at_half.high),
        )
        previous_commit, candidate = self.candidate_pair
        return MeasuredStep(
            first=previous_commit + 1,
            last=candidate,
            pair_number=self.pair_numbers[self.candidate_pair],
            # The e-value has only the blocks until the candidate was found.
            e_value=e_value_of(self.bets.own_ln_e_value(candidate - self.first)),
            margin=self.bets.margin(),
            blocks=step.blocks,
            ratio=step.ratio,
            ratio_ci=step.ratio_ci,
            significance_level=level,
            share_of_gap=share,
            share_ci=share_ci,
        )

    @property
    def is_beyond_margin(self) -> bool:
        """Whether the step of the candidate is certainly larger than the margin."""
        if self.candidate_pair is None or self.bets is None:
            return False
        if self._margin <= self.bets.margin():
            # The bets found a step beyond their own margin, which is at least as large.
            return True
        evidence = self._own_blocks[self.candidate_pair].engine.ln_e_value_beyond(self._margin)
        return evidence >= -math.log(self._level_of(self.candidate_pair))

    def _level_of(self, pair: IndexPair) -> float:
        """Return alpha/(k(k + 1)) for an own pair that has run."""
        return level_of_pair(self._alpha, self.pair_numbers[pair])

    @property
    def _is_in_progress(self) -> bool:
        return self.verdict in ("confirming", "searching")

    def _is_step_known(self, pair: IndexPair) -> bool:
        """Return whether the candidate's step needs no more blocks.

        The interval of the step should be finite and narrow, and show whether the step exceeds the
        margin. `MAX_NARROWING_FACTOR` and `MAX_EXCEEDING_FACTOR` limit the blocks for this.
        """
        block_count, min_blocks = len(self._own_blocks[pair]), self._min_step_blocks
        max_blocks = max(min_blocks, MAX_EXCEEDING_FACTOR * self._discovery_blocks)
        if not self._can_measure_step or block_count >= max_blocks:
            return True
        if block_count < min_blocks:
            return False
        verdict = judge_alone(self._own_blocks[pair], 0.0, self._level_of(pair))
        step = verdict.typical or 0.0
        half_width = max(verdict.high - step, step - verdict.low)
        is_narrow = half_width <= MAX_STEP_HALF_WIDTH * abs(step)
        max_narrowing_blocks = max(min_blocks, MAX_NARROWING_FACTOR * self._discovery_blocks)
        is_below_margin = max(abs(verdict.low), abs(verdict.high)) < self._margin
        return (is_narrow or block_count >= max_narrowing_blocks) and (
            is_below_margin or self.is_beyond_margin
        )

    def _empty_blocks(self) -> PairedBlocks:
        return PairedBlocks(resolution=self.resolution)

    def _blocks_to_go(self) -> int | None:
        if self.bets is None or not self._is_in_progress:
            return None
        # The formula is a rule of thumb.
        noise_scale, step = self.bets.scale(), self.bets.step()
        relative_noise = noise_scale / step
        # A block's difference has twice the variance of a trial, and a block has two trials.
        noisy_trials = (
            0.5 * (150 + 30 * math.log2(self.last - self.first)) * relative_noise * relative_noise
        )
        return max(1, math.ceil(0.5 * (40 + noisy_trials)) - self.blocks)

    def _add_to_gap(self, costs: tuple[float, float], order: int) -> None:
        difference = self._add_past_costs(costs)[0]
        self.gap.append(*costs, order)
        self._confirming_blocks.append((difference, float(order)))
        if not self._can_have_verdict():
            return
        judged_gap = self.judge_gap()
        if judged_gap.verdict == "equivalent":
            self.verdict = "no difference"
        elif judged_gap.verdict != "undecided":
            self.verdict = "searching"
            self.bets = self._new_bets(direction=1.0 if judged_gap.low > 0 else -1.0)
            self._conclude(self.bets)

    def _can_have_verdict(self) -> bool:
        """Return whether the gap may have a verdict: a quick test before `judge_gap`."""

        def is_excluded(log_ratio: float, level: float) -> bool:
            return self.gap.engine.blocks_to_exclude(log_ratio, level) is not None

        if len(self.gap) < self._min_gap_blocks:
            return False
        if is_excluded(0.0, self._alpha):
            return True
        level, margin = equivalence_level(self._alpha), self._margin
        return (
            margin > 0
            and len(self.gap) >= EQUIVALENCE_BLOCKS
            and is_excluded(-margin, level)
            and is_excluded(margin, level)
        )

    def _new_bets(self, direction: float) -> BisectionSearch:
        bets = BisectionSearch(
            self.last - self.first,
            self._alpha,
            direction,
            self._confirming_blocks,
            list(self._prior),
        )
        for commit in sorted(self._withdrawn):
            if self.first < commit < self.last:
                bets.withdraw(commit - self.first)
        return bets

    def _add_to_bets(
        self,
        bets: BisectionSearch,
        pair: IndexPair,
        costs: tuple[float, float],
        order: int,
        block_number: int,
        own_pairs: OwnPairs,
    ) -> None:
        difference, tolerance = self._add_past_costs(costs)
        local_pair = (pair[0] - self.first, pair[1] - self.first)
        pair_number = own_pairs.count + 1
        if bets.add(local_pair, difference, float(order), tolerance, block_number, pair_number):
            own_pairs.count = self.pair_numbers[pair] = pair_number
            self._own_blocks[pair] = self._empty_blocks()
        if pair in self._own_blocks:
            self._own_blocks[pair].append(*costs, order)
        if pair == (self.first, self.last):
            self.gap.append(*costs, order)
        self._conclude(bets)

    def _add_past_costs(self, costs: tuple[float, float]) -> tuple[float, float]:
        """Add the costs of a block; return their log difference, and the tolerance of a tie.

        A smaller difference is a tie. The tolerance depends only on the earlier blocks.
        """
        past_costs = self._past_costs
        has_tolerance = not past_costs.has_no_quantum and not past_costs.is_empty
        tolerance = past_costs.tolerance() if has_tolerance else 0.0
        # The quantum is the resolution of values; it does not hold if costs are inverse values.
        quantum = 0.0 if past_costs.has_inverse_costs else past_costs.quantum
        earlier, later = costs
        if 0.0 < earlier < math.inf and 0.0 < later < math.inf:
            difference = math.log(later) - math.log(earlier)
        else:
            differences = block_differences(np.array([earlier]), np.array([later]), quantum)
            difference = float(differences[0])
        if not past_costs.has_no_quantum:
            past_costs.add([earlier], [later])
        return difference, tolerance

    def _conclude(self, bets: BisectionSearch) -> None:
        """Set the verdict, and the candidate or the split, once the bets have an outcome."""
        outcome, own_pair, split_commit = bets.outcome()
        if outcome == "open":
            return
        self.verdict = outcome
        if own_pair is not None:
            self.candidate_pair = (self.first + own_pair[0], self.first + own_pair[1])
            self._min_step_blocks = earliest_block(0.5 * self._level_of(self.candidate_pair))
            self._discovery_blocks = len(self._own_blocks[self.candidate_pair])
        self.split = None if split_commit is None else self.first + split_commit


def level_of_pair(alpha: float, pair_number: int) -> float:
    """Return alpha/(k(k + 1)) for own pair number k; these levels add up to alpha over all k."""
    return alpha / (pair_number * (pair_number + 1))


def share_of_gap(
    step: float | None, step_ci: tuple[float, float], gap: float | None, gap_ci: tuple[float, float]
) -> tuple[float | None, Interval]:
    """Return the quotient step/gap, and its interval; all arguments are in log units.

    The interval has the quotients of all steps in ``step_ci`` and all gaps in ``gap_ci`` with the
    sign of ``gap``. An unbounded end is ``None``.
    """
    if gap is None or gap == 0 or step is None or not math.isfinite(step / gap):
        return None, (None, None)
    sign = math.copysign(1.0, gap)
    step_low, step_high = sorted(sign * end for end in step_ci)
    gap_low, gap_high = sorted(sign * end for end in gap_ci)
    gap_low = max(gap_low, 0.0)
    low = _quotient(step_low, gap_high if step_low > 0 else gap_low)
    high = _quotient(step_high, gap_low if step_high > 0 else gap_high)
    return step / gap, (low, high)


def _quotient(step: float, gap: float) -> float | None:
    if gap <= 0 or not math.isfinite(step):
        return None
    return step / gap
