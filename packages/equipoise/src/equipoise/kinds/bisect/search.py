"""The search for the commits that made a difference (docs/methods/statistics.md).

A block runs two commits in the order of a fair coin. Which two is a function of the blocks before,
and so is everything here: a campaign that is read back goes on with the very same state.

The line of first parents is searched first. Once a merge is named and its step is measured, its
branch is searched, from the commit where it began to the merge's other parent, with a confirmation
of its own; then the search goes on where it was (docs/methods/statistics.md).

The chance that any name is wrong is at most alpha, over all branches and benchmarks, because k
counts the own pairs of all. Each benchmark has a coin of its own in each block, or shares the
trials of its block with others; which pair runs is in both cases a function of the blocks before.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from equipoise.kinds.bisect.layout import (
    LAYOUT_SPREAD,
    CandidateStep,
    LayoutBlock,
    difference_of,
    persistent_steps,
    step_trends,
)
from equipoise.kinds.bisect.stretch import (
    NamedStep,
    OwnPairs,
    Segment,
    SegmentState,
    UnconfirmedStep,
    level_of_rank,
)
from equipoise.kinds.bisect.terms import StepTrend, UnconfirmedReason
from equipoise.model.errors import UnusableInput
from equipoise.revisions.commits import MergedBranch
from equipoise.revisions.terms import Pair
from equipoise.shared.spelling import option
from equipoise.stats.resolution import NO_RESOLUTION, Resolution
from equipoise.stats.sequence import BASELINE_FIRST, CANDIDATE_FIRST
from equipoise.stats.verdict import ComparisonVerdict, check_alpha, margin_of

REMAINDER_BLOCKS = 150
"""Blocks that what is left of a gap may always take; more if the first search took more."""

BisectionVerdict = Literal["confirming", "no difference", "searching", "culprit", "several"]
"""``confirming``: it is not known yet whether GOOD and BAD differ. ``no difference``: they are
equivalent. ``searching``: several commits may have made the whole difference. ``culprit``: one is
named. ``several``: no single commit explains the gap, or more than one is named."""


class BisectionState(Struct, frozen=True):
    """How a bisection stands."""

    verdict: BisectionVerdict
    gap: ComparisonVerdict
    """BAD over GOOD. Its ``equivalence_ci`` says what size is excluded."""
    log_e_values: tuple[float, ...]
    """ln E of commits 1 to ``count`` against "it made the whole difference": the first search's."""
    excluded_at: tuple[int | None, ...]
    """Number of the block at which each commit was excluded by the first search."""
    chances: tuple[float, ...]
    """Chance of each commit that steers the first search, and guarantees nothing; they sum to 1."""
    named: tuple[NamedStep, ...]
    """In the order in which they were named."""
    unconfirmed: tuple[UnconfirmedStep, ...]
    """Commits that differ from the one before, and are not named, in that order."""
    segments: tuple[SegmentState, ...]
    """The first search, and each that looked at what was left, in the order in which they began."""
    blocks: int
    margin: float | None
    """Log units: commits on one side of the step are taken to differ by less; ``None`` before the
    gap is confirmed."""

    @property
    def excluded(self) -> tuple[bool, ...]:
        """Whether each commit is excluded as the one that made the whole difference."""
        return tuple(block is not None for block in self.excluded_at)


