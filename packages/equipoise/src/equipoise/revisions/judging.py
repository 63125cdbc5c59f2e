"""Runs campaigns over commits: builds commits before each block, and withdraws commits that fail.

A block runs some of the commits, with one or several commands. Before the block, its commits are
built and warmed up. A commit that does not build is withdrawn: later blocks do not run it. If a
command fails in a commit, the commit is withdrawn for the benchmarks of this command. The ledger
has the reason, and the number of the first block without the commit.

The judge chooses the commits of each block, and the end of the search. This module identifies
commits and benchmarks by their indices in the plan.
"""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.analysis.assignments import Replacer, replace_values
from equipoise.analysis.kind import AnalysisKind
from equipoise.analysis.redaction import TextReplacements
from equipoise.campaign.blocks import CostsOfBlock, complete_blocks, cost_function, read_block
from equipoise.campaign.segment import Judge, Runner, SegmentInProgress, ends_campaign
from equipoise.measure.untimed import stderr_suffix
from equipoise.model.plan import Plan, Stopping
from equipoise.model.quantities import joined
from equipoise.model.record import Phase, RecordedWarning, RunRecord, Trial
from equipoise.model.revisions import REVISION
from equipoise.revisions.terms import CommitBenchmark, benchmarks_of, commits_terms
from equipoise.stats.verdict import earliest_block

NOT_BUILT = "not_built"
"""Code of the warning that a commit does not build."""
NOT_RUN = "not_run"
"""Code of the warning that a command fails in a commit."""
REFERENCE_COMMIT = 0
"""Index of the good revision or baseline, with which other commits are compared."""


class Withdrawal(Struct, frozen=True):
    """From a certain block on, a benchmark does not run a commit."""

    commit: int
    first_block: int
    """Number of the first measured block without the commit."""
    benchmark: int = 0


class Builds(Protocol):
    """The builds of the commits of a campaign; commits are indices."""

    def built_commits(self) -> Collection[int]:
        """Return the commits that are built."""

    def typical_seconds(self) -> float:
        """Return the typical seconds of a build; 0 if unknown."""

    def build_commits(self, commits: tuple[int, ...]) -> Mapping[int, str]:
        """Build commits; return the reason of each failure, by commit."""


def withdrawals_of(record: RunRecord) -> tuple[Withdrawal, ...]:
    """Return all withdrawals of a campaign, in the order of blocks."""
    plan, terms = record.plan, commits_terms(record.plan)
    first_blocks: dict[tuple[int, int], int] = {}
    """First block without the commit, by commit and benchmark."""
    for warning in record.warnings:
        condition, block = warning.condition, warning.absent_from
        if warning.code != NOT_BUILT or condition is None or block is None:
            continue
        for benchmark in range(len(benchmarks_of(plan))):
            first_blocks.setdefault((terms.commit_of(condition), benchmark), block)
    # A killed campaign may have a failed trial without a warning.
    latest_block = 0
    for trial in record.trials:
        if trial.phase == "measured":
            latest_block = max(latest_block, trial.block)
        commit = terms.commit_of(trial.condition)
        for benchmark in _unmeasured_benchmarks(plan, trial):
            known_block = first_blocks.get((commit, benchmark), latest_block + 1)
            first_blocks[commit, benchmark] = min(latest_block + 1, known_block)
    withdrawals = (
        Withdrawal(commit, block, benchmark) for (commit, benchmark), block in first_blocks.items()
    )
    return tuple(
        sorted(withdrawals, key=lambda each: (each.first_block, each.commit, each.benchmark))
    )


def _unmeasured_benchmarks(plan: Plan, trial: Trial) -> tuple[int, ...]:
    """Return the benchmarks that a failed trial did not measure; empty for a needed commit."""
    terms = commits_terms(plan)
    if terms.commit_of(trial.condition) in terms.needed_commits:
        # A needed commit is never withdrawn: its failure ends the campaign.
        return ()
    return tuple(
        index
        for index, benchmark in enumerate(benchmarks_of(plan))
        if benchmark.command_index == terms.command_of(trial.condition)
        and (ends_campaign(plan, trial) or cost_function(benchmark.metric)(trial) is None)
    )


