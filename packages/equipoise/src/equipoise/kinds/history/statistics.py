"""Compute the history of a program: its cost over the commits, and the commits that changed it.

A history is a series of campaigns. The state of a history depends only on the blocks of these
campaigns, so the state can be computed from the ledger.

A block runs two or more commits in random order. A pair of commits is opened when both run in one
block and no commit between them is measured. From then on, each block with both commits is a bet on
the pair. A pair is named as a change once its e-value is high enough (docs/methods/history.md).

An era is a stretch of campaigns with comparable numbers. A pair belongs to the era in which the
pair was opened. `_MeasuredPair` has the blocks of a pair. `PairState` summarises these blocks for
the choice of the next block, and `HistoryPair` for the result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from equipoise.kinds.history.schedule import BASELINE, PairState, Schedule
from equipoise.kinds.history.terms import HistoryPair, PairStatus
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import Interval
from equipoise.model.revisions import short_name
from equipoise.revisions.terms import MAX_STEP_HALF_WIDTH, IndexPair
from equipoise.shared.spelling import option
from equipoise.stats.resolution import NO_RESOLUTION, Resolution
from equipoise.stats.sequence import BASELINE_FIRST, CANDIDATE_FIRST, PairedBlocks
from equipoise.stats.verdict import (
    ComparisonVerdict,
    check_alpha,
    e_value_of,
    earliest_block,
    judge_alone,
    margin_of,
)

MIN_CURVE_BLOCKS = 20
"""Minimum number of blocks with the baseline for each commit of a complete curve."""
WEAK_SUSPECT_LEVEL = 0.2
"""Significance level of the test for a weak suspect; for a suspect, the level is alpha."""


class RevisionPoint(Struct, frozen=True):
    """One commit of the curve."""

    hash: str
    ratio: float | None = None
    """Cost of the commit over the cost of the baseline; ``None`` if unknown or not finite."""
    ratio_ci: Interval = (None, None)
    significance_level: float | None = None
    """1 minus the coverage of ``ratio_ci``; ``None`` without a block."""
    blocks: int = 0
    """Number of blocks with the baseline in ``era``."""
    era: int | None = None
    """Number, from 1, of the latest era with such a block; ``None`` without a block."""


class Change(Struct, frozen=True):
    """A named pair that contains no shorter named pair."""

    pair: HistoryPair
    threshold: float
    """Smallest e-value with which the pair could be named."""
    is_confirmed: bool
    """Whether no commit between the two commits can run."""
    not_built: tuple[str, ...]
    """Hashes of the commits between the two commits that do not build or run, in order."""


class HistoryState(Struct, frozen=True):
    """The state of a history after all campaigns so far."""

    revisions: tuple[RevisionPoint, ...]
    """The baseline and the commits of the current campaign that ran, in order."""
    changes: tuple[Change, ...]
    """Changes in the order of the commits."""
    pairs: tuple[HistoryPair, ...]
    """All opened pairs, in the order in which they were opened."""
    withdrawn: tuple[str, ...]
    """Hashes of the commits of the current campaign that do not build or run, in order."""
    eras: int
    """Number of eras so far."""
    blocks: int
    """Number of complete blocks of all campaigns."""
    blocks_to_go: int
    """Rough forecast of the remaining blocks; 0 if nothing is left to measure."""


class History:
    """The curve and the changes of a series of campaigns, computed from the blocks added so far.

    ``alpha`` is between 0 and 1. It is the false-discovery rate of the changes, and the chance that
    some interval of the curve is wrong. ``min_effect`` is the smallest change that matters, in
    percent; it is above 0.

    Raise `UnusableInput` if alpha or the smallest effect is out of range.
    """

    def __init__(self, *, alpha: float, min_effect: float) -> None:
        check_alpha(alpha)
        self.margin = margin_of(min_effect)
        if self.margin == 0.0:
            raise UnusableInput(
                "a history needs a smallest effect above 0: without it, a pair of commits with "
                "the same speed would be measured forever",
                hint=f"add {option('min_effect', 1)}",
            )
        self._alpha = alpha
        self._resolution = NO_RESOLUTION
        self._hashes: tuple[str, ...] = ()
        """Commits of the current campaign. Other fields have commits of all campaigns."""
        self._selected: frozenset[int] = frozenset()
        self._start_index = BASELINE
        self._indices: dict[str, int] = {}
        self._parent_hashes: dict[str, str] = {}
        """Hash of the first parent of each commit, by the hash of the commit."""
        self._era_numbers: dict[str, int] = {}
        self._era = 0
        """Number of the current era, from 1; 0 before the first campaign."""
        self._withdrawn_by_era: dict[int, set[str]] = {}
        """Hashes of the commits that do not build or run, by era number."""
        self._hashes_to_retry: set[str] = set()
        """Hashes of the withdrawn commits that the current campaign may try once more."""
        self._measured: set[str] = set()
        """Hashes of the commits that ran, in any era."""
        self._curve_comparisons: dict[tuple[str, int], _CommitComparison] = {}
        """Comparison with the baseline, by hash of the commit and era number."""
        self._pairs: list[_MeasuredPair] = []
        self._pairs_by_commits: dict[tuple[str, str], list[_MeasuredPair]] = {}
        """Pairs by the hashes of both commits. Each era may add a pair."""
        self._named_spans: list[IndexPair] = []
        """Commit indices of each named pair, in the order of their naming."""
        self._blocks = self._baseline_blocks = 0
        self._has_finite_cost = False

    def begin_campaign(
        self, hashes: Sequence[str], selected: Collection[int], era: str, *, only_new: bool = False
    ) -> None:
        """Begin the next campaign. Earlier measurements still count.

        Raise `UnusableInput` if there is no commit after the baseline, or the baseline differs.

        Parameters
        ----------
        hashes
            Hashes of the commits along first parents, from the baseline on. Other methods use
            indices of this sequence.
        selected
            Indices of the commits of the curve. The first and the last commit are always added.
        era
            Digest that two campaigns share if their numbers are comparable.
        only_new
            Whether to measure only commits after the latest measured commit.
        """
        if len(hashes) < 2:
            raise UnusableInput(
                "there is no commit after the baseline",
                hint=f"name an earlier baseline with {option('from')}",
            )
        if self._hashes and hashes[BASELINE] != self._hashes[BASELINE]:
            raise UnusableInput(
                f"the baseline {short_name(hashes[BASELINE])} is not the baseline of this history, "
                f"{short_name(self._hashes[BASELINE])}",
                hint=f"name the first baseline again with {option('from')}",
            )
        measured_indices = [index for index, sha in enumerate(hashes) if sha in self._measured]
        self._start_index = max(measured_indices, default=BASELINE) if only_new else BASELINE
        self._hashes, self._selected = tuple(hashes), frozenset(selected)
        self._indices.update({sha: index for index, sha in enumerate(hashes)})
        self._parent_hashes.update(zip(hashes[1:], hashes, strict=False))
        self._era = self._era_numbers.setdefault(era, len(self._era_numbers) + 1)
        # A commit that ran before it failed stays withdrawn: slowness may be the reason. A commit
        # that never ran may have lacked a library, or the network.
        self._hashes_to_retry = self._withdrawn_by_era.setdefault(self._era, set()) - self._measured

    def set_resolution(self, resolution: Resolution) -> None:
        """Set the resolution of the metric; do nothing once a block has a finite cost."""
        if not self._has_finite_cost:
            self._resolution = resolution
            for comparison in (*self._pairs, *self._curve_comparisons.values()):
                comparison.blocks.set_resolution(resolution)

    def next_block(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        """Return the commits of the next block in order; empty if nothing is left to measure.

        Commits in ``built`` need no build. ``build_trials`` is the duration of a build, in trials.
        """
        return self._current_schedule().next_block(built, build_trials)

    def add(self, costs: Mapping[int, float], order: Sequence[int]) -> None:
        """Add one complete block: the cost of each commit, and the order of the commits.

        The cost of a trial that timed out is +inf.

        Raise `UnusableInput` if a cost is negative or NaN. Raise `ValueError` if there are fewer
        than two commits, the campaign lacks a commit, or order and costs have different commits.
        """
        commits = sorted(costs)
        is_known = all(0 <= commit < len(self._hashes) for commit in commits)
        if len(commits) < 2 or sorted(order) != commits or not is_known:
            raise ValueError(f"a block cannot have the commits {commits} in the order {order}")
        self._withdrawn_by_era[self._era] -= {self._hashes[commit] for commit in commits}
        self._open_pairs(commits)
        pairs = self._pairs_of(commits)
        for comparison in (*pairs, *self._comparisons_of_block(commits)):
            earlier, later = self._index_span(comparison)
            is_earlier_first = order.index(earlier) < order.index(later)
            pair_order = BASELINE_FIRST if is_earlier_first else CANDIDATE_FIRST
            comparison.add(costs[earlier], costs[later], pair_order)
        self._measured.update(self._hashes[commit] for commit in commits)
        self._blocks += 1
        self._baseline_blocks += BASELINE in costs
        self._has_finite_cost |= any(map(math.isfinite, costs.values()))
        self._name_changes(pairs)

    def withdraw(self, commit: int) -> None:
        """Withdraw a commit that does not build or run, until the end of the era.

        If the commit never ran, the next campaign may try it once more. A second call does nothing.

        Raise `UnusableInput` if the commit is the baseline.
        """
        if commit == BASELINE:
            raise UnusableInput(
                "the baseline does not build or run",
                hint=f"name another baseline with {option('from')}",
            )
        self._withdrawn_by_era[self._era].add(self._hashes[commit])
        self._hashes_to_retry.discard(self._hashes[commit])

    def state(self) -> HistoryState:
        """Return the state of the history."""
        withdrawn_hashes = self._withdrawn_by_era.get(self._era, set())
        return HistoryState(
            revisions=tuple(self._curve_points()),
            changes=tuple(self._innermost_changes()),
            pairs=tuple(self._history_pair(pair) for pair in self._pairs),
            withdrawn=tuple(sha for sha in self._hashes if sha in withdrawn_hashes),
            eras=len(self._era_numbers),
            blocks=self._blocks,
            blocks_to_go=self._current_schedule().blocks_to_go(),
        )

    def progress(self) -> tuple[int, tuple[Change, ...]]:
        """Return the number of measured commits, and the changes: much faster than `state`."""
        measured_count = sum(sha in self._measured for sha in self._hashes[BASELINE + 1 :])
        return measured_count, tuple(self._innermost_changes())

    def _current_schedule(self) -> Schedule:
        withdrawn = self._withdrawn_by_era.get(self._era, set()) - self._hashes_to_retry
        indexed_hashes = enumerate(self._hashes)
        indices = {sha: index for index, sha in indexed_hashes if sha not in withdrawn}
        runnable = tuple(indices.values())
        curve_commits = sorted({BASELINE, *self._selected, *runnable[-1:]} & set(runnable))
        pairs: dict[IndexPair, _MeasuredPair] = {}
        # Two commits may have a pair in each era. A decided pair wins, then the pair of this era.
        for pair in sorted(self._pairs, key=lambda pair: (pair.is_decided, pair.era == self._era)):
            if pair.earlier_hash in indices and pair.later_hash in indices:
                pairs[indices[pair.earlier_hash], indices[pair.later_hash]] = pair
        return Schedule(
            runnable=runnable,
            curve_commits=tuple(curve_commits),
            measured=tuple(index for sha, index in indices.items() if sha in self._measured),
            states={span: pair.state_in_era(self._era) for span, pair in pairs.items()},
            undersampled=tuple(filter(self._is_undersampled, curve_commits)),
            start=max(index for index in runnable if index <= self._start_index),
        )

    def _is_undersampled(self, commit: int) -> bool:
        """Return whether a commit ran, but in too few blocks with the baseline."""
        sha = self._hashes[commit]
        if commit == BASELINE or sha not in self._measured:
            return False
        return all(
            len(comparison.blocks)
            < max(MIN_CURVE_BLOCKS, earliest_block(comparison.significance_level))
            for comparison in self._comparisons_by_era(sha)
        )

    def _comparisons_by_era(self, sha: str) -> list[_CommitComparison]:
        keys = ((sha, era) for era in range(1, len(self._era_numbers) + 1))
        return [self._curve_comparisons[key] for key in keys if key in self._curve_comparisons]

    def _open_pairs(self, commits: Sequence[int]) -> None:
        """Open each pair of neighbours in a block, unless a commit between them has run."""
        withdrawn = self._withdrawn_by_era[self._era]
        for earlier, later in zip(commits, commits[1:], strict=False):
            earlier_hash, later_hash = self._hashes[earlier], self._hashes[later]
            measured_between = self._measured.intersection(self._hashes[earlier + 1 : later])
            is_adjacent = measured_between <= withdrawn
            pairs_of_commits = self._pairs_by_commits.setdefault((earlier_hash, later_hash), [])
            if is_adjacent and not any(
                pair.era == self._era or pair.is_decided for pair in pairs_of_commits
            ):
                pair_number = len(self._pairs) + 1
                comparison_fields = (self._era, pair_number, self._alpha, self._empty_blocks())
                new_pair = _MeasuredPair(earlier_hash, later_hash, *comparison_fields, self.margin)
                self._pairs.append(new_pair)
                pairs_of_commits.append(new_pair)

    def _comparisons_of_block(self, commits: Sequence[int]) -> Iterator[_CommitComparison]:
        """Yield each commit's comparison with the baseline, if the baseline is in the block."""
        if commits[0] != BASELINE:
            return
        for commit in commits[1:]:
            sha = self._hashes[commit]
            key = (sha, self._era)
            if key not in self._curve_comparisons:
                number, baseline_hash = len(self._curve_comparisons) + 1, self._hashes[BASELINE]
                self._curve_comparisons[key] = _CommitComparison(
                    baseline_hash, sha, self._era, number, self._alpha, self._empty_blocks()
                )
            yield self._curve_comparisons[key]

    def _pairs_of(self, commits: Sequence[int]) -> list[_MeasuredPair]:
        """Return the pairs of this era with both commits in ``commits``."""
        hashes = [self._hashes[commit] for commit in commits]
        return [
            pair
            for two_hashes in itertools.combinations(hashes, 2)
            for pair in self._pairs_by_commits.get(two_hashes, ())
            if pair.era == self._era
        ]

    def _name_changes(self, pairs: Sequence[_MeasuredPair]) -> None:
        """Name each pair with enough evidence as a change; ``pairs`` have new evidence.

        Pair number t needs an e-value of t(t + 1)/(alpha K). K is the largest number of named
        pairs without overlaps, this pair included. If a new name raises K, the thresholds of all
        pairs fall, so all pairs are tested again.
        """
        while True:
            for pair in pairs:
                ln_threshold = math.log(pair.number * (pair.number + 1) / self._alpha)
                # A quick test: K is at most the number of named pairs.
                max_ln_k = math.log(len(self._named_spans) + 1)
                if pair.is_named or pair.ln_e_value < ln_threshold - max_ln_k:
                    continue
                spans = [*self._named_spans, self._index_span(pair)]
                ln_threshold -= math.log(_disjoint_count(spans))
                if pair.ln_e_value >= ln_threshold:
                    pair.mark_as_change(ln_threshold)
                    self._named_spans = spans
                    break
            else:
                return
            withdrawn = self._withdrawn_by_era[self._era]
            pairs_of_era = (pair for pair in self._pairs if pair.era == self._era)
            pairs = [
                pair
                for pair in pairs_of_era
                if withdrawn.isdisjoint((pair.earlier_hash, pair.later_hash))
            ]

    def _index_span(self, comparison: _CommitComparison) -> IndexPair:
        return self._indices[comparison.earlier_hash], self._indices[comparison.later_hash]

    def _innermost_changes(self) -> Iterator[Change]:
        """Yield the named pairs without a named pair inside, in the order of the commits."""
        named_pairs = sorted((pair for pair in self._pairs if pair.is_named), key=self._index_span)
        for pair in named_pairs:
            if any(self._replaces(inner, pair) for inner in named_pairs if inner is not pair):
                continue
            hashes_between = self._commits_between(pair)
            withdrawn_hashes = self._withdrawn_by_era.get(pair.era, set())
            yield Change(
                self._history_pair(pair),
                threshold=e_value_of(pair.ln_threshold),
                is_confirmed=all(sha in withdrawn_hashes for sha in hashes_between),
                not_built=tuple(sha for sha in hashes_between if sha in withdrawn_hashes),
            )

    def _replaces(self, inner: _MeasuredPair, pair: _MeasuredPair) -> bool:
        """Return whether ``inner`` is inside ``pair``, or has the same commits and opened first."""
        hashes = (pair.earlier_hash, *self._commits_between(pair), pair.later_hash)
        if inner.earlier_hash not in hashes or inner.later_hash not in hashes:
            return False
        return self._index_span(pair) != self._index_span(inner) or inner.number < pair.number

    def _commits_between(self, pair: _MeasuredPair) -> tuple[str, ...]:
        """Return the hashes of the commits between the two commits of a pair, in order."""
        hashes: list[str] = []
        sha = self._parent_hashes[pair.later_hash]
        while sha != pair.earlier_hash:
            hashes.append(sha)
            sha = self._parent_hashes[sha]
        return tuple(reversed(hashes))

    def _curve_points(self) -> Iterator[RevisionPoint]:
        baseline = self._hashes[BASELINE]
        yield RevisionPoint(baseline, 1.0, (1.0, 1.0), blocks=self._baseline_blocks)
        for sha in self._hashes[BASELINE + 1 :]:
            if comparisons := self._comparisons_by_era(sha):
                comparison = comparisons[-1]
                verdict = comparison.judge()
                yield RevisionPoint(
                    sha,
                    verdict.ratio,
                    verdict.ratio_ci,
                    comparison.significance_level,
                    len(comparison.blocks),
                    comparison.era,
                )
            elif sha in self._measured:
                yield RevisionPoint(sha)

    def _history_pair(self, pair: _MeasuredPair) -> HistoryPair:
        verdict = pair.judge()
        return HistoryPair(
            pair_number=pair.number,
            earlier_hash=pair.earlier_hash,
            later_hash=pair.later_hash,
            status=pair.status,
            ratio=verdict.ratio,
            ratio_ci=verdict.ratio_ci,
            significance_level=pair.significance_level,
            e_value=e_value_of(pair.ln_e_value),
            blocks=len(pair.blocks),
            era=pair.era,
        )

    def _empty_blocks(self) -> PairedBlocks:
        return PairedBlocks(resolution=self._resolution)


