"""Begin or resume the campaign of a fleet, and follow it to its end.

The coordinator is the process that starts and follows the hosts. Its run has the terms of the fleet
and no trial. Between two segments of this run, the hosts continue to measure. An order is a message
to a host; the host then begins or resumes its run.

The identity of a host's run is a digest of the fleet's identity and the host's position. So a
repeated order never begins a second run.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hashlib import blake2b
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from equipoise.campaign.conduct import Interrupted, run_lock
from equipoise.cluster.coordinator import (
    HOST_TIMEOUT_S,
    Coordinator,
    FleetListener,
    FleetProgress,
    HostCampaign,
    HostProgress,
)
from equipoise.cluster.equality import HostComparison, files_of, prepare_hosts
from equipoise.cluster.files import portable_plan
from equipoise.cluster.messages import Build, Introduction, Order, version_mismatch
from equipoise.cluster.roster import Roster, Transport, Unreachable
from equipoise.design.coin import MAX_SEED
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.fleet.terms import FleetPlan
from equipoise.ledger import FIRST_SEGMENT, Ledger
from equipoise.measure.environment import snapshot
from equipoise.measure.trials import own_environment
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.model.host import HostReference, distinct_names
from equipoise.model.plan import Membership, Plan, member_identity
from equipoise.model.record import ENDED_BY_FAILURE, INTERRUPTED, CampaignWarning, RunRecord

INTRODUCTIONS_TIMEOUT_S = 30.0
"""Maximum seconds until all workers have introduced themselves."""
HOST_LEFT_OUT = "host_left_out"
"""Code of the warning about a host or worker that does not take part."""
HOST_IS_MISSING = "a host is missing"
"""Stop reason of a segment in which a host did not answer for too long."""
_SEED_BYTES = 8


class FleetOptions(Struct, frozen=True):
    """Options of a fleet's campaign."""

    cluster: str
    campaign_for_each_worker: bool = False
    """Whether each worker of a host has its own campaign, as for ``local:N``."""
    builds: tuple[Build, ...] = ()
    build_folders: tuple[str, ...] = ()
    """Folders in which this machine built the levels of ``builds``."""
    ship: bool = False
    """Whether programs and inputs are sent to hosts that have different ones."""
    allow_concurrent: bool = False
    """Whether a host measures while another campaign runs on the host."""
    durable: bool = False
    """Whether the hosts' ledgers wait for the disk after each trial."""
    host_timeout_s: float = HOST_TIMEOUT_S
    """Seconds without an answer, after which the campaign ends without the host."""


TransportContext = AbstractAsyncContextManager[Transport]
"""Context with an open connection to the cluster."""


def run_to_end(work: Coroutine[Any, Any, FleetProgress]) -> FleetProgress:
    """Run `start` or `resume` in the main thread; SIGTERM acts like Ctrl-C."""

    async def interruptible() -> FleetProgress:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        loop.set_exception_handler(_report_unexpected_error)
        return await work

    previous_handler = signal.getsignal(signal.SIGTERM)
    try:
        return asyncio.run(interruptible())
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


