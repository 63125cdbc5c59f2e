"""A bisection as a campaign: its judge, what is read back of it, and its segments.

A block runs two commits, of each benchmark that is searched. Before it the commits are built, while
nothing is measured, and what has just been built is warmed up. A commit that does not build, or
whose command fails, takes part in no later block: its name, its reason and the number of the first
block without it are in the ledger. All of the search is a function of the recorded blocks and of
these commits (`read_searches`).
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct, field

from equipoise.campaign.blocks import complete_blocks, cost_in, read_block
from equipoise.campaign.progress import ComparisonStatus
from equipoise.campaign.segment import Runner, SegmentInProgress, fails
from equipoise.measure.untimed import stderr_suffix
from equipoise.model.plan import (
    BENCHMARK,
    REVISION,
    BisectPlan,
    CommitBenchmark,
    Plan,
    Stopping,
)
from equipoise.model.quantities import joined
from equipoise.model.record import CampaignWarning, Phase, RunRecord, Trial
from equipoise.stats.bisection import Bisection, OwnPairs
from equipoise.stats.bisection_suite import SharedBlocks, next_pairs
from equipoise.stats.verdict import earliest_block

NOT_BUILT = "not_built"
"""Code of the warning that a commit does not build."""
NOT_RUN = "not_run"
"""Code of the warning that the command fails in a commit."""
GOOD = 0
_WITHDRAWN = "commit {} is left out from block {} on: "
_READ_WITHDRAWN = re.compile(_WITHDRAWN.format(r"([0-9a-f]{40,64})", r"([0-9]{1,9})"))


class Withdrawal(Struct, frozen=True):
    """A commit that takes part in no block of a benchmark from one on."""

    commit: int
    """Its place."""
    block: int
    """Number of the first measured block without it."""
    benchmark: int = 0
    """Place of the benchmark in the plan."""


class Builds(Protocol):
    """The builds of the commits of a bisection."""

    def built(self) -> Collection[int]:
        """Return the commits that are built."""

    def seconds(self) -> float:
        """Return the seconds that a build takes, as far as is known; else 0."""

    def make(self, commits: tuple[int, ...]) -> Mapping[int, str]:
        """Build commits that are not built; return the reason for each that does not build."""


def withdrawals_of(record: RunRecord) -> tuple[Withdrawal, ...]:
    """Return what was left out, in the order of the blocks before which it was."""
    plan, terms = record.plan, _terms(record.plan)
    names = {
        commit.hash: place for place, commit in enumerate(terms.commits) if not commit.uncommitted
    }
    found: dict[tuple[int, int], int] = {}
    for notice in record.notices:
        read = _READ_WITHDRAWN.match(notice.summary) if notice.code == NOT_BUILT else None
        if read is not None and read[1] in names:
            for benchmark in range(len(plan.commit_benchmarks)):
                found.setdefault((names[read[1]], benchmark), int(read[2]))
    # A failed trial tells by itself: a campaign may be killed before it has recorded a warning.
    latest = 0
    for trial in record.trials:
        if trial.phase == "measured":
            latest = max(latest, trial.block)
        commit = terms.commit_of(trial.condition)
        for benchmark in _without_cost(plan, trial):
            before = found.get((commit, benchmark), latest + 1)
            found[commit, benchmark] = min(latest + 1, before)
    in_order = sorted(found.items(), key=lambda one: (one[1], one[0]))
    return tuple(Withdrawal(commit, block, at) for (commit, at), block in in_order)


def _without_cost(plan: Plan, trial: Trial) -> Iterator[int]:
    """Yield the benchmarks that a trial of a commit between the ends should measure and does not.

    Without one of its ends no benchmark can be searched: there a failure ends the campaign.
    """
    terms = _terms(plan)
    if terms.is_end(trial.condition):
        return
    for place, benchmark in enumerate(plan.commit_benchmarks):
        if benchmark.process == terms.process_of(trial.condition) and (
            fails(plan, trial) or cost_in(benchmark.metric)(trial) is None
        ):
            yield place


def _terms(plan: Plan) -> BisectPlan:
    assert plan.bisected is not None, "only the plan of a bisection is searched"
    return plan.bisected


class SearchedBlock(Struct, frozen=True):
    """A block that counts in a search, and the places of its two commits."""

    block: int
    earlier: int
    later: int


class Search(Struct, frozen=True):
    """The search of one benchmark."""

    benchmark: CommitBenchmark
    bisection: Bisection
    course: list[SearchedBlock]
    """Blocks that count, in the order in which they ran."""


def read_searches(record: RunRecord) -> tuple[Search, ...]:
    """Return the search of each benchmark of a bisection, after its last complete block."""
    searches = _Searches(record.plan, withdrawals_of(record))
    latest = 0
    for number, block in complete_blocks(record.draws, record.trials).items():
        searches.add(block)
        latest = number
    searches.withdraw_before(latest + 1)
    return searches.searches


class _Searches:
    """The searches of all benchmarks, with the commits that earlier segments left out."""

    def __init__(self, plan: Plan, withdrawals: Sequence[Withdrawal]) -> None:
        judgement, terms, own_pairs = plan.judgement, _terms(plan), OwnPairs()
        self._plan, self._terms = plan, terms
        self._waiting = list(withdrawals)
        self.searches = tuple(
            Search(
                benchmark,
                Bisection(
                    len(terms.commits) - 1,
                    alpha=judgement.alpha,
                    min_effect=judgement.min_effect,
                    prior=terms.prior or None,
                    engine=judgement.engine,
                    own_pairs=own_pairs,
                ),
                [],
            )
            for benchmark in plan.commit_benchmarks
        )
        self._measured_by = tuple(
            tuple(at for at, one in enumerate(plan.commit_benchmarks) if one.process == process)
            for process in range(len(plan.conditions) // len(terms.commits))
        )
        """Places of the benchmarks that each command measures."""
        self._commands = tuple(
            SharedBlocks([self.searches[place].bisection for place in places])
            for places in self._measured_by
        )

    def next_conditions(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        """Return the conditions of the next block; none if nothing is left to ask."""
        pairs = next_pairs(self._commands, built, build_trials)
        return tuple(
            self._terms.condition_of(process, commit)
            for process, pair in pairs.items()
            for commit in pair
        )

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block."""
        self.withdraw_before(block[0].block)
        for process, command in enumerate(self._commands):
            trials = tuple(one for one in block if self._terms.process_of(one.condition) == process)
            # What failed in a commit says nothing of it (bisect.md §11).
            if trials and not any(fails(self._plan, trial) for trial in trials):
                self._add_trials(trials, command, self._measured_by[process])

    def _add_trials(
        self, trials: tuple[Trial, ...], command: SharedBlocks, benchmarks: Sequence[int]
    ) -> None:
        """Add the trials of one command in one block; it measures some of the benchmarks."""
        lacking = {one for trial in trials for one in _without_cost(self._plan, trial)}
        first, second = (self._terms.commit_of(trial.condition) for trial in trials)
        pair = (min(first, second), max(first, second))
        costs = [None if one in lacking else self._costs(trials, one) for one in benchmarks]
        taken = command.add(pair, costs, 1 if first < second else -1)
        for place, counts in zip(benchmarks, taken, strict=True):
            if counts:
                self.searches[place].course.append(SearchedBlock(trials[0].block, *pair))

    def _costs(self, trials: tuple[Trial, ...], benchmark: int) -> tuple[float, float]:
        """Return the costs of the earlier and of the later commit."""
        search = self.searches[benchmark]
        read = read_block(trials, self._plan, search.benchmark.metric)
        if read.resolution is not None:
            search.bisection.set_resolution(read.resolution)
        earlier, later = sorted(read.costs)
        return read.costs[earlier], read.costs[later]

    def withdraw_before(self, block: int) -> None:
        """Leave out the commits that a block, and all after it, did without."""
        while self._waiting and self._waiting[0].block <= block:
            one = self._waiting.pop(0)
            self.searches[one.benchmark].bisection.withdraw(one.commit)


