"""The history of a program: a curve over its commits, and the changes (docs/methods/statistics.md).

A history is a series of campaigns, one after the other. Everything here is a function of their
blocks: a series that is read back goes on with the very same state.

A block runs two or more commits in random order, chosen from the blocks before it. A pair of
commits is opened when it first runs with nothing measured in between, and bets on its blocks from
then on. It is named as a change at an e-value that makes the false-discovery rate at most alpha at
every look, for ever.
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
"""Blocks beside the baseline that a commit of the curve has at least when nothing is left."""
LEANING_LEVEL = 0.2
"""Level at which a difference shows where to look first within a stretch that changes."""


class RevisionPoint(Struct, frozen=True):
    """One commit of the curve."""

    name: str
    ratio: float | None = None
    """Its cost over the baseline's; ``None`` where it is unknown or not finite."""
    ratio_ci: Interval = (None, None)
    level: float | None = None
    """1 minus the coverage of ``ratio_ci``: alpha/(j(j + 1)) of the j-th commit that was measured
    against the baseline, so that all intervals hold together; ``None`` without a block."""
    blocks: int = 0
    """Blocks with the baseline, of the latest era in which it has any."""
    era: int | None = None
    """Number of that era, from 1; ``None`` without a block."""


class Change(Struct, frozen=True):
    """A pair that is named as a change, and has no narrower one inside it."""

    pair: HistoryPair
    threshold: float
    """E-value from which on the pair was named."""
    is_confirmed: bool
    """Whether no commit between the two can run: it is one commit against its parent, or against
    the latest ancestor that builds."""
    not_built: tuple[str, ...]
    """Commits between the two that do not build or run, in order."""


class HistoryState(Struct, frozen=True):
    """How a history stands, after all campaigns so far."""

    revisions: tuple[RevisionPoint, ...]
    """Commits of the present campaign that ran, and the baseline; in the order of the commits."""
    changes: tuple[Change, ...]
    """In the order of the commits."""
    pairs: tuple[HistoryPair, ...]
    """All pairs ever opened, in that order."""
    withdrawn: tuple[str, ...]
    """Commits of the present campaign that do not build or run, in the order of the commits."""
    eras: int
    """Number of eras so far."""
    blocks: int
    """Complete blocks of all campaigns."""
    blocks_to_go: int
    """Blocks that are probably left, by a rule of thumb; 0 if nothing is left to ask."""


