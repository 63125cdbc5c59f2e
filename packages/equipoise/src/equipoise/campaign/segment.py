"""Runs one segment of a campaign: the warm-up, then blocks until there is a reason to stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from msgspec import Struct, field

from equipoise.campaign.pilot import (
    MAX_PILOT_BUDGET_SHARE,
    MAX_PILOT_PAIRS,
    MIN_PILOT_PAIRS,
    pilot_warnings,
)
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
"""Reason for the end of a segment."""


class TrialStore(Protocol):
    """The methods of the ledger with which a segment records its trials."""

    def record_draw(self, run_id: str, draw: Draw) -> None:
        """Commit a draw."""

    def record_trial(self, run_id: str, trial: Trial) -> None:
        """Commit a trial."""

    def record_warning(self, run_id: str, warning: CampaignWarning) -> None:
        """Commit a warning."""


class Runner(Protocol):
    """Runs the trials of a segment."""

    def trials_at(self, draw: Draw, position: int) -> tuple[Callable[[], TrialReport], ...]:
        """Return the trials at one position of a block, as functions that run them."""


class Judge(Protocol):
    """Analyses new blocks, and decides what runs next and when to stop."""

    def recall(self, record: RunRecord) -> None:
        """Restore the state of a recorded campaign. The caller then adds its blocks again."""
        return

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block with its trials in the order in which they ran."""

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the status of each comparison after the blocks so far."""

    def stop_reason(self) -> Literal["verdict", "precision", "tail"] | None:
        """Return the reason to stop; ``None`` if another block is needed."""

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the indices of the conditions that must run in a block."""

    def tolerates(self, trial: Trial) -> bool:
        """Return whether the campaign continues after this failed trial."""
        return False

    def runs_washouts(self) -> bool:
        """Return whether the next measured block has washouts."""
        return False

    def earliest_block(self) -> int:
        """Return the number of the first block after which a verdict is possible."""

    def blocks_to_verdict(self) -> tuple[int, ...]:
        """Forecast how many more blocks would decide each open comparison."""
        return ()


