"""Start and supervise a host's Dask worker: ``python -m equipoise.cluster.worker tcp://HOST:8786``.

If a Dask worker ends, the supervisor starts it again, until SIGTERM or SIGINT ends the supervisor.
A campaign of the host is a separate process, and continues without worker and supervisor.

Without TLS, everybody who can connect to a worker's port can run code as its user. Therefore the
worker listens on one address only: this host's address towards the scheduler, or ``--host``.
Without encryption, this address and the address of the scheduler must be private, unless the user
gives ``--insecure``.

The worker runs during trials, so Dask's sampling profiler and its shortest timers are off.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import importlib.util
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from msgspec import structs

from equipoise.cluster.address import SchedulerAddress, read_scheduler, refuse_unprotected
from equipoise.files.state import HOST_VARIABLE, private_folder
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.shared.spelling import command_line_spelling

FIRST_DELAY_S = 1.0
"""Seconds between the end of a worker and the start of the next worker."""
MAX_DELAY_S = 30.0
"""Maximum number of seconds before the start of the next worker."""
STABLE_LIFETIME_S = 60.0
"""Lifetime of a worker after which the next delay is `FIRST_DELAY_S` again."""
KILL_DELAY_S = 10.0
"""Seconds between SIGTERM and SIGKILL for a worker."""
MAX_WORKER_TASKS = 4
"""Maximum number of tasks that a worker runs at the same time."""
DASK_FOLDER = "dask"
"""Folder for Dask's files, in the user's state folder. Only this user can write there: Dask imports
modules from this folder."""
_PR_SET_PDEATHSIG = 1
"""Command of prctl(2): choose the signal that a process gets when its parent ends."""
QUIET_SETTINGS: dict[str, object] = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.limit": "30s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.gil.enabled": False,
}
"""Settings of Dask with which an idle worker rarely wakes up."""
_SETTINGS_WITHOUT_PAGES: dict[str, object] = {"distributed.worker.http.routes": []}
"""Setting that switches off Dask's web pages about a worker, because they are not encrypted."""
log = logging.getLogger("equipoise.cluster.worker")


@command_line_spelling()
def main(arguments: Sequence[str] | None = None) -> int:
    """Supervise a worker until SIGTERM or SIGINT; return the exit status."""
    options = parse_options(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s equipoise worker: %(message)s")
    if importlib.util.find_spec("distributed") is None:
        log.error("Dask is not installed; hint: pip install 'equipoise[cluster]'")
        return 2
    try:
        command = worker_command(options, listening_address(options), private_folder(DASK_FOLDER))
    except EquipoiseError as error:
        log.error("%s; hint: %s", error.what, error.hint)
        return 2
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_supervise_until_signal(command, worker_environment(options.name)))
    return 0


def listening_address(options: argparse.Namespace) -> str:
    """Return the numeric address on which the worker listens.

    Raise `UnusableInput` if the connection would leave the private network without encryption, or
    there is no route to the scheduler.
    """
    scheduler = read_scheduler(options.scheduler)
    if not options.insecure:
        refuse_unprotected(scheduler)
    host: str = options.host or _own_address_towards(scheduler)
    if not options.insecure:
        refuse_unprotected(
            structs.replace(scheduler, text=f"{scheduler.scheme}://{host}", host=host)
        )
    return host


def _own_address_towards(scheduler: SchedulerAddress) -> str:
    """Return the address of this host on the route to the scheduler; send nothing."""
    try:
        for family, socket_type, protocol, _, address in socket.getaddrinfo(
            scheduler.host, scheduler.port, type=socket.SOCK_DGRAM
        ):
            with socket.socket(family, socket_type, protocol) as probe:
                probe.connect(address)
                return str(probe.getsockname()[0])
    except OSError as error:
        raise UnusableInput(
            f"there is no route from this host to the scheduler at {scheduler.text}: "
            f"{error.strerror}",
            hint="check the address of the scheduler, or add --host with an address of this host",
        ) from error
    raise UnusableInput(f"{scheduler.host} has no address", hint="check the scheduler's name")


