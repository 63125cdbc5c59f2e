"""Which workers answer now, and which host each belongs to.

A worker that is new introduces itself; several workers with one host identity are one host. A
scheduler that does not answer is asked again, at growing intervals, for as long as the roster is
kept.
"""

from __future__ import annotations

import asyncio
import itertools

from msgspec import Struct

from equipoise.cluster import tasks
from equipoise.cluster.messages import Introduction, Message, Task, from_bytes, to_bytes
from equipoise.cluster.transport import NoAnswer, Transport, Unreachable
from equipoise.files.state import is_identity
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.model.host import HostReference
from equipoise.shared.safe_text import MAX_NAME_LETTERS, short_line

ROUND_S = 2.0
"""Seconds between two questions to the scheduler for its workers."""
LONGEST_DELAY_S = 15.0
"""Seconds between two attempts to reach a scheduler that does not answer, at most."""
INTRODUCE_S = 20.0
"""Seconds that a worker has to introduce itself: its first task imports Equipoise."""


class NotConnected(NoAnswer):
    """No worker of a host is connected now."""


class Roster:
    """The workers of a cluster, kept up to date by `keep`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._introducing: dict[str, asyncio.Task[None]] = {}
        self._failed_at: dict[str, int] = {}
        self._failures = itertools.count(1)
        self._news = asyncio.Event()
        self.introductions: dict[str, Introduction] = {}
        """What each worker said, by its address."""
        self.silent: dict[str, str] = {}
        """Why a worker that the scheduler knows did not introduce itself."""
        self.trouble: str | None = None
        """Why the scheduler does not answer; ``None`` if it does."""
        self.is_complete = False
        """Whether every worker that the scheduler knows has answered or failed to."""

    async def keep(self) -> None:
        """Keep the roster until this is cancelled."""
        delay = ROUND_S
        try:
            while True:
                try:
                    await self._round()
                    delay = ROUND_S
                except Unreachable as error:
                    self.trouble = str(error)
                    self.introductions.clear()
                    delay = min(2 * delay, LONGEST_DELAY_S)
                self._tell()
                await asyncio.sleep(delay)
        finally:
            for task in self._introducing.values():
                task.cancel()

    async def news(self, timeout_s: float) -> None:
        """Wait until the roster changes, or for so long."""
        try:
            await asyncio.wait_for(self._news.wait(), timeout_s)
        except TimeoutError:
            return

    async def ask(
        self, host: str, task: Task, request: Struct, kind: type[Message], timeout_s: float
    ) -> Message:
        """Send a request to a host and return its answer, a message of one kind.

        Of several workers of the host the one that failed longest ago is asked.

        Raise `NotConnected` if the host has no worker now. Raise `NoAnswer` if the worker or the
        scheduler did not answer in time. Raise `EquipoiseError` if the host refused the request, or
        has another version.
        """
        workers = [
            worker for worker, one in self.introductions.items() if one.host.identity == host
        ]
        if not workers:
            raise NotConnected(self.trouble or "no worker of it is connected")
        worker = min(workers, key=lambda worker: self._failed_at.get(worker, 0))
        try:
            answer = await self._transport.call(worker, task, to_bytes(request), timeout_s)
        except NoAnswer:
            self._failed_at[worker] = next(self._failures)
            raise
        return from_bytes(answer, kind)

    async def _round(self) -> None:
        workers = await self._transport.workers()
        self.trouble = None
        for gone in self.introductions.keys() - set(workers):
            del self.introductions[gone]
        self._failed_at = {at: when for at, when in self._failed_at.items() if at in workers}
        self.silent = {at: why for at, why in self.silent.items() if at in workers}
        for worker in workers:
            if worker not in self.introductions and worker not in self._introducing:
                introduction = self._introduce(worker)
                self._introducing[worker] = asyncio.create_task(introduction)
        self.is_complete = bool(workers) and not self._introducing

    async def _introduce(self, worker: str) -> None:
        try:
            answer = await self._transport.call(worker, tasks.introduce, b"", INTRODUCE_S)
            introduction = from_bytes(answer, Introduction)
            self._check(worker, introduction.host)
            self.introductions[worker] = introduction
            self.silent.pop(worker, None)
        except NoAnswer as error:
            self.silent[worker] = str(error)
        except EquipoiseError as error:
            self.silent[worker] = error.what
        finally:
            del self._introducing[worker]
            self.is_complete = not self._introducing
            self._tell()

    def _check(self, worker: str, host: HostReference) -> None:
        """Refuse an identity that is none, or that a worker at another address has already.

        A copy of a virtual machine has the identity of its original, and anybody may claim it:
        trials of two machines would come into one run.

        Raise `UnusableInput`; the error says which.
        """
        name = short_line(host.name)
        if not is_identity(host.identity) or not 0 < len(host.name) <= MAX_NAME_LETTERS:
            raise UnusableInput(
                f"what calls itself {name!r} has no identity of a host, or too long a name",
                hint="install the same version of Equipoise on every host",
            )
        for other, introduction in self.introductions.items():
            same = introduction.host.identity == host.identity
            if same and _machine_of(other) != _machine_of(worker):
                raise UnusableInput(
                    f"{name} says that it is {introduction.host.name}, which answers at {other}",
                    hint="if it is a copy of that machine, remove equipoise/hosts in its state "
                    "folder and start its worker again",
                )

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def _machine_of(worker: str) -> str:
    """Return the address of a worker without its port."""
    return worker.rpartition(":")[0]
