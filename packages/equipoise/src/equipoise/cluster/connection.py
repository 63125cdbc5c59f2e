"""The connection to a Dask scheduler.

The program at the address can run code as this user: see `equipoise.cluster.address`.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from equipoise.cluster.address import (
    SCHEDULER_FORMAT,
    ClusterAddress,
    LocalWorkers,
    SchedulerAddress,
    SshHosts,
    read_scheduler,
    refuse_unprotected,
)
from equipoise.model.errors import UnusableInput
from equipoise.shared.extras import require
from equipoise.shared.spelling import option

if TYPE_CHECKING:
    from distributed import Client

CONNECT_TIMEOUT_S = 5.0
"""Seconds in which a scheduler must answer."""
_GREETING_LENGTH = struct.Struct("<Q")
"""First eight bytes of a greeting, the first message of a scheduler: the greeting's length."""
_MAX_GREETING_BYTES = 1 << 20
"""Maximum length of a greeting; Dask sends no longer greeting."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files (PEM) with which this process and a scheduler authenticate each other."""

    authority: Path
    """Certificate of the authority that signed the certificates of the cluster."""
    certificate: Path
    """Certificate of this process."""
    key: Path
    """Private key of ``certificate``, without a password."""


class ClusterAccess(Struct, frozen=True):
    """A cluster, and the protection of the connection."""

    address: ClusterAddress
    tls: TlsFiles | None = None
    insecure: bool = False
    """Whether the connection may be unprotected (`equipoise.cluster.address`)."""


@contextmanager
def running_scheduler(access: ClusterAccess) -> Iterator[str]:
    """Yield the address of the cluster's scheduler.

    For ``ssh:`` and ``local:`` a cluster starts, and it ends with the block.

    Raise `UnusableInput` if the address is unprotected, TLS files are given for a cluster that
    makes its own key, or the cluster cannot be started.
    """
    if access.tls is not None and not isinstance(access.address, SchedulerAddress):
        raise UnusableInput(
            f"{access.address.text} makes its own key, so it takes no TLS files",
            hint=f"remove {option('tls_ca')}, {option('tls_cert')} and {option('tls_key')}",
        )
    match access.address:
        case SchedulerAddress() as address:
            if not access.insecure:
                refuse_unprotected(address)
            yield address.text
        case SshHosts(file=file):
            from equipoise.cluster.own_clusters import ssh_cluster

            with ssh_cluster(file) as scheduler:
                if not access.insecure:
                    refuse_unprotected(read_scheduler(scheduler))
                yield scheduler
        case LocalWorkers(worker_count=worker_count):
            from equipoise.cluster.own_clusters import local_cluster

            with local_cluster(worker_count) as scheduler:
                yield scheduler


@contextmanager
def cluster_client(access: ClusterAccess) -> Iterator[Client]:
    """Yield a client that is connected to a cluster.

    Raise `UnusableInput` as `running_scheduler` and `connect` do.
    """
    with running_scheduler(access) as address, connect(address, tls=access.tls) as client:
        yield client


def connect(
    address: str, *, tls: TlsFiles | None = None, timeout_s: float = CONNECT_TIMEOUT_S
) -> Client:
    """Connect to a Dask scheduler; the caller closes the client.

    The address is ``tcp://HOST:PORT``, or ``tls://HOST:PORT`` with ``tls``.

    Raise `UnusableInput` if Dask is not installed, the address or a TLS file is unusable, or no
    scheduler answers.
    """
    security = security_for(address, tls=tls, timeout_s=timeout_s)
    distributed = require("distributed", "clusters", "cluster")
    try:
        client: Client = distributed.Client(
            address, timeout=timeout_s, set_as_default=False, security=security
        )
    except (OSError, ValueError) as error:
        raise unreachable_error(address, error) from error
    return client


