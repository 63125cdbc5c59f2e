"""One segment: an uninterrupted stretch of a campaign, from its warm-up to its stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from equipoise.campaign.progress import Moment, Standing, Watcher
from equipoise.design.coin import draw_block
from equipoise.measure.trials import TrialReport
from equipoise.measure.untimed import stderr_suffix
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import CampaignWarning
from equipoise.model.trial import NO_ROOM, Draw, Phase, Trial

StopReason = Literal["verdict", "block limit", "budget", "precision", "failure", "interrupted"]


class Store(Protocol):
    """The part of the ledger that a segment writes to."""

    def record_draw(self, run_id: str, draw: Draw) -> None:
        """Commit a draw."""

    def record_trial(self, run_id: str, trial: Trial) -> None:
        """Commit a trial."""

    def record_notice(self, run_id: str, notice: CampaignWarning) -> None:
        """Commit a warning."""


class Runner(Protocol):
    """What runs the trials of a segment."""

    def run_place(self, draw: Draw, place: int) -> tuple[Callable[[], TrialReport], ...]:
        """The trials at one place of a block, each run when it is called."""


class Judge(Protocol):
    """What looks at the blocks as they come."""

    def add(self, block: tuple[Trial, ...]) -> None:
        """Take one complete block, in position order."""

    def standings(self) -> tuple[Standing, ...]:
        """Look: where each comparison stands after the blocks so far."""

    def settled(self) -> Literal["verdict", "precision"] | None:
        """Why no further block is needed, as of the last look; ``None`` while one is."""

    def wanted(self, phase: Phase, block: int) -> tuple[int, ...]:
        """The conditions that this block needs, which comes next, as of the last look."""

    def excuses(self, trial: Trial) -> bool:
        """Whether the campaign goes on though this trial failed, without what it belonged to."""

    def earliest_block(self) -> int:
        """The least number of blocks after which any verdict is possible."""


@dataclass(slots=True)
class SegmentInProgress:
    """Runs blocks until there is a reason to stop.

    Parameters
    ----------
    spent_before_s
        What earlier segments of the campaign took of its budget.
    clock
        Monotonic seconds, for the budget.
    """

    run_id: str
    plan: Plan
    stopping: Stopping
    store: Store
    runner: Runner
    judge: Judge
    watcher: Watcher
    clock: Callable[[], float]
    spent_before_s: float = 0.0
    blocks_before: int = 0
    """Complete blocks of earlier segments."""
    _noticed: set[tuple[str, str]] = field(default_factory=set)

    def run(self, next_warmup: int, next_block: int) -> StopReason:
        """Warm up, then run blocks from ``next_block`` on until there is a reason to stop.

        Raises
        ------
        ConditionFailed
            A trial failed and failures are not ignored; the trial is in the ledger.
        """
        began = self.clock()
        every_trial: list[Trial] = []
        for block in range(next_warmup, next_warmup + self.plan.warmup_blocks):
            every_trial.extend(self._run_block("warmup", block))
        self._fail_if_nothing_finishes(every_trial)
        self.watcher.warmed_up()
        complete = self.blocks_before
        block = next_block
        while True:
            trials = self._run_block("measured", block)
            block += 1
            complete += 1
            self.judge.add(trials)
            standings = self.judge.standings()
            elapsed = self.spent_before_s + self.clock() - began
            self.watcher.block_ended(Moment(complete, elapsed, standings))
            reason = self._reason_to_stop(complete, elapsed)
            if reason is not None:
                return reason

    def _run_block(self, phase: Phase, block: int) -> tuple[Trial, ...]:
        draw = draw_block(self.plan, phase, block, self.judge.wanted(phase, block))
        self.store.record_draw(self.run_id, draw)
        counted: list[Trial] = []
        for place in range(len(draw.order)):
            began = self.clock()
            for run in self.runner.run_place(draw, place):
                ran = run()
                self.store.record_trial(self.run_id, ran.trial)
                self._notice(ran)
                self._fail_if_it_failed(ran.trial)
                if not ran.trial.washout:
                    counted.append(ran.trial)
            self.watcher.trial_ended(self.clock() - began, len(draw.order))
        return tuple(counted)

    def _reason_to_stop(self, complete: int, elapsed_s: float) -> StopReason | None:
        settled = self.judge.settled()
        if settled is not None:
            return settled
        if complete >= self.stopping.blocks:
            return "block limit"
        stopping = self.stopping
        may_stop = complete >= stopping.min_blocks or not stopping.min_blocks_explicit
        return "budget" if elapsed_s >= stopping.budget_s and may_stop else None

    def _fail_if_it_failed(self, trial: Trial) -> None:
        if fails(self.plan, trial) and not self.judge.excuses(trial):
            raise failed(self.plan, trial)

    def _fail_if_nothing_finishes(self, warmups: list[Trial]) -> None:
        if warmups and all(trial.timed_out for trial in warmups):
            raise ConditionFailed(
                f"every condition {warmups[0].failure}",
                hint="raise --timeout; a program that waits for input needs --input FILE",
            )

    def _notice(self, ran: TrialReport) -> None:
        name = self.plan.conditions[ran.trial.condition].name
        if ran.left_behind:
            self._notice_once(
                CampaignWarning(
                    "left_processes",
                    f"{name} left processes behind; they were ended before the next trial",
                    "let it wait for its children, or start servers in --setup",
                ),
                name,
            )
        if ran.metrics_problem is not None:
            self._notice_once(
                CampaignWarning(
                    "own_metrics",
                    f"{name}: {ran.metrics_problem}",
                    'append lines such as {"metric": "latency_s", "value": 0.0012} '
                    "to the file that EQUIPOISE_METRICS names",
                ),
                name,
            )

    def _notice_once(self, notice: CampaignWarning, name: str) -> None:
        """Record the first notice of its kind about a condition: others differ in details."""
        if (notice.code, name) not in self._noticed:
            self._noticed.add((notice.code, name))
            self.store.record_notice(self.run_id, notice)


def fails(plan: Plan, trial: Trial) -> bool:
    """Whether a trial ends its campaign: a timeout does not, it counts as slowest."""
    if trial.failure is None or trial.timed_out:
        return False
    started = trial.exit is not None or trial.accounting.wall_s is not None
    return not (plan.measure.ignore_failure and started)


def failed(plan: Plan, trial: Trial) -> ConditionFailed:
    """The error for a trial that ends its campaign."""
    name = plan.conditions[trial.condition].name
    if trial.failure is not None and NO_ROOM in trial.failure:
        return ConditionFailed(
            f"{name} failed: {trial.failure}",
            hint="make room in that folder, or set TMPDIR to one with room",
        )
    return ConditionFailed(
        f"{name} failed: {trial.failure}" + stderr_suffix(trial.error_tail),
        hint="correct the command, or count failed trials like others with --ignore-failure",
    )
