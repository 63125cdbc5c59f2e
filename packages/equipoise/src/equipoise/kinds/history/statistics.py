"""The history of a program: a curve over its commits, and the changes (docs/methods/history.md).

A history is a series of campaigns, one after the other. Everything here is a function of their
blocks, so a series that is read back has the same state.

A block runs two or more commits in random order; the blocks before it choose them. A pair of
commits is opened when both first run in a block while no commit between them is measured. From then
on it bets on its blocks. It is named as a change at an e-value that keeps the false-discovery rate
at most alpha, at every interim analysis without end.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from equipoise.kinds.history.course import BASELINE, Course, Link, LinkStatus
from equipoise.kinds.history.terms import HistoryPair, PairStatus
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import Interval
from equipoise.revisions.terms import MAX_STEP_HALF_WIDTH
from equipoise.revisions.terms import Pair as Places
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

CURVE_BLOCKS = 20
"""Least number of blocks with the baseline of each commit of a complete curve."""
WEAK_SUSPECT_LEVEL = 0.2
"""Level at which a difference makes a pair within a changing stretch a weak suspect."""


class RevisionPoint(Struct, frozen=True):
    """One commit of the curve."""

    name: str
    ratio: float | None = None
    """Its cost over the baseline's; ``None`` if unknown or not finite."""
    ratio_ci: Interval = (None, None)
    level: float | None = None
    """1 minus the coverage of ``ratio_ci``: alpha/(j(j + 1)) for commit number j that was compared
    with the baseline, so that all intervals hold together; ``None`` without a block."""
    blocks: int = 0
    """Blocks with the baseline, in the latest era that has any."""
    era: int | None = None
    """Number of that era, from 1; ``None`` without a block."""


class Change(Struct, frozen=True):
    """A pair that is named as a change, without a shorter named pair inside it."""

    pair: HistoryPair
    threshold: float
    """E-value at which the pair was named."""
    is_confirmed: bool
    """Whether no commit between the two can run, so that it compares a commit with its parent, or
    with the latest ancestor that builds."""
    not_built: tuple[str, ...]
    """Commits between the two that do not build or run, in order."""


class HistoryState(Struct, frozen=True):
    """The state of a history after all campaigns so far."""

    revisions: tuple[RevisionPoint, ...]
    """The baseline and the commits of the present campaign that ran, in order."""
    changes: tuple[Change, ...]
    """Changes in the order of the commits."""
    pairs: tuple[HistoryPair, ...]
    """All opened pairs, in the order of their opening."""
    withdrawn: tuple[str, ...]
    """Commits of the present campaign that do not build or run, in order."""
    eras: int
    """Number of eras so far."""
    blocks: int
    """Complete blocks of all campaigns."""
    blocks_to_go: int
    """Forecast of the remaining blocks, by a rule of thumb; 0 if nothing is left to measure."""


