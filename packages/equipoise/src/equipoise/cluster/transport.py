"""How a coordinator reaches workers: short tasks with a limit of time, bytes in and bytes out.

A connection that breaks is made again by the next request. Nothing waits for ever, and nothing is
asked twice by Dask itself: the coordinator decides.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from concurrent.futures import CancelledError
from typing import Any, Protocol

from equipoise.cluster.connection import CONNECT_S, TlsFiles, security_for
from equipoise.cluster.messages import Task
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.shared.extras import require
from equipoise.shared.safe_text import short_line

SCHEDULER_S = 10.0
"""Seconds in which the scheduler has to answer."""
_CLOSE_S = 3.0


class Unreachable(Exception):
    """The scheduler does not answer now."""


class NoAnswer(Exception):
    """A worker gave no answer in time, or ended meanwhile."""


class Transport(Protocol):
    """Reaches the workers of a cluster."""

    async def workers(self) -> tuple[str, ...]:
        """Return the addresses of the workers that the scheduler knows.

        Raise `Unreachable` if the scheduler does not answer.
        """

    async def call(self, worker: str, task: Task, request: bytes, timeout_s: float) -> bytes:
        """Run a task on a worker and return its answer.

        Raise `NoAnswer` if the worker or the scheduler did not answer in time. Raise
        `EquipoiseError` if the task itself refused the request.
        """


class DaskTransport:
    """Reaches the workers of a Dask cluster; a context manager that closes the connection."""

    def __init__(self, address: str, tls: TlsFiles | None = None) -> None:
        self._address, self._tls = address, tls
        self._client: Any = None  # Dask types half of its methods.
        self._connecting = asyncio.Lock()
        self._distributed = require("distributed", "clusters", "cluster")

    async def __aenter__(self) -> DaskTransport:
        """Return itself; the first request connects."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the connection."""
        await self._disconnect()

    async def workers(self) -> tuple[str, ...]:
        """Return the addresses of the workers that the scheduler knows."""
        try:
            async with self._connecting:
                if self._client is None or self._client.status != "running":
                    await self._connect()
            threads = await _answer_of(self._client.nthreads(), SCHEDULER_S)
        except (EquipoiseError, OSError, CancelledError, RuntimeError) as error:
            # TimeoutError is an OSError.
            await self._disconnect()
            what = error.what if isinstance(error, EquipoiseError) else str(error)
            raise Unreachable(what or "the scheduler does not answer") from error
        return tuple(threads)

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
                await asyncio.wait_for(client.cancel([future], force=True), _CLOSE_S)
            raise NoAnswer(f"no answer within {timeout_s:g} s") from None
        except ImportError as error:
            raise UnusableInput(
                f"a worker cannot run Equipoise: {error}",
                hint="install there what this process has, in the same version",
            ) from error
        except Exception as error:
            # Whatever a dying worker or scheduler does, and every defect of a task: it is named
            # in the host's line, and the host is asked again.
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
            timeout=CONNECT_S,
            set_as_default=False,
            security=security,
        )

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(OSError, CancelledError, RuntimeError):
                await asyncio.wait_for(client.close(), _CLOSE_S)


async def _answer_of(request: Awaitable[Any], timeout_s: float) -> Any:
    """Await what Dask promises; raise `ConnectionAbortedError` if Dask cancels it.

    A client that gives its scheduler up closes itself, and cancels what waits for it. Without this
    the follower of a host would take that for its own end.
    """
    try:
        return await asyncio.wait_for(request, timeout_s)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionAbortedError("Dask closed the connection") from error
