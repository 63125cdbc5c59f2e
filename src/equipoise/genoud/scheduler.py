"""Connecting to a Dask scheduler: its address, its TLS files, and whether it is one at all.

A scheduler, its workers and its clients send each other pickles, which run code when they are
read. Whoever answers at the address can run code as this user, and so can, without TLS, whoever
can reach the same scheduler.
"""

from __future__ import annotations

import importlib
import re
import socket
import ssl
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 5.0
"""Seconds in which a scheduler has to answer."""

_FORM = "tcp://HOST:PORT"
_ADDRESS = re.compile(
    r"(?P<scheme>tcp|tls)://"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s/:@\[\]]+):(?P<port>[0-9]{1,5})"
)
_LARGEST_PORT = 65_535
_GREETING = struct.Struct("<Q")
"""The length of the first message, which a scheduler sends unasked."""
_LONGEST_GREETING = 1 << 20


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files (PEM) by which this process and a scheduler prove to each other who they are."""

    authority: Path
    """Certificate of the authority that signed the certificates of the cluster."""
    certificate: Path
    """Certificate of this process."""
    key: Path
    """Private key of that certificate, without a password."""


def connect(address: str, *, tls: TlsFiles | None = None, timeout_s: float = CONNECT_S) -> Client:
    """Connect to a Dask scheduler; close the client after use.

    Parameters
    ----------
    address
        ``tcp://HOST:PORT``, or with ``tls`` ``tls://HOST:PORT``.
    timeout_s
        Seconds in which the scheduler has to answer.

    Raises
    ------
    UnusableInput
        Dask is not installed, the address or a TLS file is unusable, or no scheduler answers.
    """
    host, port = _host_and_port(address, tls)
    checked = None if tls is None else _tls_context(tls)
    distributed = _distributed()
    # Without files Dask's own configuration may name some.
    security = distributed.Security() if tls is None else _security(distributed, tls)
    context = checked or security.get_connection_args("client").get("ssl_context")
    is_encrypted = address.startswith("tls:")
    if is_encrypted and context is None:
        raise UnusableInput(
            f"the scheduler at {address} needs TLS files",
            hint="add --tls-ca, --tls-cert and --tls-key",
        )
    try:
        _greet(host, port, context if is_encrypted else None, timeout_s)
        client: Client = distributed.Client(
            address, timeout=timeout_s, set_as_default=False, security=security
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UnusableInput(
            f"the scheduler at {address} cannot be reached: {why}",
            hint=f"start one with `dask scheduler` and give the address that it prints, {_FORM}",
        ) from error
    return client


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise UnusableInput(
            "a cluster needs dask.distributed, which is not installed",
            hint="pip install 'equipoise[cluster]'",
        ) from error


def _host_and_port(address: str, tls: TlsFiles | None) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"]) <= _LARGEST_PORT:
        raise UnusableInput(
            f"{address!r} is not the address of a scheduler",
            hint=f"give the address that `dask scheduler` prints, {_FORM}",
        )
    if found["scheme"] == "tcp" and tls is not None:
        raise UnusableInput(
            f"the connection to {address} would not be encrypted, TLS files or not",
            hint=f"write tls://{found['host']}:{found['port']}, or leave the TLS files out",
        )
    return found["host"].strip("[]"), int(found["port"])


def _security(distributed: Any, tls: TlsFiles) -> Any:
    return distributed.Security(
        tls_ca_file=str(tls.authority),
        tls_client_cert=str(tls.certificate),
        tls_client_key=str(tls.key),
        require_encryption=True,
    )


def _tls_context(tls: TlsFiles) -> ssl.SSLContext:
    """Return what Dask makes of the files too, but with an error that names the file."""
    try:
        context = ssl.create_default_context(cafile=tls.authority)
    except (OSError, ValueError) as error:
        raise _unusable(tls.authority, error) from error
    # As in Dask: a certificate of the authority is enough, whatever name stands in it.
    context.check_hostname = False
    try:
        context.load_cert_chain(tls.certificate, tls.key, password=_no_password)
    except (OSError, ValueError) as error:
        missing = not tls.certificate.exists()
        raise _unusable(tls.certificate if missing else tls.key, error) from error
    return context


def _unusable(file: Path, error: Exception) -> UnusableInput:
    if isinstance(error, FileNotFoundError):
        return UnusableInput(f"there is no TLS file {file}", hint="check its name")
    return UnusableInput(
        f"the TLS file {file} cannot be used: {error}",
        hint="give PEM files: --tls-key is the key of --tls-cert, without a password",
    )


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal.
    raise ValueError("it has a password")


def _greet(host: str, port: int, context: ssl.SSLContext | None, timeout_s: float) -> None:
    """Find out whether a scheduler is there: Dask waits for ever for other servers.

    Raises
    ------
    OSError, ValueError
        Nobody answers in time, or somebody else does.
    """
    with socket.create_connection((host, port), timeout_s) as connection:
        if context is None:
            greeting = _first_bytes(connection)
        else:
            with context.wrap_socket(connection, server_hostname=host) as encrypted:
                greeting = _first_bytes(encrypted)
    is_whole = len(greeting) == _GREETING.size
    if not is_whole or not 0 < _GREETING.unpack(greeting)[0] <= _LONGEST_GREETING:
        raise ValueError("what answers there is not a Dask scheduler")


def _first_bytes(connection: socket.socket) -> bytes:
    found = b""
    while len(found) < _GREETING.size:
        more = connection.recv(_GREETING.size - len(found))
        if not more:
            break
        found += more
    return found
