"""Campaigns over commits: builds before a block, warm-ups, commits left out, and their judge.

A block runs some of the commits, with one command or with several. Before it the commits are
built, while nothing is measured, and what has just been built is warmed up. A commit that does not
build takes part in no later block, nor does one whose command fails in the blocks of what that
command measures: its name, its reason and the number of the first block without it are in the
ledger.

All that a judge finds is a function of the recorded blocks and of these commits.

The terms of such campaigns are reported without the values of environment variables.
"""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.analysis.assignments import (
    Replace,
    replace_values,
)
from equipoise.analysis.kind import AnalysisKind
from equipoise.analysis.redaction import HiddenValues
from equipoise.campaign.blocks import BlockRead, complete_blocks, cost_function, read_block
from equipoise.campaign.segment import Judge, Runner, SegmentInProgress, fails
from equipoise.measure.untimed import stderr_suffix
from equipoise.model.plan import Plan, Stopping
from equipoise.model.quantities import joined
from equipoise.model.record import Phase, RecordedWarning, RunRecord, Trial
from equipoise.model.revisions import REVISION
from equipoise.revisions.terms import CommitBenchmark, benchmarks_of, commits_of
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


def withdrawals_of(record: RunRecord) -> tuple[Withdrawal, ...]:
    """Return what was left out, in the order of the blocks before which it was."""
    plan, terms = record.plan, commits_of(record.plan)
    found: dict[tuple[int, int], int] = {}
    for notice in record.notices:
        condition, block = notice.condition, notice.without_from
        if notice.code != NOT_BUILT or condition is None or block is None:
            continue
        for benchmark in range(len(benchmarks_of(plan))):
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
        for place, benchmark in enumerate(benchmarks_of(plan))
        if benchmark.process == terms.process_of(trial.condition)
        and (fails(plan, trial) or cost_function(benchmark.metric)(trial) is None)
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
        """Add one complete block; of a command that failed in it, nothing.

        See docs/methods/bisect.md.
        """
        self._withdraw_before(block[0].block)
        self._trial_s += [t.accounting.wall_s for t in block if t.accounting.wall_s is not None]
        reads: dict[int, BlockRead] = {}
        for place, benchmark in enumerate(benchmarks_of(self.plan)):
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
        everywhere = range(len(benchmarks_of(self.plan)))
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
        benchmarks, terms = benchmarks_of(self.plan), commits_of(self.plan)
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


class CommitsAnalysis(AnalysisKind):
    """What the analyses of all campaigns over commits share."""

    def replace_in_terms(self, terms: Any, replacement: Replace) -> Any:
        """Return the terms with the values replaced that its build sets."""
        return replace(
            terms,
            build=terms.build and replace_values(terms.build, replacement),
        )

    def hide_in_terms(self, terms: Any, hidden: HiddenValues) -> Any:
        """Return the terms without hidden values in the names of benchmarks."""
        return replace(
            terms,
            benchmarks=tuple(
                replace(one, name=hidden.in_text(one.name)) for one in terms.benchmarks
            ),
        )
