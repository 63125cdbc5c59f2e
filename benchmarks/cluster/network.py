"""Hosts of one machine: each in a network namespace of its own, or as processes on loopback.

A hub has a bridge; a cable (veth(4)) leads from it to each host. The scheduler and the coordinator
live in the hub. Every network of this process has namespaces of its own, so that several can be
used side by side, all with the same addresses.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

HUB_ADDRESS = "10.77.0.1"
_PATIENCE_S = 20.0
_numbers = itertools.count()
_made: list[str] = []
"""Namespaces that are not removed yet."""


class Network(Struct, frozen=True):
    """Where the processes of a fleet run."""

    hub: str | None
    """Namespace of the scheduler and the coordinator; ``None``: all is on loopback."""
    hosts: tuple[str | None, ...]
    """Namespace of each host."""
    port: int = 8786
    """Port of the scheduler."""

    @property
    def scheduler(self) -> str:
        """Address of the scheduler."""
        return f"tcp://{HUB_ADDRESS if self.hub else '127.0.0.1'}:{self.port}"

    def cut(self, host: int) -> None:
        """Pull the cable of a host."""
        _ip("-n", str(self.hub), "link", "set", f"port{host}", "down")

    def mend(self, host: int) -> None:
        """Put the cable of a host in again."""
        _ip("-n", str(self.hub), "link", "set", f"port{host}", "up")


def within(namespace: str | None) -> list[str]:
    """Return the words before a command that runs it in a namespace, as the same process."""
    return [] if namespace is None else ["ip", "netns", "exec", namespace]


def why_no_namespaces() -> str | None:
    """Return why this process cannot make network namespaces, or ``None`` if it can."""
    if shutil.which("ip") is None:
        return "ip is missing: apt-get install iproute2"
    name = f"eq{os.getpid()}-try"
    tries = (
        ["ip", "netns", "add", name],
        ["ip", "-n", name, "link", "add", "bridge0", "type", "bridge"],
        ["ip", "netns", "exec", name, "true"],
    )
    try:
        for words in tries:
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode:
                return f"no network namespaces: {done.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return None


@contextmanager
def namespaces(hosts: int) -> Iterator[Network]:
    """Make a hub and hosts; at the end of the block their processes are killed."""
    stem = f"eq{os.getpid()}-{next(_numbers)}"
    network = Network(f"{stem}-hub", tuple(f"{stem}-host{place}" for place in range(hosts)))
    names = [str(network.hub), *map(str, network.hosts)]
    try:
        for name in names:
            _ip("netns", "add", name)
            _made.append(name)
        _cable(network)
        yield network
    finally:
        remove_namespaces(names)


def remove_namespaces(names: Sequence[str] | None = None) -> None:
    """Kill what runs in namespaces of this process, and remove them: by default all of them."""
    for name in list(_made if names is None else names):
        if name in _made:
            _made.remove(name)
            _empty(name)
            _ip("netns", "del", name)


@contextmanager
def loopback(hosts: int, port: int) -> Iterator[Network]:
    """Hosts without namespaces: their cables cannot be pulled."""
    yield Network(None, (None,) * hosts, port)


def _cable(network: Network) -> None:
    hub = str(network.hub)
    _ip("-n", hub, "link", "set", "lo", "up")
    _ip("-n", hub, "link", "add", "bridge0", "type", "bridge", "forward_delay", "0")
    _ip("-n", hub, "address", "add", f"{HUB_ADDRESS}/24", "dev", "bridge0")
    _ip("-n", hub, "link", "set", "bridge0", "up")
    for place, host in enumerate(map(str, network.hosts)):
        port = f"port{place}"
        _ip("-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host)
        _ip("-n", hub, "link", "set", port, "master", "bridge0", "up")
        _ip("-n", host, "link", "set", "lo", "up")
        _ip("-n", host, "address", "add", f"10.77.0.{10 + place}/24", "dev", "eth0")
        _ip("-n", host, "link", "set", "eth0", "up")


def _empty(namespace: str) -> None:
    """Kill what runs in a namespace: detached processes, too."""
    deadline = time.monotonic() + _PATIENCE_S
    while (left := processes_in(namespace)) and time.monotonic() < deadline:
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it has just ended
        time.sleep(0.05)


def processes_in(namespace: str) -> list[int]:
    """Return the processes in a namespace."""
    words = ["ip", "netns", "pids", namespace]
    return list(map(int, subprocess.run(words, capture_output=True, text=True).stdout.split()))


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
