"""What a coordinator asks its hosts, and what Dask's scheduler handles for one question.

The coordinator is the shipped one. Its hosts are simulated: they run a block of two trials each
second until their budget ends. Time is that of the event loop and jumps from one event to the next,
so a fleet of 512 hosts needs no machine but this one.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from benchmarks.scale.growth import Growth
from equipoise.cluster import tasks
from equipoise.cluster.coordinator import Coordinator, FleetListener, HostCampaign, HostProgress
from equipoise.cluster.messages import (
    FollowReply,
    FollowRequest,
    Introduction,
    Order,
    Status,
    Task,
    from_bytes,
    to_bytes,
)
from equipoise.cluster.roster import Roster
from equipoise.model.host import HostReference

HOSTS = (8, 32, 128, 512)
BUDGETS_S = (60, 240, 960, 3840)
BUDGET_S = 60
FLEET_OF_BUDGETS = 8
SLICE_BYTES = 1000
"""Bytes of a slice of a few trials, about."""


class _Jumping(selectors.DefaultSelector):
    """A selector that never waits: it moves the time of its loop instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout:
            self.now += timeout
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


class _Hosts:
    """A transport to hosts that are simulated."""

    def __init__(self, hosts: int, budget_s: float) -> None:
        self.calls = self.rounds = 0
        self._budget_s = budget_s
        self._names = tuple(f"tcp://h{place}:1" for place in range(hosts))
        self._begun: dict[int, float] = {}

    async def workers(self) -> tuple[str, ...]:
        self.rounds += 1
        return self._names

    async def call(self, worker: str, task: Task, request: bytes, timeout_s: float) -> bytes:
        self.calls += 1
        now = asyncio.get_running_loop().time()
        if task is tasks.introduce:
            host = HostReference(worker, worker)
            return to_bytes(Introduction(host, "0", "/"))
        if task is tasks.begin:
            order = from_bytes(request, Order)
            self._begun.setdefault(order.host_index, now)
            return to_bytes(Status("running"))
        question = from_bytes(request, FollowRequest)
        ran = min(now - self._begun[question.host_index], self._budget_s)
        state = "ended" if ran >= self._budget_s else "running"
        status = Status(state, int(ran), ran, "budget" if state == "ended" else None)
        return to_bytes(FollowReply(status, bytes(SLICE_BYTES)))


class _Store:
    """A ledger that only counts what comes."""

    def __init__(self) -> None:
        self.absorbed = 0

    def cursor(self, identity: str) -> bytes:
        return b""

    def append_slice(self, slice: bytes, *, check: object = None) -> None:
        self.absorbed += 1


class Course(Struct, frozen=True):
    """What following a fleet took."""

    calls: int
    """Questions to hosts, each a task of Dask."""
    cpu_s: float
    """CPU seconds of the coordinator, without Dask and without its ledger."""


def follow(hosts: int, budget_s: float) -> Course:
    """Follow a simulated fleet from its first order to its end."""
    loop = _Loop()
    transport = _Hosts(hosts, budget_s)

    async def run() -> None:
        roster = Roster(transport)
        keeping = asyncio.create_task(roster.keep_up_to_date())
        while not roster.is_complete:
            await roster.wait_for_change(1.0)
        places = [
            HostCampaign(
                _order(place), HostReference(name, name), HostProgress(name), may_have_ended=False
            )
            for place, name in enumerate(await transport.workers())
        ]
        await Coordinator("run", places, roster, _Store(), FleetListener()).run()
        keeping.cancel()

    started = time.process_time()
    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
    return Course(transport.calls, time.process_time() - started)


def _order(place: int) -> Order:
    return Order(
        fleet_identity="0" * 32,
        host_index=place,
        segment=1,
        plan="{}",
        run_identity=f"{place:032x}",
    )


def growths() -> list[Growth]:
    """Return questions and CPU time of a coordinator by hosts, and questions by the budget."""
    by_hosts = [follow(hosts, BUDGET_S) for hosts in HOSTS]
    by_budget = [follow(FLEET_OF_BUDGETS, budget) for budget in BUDGETS_S]
    questions = f"questions of a coordinator, budget {BUDGET_S} s"
    return [
        Growth(questions, "hosts", HOSTS, tuple(float(one.calls) for one in by_hosts)),
        Growth(
            f"CPU of the coordinator alone, budget {BUDGET_S} s, s",
            "hosts",
            HOSTS,
            tuple(one.cpu_s for one in by_hosts),
        ),
        Growth(
            f"questions of a coordinator to {FLEET_OF_BUDGETS} hosts",
            "budget, s",
            BUDGETS_S,
            tuple(float(one.calls) for one in by_budget),
        ),
    ]


QUESTIONS = (50, 100, 200, 400)
WORKERS = 4


def dask_growths() -> list[Growth]:
    """Return what Dask sends and computes for questions, all in one process: four workers."""
    counted = [asyncio.run(_through_dask(questions)) for questions in QUESTIONS]
    return [
        Growth(
            "messages on Dask's connections", "questions", QUESTIONS, tuple(a for a, _ in counted)
        ),
        Growth(
            "CPU of scheduler, workers and client together, s",
            "questions",
            QUESTIONS,
            tuple(b for _, b in counted),
        ),
    ]


async def _through_dask(questions: int) -> tuple[float, float]:
    """Return the messages that questions take beyond those of an idle cluster, and the CPU time."""
    import distributed
    from distributed.comm.tcp import TCP

    from equipoise.cluster.roster import DaskTransport

    sent = 0
    write: Callable[..., Any] = TCP.write

    async def counting(self: object, *arguments: object, **options: object) -> object:
        nonlocal sent
        sent += 1
        return await write(self, *arguments, **options)

    TCP.write = counting
    try:
        async with distributed.LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=False,
            protocol="tcp://",
            host="127.0.0.1",
            dashboard_address=None,
            asynchronous=True,
            silence_logs="CRITICAL",
        ) as cluster:
            async with DaskTransport(cluster.scheduler_address) as transport:
                workers = await transport.workers()
                for worker in workers:
                    await transport.call(worker, _echo, b"", 20.0)
                before, started = sent, time.process_time()
                for number in range(questions):
                    await transport.call(workers[number % WORKERS], _echo, b"x" * 100, 20.0)
                return float(sent - before), time.process_time() - started
    finally:
        TCP.write = write


def _echo(request: bytes) -> bytes:
    return request