class BisectionJudge:
    """The judge of a bisection: what the searches ask next, until nothing is left to ask.

    Parameters
    ----------
    withdrawals
        Commits that earlier segments left out.
    """

    def __init__(
        self,
        plan: Plan,
        stopping: Stopping,
        builds: Builds,
        withdrawals: Sequence[Withdrawal] = (),
    ) -> None:
        self._plan, self._terms = plan, _terms(plan)
        self._builds = builds
        self._searches = _Searches(plan, withdrawals)
        self._trial_s: list[float] = []

    @property
    def searches(self) -> tuple[Search, ...]:
        """The search of each benchmark after the blocks so far."""
        return self._searches.searches

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block."""
        self._searches.add(block)
        self._trial_s += [t.accounting.wall_s for t in block if t.accounting.wall_s is not None]

    def withdraw(self, commit: int, benchmarks: Collection[int]) -> None:
        """Leave a commit out of all later blocks of some benchmarks."""
        for benchmark in benchmarks:
            self.searches[benchmark].bisection.withdraw(commit)

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the gap of each benchmark until it is confirmed, then how many are left."""
        return tuple(map(self._status, self.searches))

    def _status(self, search: Search) -> ComparisonStatus:
        bisection, benchmark = search.bisection, search.benchmark
        state = bisection.state()
        gap = state.gap
        left = sum(not excluded for excluded in state.excluded)
        clause = f"{left} of {bisection.count} commits are left"
        if state.named:
            culprits = [self._name(benchmark, one.last) for one in state.named]
            clause = f"{joined(culprits)} made a difference"
        elif benchmark.name:
            clause = f"{benchmark.name}: {clause}"
        return ComparisonStatus(
            self._name(benchmark, bisection.count),
            gap.verdict if state.verdict == "no difference" else "undecided",
            gap.ratio,
            gap.ratio_ci,
            baseline=self._name(benchmark, GOOD),
            blocks=state.blocks,
            search="" if state.verdict in ("confirming", "no difference") else clause,
        )

    def _name(self, benchmark: CommitBenchmark, commit: int) -> str:
        """Return the name of a commit's condition; it says the benchmark if there are several."""
        at = self._terms.condition_of(benchmark.process, commit)
        condition = self._plan.conditions[at]
        if not benchmark.name or BENCHMARK in condition.levels:
            return condition.name
        return f"{benchmark.name}: {condition.name}"

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Return ``verdict`` once nothing is left to ask."""
        is_open = any(one.bisection.is_open for one in self.searches)
        return None if is_open else "verdict"

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the two conditions of each benchmark in the next block; none at the end.

        The choice depends on earlier blocks, and on times of builds and trials that exchanging two
        commits would not change. So each coin of the block stays fair given the past.
        """
        self._searches.withdraw_before(block)
        trial_s = statistics.median(self._trial_s) if self._trial_s else 0.0
        build_s = self._builds.seconds()
        build_trials = build_s / trial_s if trial_s > 0.0 else 0.0
        return self._searches.next_conditions(self._builds.built(), build_trials)

    def tolerates(self, trial: Trial) -> bool:
        """Return whether the search goes on without the commit of a failed trial."""
        return not self._terms.is_end(trial.condition)

    def earliest_block(self) -> int:
        """Return the number of the first block after which a gap can be confirmed."""
        return earliest_block(self._plan.judgement.alpha, 1)

    def blocks_to_verdict(self) -> tuple[int, ...]:
        """Return no forecast: a search is never prolonged."""
        return ()


