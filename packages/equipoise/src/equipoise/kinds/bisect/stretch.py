"""One stretch of a bisection: confirm the gap between two commits, then look for the culprit.

The bets are in Rust (crates/verdict/src/bisection). The confirmation and the interval of a named
step are those of every comparison (``stats/verdict.py``).
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
from equipoise.revisions.terms import CHEAP_BUILD_TRIALS, MAX_STEP_HALF_WIDTH, Pair
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
"""``several``: no single commit explains the gap. ``undecided``: the stretch used all of its
blocks, or one of its ends does not run."""

COST_OF_CHEAP_BUILD = 0.2
COST_OF_BUILD = 0.5
"""Cost of a build in the choice of a pair, in trials; found by simulation.

See docs/methods/bisect.md.
"""

MAX_BLOCKS_TO_NARROW = 2
"""Most blocks that narrow the interval of a named step, as a multiple of those that named it."""
MAX_BLOCKS_TO_EXCEED = 4
"""The same while it is not known whether the step exceeds the smallest effect that matters."""


class OwnPairs:
    """Counter of the commits whose own pair was run: the k of docs/methods/bisect.md.

    Bisections whose names form one claim share a counter: those of the benchmarks of a suite, and
    those of the branches of named merges.
    """

    def __init__(self) -> None:
        self.count = 0


class NamedStep(Struct, frozen=True):
    """A commit that made a difference, or a group of commits of which only the last one runs."""

    first: int
    last: int
    """Equal to ``first``, or the end of a group: commits that do not build or run, and the next one
    that does. The step is from commit ``first - 1`` to commit ``last``."""
    rank: int
    """k: 1 plus the number of own pairs that were run before its own."""
    e_value: float
    """Evidence against "it is at most ``margin`` slower than the commit before"; at least
    k(k + 1)/alpha."""
    margin: float
    """Step that the e-value is about, in log units, in the direction of the gap."""
    blocks: int
    """Blocks of its own pair."""
    ratio: float | None
    """Its cost over that of the commit before; ``None`` if it is not finite."""
    ratio_ci: Interval
    level: float
    """1 minus the coverage of ``ratio_ci``: alpha/(k(k + 1)), because the step was selected."""
    share_of_gap: float | None
    """Fraction of the whole gap explained, in logarithms; ``None`` if unknown."""
    share_ci: Interval
    """Interval at 1 - alpha: half of alpha is for the gap, half for the selected step."""


class UnconfirmedStep(Struct, frozen=True):
    """A commit that makes a difference by the bets, but is not named."""

    step: NamedStep
    reason: UnconfirmedReason


class StretchState(Struct, frozen=True):
    """The state of the search of one stretch."""

    first: int
    """The commit before the first one that may be the culprit."""
    last: int
    verdict: StretchVerdict
    gap: ComparisonVerdict
    """Last over first, from all blocks of the two."""
    blocks: int
    blocks_to_go: int | None
    """Forecast of the blocks that the search still needs, by a rule of thumb; ``None`` before it
    began and after it ended."""


class Stretch:
    """The search between two commits, by their indices in the whole bisection.

    Its state is a function of its blocks. A gap within ± the margin, in log units, counts as equal.
    The prior has the chances of the commits after the first; it is empty for equal chances.
    ``withdrawn`` are the commits of the whole bisection that do not run. The stretch may take
    ``limit`` blocks.
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
        limit: int | None,
    ) -> None:
        self.first, self.last = first, last
        self.blocks = 0
        lacks_end = first in withdrawn or last in withdrawn
        self.verdict: StretchVerdict = "undecided" if lacks_end else "confirming"
        self.search: BisectionSearch | None = None
        """The bets; ``None`` until the gap is confirmed."""
        self.split: int | None = None
        """The commit at which a stretch without a single culprit is split."""
        self.named_pair: Pair | None = None
        """Own pair of the commit that is named."""
        self.ranks: dict[Pair, int] = {}
        """The k of each own pair that was run."""
        self._alpha, self._margin, self._limit = alpha, margin, limit
        self._prior, self._withdrawn = prior, set(withdrawn)
        self.resolution, self._past = resolution, PastValues(resolution)
        self.gap = self._no_blocks()
        self._confirming: list[tuple[float, float]] = []
        self._own: dict[Pair, PairedBlocks] = {}
        # The fraction of the gap needs an interval at half of alpha.
        self._min_gap_blocks = earliest_block(0.5 * alpha)
        self._step_blocks = (0, 0)
        """Number of blocks that an interval needs, and number of blocks that named the commit."""
        self._may_go_on = True

    @property
    def fixed_pair(self) -> Pair | None:
        """The one pair that can run now; ``None`` while pairs are chosen."""
        return (self.first, self.last) if self.search is None else self.named_pair

    @property
    def is_open(self) -> bool:
        """Whether the stretch needs more blocks, to name a commit or to measure its step."""
        if self.named_pair is not None:
            return not self._is_step_known(self.named_pair)
        return self.verdict in ("confirming", "searching")

    def set_resolution(self, resolution: Resolution) -> None:
        """Set the resolution of the metric, while no block has a finite cost; later, do nothing."""
        if self._past.is_empty:
            self.resolution, self._past = resolution, PastValues(resolution)
            self.gap.set_resolution(resolution)

    def next_pair(self, built: Collection[int], build_trials: float) -> Pair:
        """Return the pair that runs next; the stretch must be open."""
        if self.search is None:
            return self.first, self.last
        if self.named_pair is not None:
            return self.named_pair
        build = COST_OF_CHEAP_BUILD if build_trials < CHEAP_BUILD_TRIALS else COST_OF_BUILD
        built_places = [place - self.first for place in built if self.first <= place <= self.last]
        before, after = self.search.choose(built_places, build)
        return self.first + before, self.first + after

    def takes(self, pair: Pair) -> bool:
        """Return whether this stretch can use a block of a pair that another search chose.

        It cannot use an own pair that has not run yet: each new own pair raises the evidence that
        every later name needs.
        """
        if self.fixed_pair is not None:
            return pair == self.fixed_pair
        before, after = pair
        is_inside = self.first <= before and after <= self.last
        is_own = self._withdrawn.issuperset(range(before + 1, after))
        is_whole = pair == (self.first, self.last)
        return is_inside and not is_whole and (pair in self.ranks or not is_own)

    def add(
        self, pair: Pair, costs: tuple[float, float], order: int, number: int, own_pairs: OwnPairs
    ) -> None:
        """Add a block; ``number`` counts the blocks of the whole bisection, from 1."""
        fixed = self.fixed_pair
        if not self.first <= pair[0] < pair[1] <= self.last or fixed not in (None, pair):
            raise ValueError(f"{pair} is not the pair that runs now: {fixed or 'two commits'}")
        self.blocks += 1
        if self.search is None:
            self._add_to_gap(costs, order)
        elif self.named_pair is not None:
            self._remember_costs(costs)
            self._own[self.named_pair].append(*costs, order)
        else:
            self._add_to_search(self.search, pair, costs, order, number, own_pairs)
        if self._wants_a_verdict and self._limit is not None and self.blocks >= self._limit:
            self.verdict = "undecided"

    def withdraw(self, commit: int) -> None:
        """Withdraw a commit that does not run; without an end, the stretch stays undecided."""
        self._withdrawn.add(commit)
        if not self._wants_a_verdict:
            self._may_go_on = self._may_go_on and commit not in (self.named_pair or ())
        elif commit in (self.first, self.last):
            self.verdict = "undecided"
        elif self.search is not None and self.first < commit < self.last:
            self.search.withdraw(commit - self.first)
            for own in [pair for pair in self._own if commit in pair]:
                del self._own[own], self.ranks[own]
            self._conclude(self.search)

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

    def named_step(self, gap: PairedBlocks) -> NamedStep | None:
        """Return the step of the named commit; ``gap`` has the blocks of the whole gap."""
        if self.named_pair is None or self.search is None:
            return None
        blocks, level = self._own[self.named_pair], self._level_of(self.named_pair)
        judged = judge_alone(blocks, 0.0, level)
        halved = judge_alone(blocks, 0.0, 0.5 * level)
        judged_gap = judge_alone(gap, 0.0, 0.5 * self._alpha)
        share, share_ci = share_of_gap(
            judged.typical,
            (halved.low, halved.high),
            judged_gap.typical,
            (judged_gap.low, judged_gap.high),
        )
        before, last = self.named_pair
        return NamedStep(
            first=before + 1,
            last=last,
            rank=self.ranks[self.named_pair],
            # The e-value gets no more blocks once its commit is named.
            e_value=e_value_of(self.search.own_ln_e_value(last - self.first)),
            margin=self.search.margin(),
            blocks=judged.blocks,
            ratio=judged.ratio,
            ratio_ci=judged.ratio_ci,
            level=level,
            share_of_gap=share,
            share_ci=share_ci,
        )

    @property
    def is_beyond_margin(self) -> bool:
        """Whether the step between the two builds is certainly larger than the margin."""
        if self.named_pair is None or self.search is None:
            return False
        if self._margin <= self.search.margin():
            # The e-value is already evidence against the larger of the two margins.
            return True
        evidence = self._own[self.named_pair].engine.ln_e_value_beyond(self._margin)
        return evidence >= -math.log(self._level_of(self.named_pair))

    def _level_of(self, pair: Pair) -> float:
        """Return alpha/(k(k + 1)) of an own pair that was run."""
        return level_of_rank(self._alpha, self.ranks[pair])

    @property
    def _wants_a_verdict(self) -> bool:
        return self.verdict in ("confirming", "searching")

    def _is_step_known(self, pair: Pair) -> bool:
        """Return whether the interval of a named step is good enough.

        It has both ends after a number of blocks that only depends on its level. They should also
        be within half of the step, unless that takes more than twice the blocks that named the
        commit. And it should be known whether the step exceeds the margin, unless that takes more
        than four times these blocks.
        """
        least, naming = self._step_blocks
        blocks = len(self._own[pair])
        if not self._may_go_on or blocks >= max(least, MAX_BLOCKS_TO_EXCEED * naming):
            return True
        if blocks < least:
            return False
        judged = judge_alone(self._own[pair], 0.0, self._level_of(pair))
        step = judged.typical or 0.0
        widest = max(judged.high - step, step - judged.low)
        is_narrow = widest <= MAX_STEP_HALF_WIDTH * abs(step) or blocks >= max(
            least, MAX_BLOCKS_TO_NARROW * naming
        )
        is_below = max(abs(judged.low), abs(judged.high)) < self._margin
        return is_narrow and (is_below or self.is_beyond_margin)

    def _no_blocks(self) -> PairedBlocks:
        return PairedBlocks(resolution=self.resolution)

    def _blocks_to_go(self) -> int | None:
        if self.search is None or not self._wants_a_verdict:
            return None
        # A block's difference has twice the variance of a trial.
        ratio = self.search.scale() / self.search.step()
        factor = 0.5 * (150 + 30 * math.log2(self.last - self.first)) * ratio * ratio
        return max(1, math.ceil(0.5 * (40 + factor)) - self.blocks)

    def _add_to_gap(self, costs: tuple[float, float], order: int) -> None:
        difference = self._remember_costs(costs)[0]
        self.gap.append(*costs, order)
        self._confirming.append((difference, float(order)))
        if not self._may_be_decided():
            return
        judged = self.judge_gap()
        if judged.verdict == "equivalent":
            self.verdict = "no difference"
        elif judged.verdict != "undecided":
            self.verdict = "searching"
            self.search = self._begin_search(1.0 if judged.low > 0 else -1.0)
            self._conclude(self.search)

    def _may_be_decided(self) -> bool:
        """Return quickly whether the gap may have a verdict; true whenever it has one."""
        excluded = self.gap.engine.blocks_to_exclude
        if len(self.gap) < self._min_gap_blocks:
            return False
        if excluded(0.0, self._alpha) is not None:
            return True
        level, margin = equivalence_level(self._alpha), self._margin
        return (
            margin > 0
            and len(self.gap) >= EQUIVALENCE_BLOCKS
            and excluded(-margin, level) is not None
            and excluded(margin, level) is not None
        )

    def _begin_search(self, direction: float) -> BisectionSearch:
        search = BisectionSearch(
            self.last - self.first, self._alpha, direction, self._confirming, list(self._prior)
        )
        for commit in sorted(self._withdrawn):
            if self.first < commit < self.last:
                search.withdraw(commit - self.first)
        return search

    def _add_to_search(
        self,
        search: BisectionSearch,
        pair: Pair,
        costs: tuple[float, float],
        order: int,
        number: int,
        own_pairs: OwnPairs,
    ) -> None:
        difference, tolerance = self._remember_costs(costs)
        local_pair = (pair[0] - self.first, pair[1] - self.first)
        rank = own_pairs.count + 1
        if search.add(local_pair, difference, float(order), tolerance, number, rank):
            own_pairs.count = self.ranks[pair] = rank
            self._own[pair] = self._no_blocks()
        if pair in self._own:
            self._own[pair].append(*costs, order)
        if pair == (self.first, self.last):
            self.gap.append(*costs, order)
        self._conclude(search)

    def _remember_costs(self, costs: tuple[float, float]) -> tuple[float, float]:
        """Remember a block's costs; return its difference, and its tolerance by earlier blocks."""
        past = self._past
        tolerance = 0.0 if past.is_exact or past.is_empty else past.tolerance()
        quantum = 0.0 if past.are_inverse else past.quantum
        before, after = costs
        if 0.0 < before < math.inf and 0.0 < after < math.inf:
            difference = math.log(after) - math.log(before)
        else:
            difference = float(block_differences(np.array([before]), np.array([after]), quantum)[0])
        if not past.is_exact:
            past.add([before], [after])
        return difference, tolerance

    def _conclude(self, search: BisectionSearch) -> None:
        outcome, group, split = search.outcome()
        if outcome == "open":
            return
        self.verdict = outcome
        if group is not None:
            self.named_pair = (self.first + group[0], self.first + group[1])
            least = earliest_block(0.5 * self._level_of(self.named_pair))
            self._step_blocks = (least, len(self._own[self.named_pair]))
        self.split = None if split is None else self.first + split


def level_of_rank(alpha: float, rank: int) -> float:
    """Return alpha/(k(k + 1)), the level of claim k of any number of claims."""
    return alpha / (rank * (rank + 1))


def share_of_gap(
    step: float | None, step_ends: tuple[float, float], gap: float | None, ends: tuple[float, float]
) -> tuple[float | None, Interval]:
    """Return the fraction of a gap that a step explains, and its interval; all in log units.

    The interval contains every quotient of a step and a gap within their ends, where the gap has
    the sign of ``gap``. An end without a bound is ``None``.
    """
    if gap is None or gap == 0 or step is None or not math.isfinite(step / gap):
        return None, (None, None)
    sign = math.copysign(1.0, gap)
    low, high = sorted(sign * end for end in step_ends)
    least, most = sorted(sign * end for end in ends)
    least = max(least, 0.0)
    lowest = _quotient(low, most if low > 0 else least)
    highest = _quotient(high, least if high > 0 else most)
    return step / gap, (lowest, highest)


def _quotient(step: float, gap: float) -> float | None:
    if gap <= 0 or not math.isfinite(step):
        return None
    return step / gap
