"""Campaigns over commits: builds before a block, warm-ups, commits left out, and the two judges.

A block runs some of the commits, with one command or with several: of a bisection two of each
benchmark, of a history two or more. Before it the commits are built, while nothing is measured, and
what has just been built is warmed up. A commit that does not build takes part in no later block,
nor does one whose command fails in the blocks of what that command measures: its name, its reason
and the number of the first block without it are in the ledger.

All of a search is a function of the recorded blocks and of these commits (`read_searches`), and all
of a history one of the campaigns of its series, in the order in which they began (`read_history`).
"""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.campaign.blocks import BlockRead, complete_blocks, cost_in, read_block
from equipoise.campaign.progress import ComparisonStatus
from equipoise.campaign.segment import Judge, Runner, SegmentInProgress, fails
from equipoise.design.limits import CampaignLimits
from equipoise.measure.untimed import stderr_suffix
from equipoise.model.plan import (
    BENCHMARK,
    REVISION,
    BisectPlan,
    CommitBenchmark,
    CommitsPlan,
    HistoryPlan,
    Plan,
    Stopping,
    short_name,
)
from equipoise.model.quantities import counted, joined
from equipoise.model.record import Phase, RecordedWarning, RunRecord, Trial
from equipoise.stats.bisection import Bisection, BranchingBisection, SharedBlocks, next_pairs
from equipoise.stats.bisection_layout import LAYOUT_SPREAD
from equipoise.stats.bisection_segment import OwnPairs
from equipoise.stats.history import History
from equipoise.stats.verdict import earliest_block

NOT_BUILT = "not_built"
"""Code of the warning that a commit does not build."""
NOT_RUN = "not_run"
"""Code of the warning that the command fails in a commit."""
FIRST = 0
"""The commit that the others are compared with: the good one, or the baseline."""


class Withdrawal(Struct, frozen=True):
    """A commit that takes part in no block of a benchmark from one on."""

    commit: int
    """Its place."""
    block: int
    """Number of the first measured block without it."""
    benchmark: int = 0
    """Place of the benchmark in the plan."""


class Builds(Protocol):
    """The builds of the commits of a campaign."""

    def built(self) -> Collection[int]:
        """Return the commits that are built."""

    def seconds(self) -> float:
        """Return the seconds that a build takes, as far as is known; else 0."""

    def make(self, commits: tuple[int, ...]) -> Mapping[int, str]:
        """Build commits that are not built; return the reason for each that does not build."""


def commits_of(plan: Plan) -> CommitsPlan:
    """Return the commits that are the conditions of a plan."""
    assert plan.over_commits is not None, "only a bisection or a history runs commits"
    return plan.over_commits


def bisection_of(plan: Plan) -> BisectPlan:
    """Return the terms of a bisection."""
    assert plan.bisected is not None, "only a bisection has a search and culprits"
    return plan.bisected


def history_of(plan: Plan) -> HistoryPlan:
    """Return the terms of a campaign of a history."""
    assert plan.history is not None, "only a campaign of a history belongs to a series"
    return plan.history


def withdrawals_of(record: RunRecord) -> tuple[Withdrawal, ...]:
    """Return what was left out, in the order of the blocks before which it was."""
    plan, terms = record.plan, commits_of(record.plan)
    found: dict[tuple[int, int], int] = {}
    for notice in record.notices:
        condition, block = notice.condition, notice.without_from
        if notice.code != NOT_BUILT or condition is None or block is None:
            continue
        for benchmark in range(len(plan.commit_benchmarks)):
            found.setdefault((terms.commit_of(condition), benchmark), block)
    # A failed trial tells by itself: a campaign may be killed before it has recorded a warning.
    latest = 0
    for trial in record.trials:
        if trial.phase == "measured":
            latest = max(latest, trial.block)
        commit = terms.commit_of(trial.condition)
        for benchmark in _not_measured(plan, trial):
            before = found.get((commit, benchmark), latest + 1)
            found[commit, benchmark] = min(latest + 1, before)
    in_order = sorted(found.items(), key=lambda one: (one[1], one[0]))
    return tuple(Withdrawal(commit, block, at) for (commit, at), block in in_order)


