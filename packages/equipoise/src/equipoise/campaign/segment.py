"""A segment: an uninterrupted stretch of a campaign, from its warm-up to its stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from msgspec import Struct, field

from equipoise.campaign.progress import (
    MAX_EXTRA_BUDGET_SHARE,
    CampaignProgress,
    ComparisonStatus,
    ProgressListener,
    blocks_to_near_verdicts,
)
from equipoise.design.coin import draw_block
from equipoise.ledger import FIRST_SEGMENT
from equipoise.measure.trials import TrialReport
from equipoise.measure.untimed import stderr_suffix
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import CampaignWarning, Draw, Phase, RecordedWarning, RunRecord, Trial
from equipoise.shared.spelling import option

StopReason = Literal["verdict", "block limit", "budget", "precision", "tail"]


class TrialStore(Protocol):
    """The part of the ledger to which a segment writes."""

    def record_draw(self, run_id: str, draw: Draw) -> None:
        """Commit a draw."""

    def record_trial(self, run_id: str, trial: Trial) -> None:
        """Commit a trial."""

    def record_notice(self, run_id: str, notice: CampaignWarning) -> None:
        """Commit a warning."""


class Runner(Protocol):
    """The runner of a segment's trials."""

    def run_place(self, draw: Draw, place: int) -> tuple[Callable[[], TrialReport], ...]:
        """Return the trials at one place of a block; each runs when it is called."""