def security_for(
    address: str, *, tls: TlsFiles | None = None, timeout_s: float = CONNECT_TIMEOUT_S
) -> Any:
    """Check that a scheduler answers at an address; return Dask's ``Security`` for the connection.

    Raise `UnusableInput` as `connect` does.
    """
    scheduler = read_scheduler(address)
    if tls is not None and not scheduler.is_encrypted:
        raise UnusableInput(
            f"the connection to {address} would not be encrypted, in spite of the TLS files",
            hint=f"write {address.replace('tcp:', 'tls:', 1)}, or remove the TLS files",
        )
    given_context = None if tls is None else _tls_context(tls)
    distributed = require("distributed", "clusters", "cluster")
    # If the user gives no TLS files, Dask's configuration may name some.
    security = distributed.Security()
    if tls is not None:
        security = distributed.Security(
            tls_ca_file=str(tls.authority),
            tls_client_cert=str(tls.certificate),
            tls_client_key=str(tls.key),
            require_encryption=True,
        )
    context = given_context or security.get_connection_args("client").get("ssl_context")
    if scheduler.is_encrypted and context is None:
        raise UnusableInput(
            f"the scheduler at {address} needs TLS files",
            hint=f"add {option('tls_ca')}, {option('tls_cert')} and {option('tls_key')}",
        )
    try:
        _check_greeting(scheduler, context if scheduler.is_encrypted else None, timeout_s)
    except ssl.SSLCertVerificationError as error:
        raise UnusableInput(
            f"the certificate of the scheduler at {address} is refused: {error.verify_message}",
            hint="renew the certificate if it has expired, or give the file of the authority that "
            f"signed it: {option('tls_ca', 'FILE.pem')}",
        ) from error
    except (OSError, ValueError) as error:
        raise unreachable_error(address, error) from error
    return security


def unreachable_error(address: str, error: Exception) -> UnusableInput:
    """Return the error for a scheduler that does not answer."""
    reason = getattr(error, "strerror", None) or str(error)
    return UnusableInput(
        f"the scheduler at {address} cannot be reached: {reason}",
        hint="start a scheduler with `dask scheduler` and give the address that it prints, "
        f"{SCHEDULER_FORMAT}",
    )


def _tls_context(tls: TlsFiles) -> ssl.SSLContext:
    """Return the TLS context that Dask would make; errors name the unusable file."""
    for file in (tls.authority, tls.certificate, tls.key):
        # Opening a FIFO would wait for a writer.
        if file.exists() and not file.is_file():
            raise UnusableInput(
                f"the TLS file {file} is not a regular file", hint="give a PEM file"
            )
    try:
        context = ssl.create_default_context(cafile=tls.authority)
    except (OSError, ValueError) as error:
        raise _tls_file_error(tls.authority, error) from error
    # Like Dask, accept every certificate of the authority, for any host name.
    context.check_hostname = False
    try:
        context.load_cert_chain(tls.certificate, tls.key, password=_no_password)
    except (OSError, ValueError) as error:
        is_missing = not tls.certificate.exists()
        raise _tls_file_error(tls.certificate if is_missing else tls.key, error) from error
    return context


def _tls_file_error(file: Path, error: Exception) -> UnusableInput:
    if isinstance(error, FileNotFoundError):
        return UnusableInput(f"there is no TLS file {file}", hint="check the path of the file")
    return UnusableInput(
        f"the TLS file {file} cannot be used: {error}",
        hint="give a certificate and its key as PEM files without a password: "
        f"{option('tls_cert')} and {option('tls_key')}",
    )


def _no_password() -> str:
    # Without this function OpenSSL would ask for the password on the terminal.
    raise ValueError("it has a password")


def _check_greeting(
    address: SchedulerAddress, context: ssl.SSLContext | None, timeout_s: float
) -> None:
    """Check that the server sends a scheduler's greeting. Dask would wait without a limit."""
    with socket.create_connection((address.host, address.port), timeout_s) as tcp:
        connection = (
            tcp if context is None else context.wrap_socket(tcp, server_hostname=address.host)
        )
        with connection, connection.makefile("rb") as stream:
            greeting = stream.read(_GREETING_LENGTH.size)
    is_complete = len(greeting) == _GREETING_LENGTH.size
    if not is_complete or not 0 < _GREETING_LENGTH.unpack(greeting)[0] <= _MAX_GREETING_BYTES:
        raise ValueError("the server at this address is not a Dask scheduler")