class History:
    """The curve and the changes of a series of campaigns; a function of the blocks added.

    The false-discovery rate of the changes is at most alpha at every interim analysis. All
    intervals of the curve hold together with chance 1 - alpha if ratios are constant within an era.

    Raise `UnusableInput` if alpha or the smallest effect is out of range.

    Parameters
    ----------
    alpha
        Between 0 and 1.
    min_effect
        Percent, above 0; only larger changes between two commits count.
    """

    def __init__(
        self,
        *,
        alpha: float,
        min_effect: float,
    ) -> None:
        check_alpha(alpha)
        self.margin = margin_of(min_effect)
        if self.margin == 0.0:
            raise UnusableInput(
                "a history needs a smallest effect that matters: without it the measurement of "
                "each pair of commits would never end",
                hint=f"add {option('min_effect', 1)}",
            )
        self._alpha = alpha
        self._resolution = NO_RESOLUTION
        self._names: tuple[str, ...] = ()
        self._selected: frozenset[int] = frozenset()
        self._first = BASELINE
        self._places: dict[str, int] = {}
        self._parents: dict[str, str] = {}
        self._eras: dict[str, int] = {}
        self._era = 0
        self._withdrawn: dict[int, set[str]] = {}
        self._retried: set[str] = set()
        """Withdrawn commits that the present campaign may try once more."""
        self._measured: set[str] = set()
        self._points: dict[tuple[str, int], _Sequence] = {}
        self._pairs: list[_Pair] = []
        self._opened: dict[tuple[str, str], list[_Pair]] = {}
        self._named: list[Places] = []
        self._blocks = self._baseline_blocks = 0
        self._has_values = False

    def begin_campaign(
        self, names: Sequence[str], selected: Collection[int], era: str, *, only_new: bool = False
    ) -> None:
        """Begin the next campaign; the measurements of its commits continue.

        Raise `UnusableInput` if there is no commit after the baseline, or the baseline differs.

        Parameters
        ----------
        names
            Whole names of its conditions: the commits along first parents from the baseline on.
        selected
            Conditions of the curve; the first and the last always belong to it.
        era
            Digest that two campaigns share if their numbers are comparable. Pairs continue only in
            the era in which they were opened.
        only_new
            Whether only commits after the latest one that ran before are measured.
        """
        if len(names) < 2:
            raise UnusableInput(
                "there is no commit after the baseline",
                hint=f"give an earlier one with {option('from')}",
            )
        if self._names and names[BASELINE] != self._names[BASELINE]:
            raise UnusableInput(
                "the campaigns of one history have one baseline",
                hint=f"begin another history for another {option('from')}",
            )
        measured = [place for place, name in enumerate(names) if name in self._measured]
        self._first = max(measured, default=BASELINE) if only_new else BASELINE
        self._names, self._selected = tuple(names), frozenset(selected)
        self._places.update({name: place for place, name in enumerate(names)})
        self._parents.update(zip(names[1:], names, strict=False))
        self._era = self._eras.setdefault(era, len(self._eras) + 1)
        # A commit that failed in a block stays out: it may have failed because it was slow. A
        # commit that never ran may have lacked a library, or the network.
        self._retried = self._withdrawn.setdefault(self._era, set()) - self._measured

    def set_resolution(self, resolution: Resolution) -> None:
        """Set the resolution of the metric, while no block has a finite cost; later, do nothing."""
        if not self._has_values:
            self._resolution = resolution
            for each in (*self._pairs, *self._points.values()):
                each.blocks.set_resolution(resolution)

    def next_block(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        """Return the conditions of the next block, in order; none if nothing is left to measure.

        Parameters
        ----------
        built
            Conditions that can run without a build.
        build_trials
            Seconds of a build over those of a trial, as measured.
        """
        return self._course().next_block(built, build_trials)

    def add(self, costs: Mapping[int, float], order: Sequence[int]) -> None:
        """Add one complete block: the cost of each condition that ran, and their order.

        The cost of a trial that timed out is +inf.

        Raise `UnusableInput` if a cost is negative or NaN. Raise `ValueError` if the order has
        other conditions than the costs, there are fewer than two conditions, or the campaign lacks
        one of them.
        """
        ran = sorted(costs)
        if len(ran) < 2 or sorted(order) != ran or not 0 <= ran[0] < ran[-1] < len(self._names):
            raise ValueError(f"a block cannot have the conditions {ran} in the order {order}")
        self._withdrawn[self._era] -= {self._names[condition] for condition in ran}
        self._open_pairs(ran)
        pairs = self._pairs_of(ran)
        for each in (*pairs, *self._points_of(ran)):
            first, second = self._places[each.after], self._places[each.until]
            is_first = order.index(first) < order.index(second)
            each.add(costs[first], costs[second], BASELINE_FIRST if is_first else CANDIDATE_FIRST)
        self._measured.update(self._names[condition] for condition in ran)
        self._blocks += 1
        self._baseline_blocks += BASELINE in costs
        self._has_values = self._has_values or any(map(math.isfinite, costs.values()))
        self._name_changes(pairs)

    def withdraw(self, commit: int) -> None:
        """Withdraw a commit that does not build or run, until the end of the era.

        If it never ran, the next campaign may try it once more. A second call does nothing. Named
        changes stay named.

        Raise `UnusableInput` if the commit is the baseline.
        """
        if commit == BASELINE:
            raise UnusableInput(
                "the baseline does not build or run", hint=f"give another one with {option('from')}"
            )
        self._withdrawn[self._era].add(self._names[commit])
        self._retried.discard(self._names[commit])

    def state(self) -> HistoryState:
        """Return the state of the history."""
        withdrawn = self._withdrawn.get(self._era, set())
        return HistoryState(
            revisions=tuple(self._revisions()),
            changes=tuple(self._changes()),
            pairs=tuple(self._pair_state(pair) for pair in self._pairs),
            withdrawn=tuple(name for name in self._names if name in withdrawn),
            eras=len(self._eras),
            blocks=self._blocks,
            blocks_to_go=self._course().blocks_to_go(),
        )

    def progress(self) -> tuple[int, tuple[Change, ...]]:
        """Return the number of commits of the campaign that have run, and the changes.

        It takes a small part of the time that `state` takes.
        """
        measured = sum(name in self._measured for name in self._names[BASELINE + 1 :])
        return measured, tuple(self._changes())

    def _course(self) -> Course:
        withdrawn = self._withdrawn.get(self._era, set()) - self._retried
        runnable = tuple(place for place, name in enumerate(self._names) if name not in withdrawn)
        curve_commits = {BASELINE, *self._selected, *runnable[-1:]} & set(runnable)
        measured = (place for place in runnable if self._names[place] in self._measured)
        places = {self._names[place]: place for place in runnable}
        links: dict[Places, _Pair] = {}
        # The pair of this era replaces earlier ones of the same commits, except decided ones.
        for pair in sorted(self._pairs, key=lambda pair: (pair.is_decided, pair.era == self._era)):
            if pair.after in places and pair.until in places:
                links[places[pair.after], places[pair.until]] = pair
        return Course(
            runnable=runnable,
            curve_commits=tuple(sorted(curve_commits)),
            measured=tuple(measured),
            links={ends: pair.link(self._era) for ends, pair in links.items()},
            undersampled=tuple(
                place for place in sorted(curve_commits) if self._is_undersampled(place)
            ),
            first=max(place for place in runnable if place <= self._first),
        )

    def _is_undersampled(self, place: int) -> bool:
        """Return whether a commit that ran has no interval yet, or one from few blocks."""
        name = self._names[place]
        if place == BASELINE or name not in self._measured:
            return False
        return all(
            len(point.blocks) < max(CURVE_BLOCKS, earliest_block(point.level))
            for point in self._points_by_era(name)
        )

    def _points_by_era(self, name: str) -> list[_Sequence]:
        eras = range(1, len(self._eras) + 1)
        return [self._points[name, era] for era in eras if (name, era) in self._points]

    def _open_pairs(self, ran: Sequence[int]) -> None:
        """Open each pair of neighbours in the block if no commit between them has run so far."""
        withdrawn = self._withdrawn[self._era]
        for first, second in zip(ran, ran[1:], strict=False):
            after, until = self._names[first], self._names[second]
            between = self._names[first + 1 : second]
            is_adjacent = not any(
                name in self._measured and name not in withdrawn for name in between
            )
            earlier = self._opened.setdefault((after, until), [])
            if is_adjacent and not any(
                each.era == self._era or each.is_decided for each in earlier
            ):
                rank = len(self._pairs) + 1
                arguments = (self._era, rank, self._alpha, self._no_blocks())
                pair = _Pair(after, until, *arguments, self.margin)
                self._pairs.append(pair)
                earlier.append(pair)

    def _points_of(self, ran: Sequence[int]) -> Iterator[_Sequence]:
        """Yield the sequence over the baseline of each commit that ran together with it."""
        if ran[0] != BASELINE:
            return
        for condition in ran[1:]:
            key = (self._names[condition], self._era)
            if key not in self._points:
                rank, baseline = len(self._points) + 1, self._names[BASELINE]
                self._points[key] = _Sequence(
                    baseline, key[0], self._era, rank, self._alpha, self._no_blocks()
                )
            yield self._points[key]

    def _pairs_of(self, ran: Sequence[int]) -> list[_Pair]:
        """Return the pairs of this era whose commits both ran."""
        names = [self._names[condition] for condition in ran]
        return [
            pair
            for ends in itertools.combinations(names, 2)
            for pair in self._opened.get(ends, ())
            if pair.era == self._era
        ]

    def _name_changes(self, pairs: Sequence[_Pair]) -> None:
        """Name each pair with enough evidence, among the pairs with new evidence.

        Each name lowers the thresholds of all other pairs.
        """
        while True:
            for pair in pairs:
                ln_threshold = math.log(pair.rank * (pair.rank + 1) / self._alpha)
                if pair.is_named or pair.ln_e_value < ln_threshold - math.log(len(self._named) + 1):
                    continue
                ln_threshold -= math.log(_most_disjoint([*self._named, self._span(pair)]))
                if pair.ln_e_value >= ln_threshold:
                    pair.name(ln_threshold)
                    self._named.append(self._span(pair))
                    break
            else:
                return
            withdrawn = self._withdrawn[self._era]
            era = [pair for pair in self._pairs if pair.era == self._era]
            pairs = [pair for pair in era if withdrawn.isdisjoint((pair.after, pair.until))]

    def _span(self, pair: _Pair) -> Places:
        return self._places[pair.after], self._places[pair.until]

    def _changes(self) -> Iterator[Change]:
        named_pairs = sorted((pair for pair in self._pairs if pair.is_named), key=self._span)
        for pair in named_pairs:
            if any(self._contains(pair, other) for other in named_pairs if other is not pair):
                continue
            between = self._commits_between(pair)
            withdrawn = self._withdrawn.get(pair.era, set())
            yield Change(
                self._pair_state(pair),
                threshold=e_value_of(pair.ln_threshold),
                is_confirmed=all(name in withdrawn for name in between),
                not_built=tuple(name for name in between if name in withdrawn),
            )

    def _contains(self, pair: _Pair, other: _Pair) -> bool:
        """Return whether a pair contains another one, or is a later pair of the same commits."""
        line = (pair.after, *self._commits_between(pair), pair.until)
        if other.after not in line or other.until not in line:
            return False
        return self._span(pair) != self._span(other) or other.rank < pair.rank

    def _commits_between(self, pair: _Pair) -> tuple[str, ...]:
        """Return the commits between the two of a pair, in order."""
        line: list[str] = []
        name = self._parents[pair.until]
        while name != pair.after:
            line.append(name)
            name = self._parents[name]
        return tuple(reversed(line))

    def _revisions(self) -> Iterator[RevisionPoint]:
        baseline = self._names[BASELINE]
        yield RevisionPoint(baseline, 1.0, (1.0, 1.0), blocks=self._baseline_blocks)
        for name in self._names[BASELINE + 1 :]:
            if points := self._points_by_era(name):
                point = points[-1]
                judged = point.judge()
                yield RevisionPoint(
                    name, judged.ratio, judged.ratio_ci, point.level, len(point.blocks), point.era
                )
            elif name in self._measured:
                yield RevisionPoint(name)

    def _pair_state(self, pair: _Pair) -> HistoryPair:
        judged = pair.judge()
        return HistoryPair(
            pair=pair.rank,
            after=pair.after,
            until=pair.until,
            status=pair.status,
            ratio=judged.ratio,
            ratio_ci=judged.ratio_ci,
            level=pair.level,
            e_value=e_value_of(pair.ln_e_value),
            blocks=len(pair.blocks),
            era=pair.era,
        )

    def _no_blocks(self) -> PairedBlocks:
        return PairedBlocks(resolution=self._resolution)


class _Sequence(Struct, eq=False):
    """The blocks of two commits in one era, judged at their own level."""

    after: str
    until: str
    era: int
    rank: int
    alpha: float
    blocks: PairedBlocks

    @property
    def level(self) -> float:
        """1 minus the coverage: alpha/(k(k + 1)) for sequence number k; all add up to alpha."""
        return self.alpha / (self.rank * (self.rank + 1))

    def add(self, before: float, after: float, order: int) -> None:
        """Add the costs of the two in one block."""
        self.blocks.append(before, after, order)

    def judge(self) -> ComparisonVerdict:
        """Return the estimate and its interval."""
        return judge_alone(self.blocks, 0.0, self.level)


class _Pair(_Sequence, eq=False):
    """Two commits between which something may have changed."""

    margin: float
    ln_e_value: float = 0.0
    """Evidence for a difference above the margin; for a named pair, its value at the naming."""
    ln_threshold: float = math.inf
    """Logarithm of the e-value at which it was named; infinite until then."""
    blocks_to_name: int = 0

    @property
    def is_named(self) -> bool:
        """Whether the pair is named as a change; a name is final."""
        return self.ln_threshold < math.inf

    @property
    def is_decided(self) -> bool:
        """Whether the pair gets no more blocks, in any era."""
        return self.status != "open"

    def name(self, ln_threshold: float) -> None:
        """Name the pair as a change."""
        self.ln_threshold, self.blocks_to_name = ln_threshold, len(self.blocks)

    def add(self, before: float, after: float, order: int) -> None:
        """Add the costs of the two in one block, and bet again unless the pair is named."""
        super().add(before, after, order)
        if not self.is_named:
            self.ln_e_value = self.blocks.engine.ln_e_value_beyond(self.margin)

    @property
    def status(self) -> PairStatus:
        """The status of the pair; ``equivalent`` is judged without the other pairs."""
        if self.is_named:
            return "changed"
        return "equivalent" if self._is_equivalent else "open"

    def link(self, era: int) -> Link:
        """Return the state of the pair in an era, for the order of work."""
        blocks = len(self.blocks) if self.era == era else 0
        if self.is_named:
            return Link("named", blocks, is_narrow=self.era != era or self._is_narrow())
        if self._is_equivalent:
            return Link("equivalent", blocks)
        is_weak_suspect = self._seems_to_change(WEAK_SUSPECT_LEVEL)
        is_suspect = is_weak_suspect and self._seems_to_change(self.alpha)
        status: LinkStatus = "suspect" if is_suspect else "open"
        return Link(status, blocks, is_weak_suspect=is_weak_suspect, expected=self._expected())

    def _expected(self) -> float | None:
        """Return the blocks until the interval fits into the margin, if it shrinks as 1/√blocks."""
        judged = self._judge_alone()
        half = (judged.equivalence_high - judged.equivalence_low) / 2
        if not math.isfinite(half):
            return None
        return len(self.blocks) * max(1.0, half / self.margin) ** 2

    @property
    def _is_equivalent(self) -> bool:
        judged = self._judge_alone()
        return -self.margin <= judged.equivalence_low and judged.equivalence_high <= self.margin

    def _seems_to_change(self, level: float) -> bool:
        """Return whether the estimate is at least the margin, and 0 is excluded at a level."""
        typical = self._judge_alone().typical or 0.0
        is_excluded = self.blocks.engine.blocks_to_exclude(0.0, level) is not None
        return abs(typical) >= self.margin and is_excluded

    def _judge_alone(self) -> ComparisonVerdict:
        return judge_alone(self.blocks, 0.0, self.alpha)

    def _is_narrow(self) -> bool:
        """Return whether both ends are within half of the step, or this takes too many blocks."""
        blocks, least = len(self.blocks), earliest_block(self.level)
        if blocks >= max(least, 2 * self.blocks_to_name):
            return True
        judged = self.judge()
        step = judged.typical or 0.0
        return blocks >= least and max(
            judged.high - step, step - judged.low
        ) <= MAX_STEP_HALF_WIDTH * abs(step)


def _most_disjoint(spans: Sequence[Places]) -> int:
    """Return the largest number of stretches such that no two contain the same step."""
    count, end = 0, 0
    for first, last in sorted(spans, key=lambda span: span[1]):
        if first >= end:
            count, end = count + 1, last
    return count
