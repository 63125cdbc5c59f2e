"""A fleet without machines: hosts that follow a script, on a clock that nobody waits for.

Each host has a real ledger of its own, into which its campaign records blocks as time goes by,
whether or not anybody follows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import pytest

from equipoise.cluster.coordinator import FleetListener, FleetProgress
from equipoise.cluster.files import MachineFolders, local_plan
from equipoise.cluster.messages import (
    FileInventory,
    FollowReply,
    FollowRequest,
    HaltRequest,
    Introduction,
    Order,
    Status,
    Task,
    from_bytes,
    to_bytes,
)
from equipoise.cluster.roster import NoAnswer, Unreachable
from equipoise.design.coin import draw_block
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.fleet.conducting import FleetOptions, resume, start
from equipoise.kinds.fleet.terms import FleetPlan
from equipoise.ledger import Ledger, open_for_writing
from equipoise.model.host import HostReference
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import RunRecord
from packages.equipoise.tests.plans import plan_of, trial_of

T = TypeVar("T")
MAX_TRIALS = 7
"""Trials of a slice: several slices for every campaign."""


class ImpatientLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to whatever is due next; a later loop goes on from there."""

    now = 0.0

    def __init__(self) -> None:
        super().__init__()
        selector: Any = self._selector  # type: ignore[attr-defined]
        select = selector.select

        def jump(timeout: float | None) -> Any:
            events = select(0)
            if timeout is None and not events:
                pytest.fail("everything waits for something that never comes")
            ImpatientLoop.now += 0.0 if events or timeout is None else timeout
            return events

        selector.select = jump

    def time(self) -> float:
        """Return the seconds since the first loop began."""
        return ImpatientLoop.now