def _report_unexpected_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Print an error that no task awaits, unless the error is part of a requested end.

    A second Ctrl-C ends the wait for hosts, and Dask's waits may time out while the connection
    closes. Dask alone waits for futures that are not tasks.
    """
    error, future = context.get("exception"), context.get("future")
    is_dask_timeout = isinstance(error, TimeoutError) and not isinstance(future, asyncio.Task)
    if not is_dask_timeout and not isinstance(error, Interrupted):
        loop.default_exception_handler(context)


async def start(
    plan: Plan,
    options: FleetOptions,
    transport_context: TransportContext,
    ledger: Ledger,
    listener: FleetListener,
    *,
    warnings: Sequence[CampaignWarning] = (),
) -> FleetProgress:
    """Begin a fleet's campaign on every host of a cluster, and follow it to its end.

    Every host gets this plan, with its own coin and folder. ``warnings`` were known before the
    first trial.

    Raise `UnusableInput` if the scheduler does not answer, there is no worker, or a host has a
    different version. Raise `Interrupted` if the user interrupts; the hosts also stop.
    """
    async with _roster_of(transport_context, options.cluster) as roster:
        introductions = tuple(roster.introductions.values())
        introductions_by_host = {
            introduction.host.identity: introduction for introduction in introductions
        }
        comparison = await prepare_hosts(
            files_of(plan, options.build_folders, [build.line for build in options.builds]),
            plan.measure.working_folder,
            tuple(introductions_by_host.values()),
            roster,
            ship=options.ship,
        )
        fleet_plan = replace(plan, terms=_fleet_terms(comparison, introductions, options))
        run_id = ledger.begin_run(fleet_plan, _environment(), time.time())
        with run_lock(run_id, ledger):
            for warning in (*warnings, *_left_out_warnings(comparison, roster)):
                ledger.record_warning(run_id, warning)
            campaigns = _host_campaigns(
                fleet_plan, ledger.identity_of(run_id), FIRST_SEGMENT, options
            )
            coordinator = Coordinator(
                run_id, campaigns, roster, ledger, listener, options.host_timeout_s
            )
            return await _follow(coordinator, FIRST_SEGMENT)


async def resume(
    record: RunRecord,
    limits: CampaignLimits,
    options: FleetOptions,
    transport_context: TransportContext,
    ledger: Ledger,
    listener: FleetListener,
) -> FleetProgress:
    """Fetch the new blocks of the hosts of a fleet, and resume the campaigns that can continue.

    A campaign that has ended by its own rules continues only under new limits.

    Raise `UnusableInput` if another process follows the campaign; the other errors are those of
    `start`.
    """
    plan, run_id = record.plan, record.id
    assert isinstance(plan.terms, FleetPlan), "only a coordinator's run is resumed here"
    async with _roster_of(transport_context, options.cluster) as roster:
        with run_lock(run_id, ledger):
            segment = ledger.begin_segment(run_id, _environment(), time.time())
            new_limits = None if limits == CampaignLimits() else limits
            identity = ledger.identity_of(run_id)
            campaigns = _host_campaigns(plan, identity, segment, options, new_limits)
            coordinator = Coordinator(
                run_id, campaigns, roster, ledger, listener, options.host_timeout_s
            )
            return await _follow(coordinator, segment)


@asynccontextmanager
async def _roster_of(transport_context: TransportContext, cluster: str) -> AsyncIterator[Roster]:
    """Yield the roster of a cluster once the workers that answer have introduced themselves.

    The roster is kept up to date until the context ends.
    """
    async with transport_context as transport:
        try:
            await transport.workers()
        except Unreachable as error:
            if isinstance(error.__cause__, EquipoiseError):
                raise error.__cause__ from None
            raise UnusableInput(
                f"the cluster {cluster} cannot be reached: {error}",
                hint="start a scheduler with `dask scheduler` and give the address that it prints",
            ) from error
        roster = Roster(transport)
        task = asyncio.create_task(roster.keep_up_to_date())
        try:
            await _wait_for_introductions(roster, cluster)
            yield roster
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _wait_for_introductions(roster: Roster, cluster: str) -> None:
    """Wait until every worker has introduced itself; raise `UnusableInput` if none has."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + INTRODUCTIONS_TIMEOUT_S
    while not roster.is_complete and loop.time() < deadline:
        await roster.wait_for_change(deadline - loop.time())
    if roster.introductions:
        return
    for reason in roster.silent_workers.values():
        raise version_mismatch(f"no worker of the cluster {cluster} can measure: {reason}")
    raise UnusableInput(
        f"the cluster {cluster} has no worker",
        hint="start a worker on each host: python -m equipoise.cluster.worker tcp://HOST:PORT",
    )


