"""The supervisor of a host's worker starts it again, and takes it along when it ends."""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from equipoise.cluster import worker
from equipoise.files.state import HOST_VARIABLE
from equipoise.model.errors import UnusableInput

SCHEDULER = "tcp://127.0.0.1:8786"
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


class Enough(Exception):
    """The test has seen enough starts."""


def supervised(lives_s: list[float]) -> list[float]:
    """The seconds before each new start, of workers that live so long."""
    now = 0.0
    left = iter(lives_s)
    waited: list[float] = []

    async def run() -> str:
        nonlocal now
        life = next(left, None)
        if life is None:
            raise Enough
        now += life
        return "status 1"

    async def sleep(delay: float) -> None:
        waited.append(delay)

    with pytest.raises(Enough):
        asyncio.run(worker.supervise(run, sleep, lambda: now))
    return waited


def test_worker_that_ends_at_once_is_restarted_less_and_less_often() -> None:
    assert supervised([0.0] * 8) == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_a_worker_that_worked_for_a_minute_is_started_again_quickly() -> None:
    assert supervised([0.0, 0.0, worker.STABLE_LIFETIME_S, 0.0]) == [1.0, 2.0, 1.0, 2.0]


def test_the_ending_of_a_worker_is_named() -> None:
    async def ending(*command: str) -> str:
        return await worker.run_worker(command, dict(os.environ))

    assert asyncio.run(ending("sh", "-c", "exit 3")) == "status 3"
    assert asyncio.run(ending("sh", "-c", "kill -9 $$")) == "SIGKILL"


def test_ending_the_supervisor_ends_its_worker() -> None:
    async def cancelled() -> None:
        running = asyncio.create_task(worker.run_worker(SLEEPER, dict(os.environ)))
        while not psutil.Process().children():
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    before = psutil.Process().children()
    asyncio.run(cancelled())
    assert psutil.Process().children() == before


PARENT = """
import asyncio, sys
from equipoise.cluster import worker
asyncio.run(worker.run_worker(sys.argv[1:], {}))
"""
CHILD = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(600)"


def test_killing_the_supervisor_ends_its_worker() -> None:
    command = [sys.executable, "-c", PARENT, sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    child.wait(timeout=60)
    assert not child.is_running()


def test_a_name_goes_to_the_host_s_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL", "5s")
    environment = worker.worker_environment("left")
    assert environment[HOST_VARIABLE] == "left"
    assert environment["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] == "False"
    assert environment["DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL"] == "5s"
    assert HOST_VARIABLE not in worker.worker_environment(None)


def test_the_files_of_tls_go_to_the_worker() -> None:
    files = ["--tls-ca", "ca.pem", "--tls-cert", "here.pem", "--tls-key", "here.key"]
    options = worker.parse_options(["tls://scheduler:8786", *files])
    command = worker.worker_command(options, "10.0.0.2", Path("/private"))
    assert command[-6:] == [
        *("--tls-ca-file", "ca.pem", "--tls-cert", "here.pem", "--tls-key", "here.key")
    ]
    plain = worker.worker_command(in_the_clear(), "10.0.0.2", Path("/private"))
    assert "--tls-ca-file" not in plain


@pytest.mark.parametrize(
    "arguments",
    [
        [SCHEDULER, "--tls-ca", "ca.pem", "--tls-cert", "here.pem", "--tls-key", "here.key"],
        ["tls://scheduler:8786"],
        ["tls://scheduler:8786", "--tls-ca", "ca.pem"],
    ],
)
def test_an_address_and_its_tls_files_must_agree(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        worker.parse_options(arguments)
    assert "needs --tls-ca, --tls-cert and --tls-key" in capsys.readouterr().err


def in_the_clear(*words: str) -> argparse.Namespace:
    return worker.parse_options([SCHEDULER, *words])


def test_a_worker_listens_on_this_hosts_address_towards_the_scheduler() -> None:
    assert worker.listening_address(in_the_clear()) == "127.0.0.1"
    command = worker.worker_command(in_the_clear(), "127.0.0.1", Path("/private"))
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert command[command.index("--local-directory") + 1] == "/private"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "203.0.113.7"])
def test_a_worker_in_the_clear_listens_on_a_public_address_only_by_name(host: str) -> None:
    with pytest.raises(UnusableInput, match="unprotected"):
        worker.listening_address(in_the_clear("--host", host))
    assert worker.listening_address(in_the_clear("--host", host, "--insecure")) == host


def test_a_worker_of_a_public_scheduler_in_the_clear_is_refused() -> None:
    public = worker.parse_options(["tcp://203.0.113.7:8786"])
    with pytest.raises(UnusableInput, match="unprotected"):
        worker.listening_address(public)


def test_the_pages_of_a_worker_are_not_served() -> None:
    assert worker.worker_environment(None)["DASK_DISTRIBUTED__WORKER__HTTP__ROUTES"] == "[]"
