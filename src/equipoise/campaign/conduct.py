"""Conducting a campaign: beginning it, going on with it, and ending it well."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from equipoise.campaign.blocks import complete_blocks
from equipoise.campaign.judges import judge_of
from equipoise.campaign.progress import Watcher
from equipoise.campaign.segment import Judge, Runner, SegmentInProgress, Store, failed, fails
from equipoise.campaign.verification import check_that_each_took_effect, mapped_by_condition
from equipoise.ledger import FIRST_SEGMENT
from equipoise.measure.environment import CovariateReader, snapshot
from equipoise.measure.installation import launcher_program
from equipoise.measure.launcher import Launcher
from equipoise.measure.leftovers import clear_leftovers
from equipoise.measure.measurement_lock import LockOwner, lock_host, lock_run
from equipoise.measure.scratch import scratch_folder
from equipoise.measure.servers import Servers
from equipoise.measure.trials import TrialRunner, own_environment
from equipoise.model.certificate import Certificate
from equipoise.model.errors import ConditionFailed, EquipoiseError, UnusableInput
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import CampaignWarning, RunRecord
from equipoise.model.trial import Phase, Trial

__all__ = [
    "LockOwner",
    "Interrupted",
    "Keeper",
    "More",
    "Watcher",
    "begin",
    "go_on",
    "turn_to_measure",
]

INTERRUPTED = "interrupted"
FAILED = "a condition failed"


class Keeper(Store, Protocol):
    """The part of the ledger that conducting a campaign needs."""

    def begin_run(self, plan: Plan, environment: dict[str, Any], started_at: float) -> str:
        """Commit a plan, and that its first segment begins."""

    def begin_segment(self, run_id: str, environment: dict[str, Any], started_at: float) -> int:
        """Commit that a further segment begins."""

    def end_segment(self, run_id: str, segment: int, ended_at: float, stopped_because: str) -> None:
        """Commit that a segment ended, and why."""

    def read_run(self, reference: str) -> RunRecord:
        """All that is known of one campaign."""

    def key_of(self, run_id: str) -> str:
        """Name of a run that no run of another ledger on this host has."""

    def latest_certificate(self, kernel: str | None, cpu_model: str | None) -> Certificate | None:
        """The newest certificate of a host with this kernel and CPU."""


class Interrupted(Exception):
    """The user stopped a campaign; every finished trial is in the ledger."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.run_id = run_id


@dataclass(frozen=True, slots=True)
class More:
    """New limits for a campaign that goes on; ``None`` keeps the old one."""

    blocks: int | None = None
    min_blocks: int | None = None
    budget_s: float | None = None
    precision: float | None = None


def turn_to_measure(
    on_wait: Callable[[LockOwner], None], *, allow_concurrent: bool
) -> AbstractContextManager[object]:
    """The right to measure on this host: one campaign at a time.

    With ``allow_concurrent`` it is taken if it is free, so that a campaign that comes later
    waits for this one, and done without otherwise.
    """
    if not allow_concurrent:
        return lock_host(on_wait)
    try:
        return lock_host(lambda _: None, 0)
    except EquipoiseError:
        return nullcontext()


RunnerFactory = Callable[[Plan, Callable[[], None]], AbstractContextManager[Runner]]


def surroundings_of(plan: Plan, ledger: Keeper) -> dict[str, Any]:
    """What a segment runs on, what certifies it, and what each condition maps.

    Raises
    ------
    UnusableInput
        A condition did not take effect.
    """
    environment = own_environment()
    mapped = mapped_by_condition(plan, environment)
    check_that_each_took_effect(plan, mapped, environment)
    host = snapshot(environment=environment)
    certificate = ledger.latest_certificate(host.get("kernel"), host.get("cpu_model"))
    return {
        **host,
        "certificate": None if certificate is None else certificate.words(),
        "mapped": {name: dataclasses.asdict(one) for name, one in mapped.items()},
    }


@contextmanager
def native_runner(plan: Plan, on_wait: Callable[[], None]) -> Iterator[Runner]:
    """The runner of real trials: one launcher and one private folder for a whole segment."""
    # What still runs of a killed campaign would run beside this one.
    clear_leftovers()
    with (
        scratch_folder() as scratch,
        Launcher(launcher_program(), counters=plan.measure.counters, scratch=scratch) as launcher,
        CovariateReader() as beside,
        Servers(lambda: Launcher(launcher_program(), campaign=scratch), scratch) as servers,
    ):
        runner = TrialRunner(
            plan,
            launcher,
            scratch,
            own_environment(),
            beside,
            servers=servers,
            on_wait=on_wait,
        )
        try:
            yield runner
        finally:
            runner.clean_up()


def begin(
    plan: Plan,
    ledger: Keeper,
    watcher: Watcher,
    *,
    notices: Sequence[CampaignWarning] = (),
    runner_factory: RunnerFactory = native_runner,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
) -> str:
    """Run a new campaign to its stop and return its run id.

    Parameters
    ----------
    notices
        What is to be said of it already, such as a level that cannot be run here.

    Raises
    ------
    UnusableInput
        A condition did not take effect.
    ConditionFailed
        A trial or a hook failed; what was measured before is in the ledger.
    Interrupted
        The user interrupted it.
    """
    run_id = ledger.begin_run(plan, surroundings_of(plan, ledger), now())
    with _measured_by_us_alone(run_id, ledger):
        for notice in notices:
            ledger.record_notice(run_id, notice)
        state = _State(judge_of(plan, plan.stopping), plan.stopping)
        _conduct_segment(
            run_id, FIRST_SEGMENT, plan, state, ledger, watcher, runner_factory, clock, now
        )
    return run_id


