"""Following the hosts of a fleet: order each, pull what it has recorded, until all have ended.

Each host is followed in a task of its own, so that one that is slow, hangs or is gone delays only
its own line. What a host has recorded comes in slices, each after the end of the coordinator's
copy: a slice that comes twice adds nothing. Only this process writes to the coordinator's ledger.
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
from equipoise.cluster.files import has_terms_of
from equipoise.cluster.messages import Follow, Followed, Halt, Order, Status
from equipoise.cluster.roster import NoAnswer, NotConnected, Roster
from equipoise.ledger import Ledger
from equipoise.ledger.parts import Head
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.model.host import HostReference
from equipoise.model.record import INTERRUPTED
from equipoise.shared.safe_text import short_line

HOST_TIMEOUT_S = 300.0
"""Seconds that a host may give no answer before the fleet's campaign ends without it."""
TASK_S = 20.0
"""Seconds that a host has to answer one question."""
HALT_S = 4.0
"""Seconds that the hosts have, all at once, to hear that they are to stop."""
MIN_PAUSE_S, MAX_PAUSE_S = 0.3, 5.0
PART_OF_TIME = 0.02
"""Part of its campaign's time after which a host is asked again: it answers beside its trials."""
MAX_DELAY_S = 15.0
"""Seconds until a host that gave no answer is asked again, at most."""
IDLE_TIMEOUT_S = 3600.0
"""Seconds that a host may wait, or measure, and record nothing, before the fleet's campaign ends
without it; `host_timeout_s` if that is longer. A host that always says the same stops no fleet."""
MAX_ABSENCES = 5
"""Times in a row that a host may not know the campaign that it was ordered to measure."""
MAX_RESTARTS = 100
"""Times that a host's process may die in all before it is not ordered again."""
MAX_DEATHS = 3
"""Times that a host's process may die without a new block before it is not ordered again."""

_MAX_TIME_S = 1e9

HostState = Literal["starting", "waiting", "measuring", "no answer", "ended", "failed", "missing"]
"""``waiting`` for the host's lock; ``missing``: it gave no answer for too long."""
OVER: frozenset[HostState] = frozenset({"ended", "failed", "missing"})


class HostLine(Struct, frozen=True):
    """How the campaign of one host goes."""

    host: str
    """Name of the host in tables."""
    state: HostState = "starting"
    status: Status = Status("absent")
    """Its latest answer."""
    problem: str | None = None
    """What is wrong, in one line."""
    hint: str | None = None


class FleetProgress(Struct, frozen=True):
    """How a fleet's campaign goes, or has ended for now."""

    run_id: str
    lines: tuple[HostLine, ...]
    """In the order of the fleet's plan."""
    trouble: str | None = None
    """Why the scheduler does not answer; ``None`` if it does."""

    @property
    def missing(self) -> tuple[HostLine, ...]:
        """The hosts that gave no answer."""
        return tuple(line for line in self.lines if line.state == "missing")

    @property
    def failed(self) -> tuple[HostLine, ...]:
        """The hosts whose campaign failed."""
        return tuple(line for line in self.lines if line.state == "failed")


class FleetListener:
    """Hears how a fleet's campaign goes; this one does nothing."""

    def fleet_started(self, progress: FleetProgress) -> None:
        """Hear that the hosts are asked."""

    def changed(self, progress: FleetProgress) -> None:
        """Hear what has become of a host."""

    def fleet_ended(self) -> None:
        """Hear that no host is followed any more."""


