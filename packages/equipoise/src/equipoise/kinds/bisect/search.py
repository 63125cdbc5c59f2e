"""Search for the commits that made a difference (docs/methods/bisect.md).

A block runs two commits in the order of a fair coin. Which two commits run depends only on earlier
blocks, so the recorded blocks of a campaign give the same state again.

The main line has the first parents from the good commit (GOOD) to the bad commit (BAD). The branch
of a merge is searched as soon as the merge is named. Then the search of the main line continues.

The own pair of a commit is this commit and the latest ancestor that runs; the step of the commit is
the difference between both. A commit is a candidate once the bets show that its own pair differs. A
candidate is named if memory layouts do not explain its step. The chance of any wrong name is at
most alpha. Then the remainders are searched: the stretches before and after the candidate.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from equipoise.kinds.bisect.layout import (
    DEFAULT_LAYOUT_SPREAD,
    CandidateStep,
    LayoutBlock,
    difference_of,
    persistent_steps,
    step_trends,
)
from equipoise.kinds.bisect.stretch import (
    MeasuredStep,
    OwnPairs,
    Stretch,
    StretchState,
    UnconfirmedStep,
    level_of_pair,
)
from equipoise.kinds.bisect.terms import StepTrend, UnconfirmedReason
from equipoise.model.errors import UnusableInput
from equipoise.revisions.commits import MergedBranch
from equipoise.revisions.terms import IndexPair
from equipoise.shared.spelling import option
from equipoise.stats.resolution import NO_RESOLUTION, Resolution
from equipoise.stats.verdict import ComparisonVerdict, check_alpha, margin_of

MAX_REMAINDER_BLOCKS = 150
"""Maximum blocks to search a remainder, or as many as the first search took."""

BisectionVerdict = Literal["confirming", "no difference", "searching", "culprit", "several"]
"""``confirming``: it is not known yet whether GOOD and BAD differ. ``no difference``: they are
equivalent. ``searching``: several commits may have made the whole difference. ``culprit``: one
commit is named. ``several``: no single commit explains the gap, or several are named."""


class BisectionState(Struct, frozen=True):
    """The state of a bisection."""

    verdict: BisectionVerdict
    gap: ComparisonVerdict
    """Cost of BAD over the cost of GOOD."""
    log_e_values: tuple[float, ...]
    """For each commit after GOOD, the log e-value against "the commit made the whole gap"."""
    excluded_at: tuple[int | None, ...]
    """Block after which the first search excluded each commit; ``None`` for other commits."""
    chances: tuple[float, ...]
    """Estimated probability that each commit is the culprit, for the choice of pairs only."""
    named_steps: tuple[MeasuredStep, ...]
    """Steps of the named commits, in the order in which they were named."""
    unconfirmed_steps: tuple[UnconfirmedStep, ...]
    """Steps of the candidates that are not named."""
    stretches: tuple[StretchState, ...]
    """The first search, and then the searches of remainders, in the order of their starts."""
    blocks: int
    margin: float | None
    """Largest difference, in log units, of commits that count as equal; ``None`` before the gap is
    confirmed."""

    @property
    def excluded(self) -> tuple[bool, ...]:
        """For each commit, whether it certainly did not make the whole difference."""
        return tuple(block is not None for block in self.excluded_at)


class Bisection:
    """The search for the commits that made a difference, after the blocks added so far.

    First the gap between GOOD and BAD is confirmed. If a single commit is left and makes a
    difference, this commit is the culprit. Then its remainders are searched. If no commit is left,
    the remainders are the two parts of the gap before and after a commit in between.

    Raise `UnusableInput` if there is no commit after GOOD, or an argument is out of range.

    Parameters
    ----------
    count
        Number of commits after GOOD: GOOD has index 0, BAD has index ``count``.
    alpha
        Between 0 and 1.
    min_effect
        Percent; two commits count as equal if their gap is smaller. For a remainder, the larger of
        this effect and the margin of the first search counts.
    prior
        Weights of commits 1 to ``count``, finite and not negative; equal by default. They affect
        the choice of pairs and the stakes. A weight below a tenth of an equal weight is raised.
    resolution
        As for ``PairedBlocks``.
    own_pairs
        Counter of the own pairs that ran, which all benchmarks and branches share.
    remainder_blocks
        Maximum blocks to search each remainder; by default `MAX_REMAINDER_BLOCKS` or as many as the
        first search took.
    documentation_commits
        Commits that change only documentation. They are never named.
    layout_spread
        Expected standard deviation of a layout's effect, in log units; above 0.
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
        documentation_commits: Collection[int] = (),
        layout_spread: float = DEFAULT_LAYOUT_SPREAD,
    ) -> None:
        check_alpha(alpha)
        if count < 1:
            raise UnusableInput(
                "there is no commit after the good commit",
                hint=f"name a later commit with {option('bad')}",
            )
        self.count = count
        self._alpha = alpha
        self._min_margin = margin_of(min_effect)
        self._prior = () if prior is None else _valid_prior(prior, count)
        self._resolution = resolution
        self._own_pairs = OwnPairs() if own_pairs is None else own_pairs
        self._remainder_blocks = remainder_blocks
        self._documentation_commits, self._layout_spread = (
            frozenset(documentation_commits),
            layout_spread,
        )
        self._pair_numbers_on_line: dict[IndexPair, int] = {}
        """Number k of each own pair of this line, from 1, in the order of their first blocks."""
        self._layout_blocks: list[LayoutBlock] = []
        self._persistence_cache: tuple[object, frozenset[int]] = (None, frozenset())
        """Key of the cache, and the candidates whose steps persist."""
        self._withdrawn: set[int] = set()
        self._waiting_stretches: deque[IndexPair] = deque()
        self._block_count = 0
        self._stretches = [self._new_stretch((0, count))]

    def set_resolution(self, resolution: Resolution) -> None:
        """Set the resolution of the metric; do nothing once a block has a finite cost."""
        if len(self._stretches) == 1:
            self._stretches[0].set_resolution(resolution)
            self._resolution = self._stretches[0].resolution

    @property
    def is_open(self) -> bool:
        """Whether the search needs more blocks."""
        return self._stretches[-1].is_open

    @property
    def fixed_pair(self) -> IndexPair | None:
        """The only pair that can run now; ``None`` if there is a choice of pairs."""
        return self._stretches[-1].fixed_pair

    def can_use(self, pair: IndexPair) -> bool:
        """Return whether this search can use a block of a pair that another search chose."""
        return self.is_open and self._stretches[-1].can_use(pair)

    def next_pair(self, built: Collection[int], build_trials: float) -> IndexPair | None:
        """Return the pair that runs next; ``None`` if the search has ended.

        Commits in ``built`` need no build. ``build_trials`` is the time of a build in trials.
        """
        stretch = self._stretches[-1]
        return stretch.next_pair(built, build_trials) if stretch.is_open else None

    def add(self, pair: IndexPair, costs: tuple[float, float], order: int) -> None:
        """Add one complete block of the pair that ``next_pair`` returned.

        ``costs`` has the earlier commit's cost, then the later commit's; +inf after a timeout.
        ``order`` is 1 if the earlier commit ran first, else -1.

        Raise `UnusableInput` if a cost is negative or NaN, or an order is neither 1 nor -1. Raise
        `ValueError` if the search has ended, or the pair cannot run now.
        """
        stretch = self._stretches[-1]
        if not stretch.is_open:
            raise ValueError("the bisection has ended: no block can be added")
        if order not in (1, -1):
            raise UnusableInput(
                f"the order {order} is neither 1 (earlier commit first) nor -1 (later first)",
                hint="give 1 or -1 for every block",
            )
        if not all(cost >= 0 for cost in costs):
            raise UnusableInput(
                f"block {self._block_count + 1} has the costs {costs[0]} (commit {pair[0]}) and "
                f"{costs[1]} (commit {pair[1]}), but a cost must be 0 or more",
                hint="choose a metric that every trial reports as a number from 0 up",
            )
        count_before = self._own_pairs.count
        stretch.add(pair, costs, order, self._block_count + 1, self._own_pairs)
        if self._own_pairs.count > count_before:
            self._pair_numbers_on_line[pair] = len(self._pair_numbers_on_line) + 1
        self._layout_blocks.append(LayoutBlock(*pair, difference_of(costs), order))
        self._block_count += 1
        self._begin_next_stretches()

    def withdraw(self, commit: int) -> None:
        """Withdraw a commit that does not build or run.

        The commit and the next commit that runs are then one suspect. A second call does nothing.

        Raise `UnusableInput` if the commit is GOOD or BAD.
        """
        if commit in (0, self.count):
            end_name = "good" if commit == 0 else "bad"
            raise UnusableInput(
                f"the {end_name} commit, with the index {commit}, does not build or run",
                hint=f"name another commit with {option(end_name)}",
            )
        if commit in self._withdrawn:
            return
        self._withdrawn.add(commit)
        stretch = self._stretches[-1]
        if stretch.is_open:
            stretch.withdraw(commit)
            self._begin_next_stretches()

    def branch_search(self, count: int, documentation_commits: Collection[int] = ()) -> Bisection:
        """Return a new search of the branch of a merge that this search named.

        ``count`` is the number of commits of the branch after the commit where the branch began.
        """
        return Bisection(
            count,
            alpha=self._alpha,
            min_effect=100.0 * math.expm1(self._margin_of_remainders()),
            resolution=self._resolution,
            own_pairs=self._own_pairs,
            remainder_blocks=self._remainder_blocks,
            documentation_commits=documentation_commits,
            layout_spread=self._layout_spread,
        )

    @property
    def measured_pairs(self) -> tuple[IndexPair, ...]:
        """Own pairs of the candidates whose steps need no more blocks, in search order."""
        return tuple(
            stretch.candidate_pair
            for stretch in self._stretches
            if stretch.candidate_pair and not stretch.is_open
        )

    def is_named(self, pair: IndexPair) -> bool:
        """Return whether the candidate with this own pair is named, given all blocks so far."""
        return any(stretch.candidate_pair == pair for stretch in self._named_stretches())

    @property
    def verdict(self) -> BisectionVerdict:
        """Verdict so far; it equals the verdict of ``state``, which is slower to compute."""
        verdict = self._stretches[0].verdict
        if verdict == "culprit":
            named_stretches = self._named_stretches()
            if len(named_stretches) > 1:
                return "several"
            if named_stretches != [self._stretches[0]]:
                return "several" if named_stretches else "searching"
        assert verdict != "undecided", "the first search may take any number of blocks"
        return verdict

    @property
    def named_steps(self) -> tuple[MeasuredStep, ...]:
        """Steps of the commits named so far, in the order of the search.

        The step of a named commit is larger than the smallest effect, and memory layouts do not
        explain the step (``layout.py``).
        """
        gap = self._stretches[0].gap
        steps = (stretch.candidate_step(gap) for stretch in self._named_stretches())
        return tuple(step for step in steps if step is not None)

    @property
    def trends(self) -> tuple[StepTrend | None, ...]:
        """For each of ``named_steps``, how the step changed; ``None`` if no change is certain."""
        return step_trends(
            self._layout_blocks,
            _candidate_commits(self._named_stretches()),
            sorted(_candidate_commits(self._stretches)),
            layout_spread=self._layout_spread,
            withdrawn=self._withdrawn,
        )

    @property
    def unconfirmed_steps(self) -> tuple[UnconfirmedStep, ...]:
        """Steps of the candidates that are not named."""
        named_stretches, gap = self._named_stretches(), self._stretches[0].gap
        return tuple(
            UnconfirmedStep(step, self._unconfirmed_reason(stretch))
            for stretch in self._stretches
            if stretch not in named_stretches and (step := stretch.candidate_step(gap)) is not None
        )

    def _named_stretches(self) -> list[Stretch]:
        """Return the stretches whose candidate is named, given all blocks so far."""
        stretches = [stretch for stretch in self._stretches if stretch.candidate_pair is not None]
        if not stretches:
            return []
        cache_key = (self._block_count, len(self._withdrawn), len(stretches))
        cached_key, persistent_commits = self._persistence_cache
        if cached_key != cache_key:
            steps = [
                CandidateStep(
                    stretch.candidate_pair[1],
                    level_of_pair(self._alpha, self._pair_numbers_on_line[stretch.candidate_pair]),
                )
                for stretch in stretches
                if stretch.candidate_pair is not None
                and stretch.is_beyond_margin
                and not self._changes_only_documentation(stretch.candidate_pair)
            ]
            persistent_commits = frozenset(
                persistent_steps(
                    self._layout_blocks,
                    steps,
                    margin=self._min_margin,
                    layout_spread=self._layout_spread,
                    withdrawn=self._withdrawn,
                )
            )
            self._persistence_cache = (cache_key, persistent_commits)
        return [
            stretch
            for stretch in stretches
            if stretch.candidate_pair and stretch.candidate_pair[1] in persistent_commits
        ]

    def _unconfirmed_reason(self, stretch: Stretch) -> UnconfirmedReason:
        assert stretch.candidate_pair is not None, "only a candidate is not confirmed"
        if self._changes_only_documentation(stretch.candidate_pair):
            return "documentation"
        return "layouts" if stretch.is_beyond_margin else "min_effect"

    def _changes_only_documentation(self, pair: IndexPair) -> bool:
        return self._documentation_commits.issuperset(range(pair[0] + 1, pair[1] + 1))

    def state(self) -> BisectionState:
        """Return the state of the bisection."""
        first_stretch = self._stretches[0]
        bets = first_stretch.bets
        equal_chances = (1.0 / self.count,) * self.count
        return BisectionState(
            verdict=self.verdict,
            gap=first_stretch.judge_gap(),
            log_e_values=(0.0,) * self.count if bets is None else tuple(bets.ln_e_values()),
            excluded_at=(None,) * self.count if bets is None else tuple(bets.excluded_at()),
            chances=equal_chances if bets is None else tuple(bets.weights()),
            named_steps=self.named_steps,
            unconfirmed_steps=self.unconfirmed_steps,
            stretches=tuple(stretch.state() for stretch in self._stretches),
            blocks=self._block_count,
            margin=None if bets is None else bets.margin(),
        )

    def _begin_next_stretches(self) -> None:
        """Search the waiting stretches, until a stretch needs blocks or the queue is empty."""
        stretch = self._stretches[-1]
        while not stretch.is_open:
            self._add_remainders(stretch)
            if not self._waiting_stretches:
                return
            stretch = self._new_stretch(self._waiting_stretches.popleft())
            self._stretches.append(stretch)

    def _add_remainders(self, stretch: Stretch) -> None:
        """Put the remainders of a stretch that ended into the queue."""
        remainders: tuple[IndexPair, ...] = ()
        if stretch.candidate_pair is not None:
            previous_commit, candidate = stretch.candidate_pair
            remainders = ((stretch.first, previous_commit), (candidate, stretch.last))
        elif stretch.verdict == "several" and stretch.split is not None:
            remainders = ((stretch.first, stretch.split), (stretch.split, stretch.last))
        ends = (stretch.first, stretch.last)
        self._waiting_stretches.extend(
            pair for pair in remainders if pair[0] < pair[1] and pair != ends
        )

    def _new_stretch(self, ends: IndexPair) -> Stretch:
        first, last = ends
        margin, max_blocks = self._min_margin, self._remainder_blocks
        if ends == (0, self.count):
            max_blocks = None
        else:
            margin = self._margin_of_remainders()
            if max_blocks is None:
                max_blocks = max(MAX_REMAINDER_BLOCKS, self._stretches[0].blocks)
        return Stretch(
            first,
            last,
            alpha=self._alpha,
            margin=margin,
            prior=self._prior[first:last],
            withdrawn=self._withdrawn,
            resolution=self._resolution,
            max_blocks=max_blocks,
        )

    def _margin_of_remainders(self) -> float:
        bets = self._stretches[0].bets
        assert bets is not None, "a gap has remainders only after it is confirmed"
        return max(self._min_margin, bets.margin())


