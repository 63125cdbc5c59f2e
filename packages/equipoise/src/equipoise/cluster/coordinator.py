"""The coordinator of a fleet: it sends orders to the hosts and copies their records.

A fleet has the hosts of one campaign. An order is the request to measure a plan on a host. The
coordinator follows each host in a separate task, so that a slow host does not delay other hosts.
The record of a host comes in slices. A slice begins at the end of the coordinator's copy.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from equipoise.cluster import tasks
from equipoise.cluster.files import are_equal_plans
from equipoise.cluster.messages import FollowReply, FollowRequest, HaltRequest, Order, Status
from equipoise.cluster.roster import NoAnswer, NotConnected, Roster
from equipoise.ledger import Ledger
from equipoise.ledger.parts import Head
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.model.host import HostReference
from equipoise.model.record import INTERRUPTED
from equipoise.shared.safe_text import short_line

HOST_TIMEOUT_S = 300.0
"""Seconds without an answer after which the coordinator gives up a host."""
TASK_TIMEOUT_S = 20.0
"""Seconds in which a host must answer one request."""
HALT_TIMEOUT_S = 4.0
"""Seconds in which all hosts together must answer the request to halt."""
MIN_PAUSE_S, MAX_PAUSE_S = 0.3, 5.0
"""Shortest and longest pause between two requests to an answering host."""
PAUSE_FRACTION = 0.02
"""Pause between two requests to a host, as a fraction of the time since the campaign began. An
answer may disturb a trial, so requests are rare."""
MAX_RETRY_PAUSE_S = 15.0
"""Longest pause before a failed request or order is repeated, in seconds."""
IDLE_TIMEOUT_S = 3600.0
"""Seconds without a new record after which the coordinator gives up an answering host. A longer
``host_timeout_s`` replaces this time."""
MAX_ABSENCES = 5
"""Maximum number of consecutive answers ``absent``: the host has no such campaign."""
MAX_RESTARTS = 100
"""Maximum number of restarts of a host's dead campaign process."""
MAX_DEATHS = 3
"""Maximum number of deaths of a host's campaign process without a new block."""
_MAX_TIME_S = 1e9
"""Maximum running time that a host may report; it replaces a longer time."""
HostState = Literal["starting", "waiting", "measuring", "no answer", "ended", "failed", "missing"]
"""``waiting``: the host waits for its measurement lock; ``missing``: the coordinator gave up the
host, because no answer or no new record came for too long."""
END_STATES: frozenset[HostState] = frozenset({"ended", "failed", "missing"})
"""States in which the coordinator no longer follows a host."""


class HostProgress(Struct, frozen=True):
    """Progress of the campaign of one host."""

    host: str
    """Name of the host in tables."""
    state: HostState = "starting"
    status: Status = Status("absent")
    """Latest answer of the host."""
    problem: str | None = None
    """Problem in one line; ``None`` without a problem."""
    hint: str | None = None


class FleetProgress(Struct, frozen=True):
    """Progress of a fleet's campaign."""

    run_id: str
    """Id of the run on all hosts."""
    hosts: tuple[HostProgress, ...]
    """Progress of each host, in the order of the fleet's plan."""
    scheduler_problem: str | None = None
    """Reason why the scheduler does not answer; ``None`` if it answers."""

    @property
    def missing(self) -> tuple[HostProgress, ...]:
        """The hosts that the coordinator gave up."""
        return tuple(host for host in self.hosts if host.state == "missing")

    @property
    def failed(self) -> tuple[HostProgress, ...]:
        """The hosts whose campaign failed."""
        return tuple(host for host in self.hosts if host.state == "failed")


class FleetListener:
    """Base class of listeners to the progress of a fleet's campaign."""

    def fleet_started(self, progress: FleetProgress) -> None:
        """Report the start, before the first request."""

    def progress_changed(self, progress: FleetProgress) -> None:
        """Report a change of a host's progress."""

    def fleet_ended(self) -> None:
        """Report that the coordinator has stopped following the hosts."""