@dataclass
class HostCampaign:
    """One host's campaign, as far as its coordinator knows it."""

    order: Order
    host: HostReference
    line: HostLine
    may_go_on: bool
    """Whether it may have ended earlier: it is then ordered only if it has not reached its own end,
    or the order has new limits."""
    answered_at: float = 0.0
    recorded_at: float = 0.0
    """When something new of it came."""
    _silences: int = 0
    _absences: int = 0
    _deaths: int = 0
    _restarts: int = 0
    _blocks_at_death: int = 0

    def __post_init__(self) -> None:
        """Order a new campaign at once."""
        self.must_order = not self.may_go_on

    @property
    def is_over(self) -> bool:
        """Whether the coordinator follows it no longer."""
        return self.line.state in OVER

    def answered(self, status: Status, now: float) -> None:
        """Note an answer: what it says decides whether the campaign is ordered, again or anew."""
        self.answered_at, self._silences = now, 0
        status = _bounded(status)
        problem, hint = status.failure, status.hint
        self._absences = self._absences + 1 if status.state == "absent" else 0
        state: HostState = "ended" if status.state == "ended" else "failed"
        match status.state:
            case "waiting":
                state, problem, hint = "waiting", status.hint, None
            case "running":
                state = "measuring"
            case "absent" if self._absences > MAX_ABSENCES:
                problem = f"it was ordered {self._absences} times and did not begin the campaign"
                hint = "look into the log of its worker, then resume"
            case "absent":
                state, self.must_order = "starting", True
            case "died":
                state, problem, hint = self._died(status.blocks)
            case "ended" | "failed" if self._has_more_to_do(status):
                state, self.must_order, self.may_go_on = "starting", True, False
        self.line = HostLine(self.line.host, state, status, problem, hint)

    def refused(self, error: EquipoiseError) -> None:
        """Note that the host, or this ledger, cannot go on with the campaign."""
        self.line = replace(self.line, state="failed", problem=error.what, hint=error.hint)

    def kept_silent(self, why: str) -> float:
        """Note that it gave no answer; return the seconds until it is asked again."""
        self.line = replace(self.line, state="no answer", problem=why, hint=None)
        self._silences += 1
        return min(2.0 ** (self._silences - 1), MAX_DELAY_S)

    def gave_up(self, after_s: float) -> None:
        """Note that it is not asked any more."""
        why = "" if self.line.problem is None else f": {self.line.problem}"
        problem = f"no answer for {after_s:.0f} s{why}"
        self.line = replace(self.line, state="missing", problem=problem)

    def is_idle(self) -> bool:
        """Return whether it answers, and waits or measures."""
        return self.line.state in ("starting", "waiting", "measuring")

    def stood_still(self, for_s: float) -> None:
        """Note that it is not asked any more, since nothing new of it came for so long."""
        why = "" if self.line.problem is None else f": {self.line.problem}"
        problem = f"{self.line.state}, and recorded nothing for {for_s:.0f} s{why}"
        self.line = replace(self.line, state="missing", problem=problem)

    def pause_s(self) -> float:
        """Return the seconds until it is asked again."""
        if self.must_order:
            repeats = max(self._deaths, self._absences)
            return min(2.0 ** (repeats - 1), MAX_DELAY_S) if repeats else 0.0
        part = PART_OF_TIME * self.line.status.running_s
        # In this order the bounds also hold for NaN.
        return max(MIN_PAUSE_S, min(MAX_PAUSE_S, part))

    def _has_more_to_do(self, status: Status) -> bool:
        """Return whether a campaign that has ended earlier is to go on."""
        if not self.may_go_on:
            return False
        halted = status.stopped_because == INTERRUPTED
        return halted or status.state == "failed" or self.order.limits is not None

    def _died(self, blocks: int) -> tuple[HostState, str, str | None]:
        """Note that its process died after so many blocks; return its state, problem and hint."""
        if blocks > self._blocks_at_death:
            self._deaths, self._blocks_at_death = 0, blocks
        self._deaths += 1
        self._restarts += 1
        if self._deaths > MAX_DEATHS or self._restarts > MAX_RESTARTS:
            problem = f"its process died {self._deaths} times without a new block"
            if self._deaths <= MAX_DEATHS:
                problem = f"its process died {self._restarts} times"
            return (
                "failed",
                problem,
                "look for what ends it, such as a limit of memory, then resume",
            )
        self.must_order = True
        return "starting", "its process died; it is started again", None


