"""What a coordinator sees of a Dask client that closes itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from equipoise.cluster.roster import DaskTransport, NoAnswer, Unreachable

ADDRESS = "tcp://127.0.0.1:1"


class ClosingClient:
    """A client that has given its scheduler up while somebody waits: it cancels what waits."""

    status = "running"

    async def nthreads(self) -> None:
        raise asyncio.CancelledError

    def submit(self, *_: object, **__: object) -> ClosingClient:
        return self

    async def result(self) -> None:
        raise asyncio.CancelledError

    def release(self) -> None:
        """Nothing is kept."""

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def transport() -> DaskTransport:
    opened: Any = DaskTransport(ADDRESS)
    opened._client = ClosingClient()
    return opened  # type: ignore[no-any-return]


def test_a_client_that_closes_itself_is_a_scheduler_that_does_not_answer(
    transport: DaskTransport,
) -> None:
    with pytest.raises(Unreachable, match="Dask closed the connection"):
        asyncio.run(transport.workers())


def test_a_client_that_closes_itself_interrupts_no_follower(transport: DaskTransport) -> None:
    with pytest.raises(NoAnswer, match="Dask closed the connection"):
        asyncio.run(transport.call("tcp://ada:1", bytes, b"", 1.0))


def test_an_answer_that_is_not_bytes_is_no_answer(transport: DaskTransport) -> None:
    class Talkative(ClosingClient):
        async def result(self) -> Any:
            return {"state": "ended"}

    vars(transport)["_client"] = Talkative()
    with pytest.raises(NoAnswer, match="of the type dict, not bytes"):
        asyncio.run(transport.call("tcp://ada:1", bytes, b"", 1.0))


def test_whoever_is_cancelled_meanwhile_ends(transport: DaskTransport) -> None:
    waits = asyncio.Event()

    class Waiting(ClosingClient):
        async def nthreads(self) -> None:
            waits.set()
            await asyncio.Event().wait()

    async def interrupted() -> None:
        vars(transport)["_client"] = Waiting()
        asking = asyncio.create_task(transport.workers())
        await waits.wait()
        asking.cancel()
        await asking

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