class CommitsJudge(Judge, ABC):
    """The judge of a campaign over commits: chooses the commits of each block.

    ``stopping`` has no effect. ``builds`` is ``None`` if a recorded campaign is only analysed.
    """

    def __init__(self, plan: Plan, stopping: Stopping, builds: Builds | None = None) -> None:
        self.plan = plan
        self.terms = commits_terms(plan)
        self.withdrawn: set[tuple[int, int]] = set()
        """Pairs of a withdrawn commit and the benchmark that does not run the commit any more."""
        self._builds = builds
        self._later_withdrawals: list[Withdrawal] = []
        """Recorded withdrawals after the latest added block."""
        self._trial_s: list[float] = []
        """Wall seconds of each trial so far."""

    def recall(self, record: RunRecord) -> None:
        """Read the withdrawals of a recorded campaign."""
        self._later_withdrawals = list(withdrawals_of(record))

    def replay(self, record: RunRecord) -> None:
        """Add the complete blocks and all withdrawals of a recorded campaign."""
        self.recall(record)
        for block in complete_blocks(record.draws, record.trials).values():
            self.add(block)
        # Add the withdrawals before an interrupted last block.
        for withdrawal in self._later_withdrawals:
            self.withdraw(withdrawal.commit, withdrawal.benchmark)
        self._later_withdrawals = []

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add a complete block, without the benchmarks of commands that failed in the block."""
        self._withdraw_before(block[0].block)
        all_wall_s = (trial.accounting.wall_s for trial in block)
        self._trial_s += [wall_s for wall_s in all_wall_s if wall_s is not None]
        costs_by_benchmark: dict[int, CostsOfBlock] = {}
        for index, benchmark in enumerate(benchmarks_of(self.plan)):
            trials = tuple(
                trial
                for trial in block
                if self.terms.command_of(trial.condition) == benchmark.command_index
            )
            has_failed = any(
                ends_campaign(self.plan, trial) or index in _unmeasured_benchmarks(self.plan, trial)
                for trial in trials
            )
            if trials and not has_failed:
                costs_by_benchmark[index] = self._read_benchmark(trials, benchmark)
        if costs_by_benchmark:
            self._add_costs(block[0].block, costs_by_benchmark)

    def _read_benchmark(
        self, trials: tuple[Trial, ...], benchmark: CommitBenchmark
    ) -> CostsOfBlock:
        """Return the costs of a block, by commit instead of condition."""
        block = read_block(trials, self.plan, benchmark.metric)
        commit_of = self.terms.commit_of
        return replace(
            block,
            costs={commit_of(condition): cost for condition, cost in block.costs.items()},
            positions={
                commit_of(condition): position for condition, position in block.positions.items()
            },
        )

    def _withdraw_before(self, block: int) -> None:
        while self._later_withdrawals and self._later_withdrawals[0].first_block <= block:
            withdrawal = self._later_withdrawals.pop(0)
            self.withdraw(withdrawal.commit, withdrawal.benchmark)

    def withdraw(self, commit: int, benchmark: int) -> None:
        """Withdraw a commit: the later blocks of a benchmark do not run the commit."""
        self.withdrawn.add((commit, benchmark))
        self._withdraw_from_search(commit, benchmark)

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Return ``verdict`` once the search is over."""
        return None if self._next_block() else "verdict"

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the conditions of the next block; empty once the search is over.

        The choice depends only on earlier blocks and on the typical times of a build and a trial.
        """
        self._withdraw_before(block)
        return self._next_block()

    def tolerates(self, trial: Trial) -> bool:
        """Return whether the search can continue without the commit of a failed trial."""
        return self.terms.commit_of(trial.condition) not in self.terms.needed_commits

    def earliest_block(self) -> int:
        """Return the number of the first block after which a difference can be certain."""
        return earliest_block(self.plan.judgement.alpha, 1)

    def _next_block(self) -> tuple[int, ...]:
        assert self._builds is not None, "a campaign that is read back has no next block"
        trial_s = statistics.median(self._trial_s) if self._trial_s else 0.0
        build_trials = self._builds.typical_seconds() / trial_s if trial_s > 0.0 else 0.0
        return self._choose_conditions(self._builds.built_commits(), build_trials)

    @abstractmethod
    def _add_costs(self, number: int, blocks: Mapping[int, CostsOfBlock]) -> None:
        """Add the costs of commits in one block, by benchmark."""

    @abstractmethod
    def _withdraw_from_search(self, commit: int, benchmark: int) -> None:
        """Change the search of a benchmark, because a commit is withdrawn."""

    @abstractmethod
    def _choose_conditions(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        """Return the next conditions, if any; ``build_trials`` is the time of a build in trials."""


class CommitsSegment(SegmentInProgress, kw_only=True):
    """A segment that builds and warms up the commits of each block, with a `CommitsJudge`."""

    builds: Builds
    _warmed_up: set[int] = field(default_factory=set)
    """Conditions that ran in this segment."""

    def _warm_up(self, runner: Runner) -> None:
        """Do nothing: each condition is warmed up before its first block."""

    def _next_conditions(self, runner: Runner, block: int) -> tuple[int, ...]:
        """Return the conditions of the next block after all of them are built and warmed up."""
        terms = commits_terms(self.plan)
        all_benchmarks = range(len(benchmarks_of(self.plan)))
        while True:
            conditions = self.judge.needed_conditions("measured", block)
            if not conditions:
                return ()
            commits = tuple(dict.fromkeys(map(terms.commit_of, conditions)))
            built = self.builds.built_commits()
            unbuilt = tuple(commit for commit in commits if commit not in built)
            if unbuilt:
                self.listener.building(tuple(map(self._name_of_commit, unbuilt)))
            failures = self.builds.build_commits(commits)
            for commit, reason in failures.items():
                self._record_withdrawal(commit, all_benchmarks, block, NOT_BUILT, reason)
            if not failures and self._warm_up_builds(runner, conditions, block):
                return conditions
            is_budget_used = self._elapsed_s() >= self.stopping.budget_s
            if is_budget_used and not self.stopping.min_blocks_explicit:
                return ()

    def _name_of_commit(self, commit: int) -> str:
        condition = self.plan.conditions[commit]
        return condition.levels.get(REVISION, condition.name)

    def _warm_up_builds(self, runner: Runner, conditions: tuple[int, ...], block: int) -> bool:
        """Warm up the conditions that have not run in this segment; return False if one failed."""
        new_conditions = tuple(index for index in conditions if index not in self._warmed_up)
        self._warmed_up.update(new_conditions)
        warmups: list[Trial] = []
        for _ in range(self.plan.warmup_blocks if new_conditions else 0):
            warmups += self._run_block(runner, "warmup", self.next_warmup, new_conditions)
            self.next_warmup += 1
            if self._withdraw_failed(warmups, block):
                return False
        if len(self._warmed_up) == len(new_conditions):
            self._check_for_timeouts(warmups)
        return True

    def _run_measured(self, runner: Runner, block: int, conditions: tuple[int, ...]) -> None:
        trials = self._run_block(runner, "measured", block, conditions)
        self.judge.add(trials)
        self._withdraw_failed(trials, block + 1)

    def _withdraw_failed(self, trials: Sequence[Trial], block: int) -> bool:
        """Withdraw the commits of failed trials; return whether there are new withdrawals."""
        assert isinstance(self.judge, CommitsJudge), "a campaign over commits has its own judge"
        benchmarks, terms = benchmarks_of(self.plan), commits_terms(self.plan)
        has_new_withdrawals = False
        for trial in trials:
            commit = terms.commit_of(trial.condition)
            unmeasured = _unmeasured_benchmarks(self.plan, trial)
            withdrawn = self.judge.withdrawn
            indices = tuple(index for index in unmeasured if (commit, index) not in withdrawn)
            if not indices:
                continue
            has_new_withdrawals = True
            reason = f"{trial.failure}{stderr_suffix(trial.error_tail)}"
            if trial.failure is None:
                metrics = joined(benchmarks[index].metric for index in indices)
                reason = f"it does not report {metrics}"
            elif len(indices) < len(benchmarks):
                reason = f"{joined(benchmarks[index].name for index in indices)}: {reason}"
            self._record_withdrawal(commit, indices, block, NOT_RUN, reason)
        return has_new_withdrawals

    def _record_withdrawal(
        self, commit: int, benchmarks: Collection[int], block: int, code: str, reason: str
    ) -> None:
        assert isinstance(self.judge, CommitsJudge), "a campaign over commits has its own judge"
        sha = commits_terms(self.plan).commits_with_branches[commit].hash
        summary = f"commit {sha} is left out from block {block} on: {reason}"
        hint = f"to see why, run `git checkout {sha}`, then the build and the command"
        warning = RecordedWarning(code, summary, hint, condition=commit, absent_from=block)
        self.store.record_warning(self.run_id, warning)
        for benchmark in benchmarks:
            self.judge.withdraw(commit, benchmark)


class CommitsAnalysis(AnalysisKind):
    """Base of the analyses of campaigns over commits."""

    def replace_in_terms(self, terms: Any, replacement: Replacer) -> Any:
        """Return the terms with replaced values of variables in the shell line that builds."""
        return replace(terms, build=terms.build and replace_values(terms.build, replacement))

    def hide_in_terms(self, terms: Any, hidden: TextReplacements) -> Any:
        """Return the terms without hidden values in the names of benchmarks."""
        return replace(
            terms,
            benchmarks=tuple(
                replace(benchmark, name=hidden.replace_in_text(benchmark.name))
                for benchmark in terms.benchmarks
            ),
        )