class History:
    """The curve and the changes of a series of campaigns; a function of the blocks added.

    The false-discovery rate of the changes is at most alpha at every look, and all intervals of the
    curve hold together with chance 1 - alpha, if ratios are constant within an era.

    Raise `UnusableInput` if alpha or the smallest effect is out of range.

    Parameters
    ----------
    alpha
        Between 0 and 1.
    min_effect
        Percent, above 0: a change between two commits counts if it is larger.
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
                "a history needs a smallest effect that matters: without one no pair of commits "
                "is ever alike enough to be left",
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
        """Begin the next campaign: what is known of its commits goes on.

        Raise `UnusableInput` if there is no commit after the baseline, or the baseline is another
        one.

        Parameters
        ----------
        names
            Whole names of its conditions: the commits along first parents from the baseline on.
        selected
            Conditions that the curve wants; the first and the last are always among them.
        era
            What must be the same for numbers of two campaigns to be comparable. Pairs go on only
            in the era in which they were opened.
        only_new
            Whether the curve asks only about commits after the latest one that ran before.
        """
        if len(names) < 2:
            raise UnusableInput(
                "there is no commit after the baseline",
                hint=f"give an earlier one with {option('from')}",
            )
        if self._names and names[BASELINE] != self._names[BASELINE]:
            raise UnusableInput(
                "the campaigns of one history have one baseline",
                hint=f"begin a history of its own for another {option('from')}",
            )
        known = [place for place, name in enumerate(names) if name in self._measured]
        self._first = max(known, default=BASELINE) if only_new else BASELINE
        self._names, self._selected = tuple(names), frozenset(selected)
        self._places.update({name: place for place, name in enumerate(names)})
        self._parents.update(zip(names[1:], names, strict=False))
        self._era = self._eras.setdefault(era, len(self._eras) + 1)
        # What failed in a block stays out: it might have failed for being slow. What never ran
        # may have lacked a library, or the network.
        self._retried = self._withdrawn.setdefault(self._era, set()) - self._measured

    def set_resolution(self, resolution: Resolution) -> None:
        """Set the resolution of the metric, while no block has a finite cost; later, do nothing."""
        if not self._has_values:
            self._resolution = resolution
            for one in (*self._pairs, *self._points.values()):
                one.blocks.set_resolution(resolution)

    def next_block(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        """Return the conditions of the next block, in their order; none if nothing is left to ask.

        Parameters
        ----------
        built
            Conditions that can be run without a build.
        build_trials
            Seconds of a build over those of a trial, as measured.
        """
        return self._course().next_block(built, build_trials)

    def add(self, costs: Mapping[int, float], order: Sequence[int]) -> None:
        """Add one complete block: the cost of each condition that ran, and their order.

        The cost of a trial that timed out is +inf.

        Raise `UnusableInput` if a cost is negative or no number. Raise `ValueError` if the order
        has other conditions than the costs, there are fewer than two, or one that the campaign does
        not have.
        """
        ran = sorted(costs)
        if len(ran) < 2 or sorted(order) != ran or not 0 <= ran[0] < ran[-1] < len(self._names):
            raise ValueError(f"a block cannot have the conditions {ran} in the order {order}")
        self._withdrawn[self._era] -= {self._names[condition] for condition in ran}
        self._open_pairs(ran)
        pairs = self._pairs_of(ran)
        for one in (*pairs, *self._points_of(ran)):
            first, second = self._places[one.after], self._places[one.until]
            is_first = order.index(first) < order.index(second)
            one.add(costs[first], costs[second], BASELINE_FIRST if is_first else CANDIDATE_FIRST)
        self._measured.update(self._names[condition] for condition in ran)
        self._blocks += 1
        self._baseline_blocks += BASELINE in costs
        self._has_values = self._has_values or any(map(math.isfinite, costs.values()))
        self._name_changes(pairs)

    def withdraw(self, commit: int) -> None:
        """Take out a commit that does not build or run, while the era lasts.

        If it never ran, the next campaign may try it once more. A second time it does nothing. What
        was named before stays named.

        Raise `UnusableInput` if the commit is the baseline.
        """
        if commit == BASELINE:
            raise UnusableInput(
                "the baseline does not build or run", hint=f"give another one with {option('from')}"
            )
        self._withdrawn[self._era].add(self._names[commit])
        self._retried.discard(self._names[commit])

    def state(self) -> HistoryState:
        """Return how the history stands."""
        gone = self._withdrawn.get(self._era, set())
        return HistoryState(
            revisions=tuple(self._revisions()),
            changes=tuple(self._changes()),
            pairs=tuple(self._state_of(pair) for pair in self._pairs),
            withdrawn=tuple(name for name in self._names if name in gone),
            eras=len(self._eras),
            blocks=self._blocks,
            blocks_to_go=self._course().blocks_to_go(),
        )

    def progress(self) -> tuple[int, tuple[Change, ...]]:
        """Return how many commits of the campaign have run so far, and the changes.

        It takes a small part of the time that `state` takes.
        """
        measured = sum(name in self._measured for name in self._names[BASELINE + 1 :])
        return measured, tuple(self._changes())

    def _course(self) -> Course:
        gone = self._withdrawn.get(self._era, set()) - self._retried
        runnable = tuple(place for place, name in enumerate(self._names) if name not in gone)
        wanted = {BASELINE, *self._selected, *runnable[-1:]} & set(runnable)
        measured = (place for place in runnable if self._names[place] in self._measured)
        places = {self._names[place]: place for place in runnable}
        links: dict[Places, _Pair] = {}
        # Of the same two commits the pair of this era counts; but what was decided stays decided.
        for pair in sorted(self._pairs, key=lambda one: (one.is_decided, one.era == self._era)):
            if pair.after in places and pair.until in places:
                links[places[pair.after], places[pair.until]] = pair
        return Course(
            runnable=runnable,
            wanted=tuple(sorted(wanted)),
            measured=tuple(measured),
            links={ends: pair.link(self._era) for ends, pair in links.items()},
            seldom=tuple(place for place in sorted(wanted) if self._is_seldom(place)),
            first=max(place for place in runnable if place <= self._first),
        )

    def _is_seldom(self, place: int) -> bool:
        """Return whether a commit that ran has no interval yet, or one of few blocks."""
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
        """Open each pair of the block between which nothing has run so far."""
        gone = self._withdrawn[self._era]
        for first, second in zip(ran, ran[1:], strict=False):
            after, until = self._names[first], self._names[second]
            between = self._names[first + 1 : second]
            is_close = not any(name in self._measured and name not in gone for name in between)
            earlier = self._opened.setdefault((after, until), [])
            if is_close and not any(one.era == self._era or one.is_decided for one in earlier):
                rank = len(self._pairs) + 1
                shared = (self._era, rank, self._alpha, self._no_blocks())
                pair = _Pair(after, until, *shared, self.margin)
                self._pairs.append(pair)
                earlier.append(pair)

    def _points_of(self, ran: Sequence[int]) -> Iterator[_Sequence]:
        """Yield the sequence over the baseline of each commit that ran beside it."""
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
        """Return the pairs of this era of which both ran."""
        names = [self._names[condition] for condition in ran]
        return [
            pair
            for ends in itertools.combinations(names, 2)
            for pair in self._opened.get(ends, ())
            if pair.era == self._era
        ]

    def _name_changes(self, pairs: Sequence[_Pair]) -> None:
        """Name each pair whose evidence is enough by now, of those whose evidence is new.

        One more name lowers the bars of all others.
        """
        while True:
            for pair in pairs:
                bar = math.log(pair.rank * (pair.rank + 1) / self._alpha)
                if pair.is_named or pair.ln_e_value < bar - math.log(len(self._named) + 1):
                    continue
                bar -= math.log(_most_disjoint([*self._named, self._span(pair)]))
                if pair.ln_e_value >= bar:
                    pair.name(bar)
                    self._named.append(self._span(pair))
                    break
            else:
                return
            gone = self._withdrawn[self._era]
            era = [pair for pair in self._pairs if pair.era == self._era]
            pairs = [pair for pair in era if gone.isdisjoint((pair.after, pair.until))]

    def _span(self, pair: _Pair) -> Places:
        return self._places[pair.after], self._places[pair.until]

    def _changes(self) -> Iterator[Change]:
        named = sorted((pair for pair in self._pairs if pair.is_named), key=self._span)
        for pair in named:
            if any(self._holds(pair, other) for other in named if other is not pair):
                continue
            between = self._between(pair)
            gone = self._withdrawn.get(pair.era, set())
            yield Change(
                self._state_of(pair),
                threshold=e_value_of(pair.ln_bar),
                is_confirmed=all(name in gone for name in between),
                not_built=tuple(name for name in between if name in gone),
            )

    def _holds(self, pair: _Pair, other: _Pair) -> bool:
        """Return whether another pair lies within a pair; of the same two, the earlier one."""
        line = (pair.after, *self._between(pair), pair.until)
        if other.after not in line or other.until not in line:
            return False
        return self._span(pair) != self._span(other) or other.rank < pair.rank

    def _between(self, pair: _Pair) -> tuple[str, ...]:
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

    def _state_of(self, pair: _Pair) -> HistoryPair:
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
    """Blocks of two commits of one era, and what their bets say at a level of their own."""

    after: str
    until: str
    era: int
    rank: int
    alpha: float
    blocks: PairedBlocks

    @property
    def level(self) -> float:
        """1 minus the coverage: alpha/(k(k + 1)) of the k-th sequence, which adds up to alpha."""
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
    """Evidence for a difference above the margin; of a named pair when it was named."""
    ln_bar: float = math.inf
    """Logarithm of the e-value from which on it was named; infinite until then."""
    blocks_to_name: int = 0

    @property
    def is_named(self) -> bool:
        """Whether the pair is named as a change, for good."""
        return self.ln_bar < math.inf

    @property
    def is_decided(self) -> bool:
        """Whether nothing more is asked about it, in no era."""
        return self.status != "open"

    def name(self, ln_bar: float) -> None:
        """Name it."""
        self.ln_bar, self.blocks_to_name = ln_bar, len(self.blocks)

    def add(self, before: float, after: float, order: int) -> None:
        """Add the costs of the two in one block, and bet again unless the pair is named."""
        super().add(before, after, order)
        if not self.is_named:
            self.ln_e_value = self.blocks.engine.ln_e_value_beyond(self.margin)

    @property
    def status(self) -> PairStatus:
        """How the pair stands; ``equivalent`` as it would be judged alone."""
        if self.is_named:
            return "changed"
        return "equivalent" if self._is_alike else "open"

    def link(self, era: int) -> Link:
        """Return what the order of work has to know in an era."""
        blocks = len(self.blocks) if self.era == era else 0
        if self.is_named:
            return Link("named", blocks, is_narrow=self.era != era or self._is_narrow())
        if self._is_alike:
            return Link("equivalent", blocks)
        leans = self._seems_to_change(LEANING_LEVEL)
        is_suspect = leans and self._seems_to_change(self.alpha)
        status: LinkStatus = "suspect" if is_suspect else "open"
        return Link(status, blocks, leans=leans, expected=self._expected())

    def _expected(self) -> float | None:
        """Return the blocks after which the interval fits into the smallest effect: as 1/width²."""
        judged = self._judge_alone()
        half = (judged.equivalence_high - judged.equivalence_low) / 2
        if not math.isfinite(half):
            return None
        return len(self.blocks) * max(1.0, half / self.margin) ** 2

    @property
    def _is_alike(self) -> bool:
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
        """Return whether both ends lie within half of the step, or that takes too many blocks."""
        blocks, least = len(self.blocks), earliest_block(self.level)
        if blocks >= max(least, 2 * self.blocks_to_name):
            return True
        judged = self.judge()
        step = judged.typical or 0.0
        return blocks >= least and max(
            judged.high - step, step - judged.low
        ) <= MAX_STEP_HALF_WIDTH * abs(step)


def _most_disjoint(spans: Sequence[Places]) -> int:
    """Return the largest number of stretches of which no two have a commit's step in common."""
    count, end = 0, 0
    for first, last in sorted(spans, key=lambda span: span[1]):
        if first >= end:
            count, end = count + 1, last
    return count