def _fleet_terms(
    comparison: HostComparison, introductions: Sequence[Introduction], options: FleetOptions
) -> FleetPlan:
    """Return the terms of a fleet with equal weights: a campaign for each host or each worker."""
    shipped_files = {host.identity: files for host, files in comparison.comparable.items()}
    hosts = list(comparison.comparable)
    if options.campaign_for_each_worker:
        hosts = [
            introduction.host
            for introduction in introductions
            if introduction.host.identity in shipped_files
        ]
    hosts.sort(key=lambda host: (host.name, host.identity))
    return FleetPlan(
        hosts=tuple(hosts),
        weights=(1.0 / len(hosts),) * len(hosts),
        cluster=options.cluster,
        shipped=next(filter(None, shipped_files.values()), ()),
        shipped_to=tuple(
            position for position, host in enumerate(hosts) if shipped_files[host.identity]
        ),
        builds=options.builds,
        build_folders=options.build_folders,
    )


def _left_out_warnings(comparison: HostComparison, roster: Roster) -> Iterator[CampaignWarning]:
    for refusal in comparison.refusals:
        yield CampaignWarning(
            HOST_LEFT_OUT, f"a host was left out: {refusal.what}", refusal.hint or ""
        )
    for worker, reason in roster.silent_workers.items():
        yield CampaignWarning(
            HOST_LEFT_OUT,
            f"the worker at {worker} does not take part: {reason}",
            "read the log of this worker, then run the campaign again",
        )


def _host_campaigns(
    plan: Plan,
    identity: str,
    segment: int,
    options: FleetOptions,
    limits: CampaignLimits | None = None,
) -> list[HostCampaign]:
    """Return each host's campaign, with the order that begins or resumes the campaign."""
    terms = plan.terms
    assert isinstance(terms, FleetPlan), "only a coordinator's plan has hosts"
    names = distinct_names([host.name for host in terms.hosts])
    return [
        HostCampaign(
            Order(
                fleet_identity=identity,
                host_index=position,
                segment=segment,
                plan=portable_plan(member_plan(plan, identity, position), terms.build_folders),
                run_identity=member_identity(identity, position),
                shipped=terms.shipped if position in terms.shipped_to else (),
                builds=terms.builds,
                limits=limits,
                allow_concurrent=options.allow_concurrent,
                durable=options.durable,
            ),
            host,
            HostProgress(name),
            may_have_ended=segment > FIRST_SEGMENT,
        )
        for position, (host, name) in enumerate(zip(terms.hosts, names, strict=True))
    ]


def member_plan(plan: Plan, identity: str, position: int) -> Plan:
    """Return the plan of one host of a fleet. Commands run in the host's own folder.

    ``plan`` and ``identity`` are the plan and the identity of the coordinator's run.
    """
    terms = plan.terms
    assert isinstance(terms, FleetPlan), "only a coordinator's plan has members"
    return replace(
        plan,
        seed=host_seed(plan.seed, terms.hosts[position], position),
        terms=None,
        command_line=(),
        membership=Membership(identity, position),
        measure=replace(plan.measure, working_folder=""),
    )


def host_seed(seed: int, host: HostReference, position: int) -> int:
    """Return the seed of a host's coin."""
    text = f"equipoise seed of a host: {seed} {host.identity} {position}"
    digest = blake2b(text.encode("ascii"), digest_size=_SEED_BYTES).digest()
    return int.from_bytes(digest, "big") & MAX_SEED


async def _follow(coordinator: Coordinator, segment: int) -> FleetProgress:
    """Follow the hosts, and record why the segment ended."""
    coordinator.listener.fleet_started(coordinator.progress())
    reason = INTERRUPTED
    try:
        await coordinator.run()
        progress = coordinator.progress()
        reason = _stop_reason(progress)
        return progress
    except asyncio.CancelledError:
        raise Interrupted(coordinator.run_id) from None
    finally:
        coordinator.listener.fleet_ended()
        coordinator.ledger.end_segment(coordinator.run_id, segment, time.time(), reason)


def _stop_reason(progress: FleetProgress) -> str:
    if progress.missing:
        return HOST_IS_MISSING
    if len(progress.failed) == len(progress.hosts):
        return ENDED_BY_FAILURE
    reasons = dict.fromkeys(
        host.status.stopped_because or ENDED_BY_FAILURE for host in progress.hosts
    )
    return " and ".join(reasons)


def _environment() -> dict[str, Any]:
    return snapshot(environment=own_environment())