def _candidate_commits(stretches: Sequence[Stretch]) -> list[int]:
    return [stretch.candidate_pair[1] for stretch in stretches if stretch.candidate_pair]


def _valid_prior(prior: Sequence[float], count: int) -> tuple[float, ...]:
    weights = tuple(map(float, prior))
    if len(weights) != count or not all(0.0 <= weight < math.inf for weight in weights):
        raise UnusableInput(
            f"the prior is not {count} finite weights from 0 up: {', '.join(map(str, prior[:20]))}",
            hint="give one weight for each commit after the good commit",
        )
    return weights


class LineState(Struct, frozen=True):
    """The state of the search of one line of commits."""

    merge: int | None
    """Index of the merge whose branch this line is; ``None`` for the main line."""
    commits: tuple[int, ...]
    """Indices of the commits in the whole bisection. The other fields have indices along the line,
    except ``merge`` and ``failed_ends``."""
    failed_ends: tuple[int, ...]
    """Ends of the branch that do not run; the branch then cannot be searched."""
    state: BisectionState
    trends: tuple[StepTrend | None, ...]
    """For each of ``state.named_steps``, how the step changed; ``None`` if no change is certain."""
    course: tuple[tuple[int, IndexPair], ...]
    """Number and pair of each block of the line. Numbers count the bisection's blocks from 1."""


