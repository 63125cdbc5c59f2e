"""Clusters that Equipoise starts itself: ``local:N`` on this host, ``ssh:HOSTS.txt`` through SSH.

The processes of a cluster use TLS. Each cluster gets a new key, which is never written to a file.
In the file HOSTS.txt, each line names one host, and ``#`` begins a comment::

    bench1
    root@10.0.0.2:2222 python=/opt/equipoise/bin/python folder=/srv/bench name=bench2

The scheduler runs on the first host. Dask starts the scheduler and the workers through SSH.
asyncssh reads the user's keys, known hosts and configuration in ``~/.ssh``.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct

from equipoise.cluster.worker import DASK_FOLDER, MAX_WORKER_TASKS, QUIET_SETTINGS
from equipoise.files.state import HOST_VARIABLE, private_folder
from equipoise.files.writing import read_whole
from equipoise.model.errors import UnusableInput
from equipoise.shared.extras import require

CERTIFICATE_VALIDITY = timedelta(days=365)
"""Time before and after its creation in which a certificate is valid."""
CONNECT_TIMEOUT_S = 15.0
"""Seconds in which a host must answer through SSH."""
WORKERS_TIMEOUT_S = 60.0
"""Seconds in which every worker must connect to the scheduler."""
DEATH_TIMEOUT = "60 s"
"""Time without a scheduler after which a worker ends."""
IDLE_TIMEOUT = "10 minutes"
"""Idle time after which a scheduler without a coordinator ends."""
_SCHEDULER_SETTINGS: dict[str, Any] = {
    "protocol": "tls://",
    "port": 0,
    "dashboard": False,
    "idle_timeout": IDLE_TIMEOUT,
}
"""Arguments of Dask's scheduler."""
_WORKER_SETTINGS: dict[str, Any] = {
    "nthreads": MAX_WORKER_TASKS,
    "memory_limit": 0,
    "death_timeout": DEATH_TIMEOUT,
}
"""Arguments of Dask's workers."""
_CHECK_PROGRAM = (
    "import distributed, equipoise.cluster.messages; "
    "from equipoise.cluster.worker import DASK_FOLDER; "
    "from equipoise.files.state import private_folder; print(private_folder(DASK_FOLDER))"
)
"""Python code that a host runs before the worker starts: it prints the folder for Dask's files."""
_HOST_LINE_FORMAT = "[USER@]HOST[:PORT] [python=FILE] [folder=FOLDER] [name=NAME]"
"""Format of a line in a file of hosts, for hints."""
_HOST_PATTERN = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^@:\s\[\]]+)(?::(?P<port>\d{1,5}))?"
)
_HOST_SETTINGS = ("python", "folder", "name")
"""Settings that a line of the file may have after the host."""
_MAX_PORT = 65_535
_MAX_FILE_BYTES = 1 << 20
"""Maximum size of a file of hosts."""


@contextmanager
def local_cluster(worker_count: int) -> Iterator[str]:
    """Start a scheduler and workers on this host; yield the address of the scheduler.

    Raise `UnusableInput` if a package is missing.
    """
    # The key is necessary because every user of this host can connect to the port.
    with _dask_with_key("clusters") as distributed, ExitStack() as stack:
        with _ignore_interrupts():
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=worker_count,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    protocol="tls://",
                    security=distributed.Security(),
                    dashboard_address=None,
                    # Port 0 is any free port, as another program may use Dask's usual port.
                    scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                    memory_limit=0,
                    silence_logs="CRITICAL",
                )
            )
        yield str(cluster.scheduler_address)


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C in the block and in Dask's processes, through which campaigns are stopped."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


@contextmanager
def _dask_with_key(purpose: str) -> Iterator[Any]:
    """Yield the module ``distributed``; in the block, Dask has a new key and a private folder."""
    distributed = require("distributed", "clusters", "cluster")
    dask_config = require("dask.config", "clusters", "cluster")
    # Dask imports modules from its folder. Another user may own the default folder in /tmp.
    folder = {"temporary-directory": str(private_folder(DASK_FOLDER))}
    with dask_config.set({**QUIET_SETTINGS, **folder, **_key_settings(purpose)}):
        yield distributed