class _CommitComparison(Struct, eq=False):
    """Comparison of two commits in the blocks of one era: the later over the earlier commit."""

    earlier_hash: str
    later_hash: str
    era: int
    number: int
    """Number, from 1, among the comparisons with the baseline, or among the pairs."""
    alpha: float
    blocks: PairedBlocks

    @property
    def significance_level(self) -> float:
        """1 minus the coverage of the interval: alpha/(k(k + 1)) for comparison number k."""
        return self.alpha / (self.number * (self.number + 1))

    def add(self, earlier_cost: float, later_cost: float, order: int) -> None:
        """Add the costs of the two commits in one block."""
        self.blocks.append(earlier_cost, later_cost, order)

    def judge(self) -> ComparisonVerdict:
        """Return the estimate and its interval."""
        return judge_alone(self.blocks, 0.0, self.significance_level)


class _MeasuredPair(_CommitComparison, eq=False):
    """A commit pair with its blocks, and the evidence for a change."""

    margin: float
    ln_e_value: float = 0.0
    """Log e-value for a difference above the margin; it is final once the pair is named."""
    ln_threshold: float = math.inf
    """Smallest log e-value with which the pair could be named; infinite before the naming."""
    naming_blocks: int = 0
    """Number of blocks when the pair was named."""

    @property
    def is_named(self) -> bool:
        """Whether the pair is named as a change; this is final."""
        return self.ln_threshold < math.inf

    @property
    def is_decided(self) -> bool:
        """Whether the status is final; if so, later eras do not open a pair of these commits."""
        return self.status != "undecided"

    def mark_as_change(self, ln_threshold: float) -> None:
        self.ln_threshold, self.naming_blocks = ln_threshold, len(self.blocks)

    def add(self, earlier_cost: float, later_cost: float, order: int) -> None:
        """Add the costs of one block, and update the evidence unless the pair is named."""
        super().add(earlier_cost, later_cost, order)
        if not self.is_named:
            self.ln_e_value = self.blocks.engine.ln_e_value_beyond(self.margin)

    @property
    def status(self) -> PairStatus:
        """Status of the pair in the result."""
        if self.is_named:
            return "changed"
        return "equivalent" if self._is_equivalent else "undecided"

    def state_in_era(self, era: int) -> PairState:
        """Return the state of the pair, with its number of blocks in an era."""
        blocks = len(self.blocks) if self.era == era else 0
        if self.is_named:
            return PairState("changed", blocks, is_settled=self.era != era or self._is_settled())
        if self._is_equivalent:
            return PairState("equivalent", blocks)
        is_weak_suspect = self._seems_to_change(WEAK_SUSPECT_LEVEL)
        return PairState(
            "suspect" if is_weak_suspect and self._seems_to_change(self.alpha) else "undecided",
            blocks,
            is_weak_suspect=is_weak_suspect,
            expected_blocks=self._expected_blocks(),
        )

    def _expected_blocks(self) -> float | None:
        """Forecast the number of blocks until the interval is within the margin."""
        verdict = self._verdict_at_alpha()
        half_width = (verdict.equivalence_high - verdict.equivalence_low) / 2
        if not math.isfinite(half_width):
            return None
        # The width of an interval falls as 1/√blocks.
        return len(self.blocks) * max(1.0, half_width / self.margin) ** 2

    @property
    def _is_equivalent(self) -> bool:
        verdict = self._verdict_at_alpha()
        return -self.margin <= verdict.equivalence_low and verdict.equivalence_high <= self.margin

    def _seems_to_change(self, level: float) -> bool:
        """Return whether the estimate reaches the margin, and 0 is excluded at ``level``."""
        estimate = self._verdict_at_alpha().typical or 0.0
        is_zero_excluded = self.blocks.engine.blocks_to_exclude(0.0, level) is not None
        return abs(estimate) >= self.margin and is_zero_excluded

    def _verdict_at_alpha(self) -> ComparisonVerdict:
        return judge_alone(self.blocks, 0.0, self.alpha)

    def _is_settled(self) -> bool:
        """Return whether the interval is narrow, or the blocks have doubled since the naming."""
        blocks, min_blocks = len(self.blocks), earliest_block(self.significance_level)
        if blocks >= max(min_blocks, 2 * self.naming_blocks):
            return True
        verdict = self.judge()
        step = verdict.typical or 0.0
        half_width = max(verdict.high - step, step - verdict.low)
        return blocks >= min_blocks and half_width <= MAX_STEP_HALF_WIDTH * abs(step)


def _disjoint_count(spans: Sequence[IndexPair]) -> int:
    """Return the largest number of spans without overlaps."""
    count, end = 0, 0
    for first, last in sorted(spans, key=lambda span: span[1]):
        if first >= end:
            count, end = count + 1, last
    return count