def _not_measured(plan: Plan, trial: Trial) -> tuple[int, ...]:
    """Return the benchmarks that a trial of a dispensable commit should measure and does not."""
    terms = commits_of(plan)
    if terms.commit_of(trial.condition) in terms.indispensable:
        # A failure there ends the campaign.
        return ()
    return tuple(
        place
        for place, benchmark in enumerate(plan.commit_benchmarks)
        if benchmark.process == terms.process_of(trial.condition)
        and (fails(plan, trial) or cost_in(benchmark.metric)(trial) is None)
    )


class CommitsJudge(Judge, ABC):
    """The judge of a campaign over commits: what it asks next, until nothing is left to ask.

    All of it is a function of the recorded blocks and of the commits that are left out.

    Parameters
    ----------
    stopping
        Unused: a search ends by itself, or by what the segment limits.
    builds
        ``None`` where a campaign is only read back.
    """

    def __init__(self, plan: Plan, stopping: Stopping, builds: Builds | None = None) -> None:
        self.plan = plan
        self.terms = commits_of(plan)
        self.left_out: set[tuple[int, int]] = set()
        """Commits that are left out, each with a benchmark of which it is."""
        self._builds = builds
        self._waiting: list[Withdrawal] = []
        """What earlier segments left out, and the blocks added so far did not."""
        self._trial_s: list[float] = []

    def recall(self, record: RunRecord) -> None:
        """Read which commits a recorded campaign left out."""
        self._waiting = list(withdrawals_of(record))

    def replay(self, record: RunRecord) -> None:
        """Add the complete blocks of the recorded campaign, and leave out what it left out."""
        self.recall(record)
        for block in complete_blocks(record.draws, record.trials).values():
            self.add(block)
        # Those too that were left out after a last block that an interruption cut.
        for one in self._waiting:
            self.leave_out(one.commit, one.benchmark)
        self._waiting = []

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block; of a command that failed in it, nothing (docs/statistics.md)."""
        self._withdraw_before(block[0].block)
        self._trial_s += [t.accounting.wall_s for t in block if t.accounting.wall_s is not None]
        reads: dict[int, BlockRead] = {}
        for place, benchmark in enumerate(self.plan.commit_benchmarks):
            trials = tuple(
                one for one in block if self.terms.process_of(one.condition) == benchmark.process
            )
            failed = any(
                fails(self.plan, trial) or place in _not_measured(self.plan, trial)
                for trial in trials
            )
            if trials and not failed:
                reads[place] = self._read(trials, benchmark)
        if reads:
            self._add_costs(block[0].block, reads)

    def _read(self, trials: tuple[Trial, ...], benchmark: CommitBenchmark) -> BlockRead:
        """Return the costs and places of commits, where a block has those of conditions."""
        read = read_block(trials, self.plan, benchmark.metric)
        commit_of = self.terms.commit_of
        return replace(
            read,
            costs={commit_of(one): cost for one, cost in read.costs.items()},
            places={commit_of(one): place for one, place in read.places.items()},
        )

    def _withdraw_before(self, block: int) -> None:
        """Leave out the commits that a block, and all after it, did without."""
        while self._waiting and self._waiting[0].block <= block:
            one = self._waiting.pop(0)
            self.leave_out(one.commit, one.benchmark)

    def leave_out(self, commit: int, benchmark: int) -> None:
        """Leave a commit out of all later blocks of a benchmark."""
        self.left_out.add((commit, benchmark))
        self._withdraw(commit, benchmark)

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Return ``verdict`` once nothing is left to ask."""
        return None if self._next_block() else "verdict"

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the conditions that the next block runs; none if nothing is left to ask.

        The choice depends on earlier blocks, and on times of builds and trials that exchanging two
        commits would not change. So each coin of the block stays fair given the past.
        """
        self._withdraw_before(block)
        return self._next_block()

    def tolerates(self, trial: Trial) -> bool:
        """Return whether the search goes on without the commit of a failed trial."""
        return self.terms.commit_of(trial.condition) not in self.terms.indispensable

    def earliest_block(self) -> int:
        """Return the number of the first block after which a difference can be confirmed."""
        return earliest_block(self.plan.judgement.alpha, 1)

    def _next_block(self) -> tuple[int, ...]:
        assert self._builds is not None, "a campaign that is read back asks nothing"
        trial_s = statistics.median(self._trial_s) if self._trial_s else 0.0
        trials = self._builds.seconds() / trial_s if trial_s > 0.0 else 0.0
        return self._ask(self._builds.built(), trials)

    @abstractmethod
    def _add_costs(self, number: int, blocks: Mapping[int, BlockRead]) -> None:
        """Add the costs of commits in one block, for each benchmark that it measured."""

    @abstractmethod
    def _withdraw(self, commit: int, benchmark: int) -> None:
        """Ask nothing more about a commit that is left out of a benchmark."""

    @abstractmethod
    def _ask(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        """Return the conditions that the next block runs; none if nothing is left to ask.

        Parameters
        ----------
        built
            Commits that can be run without a build.
        build_trials
            Seconds of a build over those of a trial, as measured.
        """


class CommitsSegment(SegmentInProgress, kw_only=True):
    """A segment that builds the commits of each block before it, and warms up new ones.

    ``judge`` is a `CommitsJudge`.
    """

    builds: Builds
    _warm: set[int] = field(default_factory=set)
    """Conditions that ran in this segment."""

    def _warm_up(self, runner: Runner) -> None:
        """Do nothing: each condition is warmed up before its first block."""

    def _conditions_of(self, runner: Runner, block: int) -> tuple[int, ...]:
        terms = commits_of(self.plan)
        everywhere = range(len(self.plan.commit_benchmarks))
        while True:
            conditions = self.judge.needed_conditions("measured", block)
            if not conditions:
                return ()
            commits = tuple(dict.fromkeys(map(terms.commit_of, conditions)))
            unbuilt = tuple(one for one in commits if one not in self.builds.built())
            if unbuilt:
                self.listener.building(tuple(map(self._name, unbuilt)))
            failed = self.builds.make(commits)
            for commit, reason in failed.items():
                self._withdraw(commit, everywhere, block, NOT_BUILT, reason)
            if not failed and self._are_warm(runner, conditions, block):
                return conditions
            is_over = self._elapsed() >= self.stopping.budget_s
            if is_over and not self.stopping.min_blocks_explicit:
                return ()

    def _name(self, commit: int) -> str:
        """Return how conditions name a commit."""
        condition = self.plan.conditions[commit]
        return condition.levels.get(REVISION, condition.name)

    def _are_warm(self, runner: Runner, conditions: tuple[int, ...], block: int) -> bool:
        """Warm up the conditions that have not run in this segment; return whether none failed."""
        new = tuple(one for one in conditions if one not in self._warm)
        self._warm.update(new)
        warmups: list[Trial] = []
        for _ in range(self.plan.warmup_blocks if new else 0):
            warmups += self._run_block(runner, "warmup", self.next_warmup, new)
            self.next_warmup += 1
            if self._withdraw_failed(warmups, block):
                return False
        if len(self._warm) == len(new):
            self._check_warm_ups(warmups)
        return True

    def _run_measured(self, runner: Runner, block: int, conditions: tuple[int, ...]) -> None:
        trials = self._run_block(runner, "measured", block, conditions)
        self.judge.add(trials)
        self._withdraw_failed(trials, block + 1)

    def _withdraw_failed(self, trials: Sequence[Trial], block: int) -> bool:
        """Leave out what trials did not measure; return whether there is more of it now."""
        assert isinstance(self.judge, CommitsJudge), "commits have a judge of their own"
        benchmarks, terms = self.plan.commit_benchmarks, commits_of(self.plan)
        any_new = False
        for trial in trials:
            commit = terms.commit_of(trial.condition)
            lacking = _not_measured(self.plan, trial)
            places = tuple(one for one in lacking if (commit, one) not in self.judge.left_out)
            if not places:
                continue
            any_new = True
            reason = f"{trial.failure}{stderr_suffix(trial.error_tail)}"
            if trial.failure is None:
                reason = f"it does not report {joined(benchmarks[one].metric for one in places)}"
            elif len(places) < len(benchmarks):
                reason = f"{joined(benchmarks[one].name for one in places)}: {reason}"
            self._withdraw(commit, places, block, NOT_RUN, reason)
        return any_new

    def _withdraw(
        self, commit: int, benchmarks: Collection[int], block: int, code: str, reason: str
    ) -> None:
        assert isinstance(self.judge, CommitsJudge), "commits have a judge of their own"
        name = commits_of(self.plan).every_commit[commit].hash
        summary = f"commit {name} is left out from block {block} on: {reason}"
        hint = f"to see why, run it by hand after: git checkout {name}"
        notice = RecordedWarning(code, summary, hint, condition=commit, without_from=block)
        self.store.record_notice(self.run_id, notice)
        for benchmark in benchmarks:
            self.judge.leave_out(commit, benchmark)


class BenchmarkSearch(Struct, frozen=True):
    """The search of one benchmark."""

    benchmark: CommitBenchmark
    bisection: BranchingBisection
    blocks: list[int]
    """Numbers of the blocks that count, in the order in which they ran."""


def read_searches(record: RunRecord) -> tuple[BenchmarkSearch, ...]:
    """Return the search of each benchmark of a bisection, after its last complete block."""
    plan = record.plan
    judge = BisectionJudge(plan, plan.stopping)
    judge.replay(record)
    return judge.searches


class BisectionJudge(CommitsJudge):
    """The judge of a bisection: the search for the commits that made a difference, in pairs."""

    def __init__(self, plan: Plan, stopping: Stopping, builds: Builds | None = None) -> None:
        super().__init__(plan, stopping, builds)
        judgement, terms, own_pairs = plan.judgement, bisection_of(plan), OwnPairs()
        spread = LAYOUT_SPREAD
        if terms.layout_spread is not None:
            spread = max(spread, terms.layout_spread.percent / 100.0)
        self._last = terms.last
        self.searches = tuple(
            BenchmarkSearch(
                benchmark,
                BranchingBisection(
                    Bisection(
                        terms.last,
                        alpha=judgement.alpha,
                        min_effect=judgement.min_effect,
                        prior=terms.prior or None,
                        own_pairs=own_pairs,
                        prose=[one for one in terms.prose if 0 < one <= terms.last],
                        layout_spread=spread,
                    ),
                    terms.branches,
                    terms.prose,
                ),
                [],
            )
            for benchmark in plan.commit_benchmarks
        )
        """The search of each benchmark after the blocks so far."""
        self._measured_by = tuple(
            tuple(at for at, one in enumerate(plan.commit_benchmarks) if one.process == process)
            for process in range(1 + max(one.process for one in plan.commit_benchmarks))
        )
        """Places of the benchmarks that each command measures."""
        self._commands = tuple(
            SharedBlocks([self.searches[place].bisection for place in places])
            for places in self._measured_by
        )

    def _add_costs(self, number: int, blocks: Mapping[int, BlockRead]) -> None:
        for place, block in blocks.items():
            if block.resolution is not None:
                self.searches[place].bisection.set_resolution(block.resolution)
        for command, places in zip(self._commands, self._measured_by, strict=True):
            orders = [blocks[place].places for place in places if place in blocks]
            if not orders:
                continue
            costs = [blocks[place].costs if place in blocks else None for place in places]
            taken = command.add(costs, min(orders[0], key=orders[0].__getitem__))
            for place, counts in zip(places, taken, strict=True):
                if counts:
                    self.searches[place].blocks.append(number)

    def _withdraw(self, commit: int, benchmark: int) -> None:
        self.searches[benchmark].bisection.withdraw(commit)

    def _ask(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        pairs = next_pairs(self._commands, built, build_trials)
        return tuple(
            self.terms.condition_of(process, commit)
            for process, pair in pairs.items()
            for commit in pair
        )

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the gap of each benchmark until it is confirmed, then how many are left."""
        return tuple(map(self._status, self.searches))

    def _status(self, search: BenchmarkSearch) -> ComparisonStatus:
        bisection, benchmark = search.bisection, search.benchmark
        state = bisection.state()
        gap = state.gap
        left = sum(not excluded for excluded in state.excluded)
        clause = f"{left} of {self._last} commits are left"
        if state.named:
            culprits = [self._name(benchmark, one.last) for one in state.named]
            clause = f"{joined(culprits)} made a difference"
        elif benchmark.name:
            clause = f"{benchmark.name}: {clause}"
        merge = bisection.searched_merge
        if merge is not None:
            clause += f", and the branch of {self._name(benchmark, merge)} is searched"
        return ComparisonStatus(
            self._name(benchmark, self._last),
            gap.verdict if state.verdict == "no difference" else "undecided",
            gap.ratio,
            gap.ratio_ci,
            baseline=self._name(benchmark, FIRST),
            blocks=state.blocks,
            search="" if state.verdict in ("confirming", "no difference") else clause,
        )

    def _name(self, benchmark: CommitBenchmark, commit: int) -> str:
        """Return the name of a commit's condition; it says the benchmark if there are several."""
        at = self.terms.condition_of(benchmark.process, commit)
        condition = self.plan.conditions[at]
        if not benchmark.name or BENCHMARK in condition.levels:
            return condition.name
        return f"{benchmark.name}: {condition.name}"