@dataclass(frozen=True)
class Coordinator:
    """Follows the hosts of one fleet."""

    run_id: str
    campaigns: Sequence[HostCampaign]
    roster: Roster
    ledger: Ledger
    listener: FleetListener
    host_timeout_s: float = HOST_TIMEOUT_S
    """Seconds that a host may give no answer before it is missing."""

    def progress(self) -> FleetProgress:
        """Return how every host's campaign goes."""
        lines = tuple(campaign.line for campaign in self.campaigns)
        return FleetProgress(self.run_id, lines, self.roster.trouble)

    async def run(self) -> None:
        """Follow each host to its end. If this is cancelled, halt the hosts first.

        The roster is kept by the caller meanwhile.
        """
        followers = [asyncio.create_task(self._follow(campaign)) for campaign in self.campaigns]
        clock = asyncio.create_task(self._tell_of_the_roster())
        try:
            await asyncio.gather(*followers)
        except asyncio.CancelledError:
            await self._stop(followers)
            await self._halt()
            raise
        finally:
            await self._stop([*followers, clock])

    async def _stop(self, running: Sequence[asyncio.Task[None]]) -> None:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _tell_of_the_roster(self) -> None:
        while True:
            await self.roster.news(MAX_PAUSE_S)
            self.listener.changed(self.progress())

    async def _follow(self, campaign: HostCampaign) -> None:
        """Follow one host to the end of its campaign."""
        campaign.answered_at = campaign.recorded_at = self._now()
        while not campaign.is_over:
            pause_s = await self._step(campaign)
            silent_s = self._now() - campaign.answered_at
            idle_s = self._now() - campaign.recorded_at
            if not campaign.is_over and silent_s > self.host_timeout_s:
                campaign.gave_up(silent_s)
            elif campaign.is_idle() and idle_s > max(self.host_timeout_s, IDLE_TIMEOUT_S):
                campaign.stood_still(idle_s)
            self.listener.changed(self.progress())
            if not campaign.is_over:
                await asyncio.sleep(pause_s)

    async def _step(self, campaign: HostCampaign) -> float:
        """Ask a host once; return the seconds until it is asked again."""
        host = campaign.host.identity
        try:
            if not campaign.must_order:
                return await self._pull(campaign)
            status = await self.roster.ask(host, tasks.begin, campaign.order, Status, TASK_S)
            campaign.must_order = False
            campaign.answered(status, self._now())
        except NotConnected as absence:
            campaign.kept_silent(str(absence))
            await self.roster.news(MAX_PAUSE_S)
            return 0.0
        except NoAnswer as silence:
            return campaign.kept_silent(str(silence))
        except EquipoiseError as error:
            campaign.refused(error)
        return campaign.pause_s()

    async def _pull(self, campaign: HostCampaign) -> float:
        order, host = campaign.order, campaign.host.identity
        after = self.ledger.cursor(order.identity)
        question = Follow(order.fleet, order.place, order.identity, after)
        followed = await self.roster.ask(host, tasks.follow, question, Followed, TASK_S)
        if followed.slice:
            self.ledger.absorb(followed.slice, check=partial(_check_head, campaign))
        has_news = self.ledger.cursor(order.identity) != after
        if has_news:
            campaign.recorded_at = self._now()
        if followed.more:
            # It is not over before all of it is here.
            if not has_news:
                return campaign.kept_silent("it says that it has more, and sends nothing new")
            campaign.answered_at = self._now()
            return 0.0
        campaign.answered(followed.status, self._now())
        return campaign.pause_s()

    async def _halt(self) -> None:
        """Tell every host that is not at its end to stop, all at once and for a few seconds."""
        halts = [self._halt_one(campaign) for campaign in self.campaigns if not campaign.is_over]
        await asyncio.gather(*halts)
        self.listener.changed(self.progress())

    async def _halt_one(self, campaign: HostCampaign) -> None:
        request, host = Halt(campaign.order.fleet, campaign.order.place), campaign.host.identity
        try:
            status = await self.roster.ask(host, tasks.halt, request, Status, HALT_S)
            campaign.answered(status, 0.0)
        except (NoAnswer, EquipoiseError) as error:
            campaign.kept_silent(str(error))

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _bounded(status: Status) -> Status:
    """Return what a host says of itself with short lines, and a time that is one."""
    is_time = math.isfinite(status.running_s) and status.running_s >= 0.0
    return replace(
        status,
        running_s=min(status.running_s, _MAX_TIME_S) if is_time else 0.0,
        stopped_because=status.stopped_because and short_line(status.stopped_because),
        failure=status.failure and short_line(status.failure),
        hint=status.hint and short_line(status.hint),
    )


def _check_head(campaign: HostCampaign, head: Head) -> None:
    """Refuse a run that is not the ordered one, of this host and with its plan.

    Raise `UnusableInput`; the error says what is different.
    """
    order, host = campaign.order, campaign.host
    measured_by = None if head.host is None else head.host[0].hex()
    if head.identity.hex() != order.identity:
        what = f"a slice of the run {short_line(head.id)} came, which nobody asked for"
    elif measured_by != host.identity:
        what = f"a run of another host than {host.name} came"
    elif not has_terms_of(order.plan, head.plan):
        what = "a run with another plan than the ordered one came"
    else:
        return
    raise UnusableInput(
        what, hint="install the same version of Equipoise on every host, and begin a new campaign"
    )