class BranchingBisection:
    """The search of the main line, and of the branch of each merge that is named.

    ``line`` is the search of the main line, before its first block. ``branches`` has the branch of
    each merge that can be named. ``documentation_commits`` has the commits of branches that change
    only documentation.
    """

    def __init__(
        self,
        line: Bisection,
        branches: Sequence[MergedBranch] = (),
        documentation_commits: Collection[int] = (),
    ) -> None:
        self._branches = tuple(branches)
        self._documentation_commits = frozenset(documentation_commits)
        self._withdrawn: set[int] = set()
        self._block_count = 0
        self._lines = [_LineSearch(None, tuple(range(line.count + 1)), line)]

    def set_resolution(self, resolution: Resolution) -> None:
        """Set the resolution of the metric; do nothing once a block has a finite cost."""
        if len(self._lines) == 1:
            self._lines[0].search.set_resolution(resolution)

    def next_pair(self, built: Collection[int], build_trials: float) -> IndexPair | None:
        """Return the pair that runs next, as `Bisection.next_pair`; ``None`` if all have ended."""
        line = self._open_line()
        if line is None:
            return None
        built_on_line = [line.indices[commit] for commit in built if commit in line.indices]
        return line.pair_in_bisection(line.search.next_pair(built_on_line, build_trials))

    def add(self, pair: IndexPair, costs: tuple[float, float], order: int) -> None:
        """Add one complete block; parameters and errors are those of `Bisection.add`."""
        line = self._open_line()
        if line is None:
            raise ValueError("the bisection has ended: no block can be added")
        if not line.indices.keys() >= {*pair}:
            raise ValueError(f"{pair} is not the pair that runs now")
        local_pair = (line.indices[pair[0]], line.indices[pair[1]])
        line.search.add(local_pair, costs, order)
        self._block_count += 1
        line.course.append((self._block_count, local_pair))
        self._begin_branch_searches(line)

    def withdraw(self, commit: int) -> None:
        """Withdraw a commit that does not build or run, as `Bisection.withdraw`."""
        self._withdrawn.add(commit)
        for line in list(self._lines):
            line.withdraw(commit)
            self._begin_branch_searches(line)

    @property
    def is_open(self) -> bool:
        """Whether any search needs more blocks."""
        return self._open_line() is not None

    @property
    def fixed_pair(self) -> IndexPair | None:
        """The only pair that can run now; ``None`` at a choice of pairs, and at the end."""
        line = self._open_line()
        return None if line is None else line.pair_in_bisection(line.search.fixed_pair)

    def can_use(self, pair: Collection[int]) -> bool:
        """Return whether this bisection can use a block of a pair that another bisection chose."""
        line = self._open_line()
        if line is None or not line.indices.keys() >= {*pair}:
            return False
        earlier, later = sorted(line.indices[commit] for commit in pair)
        return line.search.can_use((earlier, later))

    @property
    def verdict(self) -> BisectionVerdict:
        """Verdict on the main line."""
        return self._lines[0].search.verdict

    @property
    def named_steps(self) -> tuple[MeasuredStep, ...]:
        """Steps of the named commits of the main line."""
        return self._lines[0].search.named_steps

    def state(self) -> BisectionState:
        """Return the state of the search of the main line."""
        return self._lines[0].search.state()

    def lines(self) -> tuple[LineState, ...]:
        """Return the state of each search: the main line, then the branches in search order."""
        return tuple(line.state() for line in self._lines)

    @property
    def searched_merge(self) -> int | None:
        """Merge whose branch is searched now; ``None`` for the main line."""
        line = self._open_line()
        return None if line is None else line.merge

    def ordered_pair(self, pair: Collection[int]) -> IndexPair:
        """Return the two commits of the block that runs now, the earlier commit first.

        Raise `ValueError` if one of the commits is not on the line that is searched now.
        """
        line = self._open_line()
        if line is None or len(pair) != 2 or not line.indices.keys() >= {*pair}:
            raise ValueError(f"{tuple(pair)} is not a pair that can run now")
        earlier, later = sorted(pair, key=line.indices.__getitem__)
        return earlier, later

    def _open_line(self) -> _LineSearch | None:
        return next((line for line in reversed(self._lines) if line.is_open), None)

    def _begin_branch_searches(self, line: _LineSearch) -> None:
        """Begin the searches of the branches of merges that the line has named."""
        if not self._branches:
            return
        searched_branches = {(other.merge, other.commits) for other in self._lines}
        for merge, pair in line.possible_merges():
            for branch in self._branches:
                if (
                    branch.merge == merge
                    and (merge, branch.commits) not in searched_branches
                    and line.search.is_named(pair)
                ):
                    documentation_indices = [
                        index
                        for index, commit in enumerate(branch.commits)
                        if index and commit in self._documentation_commits
                    ]
                    search = line.search.branch_search(
                        len(branch.commits) - 1, documentation_indices
                    )
                    self._lines.append(_LineSearch(merge, branch.commits, search))
                    for commit in sorted(self._withdrawn):
                        self._lines[-1].withdraw(commit)