@dataclass
class HostCampaign:
    """The campaign of one host, as the coordinator sees it."""

    order: Order
    host: HostReference
    progress: HostProgress
    may_have_ended: bool
    """Whether the campaign may have ended in an earlier segment. In this case the coordinator
    requests the status before it sends the order."""
    answered_at: float = 0.0
    """Time of the latest answer."""
    recorded_at: float = 0.0
    """Time of the latest new record."""
    _silences: int = 0
    """Number of consecutive requests without an answer."""
    _absences: int = 0
    """Number of consecutive answers ``absent``."""
    _deaths: int = 0
    """Number of deaths of the campaign process since the last new block."""
    _restarts: int = 0
    """Number of all deaths of the campaign process."""
    _blocks_at_death: int = 0
    """Number of complete blocks when `_deaths` was set to 0."""

    def __post_init__(self) -> None:
        """Decide whether the next request is the order: it is the first request of a campaign."""
        self.must_order = not self.may_have_ended

    @property
    def is_over(self) -> bool:
        """Whether the coordinator has stopped following the campaign."""
        return self.progress.state in END_STATES

    def note_answer(self, status: Status, now: float) -> None:
        """Note an answer of the host, and decide whether to send the order again."""
        self.answered_at, self._silences = now, 0
        status = _limited_status(status)
        problem, hint = status.failure, status.hint
        self._absences = self._absences + 1 if status.state == "absent" else 0
        state: HostState = "ended" if status.state == "ended" else "failed"
        match status.state:
            case "waiting":
                state, problem, hint = "waiting", status.hint, None
            case "running":
                state = "measuring"
            case "absent" if self._absences > MAX_ABSENCES:
                problem = f"the host got {self._absences} orders and did not begin the campaign"
                hint = "read the log of the host's worker, then resume the fleet"
            case "absent":
                state, self.must_order = "starting", True
            case "died":
                state, problem, hint = self._note_death(status.blocks)
            case "ended" | "failed" if self._must_continue(status):
                state, self.must_order, self.may_have_ended = "starting", True, False
        self.progress = HostProgress(self.progress.host, state, status, problem, hint)

    def note_refusal(self, error: EquipoiseError) -> None:
        """Note that the host refused the campaign, or that this ledger refused the record."""
        self.progress = replace(self.progress, state="failed", problem=error.what, hint=error.hint)

    def note_silence(self, reason: str) -> float:
        """Note a missing answer; return the seconds until the next request."""
        self.progress = replace(self.progress, state="no answer", problem=reason, hint=None)
        self._silences += 1
        return min(2.0 ** (self._silences - 1), MAX_RETRY_PAUSE_S)

    def give_up_silent_host(self, silent_s: float) -> None:
        """Give up the host after ``silent_s`` seconds without an answer."""
        reason = "" if self.progress.problem is None else f": {self.progress.problem}"
        problem = f"no answer for {silent_s:.0f} s{reason}"
        self.progress = replace(self.progress, state="missing", problem=problem)

    def is_under_way(self) -> bool:
        """Return whether the host answers and the campaign starts, waits or measures."""
        return self.progress.state in ("starting", "waiting", "measuring")

    def give_up_idle_host(self, idle_s: float) -> None:
        """Give up the host after ``idle_s`` seconds without a new record."""
        reason = "" if self.progress.problem is None else f": {self.progress.problem}"
        problem = f"{self.progress.state}, and recorded nothing for {idle_s:.0f} s{reason}"
        self.progress = replace(self.progress, state="missing", problem=problem)

    def pause_s(self) -> float:
        """Return the seconds until the next request."""
        if self.must_order:
            repeat_count = max(self._deaths, self._absences)
            return min(2.0 ** (repeat_count - 1), MAX_RETRY_PAUSE_S) if repeat_count else 0.0
        pause_s = PAUSE_FRACTION * self.progress.status.running_s
        # In this order, `min` and `max` return a bound if the running time is NaN.
        return max(MIN_PAUSE_S, min(MAX_PAUSE_S, pause_s))

    def _must_continue(self, status: Status) -> bool:
        """Return whether a campaign that ended in an earlier segment must continue."""
        if not self.may_have_ended:
            return False
        was_halted = status.stopped_because == INTERRUPTED
        return was_halted or status.state == "failed" or self.order.limits is not None

    def _note_death(self, blocks: int) -> tuple[HostState, str, str | None]:
        """Note that the campaign's process died; return the state, the problem and the hint."""
        if blocks > self._blocks_at_death:
            self._deaths, self._blocks_at_death = 0, blocks
        self._deaths += 1
        self._restarts += 1
        if self._deaths > MAX_DEATHS or self._restarts > MAX_RESTARTS:
            problem = f"the process of the campaign died {self._deaths} times without a new block"
            if self._deaths <= MAX_DEATHS:
                problem = f"the process of the campaign died {self._restarts} times"
            hint = "find out what kills the process, such as a memory limit, then resume the fleet"
            return "failed", problem, hint
        self.must_order = True
        return "starting", "the process of the campaign died and starts again", None


