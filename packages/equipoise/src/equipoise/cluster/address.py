"""Addresses of clusters for ``--cluster``, and which of them may be used without encryption.

Dask's processes send each other pickles, and a pickle can run code. Without TLS, everybody on the
network path can run code as this user. Therefore an unencrypted address must belong to this host or
to a private network (RFC 1918, RFC 4193), unless the user gives ``--insecure``.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.shared.spelling import option

ADDRESS_FORMATS = "tcp://HOST:PORT, tls://HOST:PORT, ssh:FILE or local:N"
"""Formats of ``--cluster``, for hints."""
SCHEDULER_FORMAT = "tcp://HOST:PORT"
"""Format of the address of a scheduler, for hints."""
_SCHEDULER_PATTERN = re.compile(
    r"(?P<scheme>tcp|tls)://"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s/:@\[\]]+):(?P<port>[0-9]{1,5})"
)
_MAX_PORT = 65_535
MAX_LOCAL_WORKERS = 64
"""Maximum number of workers of ``local:N``."""
_PRIVATE_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
        *("::1/128", "fc00::/7", "fe80::/10"),
    )
)
"""Loopback, private (RFC 1918, RFC 4193) and link-local (RFC 3927, RFC 4291) networks."""
Resolver = Callable[[str], Iterable[str]]
"""Function that returns the numeric addresses of a host."""


class SchedulerAddress(Struct, frozen=True):
    """The scheduler of a running cluster."""

    text: str
    """Address as the user typed it."""
    scheme: Literal["tcp", "tls"]
    host: str
    """Name or numeric address, without brackets."""
    port: int

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return self.scheme == "tls"


class SshHosts(Struct, frozen=True):
    """Hosts in the file of ``ssh:FILE``, on which Equipoise starts a cluster through SSH."""

    text: str
    """Address as the user typed it."""
    file: Path


class LocalWorkers(Struct, frozen=True):
    """Workers on this host, for ``local:N``."""

    text: str
    """Address as the user typed it."""
    worker_count: int


ClusterAddress = SchedulerAddress | SshHosts | LocalWorkers


def read_address(text: str) -> ClusterAddress:
    """Return the cluster that ``--cluster`` names.

    Raise `UnusableInput` if the text has none of the four formats, or a file of hosts is missing.
    """
    prefix, separator, suffix = text.partition(":")
    if prefix == "ssh" and separator and suffix:
        file = Path(suffix)
        if not file.is_file():
            raise UnusableInput(
                f"the file {file} with the hosts of {text} does not exist",
                hint=f"create {file} with the name of a host in each line",
            )
        return SshHosts(text, file)
    if prefix == "local" and separator:
        if not suffix.isascii() or not suffix.isdigit() or not 0 < int(suffix) <= MAX_LOCAL_WORKERS:
            raise UnusableInput(
                f"{text!r} does not end with a number of workers from 1 to {MAX_LOCAL_WORKERS}",
                hint="write the number after the colon, such as local:2",
            )
        return LocalWorkers(text, int(suffix))
    return read_scheduler(text, ADDRESS_FORMATS)


def read_scheduler(text: str, formats: str = SCHEDULER_FORMAT) -> SchedulerAddress:
    """Return the address of a scheduler. The hint of an error lists the ``formats``.

    Raise `UnusableInput` if the text is not the address of a scheduler.
    """
    match = _SCHEDULER_PATTERN.fullmatch(text)
    if match is None or not 0 < int(match["port"]) <= _MAX_PORT:
        raise UnusableInput(
            f"{text!r} is not the address of a scheduler",
            hint=f"give {formats}; `dask scheduler` prints its address",
        )
    scheme: Literal["tcp", "tls"] = "tls" if match["scheme"] == "tls" else "tcp"
    return SchedulerAddress(text, scheme, match["host"].strip("[]"), int(match["port"]))


def resolve(host: str) -> tuple[str, ...]:
    """Return all numeric addresses of a host; none if the name of the host is unknown."""
    try:
        entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(socket_address[0]) for *_, socket_address in entries))


def refuse_unprotected(address: SchedulerAddress, resolver: Resolver = resolve) -> None:
    """Raise `UnusableInput` if a scheduler is unknown, or is on a public network without TLS.

    A scheduler is private if all its numeric addresses are private (see `is_private_address`).
    """
    if address.is_encrypted:
        return
    addresses = tuple(resolver(address.host))
    if not addresses:
        raise UnusableInput(
            f"the scheduler at {address.text} cannot be reached: no address of {address.host} "
            "is known",
            hint="check the name of the host, or give a numeric address",
        )
    public_ips = [ip for ip in addresses if not is_private_address(ip)]
    if public_ips:
        resolved_text = (
            "" if address.host in public_ips else f" ({address.host} is {public_ips[0]})"
        )
        raise UnusableInput(
            f"the connection to {address.text} is unprotected: it would leave the private network "
            f"without encryption{resolved_text}, and anybody on the path could run code as you",
            hint=f"use tls:// with {option('tls_ca')}, {option('tls_cert')} and "
            f"{option('tls_key')}, or add {option('insecure')}",
        )


def is_private_address(address: str) -> bool:
    """Return whether a numeric address is loopback, link-local or in a private network."""
    # A link-local address may name its interface: fe80::1%eth0.
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return any(ip in network for network in _PRIVATE_NETWORKS if network.version == ip.version)
