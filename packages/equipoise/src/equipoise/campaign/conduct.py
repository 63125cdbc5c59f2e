"""Conducting a campaign: start it, resume it, and end it with everything in the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from equipoise.campaign.blocks import complete_blocks, seconds_of_segments
from equipoise.campaign.interim import judge_for, latest_analysis_block
from equipoise.campaign.progress import ProgressListener
from equipoise.campaign.segment import (
    Judge,
    Runner,
    SegmentInProgress,
    check_for_failure,
)
from equipoise.campaign.verification import check_effects, mapped_by_condition
from equipoise.design.limits import CampaignLimits
from equipoise.ledger import Ledger
from equipoise.measure.disturbances.contention import begin_watch, busy_host
from equipoise.measure.environment import CovariateReader, Host, snapshot
from equipoise.measure.installation import launcher_program
from equipoise.measure.launcher import Launcher
from equipoise.measure.leftovers import clear_leftovers
from equipoise.measure.measurement_lock import LockOwner, lock_host, lock_run
from equipoise.measure.scratch import scratch_folder
from equipoise.measure.trials import TrialRunner, own_environment
from equipoise.model.errors import ConditionFailed, EquipoiseError, UnusableInput
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import FAILED, FAILURE, INTERRUPTED, CampaignWarning, Phase, RunRecord

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

    With ``allow_concurrent`` the campaign takes the lock if it is free, so that a later campaign
    waits; if it is not free, the campaign runs without it.
    """
    if not allow_concurrent:
        return lock_host(on_wait)
    try:
        return lock_host(lambda _: None, 0)
    except EquipoiseError:
        return nullcontext()


def warn_of_wait(owner: LockOwner) -> None:
    """Log the campaign that a Python caller waits for; Python shows it on stderr by default."""
    import logging

    logging.getLogger("equipoise").warning(
        "another campaign runs on this host (%s): waiting for its end; allow_concurrent=True "
        "measures all the same",
        owner.describe(),
    )


RunnerFactory = Callable[[Plan, Callable[[], None]], AbstractContextManager[Runner]]
"""Factory of the runner of a plan's trials; its second argument is called while a trial runs."""
JudgeFactory = Callable[[Plan, Stopping], Judge]
"""Factory of the judge of a plan under its own or later limits."""
SegmentFactory = Callable[..., SegmentInProgress]
"""Factory of a segment, with the parameters of `SegmentInProgress`."""


@contextmanager
def native_runner(plan: Plan, on_wait: Callable[[], None]) -> Iterator[Runner]:
    """Make the runner of real trials: one launcher and one private folder for a whole segment."""
    # Processes of a killed campaign would disturb this one.
    clear_leftovers()
    with (
        scratch_folder() as scratch,
        Launcher(launcher_program(), counters=plan.measure.counters, scratch=scratch) as launcher,
        CovariateReader() as covariates,
        _servers(plan, scratch) as servers,
    ):
        runner = TrialRunner(
            plan,
            launcher,
            scratch,
            own_environment(),
            covariates,
            servers=servers,
            on_wait=on_wait,
        )
        try:
            yield runner
        finally:
            runner.clean_up()


def _servers(plan: Plan, scratch: Path) -> AbstractContextManager[Servers | None]:
    """Return the manager of a plan's servers; ``None`` if it has no servers."""
    if all(condition.server is None for condition in plan.conditions):
        return nullcontext()
    from equipoise.measure.servers import Servers

    return Servers(lambda: Launcher(launcher_program(), campaign=scratch), scratch)


def start(
    plan: Plan,
    ledger: Ledger,
    listener: ProgressListener,
    *,
    warnings: Sequence[CampaignWarning] = (),
    identity: bytes | None = None,
    judge_of: JudgeFactory = judge_for,
    runner_factory: RunnerFactory = native_runner,
    segment_of: SegmentFactory = SegmentInProgress,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
) -> str:
    """Run a new campaign to its stop and return its run id.

    Raise `UnusableInput` if a condition did not take effect. Raise `ConditionFailed` if a trial or
    a hook failed; earlier trials are in the ledger. Raise `Interrupted` if the user interrupted it.

    Parameters
    ----------
    warnings
        Warnings that are known before the first trial, such as a level that cannot run here.
    identity
        Identity of the run, 16 bytes; by default the ledger draws one.
    """
    run_id = ledger.begin_run(plan, _environment(plan, ledger), now(), identity=identity)
    with run_lock(run_id, ledger):
        for warning in warnings:
            ledger.record_notice(run_id, warning)
        judge = judge_of(plan, plan.stopping)
        segment = segment_of(run_id, plan, plan.stopping, ledger, judge, listener, clock)
        _conduct(segment, ledger, runner_factory, now)
    return run_id


