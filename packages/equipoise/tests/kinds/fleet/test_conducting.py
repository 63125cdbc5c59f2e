"""The event loop of a coordinator: errors that nothing awaited."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest

from equipoise.cluster.coordinator import FleetProgress
from equipoise.kinds.fleet.conducting import run_to_end


def failed_future(error: Exception) -> None:
    """A future that fails and is forgotten."""
    asyncio.get_running_loop().create_future().set_exception(error)


def failed_task(error: Exception) -> None:
    """A task that fails and is forgotten."""

    async def fail() -> None:
        raise error

    asyncio.get_running_loop().create_task(fail())


@pytest.mark.parametrize(
    ("forget", "error", "is_printed"),
    [
        (failed_future, TimeoutError("Timeout"), False),
        (failed_future, ValueError("a defect"), True),
        (failed_task, TimeoutError("a defect"), True),
    ],
)
def test_a_timeout_within_dask_is_not_reported(
    forget: Callable[[Exception], None],
    error: Exception,
    is_printed: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    progress = FleetProgress("run", (), None)

    async def work() -> FleetProgress:
        forget(error)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gc.collect()
        return progress

    assert run_to_end(work()) is progress
    gc.collect()
    assert ("exception was never retrieved" in caplog.text) is is_printed