def series_of(record: RunRecord) -> tuple[RunRecord, ...]:
    """Return the campaigns of a history until a recorded one, in the order in which they began."""
    assert tuple(one.id for one in record.earlier) == history_of(record.plan).earlier, (
        "a campaign of a history is read with the earlier ones of its series"
    )
    return (*record.earlier, record)


def read_history(records: Sequence[RunRecord]) -> History:
    """Return the history after all blocks of the campaigns of a series.

    Parameters
    ----------
    records
        At least one; in the order in which they began.
    """
    history = _history_of(records[0].plan)
    for record in records:
        HistoryJudge(record.plan, record.plan.stopping, history=history).replay(record)
    return history


def check_judgement(limits: CampaignLimits) -> None:
    """Refuse what no history can be judged by.

    Raises
    ------
    UnusableInput
        There is no smallest effect that matters.
    """
    judgement = limits.judgement()
    History(alpha=judgement.alpha, min_effect=judgement.min_effect)


class HistoryJudge(CommitsJudge):
    """The judge of a campaign of a history: what the history asks next.

    Parameters
    ----------
    earlier
        Earlier campaigns of the series, in the order in which they began.
    history
        The history after their blocks, where it is known already.
    """

    def __init__(
        self,
        plan: Plan,
        stopping: Stopping,
        builds: Builds | None = None,
        earlier: Sequence[RunRecord] = (),
        history: History | None = None,
    ) -> None:
        super().__init__(plan, stopping, builds)
        if history is None:
            history = read_history(earlier) if earlier else _history_of(plan)
        self.history = history
        """The history after the blocks so far."""
        self._next: tuple[object, tuple[int, ...]] = (None, ())
        self._changed = 0
        self._blocks = 0
        terms = history_of(plan)
        history.begin_campaign(
            [commit.hash for commit in terms.commits],
            terms.selected,
            terms.era,
            only_new=terms.only_new,
        )

    def _add_costs(self, number: int, blocks: Mapping[int, BlockRead]) -> None:
        block = blocks[0]
        self._changed += 1
        self._blocks += 1
        if block.resolution is not None:
            self.history.set_resolution(block.resolution)
        self.history.add(block.costs, sorted(block.costs, key=lambda one: block.places[one]))

    def _withdraw(self, commit: int, benchmark: int) -> None:
        self._changed += 1
        self.history.withdraw(commit)

    def _ask(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        # Whether anything is left to ask, and what it is, are two questions in a row.
        question = (self._changed, frozenset(built), build_trials)
        if self._next[0] != question:
            self._next = (question, self.history.next_block(built, build_trials))
        return self._next[1]

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return how many commits the curve has, and which changes are certain."""
        measured, changes = self.history.progress()
        names = self.plan.conditions
        course = f"{counted(measured, 'commit')} measured"
        if changes:
            until = joined([short_name(one.pair.until) for one in changes])
            course += f", changes at {until}"
        return (
            ComparisonStatus(
                names[-1].name,
                "undecided",
                None,
                (None, None),
                baseline=names[FIRST].name,
                blocks=self._blocks,
                search=course,
            ),
        )


def _history_of(plan: Plan) -> History:
    judgement = plan.judgement
    return History(alpha=judgement.alpha, min_effect=judgement.min_effect)