def _key_settings(purpose: str) -> dict[str, Any]:
    """Return settings of Dask with a new key for the processes of one cluster.

    Without a key, everybody who can connect to a scheduler can run code. The settings also switch
    off Dask's web pages, because they are not encrypted.
    """
    x509 = require("cryptography.x509", purpose, "cluster")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    common_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "equipoise cluster")])
    current_time = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(common_name)
        .issuer_name(common_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # The clocks of the hosts may differ by hours.
        .not_valid_before(current_time - CERTIFICATE_VALIDITY)
        .not_valid_after(current_time + CERTIFICATE_VALIDITY)
        .sign(key, hashes.SHA256())
    )
    private_key = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    certificate_text = certificate.public_bytes(serialization.Encoding.PEM).decode()
    settings: dict[str, Any] = {
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        "distributed.comm.require-encryption": True,
        "distributed.comm.tls.ca-file": certificate_text,
    }
    for role in ("client", "scheduler", "worker"):
        settings[f"distributed.comm.tls.{role}.cert"] = certificate_text
        settings[f"distributed.comm.tls.{role}.key"] = private_key
    return settings


class SshHost(Struct, frozen=True):
    """A host that runs a worker, from one line of the file of hosts."""

    address: str
    """Name of the host, or its numeric address."""
    user: str | None = None
    port: int | None = None
    python: str | None = None
    """Path of Python on the host; by default the path of this process's Python."""
    folder: str | None = None
    """Working folder of the host's campaigns; by default the user's home."""
    name: str | None = None
    """Name of the host in tables; by default the name of the machine."""

    def connect_options(self) -> dict[str, Any]:
        """Return the options of asyncssh that the line sets."""
        options = {"username": self.user, "port": self.port, "connect_timeout": CONNECT_TIMEOUT_S}
        return {option: value for option, value in options.items() if value is not None}

    def python_line(self) -> str:
        """Return the shell command that starts Python in the folder of the host."""
        argv = ["env"]
        argv += [] if self.folder is None else ["-C", self.folder]
        argv += [] if self.name is None else [f"{HOST_VARIABLE}={self.name}"]
        return shlex.join([*argv, self.python or sys.executable])

    def ssh_line(self) -> str:
        """Return a command line that logs in to the host, for a hint."""
        port_options = [] if self.port is None else ["-p", str(self.port)]
        destination = self.address if self.user is None else f"{self.user}@{self.address}"
        return shlex.join(["ssh", *port_options, destination])