class Bisection:
    """The search for the commits that made a difference; a function of the blocks added.

    First the gap is confirmed. If one commit is left, and makes a difference by itself, it is the
    culprit, and what is left of the gap on either side is looked at; if none is left, both halves
    are. The chance that any named commit is slower than the one before it by at
    most the margin is at most alpha, whatever the other commits do.

    Raise `UnusableInput` if there is no commit after GOOD, alpha or the smallest effect is out of
    range, or a chance is negative, no number, or there is not one for each commit.

    Parameters
    ----------
    count
        Number of commits after GOOD: GOOD has index 0, BAD has index ``count``.
    alpha
        Between 0 and 1.
    min_effect
        Percent; a smaller gap is no difference. What is left of a gap is judged by this or by the
        margin, whichever is larger.
    prior
        Chances of commits 1 to ``count``, in any unit; by default even ones. They choose pairs and
        set stakes, no more, and none falls below a tenth of an even one.
    resolution
        As for ``PairedBlocks``.
    own_pairs
        Counter to share with the bisections that make one claim together with this one.
    remainder_blocks
        Blocks that each search of what is left may take; by default as many as the first search
        took, at least 150.
    prose
        Commits that change only files that no build reads: they are never named.
    layout_spread
        What is known of the standard deviation of a layout beforehand, in log units; above 0.
    """

    def __init__(
        self,
        count: int,
        *,
        alpha: float,
        min_effect: float = 0.0,
        prior: Sequence[float] | None = None,
        resolution: Resolution = NO_RESOLUTION,
        own_pairs: OwnPairs | None = None,
        remainder_blocks: int | None = None,
        prose: Collection[int] = (),
        layout_spread: float = LAYOUT_SPREAD,
    ) -> None:
        check_alpha(alpha)
        if count < 1:
            raise UnusableInput(
                "there is no commit after the good one",
                hint=f"give a later commit with {option('bad')}",
            )
        self.count = count
        self._alpha = alpha
        self._min_margin = margin_of(min_effect)
        self._prior = () if prior is None else _checked_prior(prior, count)
        self._resolution = resolution
        self._own_pairs = OwnPairs() if own_pairs is None else own_pairs
        self._remainder_blocks = remainder_blocks
        self._prose, self._layout_spread = frozenset(prose), layout_spread
        self._own_ranks: dict[Pair, int] = {}
        """Number of each own pair among those of this line of commits, from 1."""
        self._course: list[LayoutBlock] = []
        self._confirmed: tuple[object, frozenset[int]] = (None, frozenset())
        self._withdrawn: set[int] = set()
        self._waiting: deque[Pair] = deque()
        self._blocks = 0
        self._segments = [self._segment((0, count))]

    def set_resolution(self, resolution: Resolution) -> None:
        """Set the resolution of the metric, while no block has a finite cost; later, do nothing."""
        if len(self._segments) == 1:
            self._segments[0].set_resolution(resolution)
            self._resolution = self._segments[0].resolution

    @property
    def is_open(self) -> bool:
        """Whether anything is left to ask."""
        return self._segments[-1].is_open

    @property
    def fixed_pair(self) -> Pair | None:
        """The one pair that can run now; ``None`` while pairs are chosen."""
        return self._segments[-1].fixed_pair

    def takes(self, pair: Pair) -> bool:
        """Return whether a block of this pair, which another search chose, is of use here."""
        return self.is_open and self._segments[-1].takes(pair)

    def next_pair(self, built: Collection[int], build_trials: float) -> Pair | None:
        """Return the pair that runs next; ``None`` if nothing is left to ask.

        Parameters
        ----------
        built
            Commits that can be run without a build.
        build_trials
            Seconds of a build over those of a trial, as measured.
        """
        segment = self._segments[-1]
        return segment.next_pair(built, build_trials) if segment.is_open else None

    def add(self, pair: Pair, costs: tuple[float, float], order: int) -> None:
        """Add one complete block, of the pair that ``next_pair`` returned.

        The costs are those of the earlier and of the later commit, +inf for a trial that timed out;
        the order is 1 if the earlier one ran first, else -1.

        Raise `UnusableInput` if a cost is negative or no number, or an order is neither 1 nor -1.
        Raise `ValueError` if nothing is left to ask, or the pair is none that can run now.
        """
        segment = self._segments[-1]
        if not segment.is_open:
            raise ValueError("the bisection has ended: no block can be added")
        if order not in (1, -1):
            raise UnusableInput(
                "an order is neither 1 (earlier commit first) nor -1 (later commit first)",
                hint="give one of the two for every block",
            )
        if not all(cost >= 0 for cost in costs):
            raise UnusableInput(
                f"a block has the costs {costs[0]} and {costs[1]}: one is no number from 0 up",
                hint="compare a metric that is a cost, and leave out trials that have none",
            )
        own_pairs = self._own_pairs.count
        segment.add(pair, costs, order, self._blocks + 1, self._own_pairs)
        if self._own_pairs.count > own_pairs:
            self._own_ranks[pair] = len(self._own_ranks) + 1
        self._course.append(LayoutBlock(*pair, difference_of(costs), order))
        self._blocks += 1
        self._go_on()

    def withdraw(self, commit: int) -> None:
        """Take out a commit that does not build or run: it forms a group with the next that does.

        A second time it does nothing.

        Raise `UnusableInput` if the commit is GOOD or BAD.
        """
        if commit in (0, self.count):
            which = "good" if commit == 0 else "bad"
            raise UnusableInput(
                f"the {which} commit does not build or run",
                hint=f"give another one with {option(which)}",
            )
        if commit in self._withdrawn:
            return
        self._withdrawn.add(commit)
        segment = self._segments[-1]
        if segment.is_open:
            segment.withdraw(commit)
            self._go_on()

    def of_branch(self, count: int, prose: Collection[int] = ()) -> Bisection:
        """Return the search of the branch of a merge that this one named.

        See docs/methods/statistics.md.

        Both make one claim: k goes on. A gap of the branch is judged as what is left of a gap.
        ``count`` is the number of commits of the branch after the one where it began, of which
        those in ``prose`` change only files that no build reads.
        """
        return Bisection(
            count,
            alpha=self._alpha,
            min_effect=100.0 * math.expm1(self._margin_of_remainders()),
            resolution=self._resolution,
            own_pairs=self._own_pairs,
            remainder_blocks=self._remainder_blocks,
            prose=prose,
            layout_spread=self._layout_spread,
        )

    @property
    def measured(self) -> tuple[Pair, ...]:
        """Own pairs of the candidates whose steps need no more blocks, as they were found."""
        return tuple(
            candidate.named
            for candidate in self._candidates
            if candidate.named and not candidate.is_open
        )

    def is_named(self, pair: Pair) -> bool:
        """Return whether the candidate of an own pair is named by all blocks so far."""
        return any(candidate.named == pair for candidate in self._confirmed_among(self._candidates))

    @property
    def verdict(self) -> BisectionVerdict:
        """What is known so far: as ``state`` has it, and quicker."""
        verdict = self._segments[0].verdict
        if verdict == "culprit":
            named = self._confirmed_among(self._candidates)
            if len(named) > 1:
                return "several"
            if named != [self._segments[0]]:
                return "several" if named else "searching"
        assert verdict != "undecided", "the first search may take any number of blocks"
        return verdict

    @property
    def named(self) -> tuple[NamedStep, ...]:
        """The commits named so far, in the order in which they were found.

        Each makes a difference by the bets, is certainly beyond the smallest effect in the builds
        of it and the commit before, and has a step that persists beside what layouts do to single
        commits (``bisection_layout``). All are judged together, by all blocks so far.
        """
        gap = self._segments[0].gap
        steps = (candidate.named_step(gap) for candidate in self._confirmed_among(self._candidates))
        return tuple(step for step in steps if step is not None)

    @property
    def trends(self) -> tuple[StepTrend | None, ...]:
        """How the steps of ``named`` grew or faded so far; ``None`` if no change is certain."""
        named = self._confirmed_among(self._candidates)
        return step_trends(
            self._course,
            [candidate.named[1] for candidate in named if candidate.named],
            sorted(candidate.named[1] for candidate in self._candidates if candidate.named),
            layout_spread=self._layout_spread,
            withdrawn=self._withdrawn,
        )

    @property
    def unconfirmed(self) -> tuple[UnconfirmedStep, ...]:
        """The commits that make a difference by the bets, and are not named."""
        named, gap = self._confirmed_among(self._candidates), self._segments[0].gap
        return tuple(
            UnconfirmedStep(step, self._reason(candidate))
            for candidate in self._candidates
            if candidate not in named and (step := candidate.named_step(gap)) is not None
        )

    @property
    def _candidates(self) -> list[Segment]:
        return [segment for segment in self._segments if segment.named is not None]

    def _confirmed_among(self, candidates: Sequence[Segment]) -> list[Segment]:
        """Return the candidates that are named by all blocks so far."""
        if not candidates:
            return []
        key = (self._blocks, len(self._withdrawn), len(self._candidates))
        if self._confirmed[0] != key:
            steps = [
                CandidateStep(
                    candidate.named[1], level_of_rank(self._alpha, self._own_ranks[candidate.named])
                )
                for candidate in self._candidates
                if candidate.named is not None
                and candidate.is_beyond_margin
                and not self._prose.issuperset(
                    range(candidate.named[0] + 1, candidate.named[1] + 1)
                )
            ]
            persistent = persistent_steps(
                self._course,
                steps,
                margin=self._min_margin,
                layout_spread=self._layout_spread,
                withdrawn=self._withdrawn,
            )
            self._confirmed = (key, frozenset(persistent))
        return [
            candidate
            for candidate in candidates
            if candidate.named and candidate.named[1] in self._confirmed[1]
        ]

    def _reason(self, segment: Segment) -> UnconfirmedReason:
        assert segment.named is not None, "only a candidate is not confirmed"
        if self._prose.issuperset(range(segment.named[0] + 1, segment.named[1] + 1)):
            return "prose"
        return "layouts" if segment.is_beyond_margin else "min_effect"

    def state(self) -> BisectionState:
        """Return how the bisection stands."""
        first = self._segments[0]
        search = first.search
        even = (1.0 / self.count,) * self.count
        return BisectionState(
            verdict=self.verdict,
            gap=first.judge_gap(),
            log_e_values=(0.0,) * self.count if search is None else tuple(search.ln_e_values()),
            excluded_at=(None,) * self.count if search is None else tuple(search.excluded_at()),
            chances=even if search is None else tuple(search.weights()),
            named=self.named,
            unconfirmed=self.unconfirmed,
            segments=tuple(segment.state() for segment in self._segments),
            blocks=self._blocks,
            margin=None if search is None else search.margin(),
        )

    def _go_on(self) -> None:
        """Follow up a search that ended, until one wants blocks or nothing is left to ask."""
        segment = self._segments[-1]
        while not segment.is_open:
            self._follow_up(segment)
            if not self._waiting:
                return
            segment = self._segment(self._waiting.popleft())
            self._segments.append(segment)

    def _follow_up(self, segment: Segment) -> None:
        """Remember what is left to look at."""
        parts: tuple[Pair, ...] = ()
        if segment.named is not None:
            before, after = segment.named
            parts = ((segment.first, before), (after, segment.last))
        elif segment.verdict == "several" and segment.split is not None:
            parts = ((segment.first, segment.split), (segment.split, segment.last))
        whole = (segment.first, segment.last)
        self._waiting.extend(part for part in parts if part[0] < part[1] and part != whole)

    def _segment(self, ends: Pair) -> Segment:
        first, last = ends
        margin, limit = self._min_margin, self._remainder_blocks
        if ends == (0, self.count):
            limit = None
        else:
            margin = self._margin_of_remainders()
            limit = max(REMAINDER_BLOCKS, self._segments[0].blocks) if limit is None else limit
        return Segment(
            first,
            last,
            alpha=self._alpha,
            margin=margin,
            prior=self._prior[first:last],
            withdrawn=self._withdrawn,
            resolution=self._resolution,
            limit=limit,
        )

    def _margin_of_remainders(self) -> float:
        search = self._segments[0].search
        assert search is not None, "nothing is left of a gap before it is confirmed"
        return max(self._min_margin, search.margin())