def conducted(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine, without waiting."""
    with asyncio.Runner(loop_factory=ImpatientLoop) as runner:
        return runner.run(work)


@dataclass
class ScriptedHost:
    """A host whose campaign records a block in each so many seconds."""

    name: str
    folder: Path
    block_s: float = 1.0
    answer_s: float = 0.01
    """Seconds in which it answers."""
    version: str = field(default_factory=lambda: version("equipoise"))
    repeats: bool = False
    """Whether every slice begins with the first trial, whatever was asked for."""
    dies_at: tuple[int, ...] = ()
    """Numbers of complete blocks at which its process dies, each once."""
    fails_at: int | None = None
    """Number of complete blocks at which a condition fails."""

    def __post_init__(self) -> None:
        self.reference = HostReference(self.name.encode().hex().ljust(32, "0")[:32], self.name)
        self.ledger: Ledger = open_for_writing(self.folder / f"{self.name}.db", durable=False)
        self.state = "absent"
        self.reason: str | None = None
        self.orders: list[Order] = []
        """Those that started a process."""
        self.blocks = 0
        self._plan = plan_of()
        self._next_at = 0.0
        self._run = ""
        self._segment = 0
        self._deaths = list(self.dies_at)

    def order(self, order: Order, now: float) -> Status:
        """Start the campaign, unless it goes on or has ended in this segment."""
        self.advance(now)
        is_later = not self.orders or order.segment > self.orders[-1].segment
        if self.state in ("died", "failed") or (self.state != "running" and is_later):
            self._start(order, now)
        return self.status()

    def _start(self, order: Order, now: float) -> None:
        self.orders.append(order)
        if not self._run:
            self._plan = local_plan(order.plan, MachineFolders(str(self.folder)))
            identity = bytes.fromhex(order.run_identity)
            with mock.patch("equipoise.ledger.store.this_host", return_value=self.reference):
                self._run = self.ledger.begin_run(self._plan, {}, now, identity=identity)
            self._segment = 1
        else:
            self._segment = self.ledger.begin_segment(self._run, {}, now)
        self.state, self.reason, self._next_at = "running", None, now + self.block_s

    def advance(self, now: float) -> None:
        """Record the blocks that are complete by now."""
        while self.state == "running" and self._next_at <= now:
            if self._deaths and self._deaths[0] <= self.blocks:
                self._deaths.pop(0)
                self.state = "died"
                return
            self.blocks += 1
            draw = draw_block(self._plan, "measured", self.blocks)
            self.ledger.record_draw(self._run, draw)
            for place in range(len(draw.order)):
                self.ledger.record_trial(self._run, trial_of(draw, place, 0.01 * self.blocks))
            self._next_at += self.block_s
            if self.blocks == self.fails_at:
                self._end("failed", "a condition failed", now)
            elif self.blocks == self._max_blocks():
                self._end("ended", "block limit", now)

    def _max_blocks(self) -> int | None:
        limits = self.orders[-1].limits
        return self._plan.stopping.blocks if limits is None else limits.blocks

    def _end(self, state: str, reason: str, now: float) -> None:
        self.state, self.reason = state, reason
        self.ledger.end_segment(self._run, self._segment, now, reason)

    def halt(self, now: float) -> Status:
        """Interrupt the campaign."""
        self.advance(now)
        if self.state == "running":
            self._end("ended", "interrupted", now)
        return self.status()

    def follow(self, question: FollowRequest, now: float) -> FollowReply:
        """Say how the campaign goes, and what it recorded."""
        self.advance(now)
        if not self._run:
            return FollowReply(self.status())
        after = b"" if self.repeats and self.blocks < 5 else question.cursor
        content, has_more = self.ledger.slice(question.run_identity, after, max_trials=MAX_TRIALS)
        return FollowReply(self.status(), content, has_more)

    def status(self) -> Status:
        """How the campaign goes."""
        failure = "b failed: exit status 1" if self.state == "failed" else None
        return Status(
            self.state,  # type: ignore[arg-type]
            self.blocks,
            self.block_s * self.blocks,
            self.reason if self.state == "ended" else None,
            failure,
        )

    def record(self) -> RunRecord:
        """Return the run in its own ledger."""
        return self.ledger.read_run(self._run)


class ScriptedCluster:
    """Hosts behind a scheduler; faults are planned with `at`."""

    def __init__(self, *hosts: ScriptedHost) -> None:
        self.hosts = {f"tcp://{host.name}:1": host for host in hosts}
        self.away: set[str] = set()
        """Names of the hosts that no message reaches."""
        self.gone: set[str] = set()
        """Names of the hosts without a worker."""
        self.scheduler_is_down = False
        self._planned: list[tuple[float, Callable[[], object]]] = []

    def at(self, seconds: float, event: Callable[[], object]) -> None:
        """Plan an event so many seconds after the coordinator's next start."""
        self._planned.append((seconds, event))

    async def __aenter__(self) -> ScriptedCluster:
        loop = asyncio.get_running_loop()
        for seconds, event in self._planned:
            loop.call_later(seconds, event)
        self._planned.clear()
        return self

    async def __aexit__(self, *error: object) -> None:
        return None

    async def workers(self) -> tuple[str, ...]:
        """Return the addresses of the workers."""
        await asyncio.sleep(0.01)
        if self.scheduler_is_down:
            raise Unreachable("connection refused")
        return tuple(at for at, host in self.hosts.items() if host.name not in self.gone)

    async def call(self, worker: str, task: Task, request: bytes, timeout_s: float) -> bytes:
        """Run a task."""
        host = self.hosts[worker]
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.sleep(host.answer_s)
                while host.name in self.away:
                    await asyncio.sleep(1.0)
        except TimeoutError:
            raise NoAnswer(f"no answer within {timeout_s:g} s") from None
        if self.scheduler_is_down or host.name in self.gone:
            raise NoAnswer("the scheduler does not answer")
        now = asyncio.get_running_loop().time()
        return to_bytes(self._answer(host, task.__name__, request, now))

    def _answer(self, host: ScriptedHost, task: str, request: bytes, now: float) -> Any:
        match task:
            case "introduce":
                return Introduction(host.reference, host.version, str(host.folder))
            case "examine":
                return from_bytes(request, FileInventory)
            case "begin":
                return host.order(from_bytes(request, Order), now)
            case "follow":
                return host.follow(from_bytes(request, FollowRequest), now)
            case "halt":
                halt_request = from_bytes(request, HaltRequest)
                assert halt_request.fleet_identity == host.orders[0].fleet_identity
                return host.halt(now)
        pytest.fail(f"no host has a task {task}")


@dataclass
class Watcher(FleetListener):
    """Notes when each host reached each state, in seconds after the hosts were asked."""

    began: float = 0.0

    reached: dict[tuple[str, str], float] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)
    problems: set[str] = field(default_factory=set)

    def fleet_started(self, progress: FleetProgress) -> None:
        """Note when that was."""
        self.began = asyncio.get_running_loop().time()

    def progress_changed(self, progress: FleetProgress) -> None:
        """Note what is new."""
        now = asyncio.get_running_loop().time() - self.began
        for line in progress.hosts:
            self.reached.setdefault((line.host, line.state), now)
            self.problems.add(f"{line.host}: {line.problem}")
        if (
            progress.scheduler_problem is not None
            and progress.scheduler_problem not in self.troubles
        ):
            self.troubles.append(progress.scheduler_problem)