def resume(
    reference: str,
    limits: CampaignLimits,
    ledger: Ledger,
    listener: ProgressListener,
    *,
    judge_of: JudgeFactory = judge_for,
    runner_factory: RunnerFactory = native_runner,
    segment_of: SegmentFactory = SegmentInProgress,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
) -> str:
    """Resume a campaign under its own plan and the new limits; return its run id.

    A campaign that needs no more blocks is left unchanged.

    Raise `UnusableInput` if there is no such campaign, its limits leave nothing to do, or another
    process measures it now. Raise `ConditionFailed` if a condition failed in it, before or now.
    Raise `Interrupted` if the user interrupted it.
    """
    run_id = ledger.read_run(reference).id
    with run_lock(run_id, ledger):
        # Read again: another process may have resumed it meanwhile.
        record = ledger.read_run(run_id)
        plan = record.plan
        plan.rules.check_resumable(run_id)
        stopping = limits.stopping(plan.stopping)
        judge = judge_of(plan, stopping)
        judge.recall(record)
        for trial in record.trials:
            # Continuing would drop the block in which a condition failed (rule 1).
            check_for_failure(plan, trial, judge)
        blocks = complete_blocks(record.draws, record.trials)
        for number, block in enumerate(blocks.values(), start=1):
            judge.add(block)
            if number == latest_analysis_block(len(blocks)):
                judge.analyse()
        if judge.runs_washouts():
            # The analyses count from the first block with washouts.
            judge.analyse()
        if judge.stop_reason() is not None:
            return run_id
        if stopping.blocks is not None and len(blocks) >= stopping.blocks:
            raise UnusableInput(
                f"run {run_id} has its {len(blocks)} blocks already",
                hint=f"ask for more: equipoise resume {run_id} --blocks {2 * len(blocks)}",
            )
        number = ledger.begin_segment(run_id, _environment(plan, ledger), now())
        segment = segment_of(
            run_id,
            plan,
            stopping,
            ledger,
            judge,
            listener,
            clock,
            number=number,
            spent_before_s=0.0 if limits.budget else _spent_budget_s(record),
            blocks_before=len(blocks),
            next_warmup=_next_block(record, "warmup"),
            next_block=_next_block(record, "measured"),
        )
        _conduct(segment, ledger, runner_factory, now)
    return run_id


def _environment(plan: Plan, ledger: Ledger) -> dict[str, Any]:
    """Return the host of a segment, its certificate, and the libraries of each condition.

    Raise `UnusableInput` if a condition did not take effect.
    """
    environment = own_environment()
    verified = plan.rules.with_initial_conditions(plan)
    mapped = mapped_by_condition(verified, environment)
    check_effects(verified, mapped, environment)
    host = snapshot(environment=environment)
    certificate = ledger.latest_certificate(host.get("kernel"), host.get("cpu_model"))
    return {
        **host,
        "certificate": None if certificate is None else certificate.summary(),
        "mapped": {name: asdict(files) for name, files in mapped.items()},
    }


def series_lock(series: str, ledger: Ledger) -> AbstractContextManager[object]:
    """Return the lock that lets one campaign of a series measure at a time.

    Each campaign depends on all blocks of the earlier campaigns.

    Raise `UnusableInput` if another process measures a campaign of the series.
    """
    return _lock("last", ledger.key_of(series))


def run_lock(run_id: str, ledger: Ledger) -> AbstractContextManager[object]:
    """Return the lock that lets one process at a time continue a run.

    Raise `UnusableInput` if another process continues it.
    """
    return _lock(run_id, ledger.key_of(run_id))


def _lock(run_id: str, key: str) -> AbstractContextManager[object]:
    try:
        return lock_run(run_id, key)
    except UnusableInput:
        raise
    except EquipoiseError:
        # On a system without such sockets, the ledger itself refuses a second draw.
        return nullcontext()


def _conduct(
    segment: SegmentInProgress,
    ledger: Ledger,
    runner_factory: RunnerFactory,
    now: Callable[[], float],
) -> None:
    # A scripted runner has no host.
    watch = begin_watch(Host()) if runner_factory is native_runner else None
    listener = segment.listener
    extended = replace(segment.plan, stopping=segment.stopping)
    listener.segment_started(
        segment.run_id, extended, segment.judge.earliest_block(), segment.blocks_before
    )
    reason: str = INTERRUPTED
    try:
        with runner_factory(segment.plan, listener.trial_running) as runner:
            reason = segment.run(runner)
    except ConditionFailed as error:
        reason = FAILED
        warning = CampaignWarning(FAILURE, error.what, error.hint or "")
        ledger.record_notice(segment.run_id, warning)
        raise
    except KeyboardInterrupt:
        raise Interrupted(segment.run_id) from None
    finally:
        listener.segment_ended()
        ledger.end_segment(segment.run_id, segment.number, now(), reason)
        busy = None if watch is None else busy_host(watch)
        if busy is not None:
            ledger.record_notice(segment.run_id, busy)


def _next_block(record: RunRecord, phase: Phase) -> int:
    return 1 + max((draw.block for draw in record.draws if draw.phase == phase), default=0)


def _spent_budget_s(record: RunRecord) -> float:
    """Return the spent seconds of the budget; a budget that is used up starts again."""
    if record.segments and record.segments[-1].stopped_because == "budget":
        return 0.0
    return seconds_of_segments(record)