def _checked_prior(prior: Sequence[float], count: int) -> tuple[float, ...]:
    chances = tuple(float(chance) for chance in prior)
    if len(chances) != count or not all(
        math.isfinite(chance) and chance >= 0 for chance in chances
    ):
        raise UnusableInput(
            f"{len(chances)} chances for {count} commits, each of which is a number from 0 up",
            hint="give one for each commit after the good one",
        )
    return chances


class LineState(Struct, frozen=True):
    """How the search of one line of commits stands."""

    merge: int | None
    """The merge whose branch it is; ``None`` for the first line."""
    commits: tuple[int, ...]
    """Its commits by index in the whole bisection; all of ``state`` counts along this line."""
    missing: tuple[int, ...]
    """Ends of the branch that do not run: without both of them it cannot be searched."""
    state: BisectionState
    trends: tuple[StepTrend | None, ...]
    """How the steps of ``state.named`` grew or faded; ``None`` if no change is certain."""
    course: tuple[tuple[int, Pair], ...]
    """Each block that it took: its number among those of the whole bisection, from 1, and its pair
    along this line."""


class BranchingBisection:
    """The search of a line of commits, and of the branch of each merge that is named.

    A function of the blocks added, and of the commits withdrawn between them. The line is the
    search from GOOD to BAD, before its first block; the branches are those of all merges that can
    be named, on the line and on branches. ``prose`` has the commits of branches that change only
    files that no build reads; those of the line are the line's.
    """

    def __init__(
        self,
        line: Bisection,
        branches: Sequence[MergedBranch] = (),
        prose: Collection[int] = (),
    ) -> None:
        self._branches, self._prose = tuple(branches), frozenset(prose)
        self._withdrawn: set[int] = set()
        self._blocks = 0
        self._lines = [_Line(None, tuple(range(line.count + 1)), line)]

    def set_resolution(self, resolution: Resolution) -> None:
        """Set the resolution of the metric, while no block has a finite cost; later, do nothing."""
        if len(self._lines) == 1:
            self._lines[0].search.set_resolution(resolution)

    def next_pair(self, built: Collection[int], build_trials: float) -> Pair | None:
        """Return the pair that runs next; ``None`` if nothing is left to ask.

        Parameters are those of `Bisection.next_pair`.
        """
        line = self._current()
        if line is None:
            return None
        here = [line.places[commit] for commit in built if commit in line.places]
        return line.whole(line.search.next_pair(here, build_trials))

    def add(self, pair: Pair, costs: tuple[float, float], order: int) -> None:
        """Add one complete block, of the pair that ``next_pair`` returned.

        Parameters, and what is raised, are those of `Bisection.add`; "earlier" is the first of the
        pair.
        """
        line = self._current()
        if line is None:
            raise ValueError("the bisection has ended: no block can be added")
        if not line.places.keys() >= {*pair}:
            raise ValueError(f"{pair} is not the pair that runs now")
        here = (line.places[pair[0]], line.places[pair[1]])
        line.search.add(here, costs, order)
        self._blocks += 1
        line.course.append((self._blocks, here))
        self._descend(line)

    def withdraw(self, commit: int) -> None:
        """Take out a commit that does not build or run.

        Raise `UnusableInput` if the commit is GOOD or BAD.
        """
        self._withdrawn.add(commit)
        for line in list(self._lines):
            line.withdraw(commit)
            self._descend(line)

    @property
    def is_open(self) -> bool:
        """Whether anything is left to ask."""
        return self._current() is not None

    @property
    def fixed_pair(self) -> Pair | None:
        """The one pair that can run now; ``None`` while pairs are chosen, and at the end."""
        line = self._current()
        return None if line is None else line.whole(line.search.fixed_pair)

    def takes(self, pair: Collection[int]) -> bool:
        """Return whether a block of two commits, which another search chose, is of use here."""
        line = self._current()
        if line is None or not line.places.keys() >= {*pair}:
            return False
        earlier, later = sorted(line.places[commit] for commit in pair)
        return line.search.takes((earlier, later))

    @property
    def verdict(self) -> BisectionVerdict:
        """What is known of the first line."""
        return self._lines[0].search.verdict

    @property
    def named(self) -> tuple[NamedStep, ...]:
        """The commits of the first line that are named."""
        return self._lines[0].search.named

    def state(self) -> BisectionState:
        """Return how the search of the first line stands."""
        return self._lines[0].search.state()

    def lines(self) -> tuple[LineState, ...]:
        """Return how each search stands: the first line, then branches as they were begun."""
        return tuple(line.state() for line in self._lines)

    @property
    def searched_merge(self) -> int | None:
        """The merge whose branch is searched now; ``None`` for the first line."""
        line = self._current()
        return None if line is None else line.merge

    def in_order(self, pair: Collection[int]) -> Pair:
        """Return the two commits of the block that runs now, the earlier one first.

        Raise `ValueError` if they are not on the line that is searched now.
        """
        line = self._current()
        if line is None or len(pair) != 2 or not line.places.keys() >= {*pair}:
            raise ValueError(f"{tuple(pair)} is not a pair that can run now")
        earlier, later = sorted(pair, key=line.places.__getitem__)
        return earlier, later

    def _current(self) -> _Line | None:
        return next((line for line in reversed(self._lines) if line.is_open), None)

    def _descend(self, line: _Line) -> None:
        """Begin to search the branches of merges that the line has named."""
        if not self._branches:
            return
        begun = {(line.merge, line.commits) for line in self._lines}
        for merge, pair in line.merges():
            for branch in self._branches:
                if (
                    branch.merge == merge
                    and (merge, branch.commits) not in begun
                    and line.search.is_named(pair)
                ):
                    prose = [
                        place
                        for place, commit in enumerate(branch.commits)
                        if place and commit in self._prose
                    ]
                    search = line.search.of_branch(len(branch.commits) - 1, prose)
                    self._lines.append(_Line(merge, branch.commits, search))
                    for commit in sorted(self._withdrawn):
                        self._lines[-1].withdraw(commit)


