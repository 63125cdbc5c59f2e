"""The roster of a cluster: the workers that answer now, with their hosts; and the transport.

The roster asks a new worker for the identity of its host. Workers with the same identity belong to
one host. If a scheduler does not answer, the roster tries again at growing intervals.

The transport runs short tasks on a worker, with a time limit. After a lost connection, the next
request connects again. Dask repeats no request: the coordinator decides when to repeat a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable
from concurrent.futures import CancelledError
from typing import Any, Protocol

from msgspec import Struct

from equipoise.cluster import messages, tasks
from equipoise.cluster.connection import CONNECT_TIMEOUT_S, TlsFiles, security_for
from equipoise.cluster.messages import Introduction, Message, Task, from_bytes, to_bytes
from equipoise.files.state import is_identity
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.model.host import HostReference
from equipoise.shared.extras import require
from equipoise.shared.safe_text import MAX_NAME_LETTERS, short_line

SCHEDULER_TIMEOUT_S = 10.0
"""Seconds in which the scheduler must answer."""
_CLOSE_TIMEOUT_S = 3.0
"""Seconds in which Dask must cancel a task or close a connection."""


class Unreachable(Exception):
    """Error: the scheduler does not answer now."""


class NoAnswer(Exception):
    """Error: a worker did not answer in time, or ended before it answered."""


class Transport(Protocol):
    """Transport of requests to the workers of a cluster."""

    async def workers(self) -> tuple[str, ...]:
        """Return the addresses of the workers that the scheduler knows.

        Raise `Unreachable` if the scheduler does not answer.
        """

    async def call(self, worker: str, task: Task, request: bytes, timeout_s: float) -> bytes:
        """Run a task on a worker and return its answer.

        Raise `NoAnswer` if the worker or the scheduler did not answer in time. Raise
        `EquipoiseError` if the task refused the request.
        """


class DaskTransport:
    """Transport to the workers of a Dask cluster; a context manager that closes the connection."""

    def __init__(self, address: str, tls: TlsFiles | None = None) -> None:
        self._address, self._tls = address, tls
        self._client: Any = None  # Dask types half of its methods.
        self._connection_lock = asyncio.Lock()
        self._distributed = require("distributed", "clusters", "cluster")

    async def __aenter__(self) -> DaskTransport:
        """Return this transport; the first request connects."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the connection."""
        await self._disconnect()

    async def workers(self) -> tuple[str, ...]:
        """Return the addresses of the workers that the scheduler knows."""
        try:
            async with self._connection_lock:
                if self._client is None or self._client.status != "running":
                    await self._connect()
            threads_by_worker = await _answer_of(self._client.nthreads(), SCHEDULER_TIMEOUT_S)
        except (EquipoiseError, OSError, CancelledError, RuntimeError) as error:
            # TimeoutError is an OSError.
            await self._disconnect()
            reason = error.what if isinstance(error, EquipoiseError) else str(error)
            raise Unreachable(reason or "the scheduler does not answer") from error
        return tuple(threads_by_worker)

    async def call(self, worker: str, task: Task, request: bytes, timeout_s: float) -> bytes:
        """Run a task on a worker and return its answer."""
        client = self._client
        if client is None or client.status != "running":
            raise NoAnswer("the scheduler does not answer")
        future = client.submit(
            task, request, workers=[worker], allow_other_workers=False, pure=False, retries=0
        )
        try:
            answer = await _answer_of(future.result(), timeout_s)
        except EquipoiseError:
            raise
        except TimeoutError:
            with contextlib.suppress(OSError, CancelledError, RuntimeError):
                await asyncio.wait_for(client.cancel([future], force=True), _CLOSE_TIMEOUT_S)
            raise NoAnswer(f"no answer within {timeout_s:g} s") from None
        except ImportError as error:
            raise UnusableInput(
                f"the worker at {worker} cannot run Equipoise: {error}",
                hint="install the same packages in the same versions on every host",
            ) from error
        except Exception as error:
            # A dying worker or a defect of a task can cause any error. The progress of the host
            # shows the error, and the coordinator repeats the request.
            raise NoAnswer(short_line(f"{type(error).__name__}: {error}")) from error
        finally:
            future.release()
        if not isinstance(answer, bytes):
            raise NoAnswer(f"the answer is of the type {type(answer).__name__}, not bytes")
        return answer

    async def _connect(self) -> None:
        await self._disconnect()
        security = await asyncio.to_thread(security_for, self._address, tls=self._tls)
        self._client = await self._distributed.Client(
            self._address,
            asynchronous=True,
            timeout=CONNECT_TIMEOUT_S,
            set_as_default=False,
            security=security,
        )

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(OSError, CancelledError, RuntimeError):
                await asyncio.wait_for(client.close(), _CLOSE_TIMEOUT_S)


async def _answer_of(request: Awaitable[Any], timeout_s: float) -> Any:
    """Await an answer of Dask; raise `ConnectionAbortedError` if Dask cancels the request.

    If Dask's client loses the scheduler, the client cancels all requests. Without this error, the
    coordinator would stop, as if the user had cancelled the campaign.
    """
    try:
        return await asyncio.wait_for(request, timeout_s)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionAbortedError("Dask closed the connection") from error


