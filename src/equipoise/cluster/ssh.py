"""Clusters that start through SSH: ``--cluster ssh:HOSTS.txt``, by dask's SSHCluster.

Each line of the file names a host; what starts with ``#`` is a comment::

    bench1
    root@10.0.0.2:2222 python=/opt/equipoise/bin/python folder=/srv/bench name=left

The scheduler runs on the first host. All of them speak TLS with keys that are made for this
cluster alone. asyncssh finds the user's own keys, known hosts and configuration in ``~/.ssh``.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from equipoise.cluster.keys import key_settings
from equipoise.cluster.worker import QUIET, THREADS
from equipoise.files.reading import read_whole
from equipoise.files.state import HOST_VARIABLE
from equipoise.model.errors import UnusableInput
from equipoise.model.extras import require

CONNECT_S = 15.0
"""Seconds in which a host has to answer."""
WORKERS_S = 60.0
"""Seconds in which every worker has to find the scheduler."""
DEATH_TIMEOUT = "60 s"
"""Time after which a worker ends that finds no scheduler."""
IDLE_TIMEOUT = "10 minutes"
"""Idle time after which a scheduler ends that its coordinator has left behind."""
_IMPORTS = "import distributed, equipoise.cluster.messages"
_FORM = "[USER@]HOST[:PORT] [python=FILE] [folder=FOLDER] [name=NAME]"
_HOST = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^@:\s\[\]]+)(?::(?P<port>\d{1,5}))?"
)
_SETTINGS = ("python", "folder", "name")
_LARGEST_PORT = 65_535
_MOST_BYTES = 1 << 20


class SshHost(Struct, frozen=True):
    """A host that runs a worker, as a line of the file describes it."""

    host: str
    user: str | None = None
    port: int | None = None
    python: str | None = None
    """Interpreter there that has Equipoise; by default the file of this process's."""
    folder: str | None = None
    """Working folder of its campaigns; by default the user's home."""
    name: str | None = None
    """What tables call it; by default the name of the machine."""

    def connect_options(self) -> dict[str, Any]:
        """Return the options of asyncssh that the line sets."""
        known = {"username": self.user, "port": self.port, "connect_timeout": CONNECT_S}
        return {option: value for option, value in known.items() if value is not None}

    def interpreter(self) -> str:
        """Return the words of a shell that start Python in the folder of the host."""
        words = ["env"]
        words += [] if self.folder is None else ["-C", self.folder]
        words += [] if self.name is None else [f"{HOST_VARIABLE}={self.name}"]
        return shlex.join([*words, self.python or sys.executable])

    def ssh_line(self) -> str:
        """Return the command line that logs in to the host."""
        port = [] if self.port is None else ["-p", str(self.port)]
        return shlex.join(
            ["ssh", *port, self.host if self.user is None else f"{self.user}@{self.host}"]
        )


def read_hosts(file: Path) -> tuple[SshHost, ...]:
    """Read a file of hosts.

    Raises
    ------
    UnusableInput
        It cannot be read, names no host, or a line has another form.
    """
    hint = f"write a host in each line: {_FORM}"
    content = read_whole(file, hint=hint, most_bytes=_MOST_BYTES)
    try:
        lines = content[:_MOST_BYTES].decode().splitlines()
    except UnicodeDecodeError as error:
        raise UnusableInput(f"{file} is no text in UTF-8", hint=hint) from error
    hosts = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        host = _host_of(words)
        if host is None:
            raise UnusableInput(f"line {number} of {file} describes no host", hint=hint)
        hosts.append(host)
    if not hosts:
        raise UnusableInput(f"{file} names no host", hint=hint)
    return tuple(hosts)


def _host_of(words: list[str]) -> SshHost | None:
    parts = _HOST.fullmatch(words[0])
    pairs = [word.partition("=") for word in words[1:]]
    settings = {name: value for name, _, value in pairs}
    known = all(name in _SETTINGS and value for name, value in settings.items())
    if parts is None or not known or len(settings) != len(pairs):
        return None
    port = None if parts["port"] is None else int(parts["port"])
    if port is not None and not 0 < port <= _LARGEST_PORT:
        return None
    return SshHost(parts["host"].strip("[]"), parts["user"], port, **settings)


@contextmanager
def ssh_cluster(file: Path) -> Iterator[str]:
    """Start a scheduler and a worker for each host; yield the address of the scheduler.

    They end with the block; campaigns that they have started go on. Inside the block Dask's
    configuration has the keys of the cluster.

    Raises
    ------
    UnusableInput
        The file is unusable, a package is missing, or a host cannot be reached or has no worker.
    """
    hosts = read_hosts(file)
    distributed = require("distributed", "clusters", "cluster")
    dask_config = require("dask.config", "clusters", "cluster")
    asyncio.run(_check_all(hosts, file))
    with dask_config.set({**QUIET, **key_settings("clusters through SSH")}), _without_chatter():
        try:
            cluster = distributed.SSHCluster(
                [hosts[0].host, *(host.host for host in hosts)],
                connect_options=[one.connect_options() for one in (hosts[0], *hosts)],
                remote_python=[one.interpreter() for one in (hosts[0], *hosts)],
                scheduler_options={
                    **{"protocol": "tls://", "port": 0, "dashboard": False},
                    "idle_timeout": IDLE_TIMEOUT,
                },
                worker_options={
                    **{"nthreads": THREADS, "memory_limit": 0},
                    "death_timeout": DEATH_TIMEOUT,
                },
                security=distributed.Security(),
            )
        except (OSError, RuntimeError) as error:
            raise UnusableInput(
                f"the cluster of {file} cannot be started: {error}",
                hint="see that every host can reach the first one, on which the scheduler runs",
            ) from error
        with cluster:
            _wait_for_workers(cluster, len(hosts), file)
            yield str(cluster.scheduler_address)


def _wait_for_workers(cluster: Any, hosts: int, file: Path) -> None:
    """Wait for every host: a fleet asks those that are there when it begins."""
    try:
        cluster.wait_for_workers(hosts, timeout=WORKERS_S)
    except TimeoutError as error:
        raise UnusableInput(
            f"{len(cluster.scheduler_info['workers'])} of {hosts} hosts of {file} have a worker "
            f"after {WORKERS_S:g} s",
            hint="see that every host can reach the first one, on which the scheduler runs",
        ) from error


async def _check_all(hosts: Sequence[SshHost], file: Path) -> None:
    await asyncio.gather(*(_check(host, file) for host in hosts))


async def _check(host: SshHost, file: Path) -> None:
    """Log in to a host and import there what a worker needs: Dask would not say who failed."""
    asyncssh = require("asyncssh", "clusters through SSH", "cluster")
    try:
        async with asyncssh.connect(host.host, **host.connect_options()) as connection:
            done = await connection.run(f"{host.interpreter()} -c {shlex.quote(_IMPORTS)}")
    except (OSError, asyncssh.Error) as error:
        raise UnusableInput(
            f"{host.host} of {file} cannot be reached through SSH: {error}",
            hint=f"try `{host.ssh_line()}`",
        ) from error
    if done.exit_status != 0:
        lines = str(done.stderr).strip().splitlines() or [f"status {done.exit_status}"]
        raise UnusableInput(
            f"Equipoise does not run on {host.host} of {file}: {lines[-1]}",
            hint="install equipoise[cluster] there, and name its interpreter: python=FILE",
        )


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Silence the lines that SSHCluster repeats of its hosts."""
    logger = logging.getLogger("distributed.deploy.ssh")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