class _Line:
    """One line of commits, and its search."""

    def __init__(self, merge: int | None, commits: tuple[int, ...], search: Bisection) -> None:
        self.merge, self.commits, self.search = merge, commits, search
        self.places: Mapping[int, int] = {commit: place for place, commit in enumerate(commits)}
        self.course: list[tuple[int, Pair]] = []
        self._missing: set[int] = set()

    @property
    def is_open(self) -> bool:
        return not self._missing and self.search.is_open

    def whole(self, pair: Pair | None) -> Pair | None:
        """Return a pair along this line by the indices of the whole bisection."""
        return pair and (self.commits[pair[0]], self.commits[pair[1]])

    def withdraw(self, commit: int) -> None:
        place = self.places.get(commit)
        if place is None:
            return
        if self.merge is not None and place in (0, self.search.count):
            self._missing.add(commit)
        else:
            self.search.withdraw(place)

    def merges(self) -> Iterator[tuple[int, Pair]]:
        """Yield the candidates that are alone, and measured, with their pairs: any may be a merge.

        The pair counts along this line.
        """
        for before, last in self.search.measured:
            if last == before + 1:
                yield self.commits[last], (before, last)

    def state(self) -> LineState:
        return LineState(
            merge=self.merge,
            commits=self.commits,
            missing=tuple(sorted(self._missing)),
            state=self.search.state(),
            trends=self.search.trends,
            course=tuple(self.course),
        )