class _LineSearch:
    """One line of commits, and the search on this line."""

    def __init__(self, merge: int | None, commits: tuple[int, ...], search: Bisection) -> None:
        self.merge, self.commits, self.search = merge, commits, search
        self.indices: Mapping[int, int] = {commit: index for index, commit in enumerate(commits)}
        """Maps the index of a commit in the whole bisection to the index along this line."""
        self.course: list[tuple[int, IndexPair]] = []
        self._missing: set[int] = set()

    @property
    def is_open(self) -> bool:
        return not self._missing and self.search.is_open

    def pair_in_bisection(self, pair: IndexPair | None) -> IndexPair | None:
        """Return a pair of this line by its indices in the whole bisection."""
        return pair and (self.commits[pair[0]], self.commits[pair[1]])

    def withdraw(self, commit: int) -> None:
        index = self.indices.get(commit)
        if index is None:
            return
        if self.merge is not None and index in (0, self.search.count):
            self._missing.add(commit)
        else:
            self.search.withdraw(index)

    def possible_merges(self) -> Iterator[tuple[int, IndexPair]]:
        """Yield each measured candidate that is a single commit, and the candidate's own pair."""
        for previous_commit, candidate in self.search.measured_pairs:
            if candidate == previous_commit + 1:
                yield self.commits[candidate], (previous_commit, candidate)

    def state(self) -> LineState:
        return LineState(
            merge=self.merge,
            commits=self.commits,
            failed_ends=tuple(sorted(self._missing)),
            state=self.search.state(),
            trends=self.search.trends,
            course=tuple(self.course),
        )