def read_hosts(file: Path) -> tuple[SshHost, ...]:
    """Read a file of hosts.

    Raise `UnusableInput` if the file cannot be read, names no host, or has an invalid line.
    """
    hint = f"write a host in each line: {_HOST_LINE_FORMAT}"
    content = read_whole(file, hint=hint, max_bytes=_MAX_FILE_BYTES)
    try:
        lines = content[:_MAX_FILE_BYTES].decode().splitlines()
    except UnicodeDecodeError as error:
        raise UnusableInput(
            f"{file} is not text in UTF-8", hint="save the file in UTF-8"
        ) from error
    hosts = []
    for line_number, line in enumerate(lines, 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        host = _parse_host(fields)
        if host is None:
            raise UnusableInput(f"line {line_number} of {file} does not describe a host", hint=hint)
        hosts.append(host)
    if not hosts:
        raise UnusableInput(f"{file} names no host", hint=hint)
    return tuple(hosts)


def _parse_host(fields: list[str]) -> SshHost | None:
    address, *assignments = fields
    host_match = _HOST_PATTERN.fullmatch(address)
    settings_and_values = [assignment.partition("=") for assignment in assignments]
    settings = {setting: value for setting, _, value in settings_and_values}
    is_valid = all(setting in _HOST_SETTINGS and value for setting, value in settings.items())
    # A setting that is named twice makes the line invalid, too.
    if host_match is None or not is_valid or len(settings) != len(assignments):
        return None
    port = None if host_match["port"] is None else int(host_match["port"])
    if port is not None and not 0 < port <= _MAX_PORT:
        return None
    return SshHost(host_match["host"].strip("[]"), host_match["user"], port, **settings)


@contextmanager
def ssh_cluster(file: Path) -> Iterator[str]:
    """Start a scheduler and a worker for each host; yield the address of the scheduler.

    The scheduler and the workers end with the block, but the campaigns of the hosts continue.
    In the block, Dask's configuration has the key of the cluster.

    Raise `UnusableInput` if the file is unusable, a package is missing, or a host cannot be reached
    or has no worker.
    """
    hosts = read_hosts(file)
    with _dask_with_key("clusters through SSH") as distributed, _quiet_ssh_log():
        folders = asyncio.run(_check_hosts(hosts, file))
        ssh = importlib.import_module("distributed.deploy.ssh")
        scheduler = {
            "cls": ssh.Scheduler,
            "options": _ssh_options(hosts[0], folders[0], _SCHEDULER_SETTINGS),
        }
        workers = {
            worker_number: {
                "cls": ssh.Worker,
                "options": {
                    **_ssh_options(host, folder, _WORKER_SETTINGS),
                    "worker_class": "distributed.Nanny",
                },
            }
            for worker_number, (host, folder) in enumerate(zip(hosts, folders, strict=True))
        }
        try:
            cluster = distributed.SpecCluster(
                workers, scheduler, name="SSHCluster", security=distributed.Security()
            )
        except (OSError, RuntimeError) as error:
            raise UnusableInput(
                f"the cluster of {file} cannot be started: {error}",
                hint="check that every host can connect to the first host: it runs the scheduler",
            ) from error
        with cluster:
            _wait_for_workers(cluster, len(hosts), file)
            yield str(cluster.scheduler_address)


def _ssh_options(host: SshHost, folder: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return Dask's options for the process on a host; ``folder`` is private to the host."""
    return {
        "address": host.address,
        "connect_options": host.connect_options(),
        "remote_python": host.python_line(),
        "kwargs": {**settings, "local_directory": folder},
    }


def _wait_for_workers(cluster: Any, host_count: int, file: Path) -> None:
    """Wait for the worker of every host, because a fleet has only hosts with a worker."""
    try:
        cluster.wait_for_workers(host_count, timeout=WORKERS_TIMEOUT_S)
    except TimeoutError as error:
        raise UnusableInput(
            f"{len(cluster.scheduler_info['workers'])} of {host_count} hosts of {file} have a "
            f"worker after {WORKERS_TIMEOUT_S:g} s",
            hint="check that every host can connect to the first host: it runs the scheduler",
        ) from error


async def _check_hosts(hosts: Sequence[SshHost], file: Path) -> list[str]:
    return await asyncio.gather(*(_check_host(host, file) for host in hosts))


async def _check_host(host: SshHost, file: Path) -> str:
    """Log in to a host, check that a worker can start, and return the host's private folder."""
    asyncssh = require("asyncssh", "clusters through SSH", "cluster")
    try:
        async with asyncssh.connect(host.address, **host.connect_options()) as connection:
            result = await connection.run(f"{host.python_line()} -c {shlex.quote(_CHECK_PROGRAM)}")
    except (OSError, asyncssh.Error) as error:
        raise UnusableInput(
            f"{host.address} of {file} cannot be reached through SSH: {error}",
            hint=f"try `{host.ssh_line()}`",
        ) from error
    if result.exit_status != 0:
        lines = str(result.stderr).strip().splitlines() or [f"status {result.exit_status}"]
        raise UnusableInput(
            f"Equipoise does not run on {host.address} of {file}: {lines[-1]}",
            hint=f"install equipoise[cluster] on {host.address}, or add python=FILE to its line",
        )
    return str(result.stdout).strip().splitlines()[-1]


@contextmanager
def _quiet_ssh_log() -> Iterator[None]:
    """Silence the log of SSHCluster, because it repeats the output of all hosts."""
    logger = logging.getLogger("distributed.deploy.ssh")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
