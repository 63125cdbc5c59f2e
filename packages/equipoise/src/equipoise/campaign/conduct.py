"""Starts, resumes and ends a campaign, and records the campaign in the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from equipoise.campaign.blocks import complete_blocks, seconds_of_segments
from equipoise.campaign.interim import judge_for, latest_analysis_block
from equipoise.campaign.pilot import DISTURBED_WARNING, RefusedByPilot
from equipoise.campaign.progress import ProgressListener
from equipoise.campaign.segment import Judge, Runner, SegmentInProgress, check_for_failure
from equipoise.campaign.verification import check_effects, mapped_by_condition
from equipoise.design.limits import CampaignLimits
from equipoise.ledger import Ledger
from equipoise.measure.disturbances.contention import begin_watch, busy_host
from equipoise.measure.duet import DuetRunner
from equipoise.measure.environment import CovariateReader, Host, snapshot
from equipoise.measure.installation import launcher_program
from equipoise.measure.launcher import Launcher, PairLauncher
from equipoise.measure.leftovers import clear_leftovers
from equipoise.measure.measurement_lock import LockOwner, lock_host, lock_run
from equipoise.measure.scratch import scratch_folder
from equipoise.measure.trials import TrialRunner, own_environment
from equipoise.model.errors import ConditionFailed, EquipoiseError, UnusableInput
from equipoise.model.plan import Plan, Stopping
from equipoise.model.quantities import counted
from equipoise.model.record import (
    ENDED_BY_FAILURE,
    ENDED_BY_PILOT,
    FAILURE_WARNING,
    INTERRUPTED,
    CampaignWarning,
    Phase,
    RunRecord,
)

if TYPE_CHECKING:
    from equipoise.measure.servers import Servers


class Interrupted(Exception):
    """The user stopped a campaign; every finished trial is in the ledger."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.run_id = run_id


def measurement_lock(
    on_wait: Callable[[LockOwner], None], *, allow_concurrent: bool
) -> AbstractContextManager[object]:
    """Return the lock that lets one campaign at a time measure on this host.

    With ``allow_concurrent``, a campaign does not wait: if another campaign has the lock, it runs
    without the lock.
    """
    if not allow_concurrent:
        return lock_host(on_wait)
    try:
        return lock_host(lambda _: None, 0)
    except EquipoiseError:
        return nullcontext()


def warn_of_wait(owner: LockOwner) -> None:
    """Log which campaign has the lock; Python shows this log on stderr by default."""
    import logging

    logging.getLogger("equipoise").warning(
        "waiting for the end of another campaign on this host (%s); to measure at the same time, "
        "set allow_concurrent=True",
        owner.describe(),
    )


RunnerFactory = Callable[[Plan, Callable[[], None]], AbstractContextManager[Runner]]
"""Makes the runner of a plan's trials; the second argument is called while a trial runs."""
JudgeFactory = Callable[[Plan, Stopping], Judge]
"""Makes the judge of a plan; the second argument has the limits of the segment."""
RunnerAdapter = Callable[[Runner], Runner]
"""Returns a runner that does something before a trial, and then runs it with the given runner."""
SegmentFactory = Callable[..., SegmentInProgress]
"""Makes a segment from the parameters of `SegmentInProgress`."""


@contextmanager
def native_runner(plan: Plan, on_wait: Callable[[], None]) -> Iterator[Runner]:
    """Make the runner of real trials, with one launcher and one private folder for a segment."""
    # Processes that a killed campaign left behind would disturb the trials.
    clear_leftovers()
    with (
        scratch_folder() as scratch,
        Launcher(launcher_program(), counters=plan.measure.counters, scratch=scratch) as launcher,
        _second_launcher(plan, scratch) as second_launcher,
        CovariateReader() as covariates,
        _servers(plan, scratch) as servers,
    ):
        runner = TrialRunner(
            plan, launcher, scratch, own_environment(), covariates, servers=servers, on_wait=on_wait
        )
        if second_launcher is not None:
            runner = DuetRunner(
                plan,
                launcher,
                scratch,
                own_environment(),
                covariates,
                on_wait=on_wait,
                pair_starter=PairLauncher((launcher, second_launcher)),
            )
        try:
            yield runner
        finally:
            runner.clean_up()