class Judge(Protocol):
    """The analysis of new blocks, which decides what runs next and when to stop."""

    def recall(self, record: RunRecord) -> None:
        """Read the state of a recorded campaign, before its blocks are added again."""
        return

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block, its trials in the order of their positions."""

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the status of each comparison after the blocks so far."""

    def stop_reason(self) -> Literal["verdict", "precision", "tail"] | None:
        """Return the reason why no further block is needed; ``None`` while one is."""

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the conditions that the next block needs, by the latest analysis."""

    def tolerates(self, trial: Trial) -> bool:
        """Return whether the campaign continues, without its intervention, after a failed trial."""
        return False

    def runs_washouts(self) -> bool:
        """Return whether the next measured block has washouts, by the latest analysis."""
        return False

    def earliest_block(self) -> int:
        """Return the number of the first block after which a verdict is possible."""

    def blocks_to_verdict(self) -> tuple[int, ...]:
        """Forecast how many more blocks would decide each open comparison, where possible."""
        return ()


class SegmentInProgress(Struct):
    """A segment, which runs blocks until there is a reason to stop.

    Parameters
    ----------
    clock
        Monotonic seconds, for the budget.
    spent_before_s
        Seconds of the budget that earlier segments spent.
    blocks_before
        Number of complete blocks of earlier segments.
    next_warmup, next_block
        Numbers of the first blocks to run.
    """

    run_id: str
    plan: Plan
    stopping: Stopping
    store: TrialStore
    judge: Judge
    listener: ProgressListener
    clock: Callable[[], float]
    number: int = FIRST_SEGMENT
    spent_before_s: float = 0.0
    blocks_before: int = 0
    next_warmup: int = 1
    next_block: int = 1
    _warned: set[tuple[str, int]] = field(default_factory=set)
    _last_block: int | None = None
    """Block after which the used-up budget ends the segment; set when the budget is used up."""
    _began: float = 0.0

    def run(self, runner: Runner) -> StopReason:
        """Warm up, then run blocks until there is a reason to stop.

        Raise `ConditionFailed` if a trial failed and failures are not ignored; the trial is in the
        ledger.
        """
        self._began = self.clock()
        self._warm_up(runner)
        self.listener.warmed_up()
        ran = 0
        reason: StopReason | None = None
        while reason is None:
            number = self.next_block + ran
            conditions = self._conditions_of(runner, number)
            if conditions:
                self._run_measured(runner, number, conditions)
                ran += 1
            complete = self.blocks_before + ran
            statuses = self.judge.analyse()
            elapsed = self._elapsed()
            self.listener.block_ended(CampaignProgress(complete, elapsed, statuses))
            reason = self._reason_to_stop(complete, elapsed)
        return reason

    def _warm_up(self, runner: Runner) -> None:
        """Run the warm-up blocks."""
        self._check_warm_ups(
            [
                trial
                for block in range(self.next_warmup, self.next_warmup + self.plan.warmup_blocks)
                for trial in self._run_block(
                    runner, "warmup", block, self.judge.needed_conditions("warmup", block)
                )
            ]
        )

    def _check_warm_ups(self, warmups: Sequence[Trial]) -> None:
        """Raise `ConditionFailed` if there are warm-up trials, and all timed out."""
        if warmups and all(trial.timed_out for trial in warmups):
            raise ConditionFailed(
                f"every condition {warmups[0].failure}",
                hint=f"raise {option('timeout')}; a program that waits for input needs "
                f"{option('input', 'FILE')}",
            )

    def _conditions_of(self, runner: Runner, block: int) -> tuple[int, ...]:
        """Return the conditions of the next measured block; empty if there is no next block."""
        return self.judge.needed_conditions("measured", block)

    def _run_measured(self, runner: Runner, block: int, conditions: tuple[int, ...]) -> None:
        """Run a measured block, and add it to the judge."""
        self.judge.add(self._run_block(runner, "measured", block, conditions))

    def _elapsed(self) -> float:
        """Return the spent seconds of the budget."""
        return self.spent_before_s + self.clock() - self._began

    def _run_block(
        self, runner: Runner, phase: Phase, block: int, conditions: tuple[int, ...]
    ) -> tuple[Trial, ...]:
        has_washouts = self.plan.measure.washout or self.judge.runs_washouts()
        draw = draw_block(
            self.plan, phase, block, conditions, washouts=phase == "measured" and has_washouts
        )
        self.store.record_draw(self.run_id, draw)
        counted: list[Trial] = []
        for place in range(len(draw.order)):
            began = self.clock()
            for run in runner.run_place(draw, place):
                report = run()
                self.store.record_trial(self.run_id, report.trial)
                self._warn_of(report)
                check_for_failure(self.plan, report.trial, self.judge)
                if not report.trial.washout:
                    counted.append(report.trial)
            self.listener.trial_ended(self.clock() - began, len(draw.order))
        return tuple(counted)

    def _reason_to_stop(self, complete: int, elapsed_s: float) -> StopReason | None:
        settled = self.judge.stop_reason()
        if settled is not None:
            return settled
        stopping = self.stopping
        if stopping.blocks is not None and complete >= stopping.blocks:
            return "block limit"
        least = max(
            stopping.min_blocks if stopping.min_blocks_explicit else 0,
            stopping.blocks_before_budget,
        )
        if elapsed_s < stopping.budget_s or complete < least:
            return None
        if self._last_block is None:
            ran, took_s = complete - self.blocks_before, elapsed_s - self.spent_before_s
            self._last_block = complete + self._patience(took_s / max(1, ran))
        too_long = elapsed_s >= (1.0 + MAX_EXTRA_BUDGET_SHARE) * stopping.budget_s
        return "budget" if complete >= self._last_block or too_long else None

    def _patience(self, block_s: float) -> int:
        """Return the number of blocks beyond the budget: up to a near verdict, or 0."""
        if not self.stopping.patient:
            return 0
        forecasts = self.judge.blocks_to_verdict()
        return blocks_to_near_verdicts(forecasts, block_s, self.stopping.budget_s) or 0

    def _warn_of(self, report: TrialReport) -> None:
        """Record the first warning of each kind about a condition; later warnings hardly differ."""
        condition = report.trial.condition
        name = self.plan.conditions[condition].name
        left_processes = RecordedWarning(
            "left_processes",
            f"{name} left processes behind; they were ended before the next trial",
            "let it wait for its children, or start servers before the campaign",
            condition,
        )
        own_metrics = RecordedWarning(
            "own_metrics",
            f"{name}: {report.metrics_problem}",
            'append lines such as {"metric": "latency_s", "value": 0.0012} '
            "to the file that EQUIPOISE_METRICS names",
            condition,
        )
        due = [left_processes] if report.left_behind else []
        due += [] if report.metrics_problem is None else [own_metrics]
        for warning in due:
            if (warning.code, condition) not in self._warned:
                self._warned.add((warning.code, condition))
                self.store.record_notice(self.run_id, warning)


def fails(plan: Plan, trial: Trial) -> bool:
    """Return whether a trial ends its campaign; a timeout counts as slowest and does not."""
    if trial.failure is None or trial.timed_out:
        return False
    started = trial.exit is not None or trial.accounting.wall_s is not None
    measure = plan.measure
    is_ignored = not measure.ignored_exits or trial.exit in measure.ignored_exits
    return not (measure.ignore_failure and started and is_ignored)


def check_for_failure(plan: Plan, trial: Trial, judge: Judge) -> None:
    """Raise `ConditionFailed` for a trial that ends its campaign."""
    if not fails(plan, trial) or judge.tolerates(trial):
        return
    what = f"{plan.conditions[trial.condition].name} failed: {trial.failure}"
    if trial.failure_kind == "no room":
        raise ConditionFailed(what, hint="make room in that folder, or set TMPDIR to one with room")
    hint = plan.rules.failure_hint or (
        "correct the command, or count failed trials like others with "
        f"{option('ignore_failure', True)}"
    )
    raise ConditionFailed(what + stderr_suffix(trial.error_tail), hint=hint)