@dataclass(frozen=True)
class Coordinator:
    """Coordinator of one fleet."""

    run_id: str
    """Id of the run on all hosts."""
    campaigns: Sequence[HostCampaign]
    roster: Roster
    ledger: Ledger
    """Ledger of this machine, into which the records are copied."""
    listener: FleetListener
    host_timeout_s: float = HOST_TIMEOUT_S
    """Seconds without an answer after which a host is missing."""

    def progress(self) -> FleetProgress:
        """Return the progress of every host's campaign."""
        hosts = tuple(campaign.progress for campaign in self.campaigns)
        return FleetProgress(self.run_id, hosts, self.roster.scheduler_problem)

    async def run(self) -> None:
        """Follow each host to the end of the campaign. If this task is cancelled, halt the hosts.

        The caller keeps the roster up to date at the same time.
        """
        followers = [asyncio.create_task(self._follow(campaign)) for campaign in self.campaigns]
        reporter = asyncio.create_task(self._report_changes())
        try:
            await asyncio.gather(*followers)
        except asyncio.CancelledError:
            await self._cancel(followers)
            await self._halt_hosts()
            raise
        finally:
            await self._cancel([*followers, reporter])

    async def _cancel(self, running_tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in running_tasks:
            task.cancel()
        await asyncio.gather(*running_tasks, return_exceptions=True)

    async def _report_changes(self) -> None:
        while True:
            await self.roster.wait_for_change(MAX_PAUSE_S)
            self.listener.progress_changed(self.progress())

    async def _follow(self, campaign: HostCampaign) -> None:
        campaign.answered_at = campaign.recorded_at = self._now()
        while not campaign.is_over:
            pause_s = await self._send_request(campaign)
            silent_s = self._now() - campaign.answered_at
            idle_s = self._now() - campaign.recorded_at
            if not campaign.is_over and silent_s > self.host_timeout_s:
                campaign.give_up_silent_host(silent_s)
            elif campaign.is_under_way() and idle_s > max(self.host_timeout_s, IDLE_TIMEOUT_S):
                campaign.give_up_idle_host(idle_s)
            self.listener.progress_changed(self.progress())
            if not campaign.is_over:
                await asyncio.sleep(pause_s)

    async def _send_request(self, campaign: HostCampaign) -> float:
        """Send one request to a host; return the seconds until the next request."""
        host = campaign.host
        try:
            if not campaign.must_order:
                return await self._pull_records(campaign)
            order = campaign.order
            status = await self.roster.request(host, tasks.begin, order, Status, TASK_TIMEOUT_S)
            campaign.must_order = False
            campaign.note_answer(status, self._now())
        except NotConnected as absence:
            campaign.note_silence(str(absence))
            await self.roster.wait_for_change(MAX_PAUSE_S)
            return 0.0
        except NoAnswer as silence:
            return campaign.note_silence(str(silence))
        except EquipoiseError as error:
            campaign.note_refusal(error)
        return campaign.pause_s()

    async def _pull_records(self, campaign: HostCampaign) -> float:
        """Copy the next slice of a host's record; return the seconds until the next request."""
        order, host = campaign.order, campaign.host
        cursor = self.ledger.cursor(order.run_identity)
        request = FollowRequest(order.fleet_identity, order.host_index, order.run_identity, cursor)
        reply = await self.roster.request(host, tasks.follow, request, FollowReply, TASK_TIMEOUT_S)
        if reply.slice:
            self.ledger.append_slice(reply.slice, check=partial(_check_run, campaign))
        has_new_records = self.ledger.cursor(order.run_identity) != cursor
        if has_new_records:
            campaign.recorded_at = self._now()
        if reply.has_more:
            # The status is noted when the complete record is in this ledger.
            if not has_new_records:
                return campaign.note_silence("the host announces more records, but sends none")
            campaign.answered_at = self._now()
            return 0.0
        campaign.note_answer(reply.status, self._now())
        return campaign.pause_s()

    async def _halt_hosts(self) -> None:
        halts = [self._halt_host(campaign) for campaign in self.campaigns if not campaign.is_over]
        await asyncio.gather(*halts)
        self.listener.progress_changed(self.progress())

    async def _halt_host(self, campaign: HostCampaign) -> None:
        request = HaltRequest(campaign.order.fleet_identity, campaign.order.host_index)
        host = campaign.host
        try:
            status = await self.roster.request(host, tasks.halt, request, Status, HALT_TIMEOUT_S)
            campaign.note_answer(status, 0.0)
        except (NoAnswer, EquipoiseError) as error:
            campaign.note_silence(str(error))

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _limited_status(status: Status) -> Status:
    """Return a status with short texts and a possible running time, as the host may be faulty."""
    is_valid_time = math.isfinite(status.running_s) and status.running_s >= 0.0
    return replace(
        status,
        running_s=min(status.running_s, _MAX_TIME_S) if is_valid_time else 0.0,
        stopped_because=status.stopped_because and short_line(status.stopped_because),
        failure=status.failure and short_line(status.failure),
        hint=status.hint and short_line(status.hint),
    )


def _check_run(campaign: HostCampaign, head: Head) -> None:
    """Raise `UnusableInput` if a run has another identity, host or plan than the ordered run."""
    order, host = campaign.order, campaign.host
    hint = f"install the same version of Equipoise on {host.name}, then begin a new campaign"
    measuring_host = None if head.host is None else head.host[0].hex()
    if head.identity.hex() != order.run_identity:
        problem = f"{host.name} sent the run {short_line(head.id)}, which was not requested"
    elif measuring_host != host.identity:
        problem = f"{host.name} sent a run that another host measured"
        hint = f"begin a new campaign, in which {host.name} measures itself"
    elif not are_equal_plans(order.plan, head.plan):
        problem = f"{host.name} measured another plan than the plan of this campaign"
    else:
        return
    raise UnusableInput(problem, hint=hint)