def _second_launcher(plan: Plan, scratch: Path) -> AbstractContextManager[Launcher | None]:
    """Return the launcher of the trial that runs at the same time as another (``--duet``)."""
    if not plan.measure.cpu_sets:
        return nullcontext()
    return Launcher(launcher_program(), counters=plan.measure.counters, shared_scratch=scratch)


def _servers(plan: Plan, scratch: Path) -> AbstractContextManager[Servers | None]:
    if all(condition.server is None for condition in plan.conditions):
        return nullcontext()
    from equipoise.measure.servers import Servers

    return Servers(lambda: Launcher(launcher_program(), shared_scratch=scratch), scratch)


def start(
    plan: Plan,
    ledger: Ledger,
    listener: ProgressListener,
    *,
    warnings: Sequence[CampaignWarning] = (),
    identity: bytes | None = None,
    judge_factory: JudgeFactory = judge_for,
    runner_factory: RunnerFactory = native_runner,
    adapt_runner: RunnerAdapter = lambda runner: runner,
    segment_factory: SegmentFactory = SegmentInProgress,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
) -> str:
    """Run a new campaign to its stop and return its run id.

    Raise `UnusableInput` if a condition has no effect, `ConditionFailed` if a trial or a hook
    failed, and `Interrupted` if the user interrupted the campaign.

    ``warnings`` are recorded. ``identity`` has the 16 bytes of the run id; by default it is random.
    """
    run_id = ledger.begin_run(plan, _environment(plan, ledger), now(), identity=identity)
    with run_lock(run_id, ledger):
        for warning in warnings:
            ledger.record_warning(run_id, warning)
        judge = judge_factory(plan, plan.stopping)
        segment = segment_factory(run_id, plan, plan.stopping, ledger, judge, listener, clock)
        _conduct(segment, ledger, runner_factory, now, adapt_runner)
    return run_id


def resume(
    reference: str,
    limits: CampaignLimits,
    ledger: Ledger,
    listener: ProgressListener,
    *,
    judge_factory: JudgeFactory = judge_for,
    runner_factory: RunnerFactory = native_runner,
    adapt_runner: RunnerAdapter = lambda runner: runner,
    segment_factory: SegmentFactory = SegmentInProgress,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
) -> str:
    """Resume a campaign with its stored plan and new limits; return its run id.

    The judge first analyses the recorded blocks again. If more blocks are needed, a new segment
    runs them.

    Raise `UnusableInput` if there is no such campaign, if the limits leave nothing to do, or if
    another process is measuring the campaign. Raise `ConditionFailed` if a condition failed,
    earlier or now. Raise `Interrupted` if the user interrupted the campaign.
    """
    run_id = ledger.read_run(reference).id
    with run_lock(run_id, ledger):
        # Another process may have resumed the campaign in the meantime.
        record = ledger.read_run(run_id)
        plan = record.plan
        plan.rules.check_resumable(run_id)
        stopping = limits.stopping(plan.stopping)
        judge = judge_factory(plan, stopping)
        judge.recall(record)
        for trial in record.trials:
            # A resumed campaign would drop the block in which a condition failed (rule 1).
            check_for_failure(plan, trial, judge)
        blocks = complete_blocks(record.draws, record.trials)
        for block_count, block in enumerate(blocks.values(), start=1):
            judge.add(block)
            if block_count == latest_analysis_block(len(blocks)):
                judge.analyse()
        if judge.runs_washouts():
            # The judge has counted blocks from 0 since the first block with washouts.
            judge.analyse()
        if judge.stop_reason() is not None:
            return run_id
        if stopping.blocks is not None and len(blocks) >= stopping.blocks:
            raise UnusableInput(
                f"run {run_id} already has {counted(len(blocks), 'block')}, "
                f"and its limit is {stopping.blocks}",
                hint=f"set a higher limit: `equipoise resume {run_id} --blocks {2 * len(blocks)}`",
            )
        segment_number = ledger.begin_segment(run_id, _environment(plan, ledger), now())
        segment = segment_factory(
            run_id,
            plan,
            stopping,
            ledger,
            judge,
            listener,
            clock,
            number=segment_number,
            spent_before_s=0.0 if limits.budget else _spent_budget_s(record),
            blocks_before=len(blocks),
            next_warmup=_next_block(record, "warmup"),
            next_block=_next_block(record, "measured"),
        )
        _conduct(segment, ledger, runner_factory, now, adapt_runner)
    return run_id


