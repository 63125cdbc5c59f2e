"""Supervisor of a host's Dask worker: ``python -m equipoise.cluster.worker tcp://HOST:8786``.

A Dask worker that loses its scheduler closes itself, and a worker can be killed. The supervisor
starts it again, until the supervisor itself is told to end (SIGTERM, SIGINT). A campaign of the
host is a process of its own and ends with neither of them.

The worker measures nothing, but it runs beside what is measured: Dask's sampling profiler and its
shortest timers are off.
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
import sys
import time
from collections.abc import Awaitable, Callable, Sequence

from equipoise.files.state import HOST_VARIABLE

FIRST_DELAY_S = 1.0
"""Seconds between the end of a worker and the start of the next one."""
LONGEST_DELAY_S = 30.0
LONG_LIFE_S = 60.0
"""Seconds after which a worker counts as one that worked: the delays begin anew."""
GRACE_S = 10.0
"""Seconds that a worker has to end after SIGTERM."""
THREADS = 4
"""Tasks of a worker at a time: they ask how a campaign goes, and compute nothing."""
_PR_SET_PDEATHSIG = 1
QUIET: dict[str, object] = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.limit": "30s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.gil.enabled": False,
}
"""Settings of Dask under which an idle worker wakes up seldom."""

log = logging.getLogger("equipoise.cluster.worker")


def main(arguments: Sequence[str] | None = None) -> int:
    """Supervise until SIGTERM or SIGINT; return the exit status."""
    options = options_in(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s equipoise worker: %(message)s")
    if importlib.util.find_spec("distributed") is None:
        log.error("Dask is not installed; hint: pip install 'equipoise[cluster]'")
        return 2
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(
            _supervise_until_told(worker_command(options), worker_environment(options.name))
        )
    return 0


def worker_command(options: argparse.Namespace) -> list[str]:
    """Return the command line of the worker."""
    tls = (
        ("--tls-ca-file", options.tls_ca),
        ("--tls-cert", options.tls_cert),
        ("--tls-key", options.tls_key),
    )
    return [
        *(sys.executable, "-m", "distributed.cli.dask_worker", options.scheduler),
        *("--no-nanny", "--no-dashboard", "--nworkers", "1", "--nthreads", str(THREADS)),
        # What a task holds is a slice of bounded size; a limit would only pause the worker.
        *("--memory-limit", "0"),
        *(word for option, file in tls if file for word in (option, file)),
    ]


async def supervise(
    run: Callable[[], Awaitable[str]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run a worker again and again, at growing intervals; it ends by cancellation only.

    ``run`` runs one worker to its end and returns how it ended.
    """
    delay = FIRST_DELAY_S
    while True:
        began = clock()
        ending = await run()
        if clock() - began >= LONG_LIFE_S:
            delay = FIRST_DELAY_S
        log.info("the worker ended (%s); the next one starts in %g s", ending, delay)
        await sleep(delay)
        delay = min(LONGEST_DELAY_S, 2 * delay)


async def run_worker(command: Sequence[str], environment: dict[str, str]) -> str:
    """Run one worker to its end; if this is cancelled, end the worker first."""
    worker = await asyncio.create_subprocess_exec(
        *command, env=environment, preexec_fn=_end_with_parent
    )
    try:
        status = await worker.wait()
    finally:
        if worker.returncode is None:
            await _end(worker)
    return f"status {status}" if status >= 0 else signal.Signals(-status).name


async def _supervise_until_told(command: Sequence[str], environment: dict[str, str]) -> None:
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    await supervise(lambda: run_worker(command, environment))


async def _end(worker: asyncio.subprocess.Process) -> None:
    worker.terminate()
    try:
        await asyncio.wait_for(worker.wait(), GRACE_S)
    except TimeoutError:
        worker.kill()
        await worker.wait()


def _end_with_parent() -> None:
    # Also where the supervisor is killed: two workers would otherwise stay after its next start.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def worker_environment(name: str | None) -> dict[str, str]:
    """Return the variables of the worker; what the user has set of Dask stays."""
    named = {} if name is None else {HOST_VARIABLE: name}
    quiet = {
        f"DASK_{setting.upper().replace('.', '__').replace('-', '_')}": str(value)
        for setting, value in QUIET.items()
    }
    return {**quiet, **os.environ, **named}


def options_in(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command line; end the process if it is unusable."""
    parser = argparse.ArgumentParser(
        prog="python -m equipoise.cluster.worker",
        description="Run a Dask worker on this host, and start it again whenever it ends.",
    )
    parser.add_argument("scheduler", help="address of the scheduler: tcp://HOST:8786 or tls://…")
    parser.add_argument("--name", help="name of this host in tables (default: the machine's)")
    parser.add_argument("--tls-ca", metavar="FILE", help="certificate of the authority, PEM")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate of this host, PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of that certificate, PEM")
    options = parser.parse_args(arguments)
    tls = (options.tls_ca, options.tls_cert, options.tls_key)
    if options.scheduler.startswith("tls://") != all(tls) or any(tls) != all(tls):
        parser.error("--tls-ca, --tls-cert and --tls-key go with an address tls://…, all three")
    return options


if __name__ == "__main__":
    sys.exit(main())