def go_on(
    reference: str,
    more: More,
    ledger: Keeper,
    watcher: Watcher,
    *,
    runner_factory: RunnerFactory = native_runner,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
) -> str:
    """Go on with a campaign and return its run id.

    It goes on under the plan that it began with and within the new limits. A campaign that
    needs no more blocks is left as it is.

    Raises
    ------
    UnusableInput
        There is no such campaign, its limits leave it nothing to do, or another process measures
        it now.
    ConditionFailed
        A condition failed in it, before or now.
    Interrupted
        The user interrupted it.
    """
    run_id = ledger.read_run(reference).id
    with _measured_by_us_alone(run_id, ledger):
        # Read anew: until now another process may have gone on with it.
        record = ledger.read_run(run_id)
        return _go_on(record, more, ledger, watcher, runner_factory, clock, now)


def _go_on(
    record: RunRecord,
    more: More,
    ledger: Keeper,
    watcher: Watcher,
    runner_factory: RunnerFactory,
    clock: Callable[[], float],
    now: Callable[[], float],
) -> str:
    if record.plan.gated is not None:
        raise UnusableInput(
            f"run {record.id} is a gate, whose two revisions are removed when it ends",
            hint="run equipoise gate again, with a larger --budget",
        )
    stopping = _extended(record.plan.stopping, more)
    judge = judge_of(record.plan, stopping)
    for trial in record.trials:
        if fails(record.plan, trial) and not judge.excuses(trial):
            # Going on would drop the block in which one condition failed (rule 1).
            raise failed(record.plan, trial)
    spent_s = 0.0 if more.budget_s else _spent(record)
    state = _state_of(record, judge, stopping, spent_s)
    judge.standings()
    if judge.settled() is not None:
        return record.id
    if state.blocks >= stopping.blocks:
        raise UnusableInput(
            f"run {record.id} has its {state.blocks} blocks already",
            hint=f"ask for more: equipoise resume {record.id} --blocks {2 * state.blocks}",
        )
    segment_id = ledger.begin_segment(record.id, surroundings_of(record.plan, ledger), now())
    _conduct_segment(
        record.id, segment_id, record.plan, state, ledger, watcher, runner_factory, clock, now
    )
    return record.id


def _measured_by_us_alone(run_id: str, ledger: Keeper) -> AbstractContextManager[object]:
    try:
        return lock_run(run_id, ledger.key_of(run_id))
    except UnusableInput:
        raise
    except EquipoiseError:
        # Where the system has no such sockets, the ledger itself refuses a second draw.
        return nullcontext()


@dataclass(frozen=True, slots=True)
class _State:
    """Where a campaign stands before a segment."""

    judge: Judge
    stopping: Stopping
    blocks: int = 0
    next_warmup: int = 1
    next_block: int = 1
    spent_s: float = 0.0


def _conduct_segment(
    run_id: str,
    segment_id: int,
    plan: Plan,
    state: _State,
    ledger: Keeper,
    watcher: Watcher,
    runner_factory: RunnerFactory,
    clock: Callable[[], float],
    now: Callable[[], float],
) -> None:
    watcher.begins(
        run_id,
        dataclasses.replace(plan, stopping=state.stopping),
        state.judge.earliest_block(),
        state.blocks,
    )
    reason: str = INTERRUPTED
    try:
        with runner_factory(plan, watcher.waits) as runner:
            segment = SegmentInProgress(
                run_id=run_id,
                plan=plan,
                stopping=state.stopping,
                store=ledger,
                runner=runner,
                judge=state.judge,
                watcher=watcher,
                clock=clock,
                spent_before_s=state.spent_s,
                blocks_before=state.blocks,
            )
            reason = segment.run(state.next_warmup, state.next_block)
    except ConditionFailed:
        reason = FAILED
        raise
    except KeyboardInterrupt:
        raise Interrupted(run_id) from None
    finally:
        watcher.ends()
        ledger.end_segment(run_id, segment_id, now(), reason)


def _state_of(record: RunRecord, judge: Judge, stopping: Stopping, spent_s: float) -> _State:
    blocks = complete_blocks(record.draws, record.trials)
    for block in blocks.values():
        judge.add(block)

    def after(phase: Phase) -> int:
        return 1 + max((draw.block for draw in record.draws if draw.phase == phase), default=0)

    return _State(judge, stopping, len(blocks), after("warmup"), after("measured"), spent_s)


def _spent(record: RunRecord) -> float:
    """Seconds of the budget that are gone; a budget that was used up is granted anew."""
    if record.segments and record.segments[-1].stopped_because == "budget":
        return 0.0
    spent = 0.0
    for segment, following in itertools.zip_longest(record.segments, record.segments[1:]):
        ended = segment.ended_at
        if ended is None:
            until = math.inf if following is None else following.started_at
            ended = max(
                (_end_of(t) for t in record.trials if segment.started_at <= t.started_at < until),
                default=segment.started_at,
            )
        spent += max(0.0, ended - segment.started_at)
    return spent


def _end_of(trial: Trial) -> float:
    return trial.started_at + (trial.accounting.wall_s or 0.0)


def _extended(stopping: Stopping, more: More) -> Stopping:
    return dataclasses.replace(
        stopping,
        blocks=more.blocks or stopping.blocks,
        min_blocks=more.min_blocks or stopping.min_blocks,
        min_blocks_explicit=stopping.min_blocks_explicit or more.min_blocks is not None,
        budget_s=more.budget_s or stopping.budget_s,
        precision=more.precision or stopping.precision,
    )