def _environment(plan: Plan, ledger: Ledger) -> dict[str, Any]:
    """Return the facts of the host, its certificate, and the libraries of each condition."""
    environment = own_environment()
    initial_plan = plan.rules.with_initial_conditions(plan)
    mapped = mapped_by_condition(initial_plan, environment)
    check_effects(initial_plan, mapped, environment)
    host_facts = snapshot(environment=environment)
    certificate = ledger.latest_certificate(host_facts.get("kernel"), host_facts.get("cpu_model"))
    return {
        **host_facts,
        "certificate": None if certificate is None else certificate.summary(),
        "mapped": {name: asdict(libraries) for name, libraries in mapped.items()},
    }


def series_lock(series: str, ledger: Ledger) -> AbstractContextManager[object]:
    """Return the lock that lets one campaign of a series measure at a time.

    Raise `UnusableInput` if another process is measuring a campaign of the series.
    """
    return _lock("last", ledger.key_of(series))


def run_lock(run_id: str, ledger: Ledger) -> AbstractContextManager[object]:
    """Return the lock that lets one process at a time continue a run.

    Raise `UnusableInput` if another process is continuing the run.
    """
    return _lock(run_id, ledger.key_of(run_id))


def _lock(reference: str, ledger_key: str) -> AbstractContextManager[object]:
    try:
        return lock_run(reference, ledger_key)
    except UnusableInput:
        raise
    except EquipoiseError:
        # The ledger itself refuses a second draw of the same block.
        return nullcontext()


def _conduct(
    segment: SegmentInProgress,
    ledger: Ledger,
    runner_factory: RunnerFactory,
    now: Callable[[], float],
    adapt_runner: RunnerAdapter,
) -> None:
    """Run a segment, and record how it ended and whether the host was busy."""
    # The scripted runners of tests have no host.
    watch = begin_watch(Host()) if runner_factory is native_runner else None
    listener = segment.listener
    plan_with_limits = replace(segment.plan, stopping=segment.stopping)
    listener.segment_started(
        segment.run_id, plan_with_limits, segment.judge.earliest_block(), segment.blocks_before
    )
    reason: str = INTERRUPTED
    try:
        with runner_factory(segment.plan, listener.trial_running) as runner:
            reason = segment.run(adapt_runner(runner))
    except ConditionFailed as error:
        reason = ENDED_BY_FAILURE
        warning = CampaignWarning(FAILURE_WARNING, error.what, error.hint or "")
        ledger.record_warning(segment.run_id, warning)
        raise
    except RefusedByPilot as error:
        reason = ENDED_BY_PILOT
        warning = CampaignWarning(DISTURBED_WARNING, error.what, error.hint or "")
        ledger.record_warning(segment.run_id, warning)
        raise
    except KeyboardInterrupt:
        raise Interrupted(segment.run_id) from None
    finally:
        listener.segment_ended()
        ledger.end_segment(segment.run_id, segment.number, now(), reason)
        warning_of_busy_host = None if watch is None else busy_host(watch)
        if warning_of_busy_host is not None:
            ledger.record_warning(segment.run_id, warning_of_busy_host)


def _next_block(record: RunRecord, phase: Phase) -> int:
    return 1 + max((draw.block for draw in record.draws if draw.phase == phase), default=0)


def _spent_budget_s(record: RunRecord) -> float:
    """Return the spent seconds of the budget; 0 if it is used up, so that a new budget starts."""
    if record.segments and record.segments[-1].stopped_because == "budget":
        return 0.0
    return seconds_of_segments(record)