class SharedBlocks:
    """The bisections of the benchmarks that one command measures: they share each block.

    They take turns in choosing the pair. All that wait for the same fixed pair have one turn, so
    that those without a difference hold up no search. A block counts for each bisection to which
    its pair is of use. There is one for each benchmark, with one counter of own pairs for all.
    """

    def __init__(self, bisections: Sequence[BranchingBisection]) -> None:
        self.bisections = tuple(bisections)
        self._blocks = 0

    def next_pair(self, built: Collection[int], build_trials: float) -> Pair | None:
        """Return the pair that runs next; ``None`` if nothing is left to ask.

        Parameters are those of `Bisection.next_pair`.
        """
        chooser = self._chooser()
        return None if chooser is None else chooser.next_pair(built, build_trials)

    def add(self, costs: Sequence[Mapping[int, float] | None], first: int) -> tuple[bool, ...]:
        """Add one block; return for each bisection whether it counts there.

        Parameters
        ----------
        costs
            Costs of the two commits for each bisection; ``None`` where one was not measured.
        first
            The commit that ran first.
        """
        chooser = self._chooser()
        taken: list[bool] = []
        for bisection, cost in zip(self.bisections, costs, strict=True):
            counts = cost is not None and (bisection is chooser or bisection.takes(cost.keys()))
            if counts and cost is not None:
                earlier, later = bisection.in_order(cost.keys())
                order = BASELINE_FIRST if earlier == first else CANDIDATE_FIRST
                bisection.add((earlier, later), (cost[earlier], cost[later]), order)
            taken.append(counts)
        self._blocks += 1
        return tuple(taken)

    def _chooser(self) -> BranchingBisection | None:
        """Return the bisection whose turn it is; ``None`` if all have ended."""
        turns: dict[Pair | int, BranchingBisection] = {}
        for place, bisection in enumerate(self.bisections):
            if bisection.is_open:
                turns.setdefault(bisection.fixed_pair or place, bisection)
        return list(turns.values())[self._blocks % len(turns)] if turns else None


def next_pairs(
    commands: Sequence[SharedBlocks], built: Collection[int], build_trials: float
) -> dict[int, Pair]:
    """Return the pair of each command in the next block, by its place; none of those that ended.

    Commits that one command needs count as built for the next ones: the builds of a block are
    shared.
    """
    ready = set(built)
    pairs: dict[int, Pair] = {}
    for place, command in enumerate(commands):
        pair = command.next_pair(ready, build_trials)
        if pair is not None:
            pairs[place] = pair
            ready.update(pair)
    return pairs
