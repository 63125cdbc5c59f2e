"""A bisection as a campaign: its judge, what is read back of it, and its segments.

A block runs two commits. Before it both are built, while nothing is measured, and a commit that has
just been built is warmed up. A commit that does not build, or whose command fails, takes part in no
later block: its name, its reason and the number of the first block without it are in the ledger.
All of the search is a function of the recorded blocks and of these commits (`read_search`).
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct, field

from equipoise.campaign.blocks import complete_blocks, read_block
from equipoise.campaign.progress import ComparisonStatus
from equipoise.campaign.segment import Runner, SegmentInProgress, fails
from equipoise.measure.untimed import stderr_suffix
from equipoise.model.plan import BisectPlan, Plan, Stopping
from equipoise.model.quantities import joined
from equipoise.model.record import CampaignWarning, Phase, RunRecord, Trial
from equipoise.stats.bisection import Bisection
from equipoise.stats.bisection_branches import Branch, BranchingBisection
from equipoise.stats.verdict import earliest_block

NOT_BUILT = "not_built"
"""Code of the warning that a commit does not build."""
NOT_RUN = "not_run"
"""Code of the warning that the command fails in a commit."""
GOOD = 0
_WITHDRAWN = "commit {} is left out from block {} on: "
_READ_WITHDRAWN = re.compile(_WITHDRAWN.format(r"([0-9a-f]{40,64})", r"([0-9]{1,9})"))


class Withdrawal(Struct, frozen=True):
    """A commit that takes part in no block from one on."""

    commit: int
    """Its condition."""
    block: int
    """Number of the first measured block without it."""


class Builds(Protocol):
    """The builds of the commits of a bisection."""

    def built(self) -> Collection[int]:
        """Return the commits that are built."""

    def seconds(self) -> float:
        """Return the seconds that a build takes, as far as is known; else 0."""

    def make(self, commits: tuple[int, ...]) -> Mapping[int, str]:
        """Build commits that are not built; return the reason for each that does not build."""


def withdrawals_of(record: RunRecord) -> tuple[Withdrawal, ...]:
    """Return the commits that were left out, in the order of the blocks before which they were."""
    plan = record.plan
    assert plan.bisected is not None, "only a bisection leaves out commits"
    names = {
        commit.hash: index
        for index, commit in enumerate(plan.bisected.every_commit)
        if not commit.uncommitted
    }
    found: dict[int, int] = {}
    for notice in record.notices:
        read = _READ_WITHDRAWN.match(notice.summary) if notice.code == NOT_BUILT else None
        if read is not None and read[1] in names:
            found.setdefault(names[read[1]], int(read[2]))
    # A failed trial tells by itself: a campaign may be killed before it has recorded a warning.
    latest, last = 0, plan.bisected.last
    for trial in record.trials:
        if trial.phase == "measured":
            latest = max(latest, trial.block)
        # One that failed in an end has ended the campaign.
        if trial.condition not in (GOOD, last) and fails(plan, trial):
            found[trial.condition] = min(latest + 1, found.get(trial.condition, latest + 1))
    in_order = sorted(found.items(), key=lambda one: (one[1], one[0]))
    return tuple(Withdrawal(commit, block) for commit, block in in_order)


def read_search(record: RunRecord) -> BranchingBisection:
    """Return the search of a recorded bisection, after its last complete block."""
    search = _Search(record.plan, withdrawals_of(record))
    latest = 0
    for number, block in complete_blocks(record.draws, record.trials).items():
        search.add(block)
        latest = number
    search.withdraw_before(latest + 1)
    return search.bisection


class _Search:
    """The search, with the commits that earlier segments left out."""

    def __init__(self, plan: Plan, withdrawals: Sequence[Withdrawal]) -> None:
        judgement, terms = plan.judgement, plan.bisected
        assert terms is not None, "only the plan of a bisection is searched"
        self._plan = plan
        self._waiting = list(withdrawals)
        line = Bisection(
            terms.last,
            alpha=judgement.alpha,
            min_effect=judgement.min_effect,
            prior=terms.prior or None,
            engine=judgement.engine,
        )
        branches = [Branch(one.merge, one.commits) for one in terms.branches]
        self.bisection = BranchingBisection(line, branches)

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block; one in which a commit failed says nothing (bisect.md §11)."""
        self.withdraw_before(block[0].block)
        if any(fails(self._plan, trial) for trial in block):
            return
        read = read_block(block, self._plan)
        if read.resolution is not None:
            self.bisection.set_resolution(read.resolution)
        earlier, later = self.bisection.in_order(read.costs)
        costs = (read.costs[earlier], read.costs[later])
        self.bisection.add((earlier, later), costs, read.order(earlier, later))

    def withdraw_before(self, block: int) -> None:
        """Leave out the commits that a block, and all after it, did without."""
        while self._waiting and self._waiting[0].block <= block:
            self.bisection.withdraw(self._waiting.pop(0).commit)