class BisectionSegment(SegmentInProgress, kw_only=True):
    """A segment that builds the commits of each block before it, and warms them up.

    ``judge`` is a `BisectionJudge`.
    """

    builds: Builds
    _warm: set[int] = field(default_factory=set)
    """Conditions that ran in this segment."""

    def _warm_up(self, runner: Runner) -> None:
        """Do nothing: each commit is warmed up before its first block."""

    def _conditions_of(self, runner: Runner, block: int) -> tuple[int, ...]:
        terms = _terms(self.plan)
        while True:
            conditions = self.judge.needed_conditions("measured", block)
            if not conditions:
                return ()
            commits = tuple(dict.fromkeys(map(terms.commit_of, conditions)))
            unbuilt = tuple(one for one in commits if one not in self.builds.built())
            if unbuilt:
                self.listener.building(tuple(map(self._name, unbuilt)))
            failed = self.builds.make(commits)
            everywhere = range(len(self.plan.commit_benchmarks))
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
        for _ in range(self.plan.measure.warmup if new else 0):
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
        """Leave out the commits whose trials failed; return whether there are any."""
        any_failed = False
        for trial in trials:
            benchmarks = tuple(_without_cost(self.plan, trial))
            if benchmarks:
                any_failed = True
                reason = f"{trial.failure}{stderr_suffix(trial.error_tail)}"
                if trial.failure is None:
                    metrics = [self.plan.commit_benchmarks[one].metric for one in benchmarks]
                    reason = f"it does not report {joined(metrics)}"
                commit = _terms(self.plan).commit_of(trial.condition)
                self._withdraw(commit, benchmarks, block, NOT_RUN, reason)
        return any_failed

    def _withdraw(
        self, commit: int, benchmarks: Collection[int], block: int, code: str, reason: str
    ) -> None:
        assert isinstance(self.judge, BisectionJudge), "a bisection has a judge of its own"
        of = [self.plan.commit_benchmarks[one].name for one in benchmarks]
        if code == NOT_RUN and len(of) < len(self.plan.commit_benchmarks):
            reason = f"{', '.join(of)}: {reason}"
        warning = _warning_of(_terms(self.plan), commit, block, code, reason)
        self.store.record_notice(self.run_id, warning)
        self.judge.withdraw(commit, benchmarks)


def _warning_of(
    terms: BisectPlan, commit: int, block: int, code: str, reason: str
) -> CampaignWarning:
    name = terms.commits[commit].hash
    return CampaignWarning(
        code,
        _WITHDRAWN.format(name, block) + reason,
        f"to see why, run it by hand after: git checkout {name}",
    )