class SegmentInProgress(Struct):
    """A segment that runs blocks until there is a reason to stop.

    ``stopping`` replaces the limits of the plan. ``clock`` returns monotonic seconds. Earlier
    segments spent ``spent_before_s`` seconds of the budget and completed ``blocks_before`` blocks.
    ``next_warmup`` and ``next_block`` are the numbers of the first blocks of this segment.
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
    _recorded_warnings: set[tuple[str, int]] = field(default_factory=set)
    """Code and condition of each recorded warning."""
    _last_block: int | None = None
    """Number of the block with which the campaign ends; ``None`` until the budget is used up."""
    _start_s: float = 0.0
    """Time of the clock at the start of the segment."""

    def run(self, runner: Runner) -> StopReason:
        """Warm up, then run blocks until there is a reason to stop.

        Raise `ConditionFailed` if a trial failed and failures are not ignored.
        """
        self._start_s = self.clock()
        self._warm_up(runner)
        self.listener.warmed_up()
        blocks_run = 0
        reason: StopReason | None = None
        while reason is None:
            number = self.next_block + blocks_run
            conditions = self._next_conditions(runner, number)
            if conditions:
                self._run_measured(runner, number, conditions)
                blocks_run += 1
            block_count = self.blocks_before + blocks_run
            statuses = self.judge.analyse()
            elapsed_s = self._elapsed_s()
            self.listener.block_ended(CampaignProgress(block_count, elapsed_s, statuses))
            reason = self._reason_to_stop(block_count, elapsed_s)
        return reason

    def _warm_up(self, runner: Runner) -> None:
        warmups: list[Trial] = []
        for block in range(self.next_warmup, self.next_warmup + self.plan.warmup_blocks):
            conditions = self.judge.needed_conditions("warmup", block)
            warmups += self._run_block(runner, "warmup", block, conditions)
        self._check_for_timeouts(warmups)
        if self.plan.measure.cpu_sets and not self.blocks_before:
            self._run_pilot(runner, self.next_warmup + self.plan.warmup_blocks)

    def _run_pilot(self, runner: Runner, first_block: int) -> None:
        """Run the conditions in turns and at once, alternately; record the pilot's warnings.

        Raise `UnusableInput` if trials that run at once disturb each other.
        """
        trials: list[Trial] = []
        for pair in range(MAX_PILOT_PAIRS):
            for block in (first_block + 2 * pair, first_block + 2 * pair + 1):
                conditions = self.judge.needed_conditions("warmup", block)
                trials += self._run_block(runner, "warmup", block, conditions)
            is_long = self._elapsed_s() >= MAX_PILOT_BUDGET_SHARE * self.stopping.budget_s
            if pair + 1 >= MIN_PILOT_PAIRS and is_long:
                break
        for warning in pilot_warnings(self.plan, trials):
            self.store.record_warning(self.run_id, warning)

    def _check_for_timeouts(self, warmups: Sequence[Trial]) -> None:
        if warmups and all(trial.timed_out for trial in warmups):
            raise ConditionFailed(
                f"every condition {warmups[0].failure}",
                hint=f"raise {option('timeout')}; a program that waits for input needs "
                f"{option('input', 'FILE')}",
            )

    def _next_conditions(self, runner: Runner, block: int) -> tuple[int, ...]:
        return self.judge.needed_conditions("measured", block)

    def _run_measured(self, runner: Runner, block: int, conditions: tuple[int, ...]) -> None:
        self.judge.add(self._run_block(runner, "measured", block, conditions))

    def _elapsed_s(self) -> float:
        return self.spent_before_s + self.clock() - self._start_s

    def _run_block(
        self, runner: Runner, phase: Phase, block: int, conditions: tuple[int, ...]
    ) -> tuple[Trial, ...]:
        """Draw and run a block; return its trials without the washouts."""
        has_washouts = self.plan.measure.washout or self.judge.runs_washouts()
        draw = draw_block(
            self.plan, phase, block, conditions, washouts=phase == "measured" and has_washouts
        )
        self.store.record_draw(self.run_id, draw)
        trials: list[Trial] = []
        for position in range(len(draw.order)):
            start_s = self.clock()
            for run in runner.trials_at(draw, position):
                report = run()
                reports = (report,) if report.at_once is None else (report, report.at_once)
                for report in reports:
                    self.store.record_trial(self.run_id, report.trial)
                    self._record_warnings(report)
                for report in reports:
                    check_for_failure(self.plan, report.trial, self.judge)
                    if not report.trial.washout:
                        trials.append(report.trial)
            self.listener.trial_ended(self.clock() - start_s, len(draw.order))
        return tuple(trials)

    def _reason_to_stop(self, block_count: int, elapsed_s: float) -> StopReason | None:
        reason = self.judge.stop_reason()
        if reason is not None:
            return reason
        stopping = self.stopping
        if stopping.blocks is not None and block_count >= stopping.blocks:
            return "block limit"
        min_blocks = max(
            stopping.min_blocks if stopping.min_blocks_explicit else 0,
            stopping.blocks_before_budget,
        )
        if elapsed_s < stopping.budget_s or block_count < min_blocks:
            return None
        if self._last_block is None:
            blocks_run, spent_s = block_count - self.blocks_before, elapsed_s - self.spent_before_s
            self._last_block = block_count + self._extra_blocks(spent_s / max(1, blocks_run))
        is_too_long = elapsed_s >= (1.0 + MAX_EXTRA_BUDGET_SHARE) * stopping.budget_s
        return "budget" if block_count >= self._last_block or is_too_long else None

    def _extra_blocks(self, block_s: float) -> int:
        """Return how many blocks to run after the budget, to reach a near verdict; or 0."""
        if not self.stopping.patient:
            return 0
        forecasts = self.judge.blocks_to_verdict()
        return blocks_to_near_verdicts(forecasts, block_s, self.stopping.budget_s) or 0

    def _record_warnings(self, report: TrialReport) -> None:
        """Record the warnings of a trial, but only the first with each code about a condition."""
        condition = report.trial.condition
        name = self.plan.conditions[condition].name
        process_warning = RecordedWarning(
            "left_processes",
            f"{name} left processes behind; they were ended before the next trial",
            "make the program wait for its child processes, or start servers before the campaign",
            condition,
        )
        metrics_warning = RecordedWarning(
            "own_metrics",
            f"{name}: {report.metrics_problem}",
            'write lines such as {"metric": "latency_s", "value": 0.0012} '
            "to the file that the variable EQUIPOISE_METRICS names",
            condition,
        )
        warnings = [process_warning] if report.left_behind else []
        warnings += [] if report.metrics_problem is None else [metrics_warning]
        for warning in warnings:
            if (warning.code, condition) not in self._recorded_warnings:
                self._recorded_warnings.add((warning.code, condition))
                self.store.record_warning(self.run_id, warning)


def ends_campaign(plan: Plan, trial: Trial) -> bool:
    """Return whether a failed trial ends its campaign. A timeout does not: its cost is infinite."""
    if trial.failure is None or trial.timed_out:
        return False
    has_started = trial.exit is not None or trial.accounting.wall_s is not None
    measure = plan.measure
    has_ignored_exit = not measure.ignored_exits or trial.exit in measure.ignored_exits
    return not (measure.ignore_failure and has_started and has_ignored_exit)


def check_for_failure(plan: Plan, trial: Trial, judge: Judge) -> None:
    """Raise `ConditionFailed` for a trial that ends its campaign."""
    if not ends_campaign(plan, trial) or judge.tolerates(trial):
        return
    problem = f"{plan.conditions[trial.condition].name} failed: {trial.failure}"
    if trial.failure_kind == "no room":
        raise ConditionFailed(
            problem, hint="free disk space, or set TMPDIR to a folder on another disk"
        )
    hint = plan.rules.failure_hint or (
        "correct the command, or count failed trials like others with "
        f"{option('ignore_failure', True)}"
    )
    raise ConditionFailed(problem + stderr_suffix(trial.error_tail), hint=hint)