def worker_command(options: argparse.Namespace, host: str, folder: Path) -> list[str]:
    """Return the command line of a worker that listens on ``host`` and writes into ``folder``."""
    tls_files = (
        ("--tls-ca-file", options.tls_ca),
        ("--tls-cert", options.tls_cert),
        ("--tls-key", options.tls_key),
    )
    return [
        *(sys.executable, "-m", "distributed.cli.dask_worker", options.scheduler),
        *("--no-nanny", "--no-dashboard", "--nworkers", "1", "--nthreads", str(MAX_WORKER_TASKS)),
        # Tasks need little memory, and a memory limit would only pause the worker.
        *("--memory-limit", "0"),
        *("--host", host, "--dashboard-address", f"{_with_brackets(host)}:0"),
        *("--local-directory", str(folder)),
        *(argument for option, file in tls_files if file for argument in (option, file)),
    ]


def _with_brackets(host: str) -> str:
    return f"[{host}]" if ":" in host else host


async def supervise(
    run: Callable[[], Awaitable[str]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run a worker again and again, at growing intervals, until this task is cancelled.

    ``run`` runs one worker until it ends, and returns a description of the end.
    """
    delay = FIRST_DELAY_S
    while True:
        started_at = clock()
        end_description = await run()
        if clock() - started_at >= STABLE_LIFETIME_S:
            delay = FIRST_DELAY_S
        log.info("the worker ended (%s); the next worker starts in %g s", end_description, delay)
        await sleep(delay)
        delay = min(MAX_DELAY_S, 2 * delay)


async def run_worker(command: Sequence[str], environment: dict[str, str]) -> str:
    """Run one worker to its end; if this task is cancelled, end the worker first."""
    worker = await asyncio.create_subprocess_exec(
        *command, env=environment, preexec_fn=_end_with_parent
    )
    try:
        status = await worker.wait()
    finally:
        if worker.returncode is None:
            await _end(worker)
    return f"status {status}" if status >= 0 else signal.Signals(-status).name


async def _supervise_until_signal(command: Sequence[str], environment: dict[str, str]) -> None:
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, task.cancel)
    await supervise(lambda: run_worker(command, environment))


async def _end(worker: asyncio.subprocess.Process) -> None:
    worker.terminate()
    try:
        await asyncio.wait_for(worker.wait(), KILL_DELAY_S)
    except TimeoutError:
        worker.kill()
        await worker.wait()


def _end_with_parent() -> None:
    # If the supervisor is killed, the worker must end, because a new supervisor starts a worker.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def worker_environment(name: str | None) -> dict[str, str]:
    """Return the environment of the worker. Variables of Dask that the user set are kept."""
    name_variable = {} if name is None else {HOST_VARIABLE: name}
    dask_variables = {
        f"DASK_{setting.upper().replace('.', '__').replace('-', '_')}": str(value)
        for setting, value in {**QUIET_SETTINGS, **_SETTINGS_WITHOUT_PAGES}.items()
    }
    return {**dask_variables, **os.environ, **name_variable}


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the options; end the process if the command line is unusable."""
    parser = argparse.ArgumentParser(
        prog="python -m equipoise.cluster.worker",
        description="Run a Dask worker on this host, and start it again whenever it ends.",
    )
    parser.add_argument("scheduler", help="address of the scheduler: tcp://HOST:8786 or tls://…")
    parser.add_argument("--name", help="name of this host in tables (default: the machine's)")
    parser.add_argument(
        "--host", help="address to listen on (default: the one that reaches the scheduler)"
    )
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="allow public networks without encryption: anybody on the path can run code as you",
    )
    parser.add_argument("--tls-ca", metavar="FILE", help="certificate of the authority, PEM")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate of this host, PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of that certificate, PEM")
    options = parser.parse_args(arguments)
    tls_files = (options.tls_ca, options.tls_cert, options.tls_key)
    if options.scheduler.startswith("tls://") != all(tls_files) or any(tls_files) != all(tls_files):
        parser.error("tls://… needs --tls-ca, --tls-cert and --tls-key; tcp://… takes none of them")
    return options


if __name__ == "__main__":
    sys.exit(main())
