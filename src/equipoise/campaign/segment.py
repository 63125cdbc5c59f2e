"""A segment: an uninterrupted stretch of a campaign, from its warm-up to its stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import Struct, field

from equipoise.campaign.progress import CampaignProgress, ComparisonStatus, ProgressListener
from equipoise.design.coin import draw_block
from equipoise.measure.trials import TrialReport
from equipoise.measure.untimed import stderr_suffix
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import NO_ROOM, CampaignWarning, Draw, Phase, Trial

StopReason = Literal["verdict", "block limit", "budget", "precision", "failure", "interrupted"]


class TrialStore(Protocol):
    """The part of the ledger that a segment writes to."""

    def record_draw(self, run_id: str, draw: Draw) -> None:
        """Commit a draw."""

    def record_trial(self, run_id: str, trial: Trial) -> None:
        """Commit a trial."""

    def record_notice(self, run_id: str, notice: CampaignWarning) -> None:
        """Commit a warning."""


class Runner(Protocol):
    """Runs the trials of a segment."""

    def run_place(self, draw: Draw, place: int) -> tuple[Callable[[], TrialReport], ...]:
        """Return the trials at one place of a block; each runs when it is called."""


class Judge(Protocol):
    """Analyses the blocks as they come, and says what runs next and when to stop."""

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block, its trials in the order of their positions."""

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the status of each comparison after the blocks so far."""

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Return why no further block is needed, by the latest analysis; ``None`` while one is."""

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the conditions that the next block needs, by the latest analysis."""

    def tolerates(self, trial: Trial) -> bool:
        """Return whether the campaign continues, without its intervention, after a failed trial."""

    def earliest_block(self) -> int:
        """Return the number of the first block after which a verdict is possible."""


class SegmentInProgress(Struct):
    """Runs blocks until there is a reason to stop.

    Parameters
    ----------
    spent_before_s
        Seconds of the budget that earlier segments spent.
    clock
        Monotonic seconds, for the budget.
    blocks_before
        Number of complete blocks of earlier segments.
    """

    run_id: str
    plan: Plan
    stopping: Stopping
    store: TrialStore
    runner: Runner
    judge: Judge
    listener: ProgressListener
    clock: Callable[[], float]
    spent_before_s: float = 0.0
    blocks_before: int = 0
    _warned: set[tuple[str, str]] = field(default_factory=set)

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
        self.listener.warmed_up()
        complete = self.blocks_before
        block = next_block
        while True:
            self.judge.add(self._run_block("measured", block))
            block += 1
            complete += 1
            statuses = self.judge.analyse()
            elapsed = self.spent_before_s + self.clock() - began
            self.listener.block_ended(CampaignProgress(complete, elapsed, statuses))
            reason = self._reason_to_stop(complete, elapsed)
            if reason is not None:
                return reason

    def _run_block(self, phase: Phase, block: int) -> tuple[Trial, ...]:
        draw = draw_block(self.plan, phase, block, self.judge.needed_conditions(phase, block))
        self.store.record_draw(self.run_id, draw)
        counted: list[Trial] = []
        for place in range(len(draw.order)):
            began = self.clock()
            for run in self.runner.run_place(draw, place):
                report = run()
                self.store.record_trial(self.run_id, report.trial)
                self._warn_of(report)
                self._fail_if_it_failed(report.trial)
                if not report.trial.washout:
                    counted.append(report.trial)
            self.listener.trial_ended(self.clock() - began, len(draw.order))
        return tuple(counted)

    def _reason_to_stop(self, complete: int, elapsed_s: float) -> StopReason | None:
        settled = self.judge.stop_reason()
        if settled is not None:
            return settled
        if complete >= self.stopping.blocks:
            return "block limit"
        stopping = self.stopping
        may_stop = complete >= stopping.min_blocks or not stopping.min_blocks_explicit
        return "budget" if elapsed_s >= stopping.budget_s and may_stop else None

    def _fail_if_it_failed(self, trial: Trial) -> None:
        if fails(self.plan, trial) and not self.judge.tolerates(trial):
            raise failed(self.plan, trial)

    def _fail_if_nothing_finishes(self, warmups: list[Trial]) -> None:
        if warmups and all(trial.timed_out for trial in warmups):
            raise ConditionFailed(
                f"every condition {warmups[0].failure}",
                hint="raise --timeout; a program that waits for input needs --input FILE",
            )

    def _warn_of(self, report: TrialReport) -> None:
        name = self.plan.conditions[report.trial.condition].name
        if report.left_behind:
            self._warn_once(
                CampaignWarning(
                    "left_processes",
                    f"{name} left processes behind; they were ended before the next trial",
                    "let it wait for its children, or start servers in --setup",
                ),
                name,
            )
        if report.metrics_problem is not None:
            self._warn_once(
                CampaignWarning(
                    "own_metrics",
                    f"{name}: {report.metrics_problem}",
                    'append lines such as {"metric": "latency_s", "value": 0.0012} '
                    "to the file that EQUIPOISE_METRICS names",
                ),
                name,
            )

    def _warn_once(self, warning: CampaignWarning, name: str) -> None:
        """Record the first warning of its kind about a condition; later ones differ in details."""
        if (warning.code, name) not in self._warned:
            self._warned.add((warning.code, name))
            self.store.record_notice(self.run_id, warning)


def fails(plan: Plan, trial: Trial) -> bool:
    """Return whether a trial ends its campaign. A timeout does not: it counts as slowest."""
    if trial.failure is None or trial.timed_out:
        return False
    started = trial.exit is not None or trial.accounting.wall_s is not None
    return not (plan.measure.ignore_failure and started)


def failed(plan: Plan, trial: Trial) -> ConditionFailed:
    """Return the error for a trial that ends its campaign."""
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