REFRESH_INTERVAL_S = 2.0
"""Seconds between two requests to the scheduler for its workers."""
MAX_DELAY_S = 15.0
"""Longest pause, in seconds, between two attempts to reach a scheduler that does not answer."""
INTRODUCTION_TIMEOUT_S = 20.0
"""Seconds in which a worker must introduce itself; its first task imports Equipoise."""


class NotConnected(NoAnswer):
    """Error: no worker of a host is connected now."""


class Roster:
    """The workers of a cluster, with their hosts."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._introduction_tasks: dict[str, asyncio.Task[None]] = {}
        self._last_failure: dict[str, int] = {}
        """Number of the last failed request to a worker, by the worker's address. All failed
        requests are numbered from 1."""
        self._failure_numbers = itertools.count(1)
        self._change = asyncio.Event()
        self.introductions: dict[str, Introduction] = {}
        """Introduction of each worker, by the worker's address."""
        self.silent_workers: dict[str, str] = {}
        """Reason why a worker did not introduce itself, by the worker's address."""
        self.scheduler_problem: str | None = None
        """Reason why the scheduler does not answer; ``None`` if it answers."""
        self.is_complete = False
        """Whether no worker still has to introduce itself; some workers may have failed."""

    async def keep_up_to_date(self) -> None:
        """Keep the roster up to date until this task is cancelled."""
        delay = REFRESH_INTERVAL_S
        try:
            while True:
                try:
                    await self._refresh()
                    delay = REFRESH_INTERVAL_S
                except Unreachable as error:
                    self.scheduler_problem = str(error)
                    self.introductions.clear()
                    delay = min(2 * delay, MAX_DELAY_S)
                self._report_change()
                await asyncio.sleep(delay)
        finally:
            for task in self._introduction_tasks.values():
                task.cancel()

    async def wait_for_change(self, timeout_s: float) -> None:
        """Wait until the roster changes, but at most ``timeout_s`` seconds."""
        try:
            await asyncio.wait_for(self._change.wait(), timeout_s)
        except TimeoutError:
            return

    async def request(
        self,
        host: HostReference,
        task: Task,
        message: Struct,
        answer_type: type[Message],
        timeout_s: float,
    ) -> Message:
        """Send a message to a host; return the answer, which has the type ``answer_type``.

        If the host has several workers, the request goes to the worker that failed longest ago.

        Raise `NotConnected` if the host has no worker now. Raise `NoAnswer` if the worker or the
        scheduler did not answer in time. Raise `EquipoiseError` if the host refused the request, or
        has another version.
        """
        workers = [
            worker
            for worker, introduction in self.introductions.items()
            if introduction.host.identity == host.identity
        ]
        if not workers:
            raise NotConnected(self.scheduler_problem or "none of its workers is connected")
        worker = min(workers, key=lambda worker: self._last_failure.get(worker, 0))
        try:
            answer = await self._transport.call(worker, task, to_bytes(message), timeout_s)
        except NoAnswer:
            self._last_failure[worker] = next(self._failure_numbers)
            raise
        return from_bytes(answer, answer_type)

    async def _refresh(self) -> None:
        workers = await self._transport.workers()
        self.scheduler_problem = None
        for worker in self.introductions.keys() - set(workers):
            del self.introductions[worker]
        self._last_failure = {
            worker: number for worker, number in self._last_failure.items() if worker in workers
        }
        self.silent_workers = {
            worker: reason for worker, reason in self.silent_workers.items() if worker in workers
        }
        for worker in workers:
            if worker not in self.introductions and worker not in self._introduction_tasks:
                introduction = self._introduce(worker)
                self._introduction_tasks[worker] = asyncio.create_task(introduction)
        self.is_complete = bool(workers) and not self._introduction_tasks

    async def _introduce(self, worker: str) -> None:
        try:
            task = tasks.introduce
            answer = await self._transport.call(worker, task, b"", INTRODUCTION_TIMEOUT_S)
            introduction = from_bytes(answer, Introduction)
            self._check_host(worker, introduction.host)
            self.introductions[worker] = introduction
            self.silent_workers.pop(worker, None)
        except NoAnswer as error:
            self.silent_workers[worker] = str(error)
        except EquipoiseError as error:
            self.silent_workers[worker] = error.what
        finally:
            del self._introduction_tasks[worker]
            self.is_complete = not self._introduction_tasks
            self._report_change()

    def _check_host(self, worker: str, host: HostReference) -> None:
        """Raise `UnusableInput` if an identity is invalid, or belongs to another machine.

        A copied virtual machine has the identity of the original. Without this check, one run could
        have trials of two machines.
        """
        name = short_line(host.name)
        if not is_identity(host.identity) or not 0 < len(host.name) <= MAX_NAME_LETTERS:
            raise messages.version_mismatch(f"{name!r} has no valid identity, or too long a name")
        for other_worker, introduction in self.introductions.items():
            is_same_host = introduction.host.identity == host.identity
            if is_same_host and _machine_of(other_worker) != _machine_of(worker):
                raise UnusableInput(
                    f"{name} has the identity of {introduction.host.name}, which answers at "
                    f"{other_worker}",
                    hint=f"if {name} is a copy of that machine, remove equipoise/hosts in the "
                    f"state folder of {name} and start its worker again",
                )

    def _report_change(self) -> None:
        self._change.set()
        self._change = asyncio.Event()


def _machine_of(worker: str) -> str:
    return worker.rpartition(":")[0]