BLOCKS = 12
NAMES = ("ada", "bob", "cyd")
PLAN = plan_of(stopping=Stopping(min_seconds=0.0, blocks=BLOCKS))


@dataclass
class ScriptedFleet:
    """A coordinator with its ledger, and the cluster that it asks."""

    folder: Path
    cluster: ScriptedCluster
    watcher: Watcher = field(default_factory=Watcher)
    options: FleetOptions = FleetOptions("tcp://scheduler:8786")

    def __post_init__(self) -> None:
        self.ledger = open_for_writing(self.folder / "coordinator.db", durable=False)

    @property
    def hosts(self) -> tuple[ScriptedHost, ...]:
        """The hosts, in order."""
        return tuple(self.cluster.hosts.values())

    async def starting(self, plan: Plan = PLAN) -> FleetProgress:
        """Begin a campaign and follow it."""
        return await start(plan, self.options, self.cluster, self.ledger, self.watcher)

    def start(self, plan: Plan = PLAN) -> FleetProgress:
        """Begin a campaign and follow it to its end."""
        return conducted(self.starting(plan))

    def resume(self, limits: CampaignLimits | None = None) -> FleetProgress:
        """Go on with the latest campaign to its end."""
        record, limits = self.ledger.read_run(), limits or CampaignLimits()
        self.watcher = Watcher()
        return conducted(
            resume(record, limits, self.options, self.cluster, self.ledger, self.watcher)
        )

    def members(self) -> dict[str, RunRecord]:
        """The copies of the hosts' campaigns in the coordinator's ledger, by host."""
        record = self.ledger.read_run()
        assert isinstance(record.plan.terms, FleetPlan)
        places = {
            member.plan.membership.host_index: member
            for member in record.members
            if member.plan.membership
        }
        return {
            host.name: places[place]
            for place, host in enumerate(record.plan.terms.hosts)
            if place in places
        }

    def close(self) -> None:
        """Close the ledgers."""
        for ledger in (self.ledger, *(host.ledger for host in self.hosts)):
            ledger.close()


MakeFleet = Callable[..., ScriptedFleet]


@pytest.fixture
def fleet_of(tmp_path: Path) -> Iterator[MakeFleet]:
    """Makes a fleet of three hosts; the settings of one are named after it."""
    made: list[ScriptedFleet] = []

    def make(**settings: dict[str, Any]) -> ScriptedFleet:
        folder = tmp_path / f"fleet{len(made)}"
        folder.mkdir()
        hosts = [ScriptedHost(name, folder, **settings.get(name, {})) for name in NAMES]
        made.append(ScriptedFleet(folder, ScriptedCluster(*hosts)))
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()


@pytest.fixture
def fleet(fleet_of: MakeFleet) -> ScriptedFleet:
    """A fleet of three usual hosts."""
    return fleet_of()


def contents(record: RunRecord) -> tuple[Any, ...]:
    """All that must be the same in two copies of a run."""
    return record.identity, record.plan, record.draws, record.trials, record.segments


def whole(fleet: ScriptedFleet) -> bool:
    """Whether the coordinator has what every host has, no trial twice and none lost."""
    members = fleet.members()
    own = {host.name: contents(host.record()) for host in fleet.hosts if host.orders}
    return own == {name: contents(record) for name, record in members.items()}