class BisectionJudge:
    """The judge of a bisection: what the search asks next, until nothing is left to ask.

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
        self._plan = plan
        self._builds = builds
        self._search = _Search(plan, withdrawals)
        assert plan.bisected is not None, "only the plan of a bisection is searched"
        self._last = plan.bisected.last
        self._trial_s: list[float] = []

    @property
    def search(self) -> BranchingBisection:
        """The search after the blocks so far."""
        return self._search.bisection

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block."""
        self._search.add(block)
        self._trial_s += [t.accounting.wall_s for t in block if t.accounting.wall_s is not None]

    def withdraw(self, commit: int) -> None:
        """Leave a commit out of all later blocks."""
        self.search.withdraw(commit)

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the gap until it is confirmed, then how many commits are left."""
        state = self.search.state()
        names = [condition.name for condition in self._plan.conditions]
        gap = state.gap
        left = sum(not excluded for excluded in state.excluded)
        search = f"{left} of {self._last} commits are left"
        if state.named:
            search = f"{joined([names[one.last] for one in state.named])} made a difference"
        merge = self.search.searched_merge
        if merge is not None:
            search += f", and the branch of {names[merge]} is searched"
        return (
            ComparisonStatus(
                names[self._last],
                gap.verdict if state.verdict == "no difference" else "undecided",
                gap.ratio,
                gap.ratio_ci,
                baseline=names[GOOD],
                blocks=state.blocks,
                search="" if state.verdict in ("confirming", "no difference") else search,
            ),
        )

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Return ``verdict`` once nothing is left to ask."""
        return "verdict" if self._pair() is None else None

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the two commits that the next block runs; none if nothing is left to ask.

        The choice depends on earlier blocks, and on times of builds and trials that exchanging two
        commits would not change. So the coin of the block stays fair given the past.
        """
        self._search.withdraw_before(block)
        return self._pair() or ()

    def tolerates(self, trial: Trial) -> bool:
        """Return whether the search goes on without the commit of a failed trial."""
        return trial.condition not in (GOOD, self._last)

    def earliest_block(self) -> int:
        """Return the number of the first block after which a gap can be confirmed."""
        return earliest_block(self._plan.judgement.alpha, 1)

    def blocks_to_verdict(self) -> tuple[int, ...]:
        """Return no forecast: a search is never prolonged."""
        return ()

    def _pair(self) -> tuple[int, int] | None:
        trial_s = statistics.median(self._trial_s) if self._trial_s else 0.0
        build_s = self._builds.seconds()
        trials = build_s / trial_s if trial_s > 0.0 else 0.0
        return self.search.next_pair(self._builds.built(), trials)


class BisectionSegment(SegmentInProgress, kw_only=True):
    """A segment that builds the commits of each block before it, and warms up new ones.

    ``judge`` is a `BisectionJudge`.
    """

    builds: Builds
    _warm: set[int] = field(default_factory=set)
    """Commits that ran in this segment."""

    def _warm_up(self, runner: Runner) -> None:
        """Do nothing: each commit is warmed up before its first block."""

    def _conditions_of(self, runner: Runner, block: int) -> tuple[int, ...]:
        while True:
            pair = self.judge.needed_conditions("measured", block)
            if not pair:
                return ()
            unbuilt = tuple(one for one in pair if one not in self.builds.built())
            if unbuilt:
                self.listener.building(tuple(self.plan.conditions[one].name for one in unbuilt))
            failed = self.builds.make(pair)
            for commit, reason in failed.items():
                self._withdraw(commit, block, NOT_BUILT, reason)
            if not failed and self._are_warm(runner, pair, block):
                return pair
            is_over = self._elapsed() >= self.stopping.budget_s
            if is_over and not self.stopping.min_blocks_explicit:
                return ()

    def _are_warm(self, runner: Runner, pair: tuple[int, ...], block: int) -> bool:
        """Warm up the commits that have not run in this segment; return whether none failed."""
        new = tuple(one for one in pair if one not in self._warm)
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
        failed = {trial.condition: trial for trial in trials if fails(self.plan, trial)}
        for commit, trial in failed.items():
            reason = f"{trial.failure}{stderr_suffix(trial.error_tail)}"
            self._withdraw(commit, block, NOT_RUN, reason)
        return bool(failed)

    def _withdraw(self, commit: int, block: int, code: str, reason: str) -> None:
        terms = self.plan.bisected
        assert terms is not None, "only a bisection leaves out commits"
        assert isinstance(self.judge, BisectionJudge), "a bisection has a judge of its own"
        self.store.record_notice(self.run_id, _warning_of(terms, commit, block, code, reason))
        self.judge.withdraw(commit)


def _warning_of(
    terms: BisectPlan, commit: int, block: int, code: str, reason: str
) -> CampaignWarning:
    name = terms.every_commit[commit].hash
    return CampaignWarning(
        code,
        _WITHDRAWN.format(name, block) + reason,
        f"to see why, run it by hand after: git checkout {name}",
    )
