"""A Dask cluster: the connection to its scheduler, and batches through its workers.

A scheduler, its workers and its clients send each other pickles, which run code when they are
read. The program that answers at the address can run code as this user. Without TLS, so can
everybody who reaches the same scheduler.
"""

from __future__ import annotations

import importlib
import itertools
import re
import socket
import ssl
import struct
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.genoud.worker import Failed, Floats, Payload, batch_share, evaluate_payload
from equipoise.model.errors import UnusableInput
from equipoise.model.extras import require

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
MOST_LOSSES = 3
"""Times that the scheduler may give up the same batch before the search is given up."""
PATIENCE_S = 30.0
"""Seconds that a cluster may be without any worker."""


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
    distributed = require("distributed", "clusters", "cluster")
    # Without files Dask's own configuration may name some.
    security = distributed.Security()
    if tls is not None:
        security = distributed.Security(
            tls_ca_file=str(tls.authority),
            tls_client_cert=str(tls.certificate),
            tls_client_key=str(tls.key),
            require_encryption=True,
        )
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


def _host_and_port(address: str, tls: TlsFiles | None) -> tuple[str, int]:
    parts = _ADDRESS.fullmatch(address)
    if parts is None or not 0 < int(parts["port"]) <= _LARGEST_PORT:
        raise UnusableInput(
            f"{address!r} is not the address of a scheduler",
            hint=f"give the address that `dask scheduler` prints, {_FORM}",
        )
    if parts["scheme"] == "tcp" and tls is not None:
        raise UnusableInput(
            f"the connection to {address} would not be encrypted, TLS files or not",
            hint=f"write tls://{parts['host']}:{parts['port']}, or leave the TLS files out",
        )
    return parts["host"].strip("[]"), int(parts["port"])


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
    """Find out whether a scheduler is there: Dask waits for ever for other servers."""
    with socket.create_connection((host, port), timeout_s) as plain:
        connection = plain if context is None else context.wrap_socket(plain, server_hostname=host)
        with connection, connection.makefile("rb") as stream:
            greeting = stream.read(_GREETING.size)
    is_whole = len(greeting) == _GREETING.size
    if not is_whole or not 0 < _GREETING.unpack(greeting)[0] <= _LONGEST_GREETING:
        raise ValueError("what answers there is not a Dask scheduler")


class Cluster:
    """Evaluation by the workers of a connected client, which stays the caller's.

    The evaluator is scattered to all workers once; a worker that joins later gets it from another.
    The scheduler does a lost worker's batches again by itself; batches that it gives up are
    submitted anew.
    """

    def __init__(self, payload: Payload, client: Client) -> None:
        if client.asynchronous:
            raise UnusableInput(
                "executor is an asynchronous Client", hint="give one made without asynchronous=True"
            )
        self._payload = payload
        self._client: Any = client  # Dask types half of its methods.
        self._address = address_of(client)
        self._distributed = importlib.import_module("distributed")
        self._scattered = self._scatter()

    def batch_size(self, candidates: int) -> int:
        """Return a share for each thread of all workers."""
        with self._reaching_the_scheduler():
            threads = self._client.nthreads()
        return batch_share(candidates, max(1, sum(int(count) for count in threads.values())))

    def outcomes(self, batches: Sequence[Floats]) -> list[Floats | Failed]:
        """Return the values of each batch; another worker does those of a lost one again."""
        done: dict[int, Floats | Failed] = {}
        with self._reaching_the_scheduler():
            for losses in itertools.count(1):
                lost = self._round(batches, done)
                if lost is None:
                    break
                self._recover(losses, lost)
        return [done[place] for place in range(len(batches))]

    def close(self) -> None:
        """Let the workers forget the evaluator's pickle."""
        self._scattered.release()

    def _round(
        self, batches: Sequence[Floats], done: dict[int, Floats | Failed]
    ) -> Exception | None:
        """Add to ``done``; return the error that left some batches out of it."""
        futures = {
            place: self._client.submit(evaluate_payload, self._scattered, batch, pure=False)
            for place, batch in enumerate(batches)
            if place not in done
        }
        lost: Exception | None = None
        try:
            for place, future in futures.items():
                try:
                    done[place] = self._result(future)
                except (self._distributed.KilledWorker, CancelledError) as error:
                    lost = error
        finally:
            unfinished = [future for place, future in futures.items() if place not in done]
            if unfinished:
                self._client.cancel(unfinished, force=True)
        return lost

    def _result(self, future: Any) -> Any:
        while True:
            try:
                return future.result(timeout=PATIENCE_S)
            except TimeoutError:
                # A worker's own exceptions come as a `Failed`: this is the wait that ended.
                self._wait_for_a_worker()
            except (ImportError, RuntimeError) as error:
                # What Dask says of a task that the worker could not even unpack.
                return Failed(
                    UnusableInput(
                        f"a worker of the cluster at {self._address} cannot run Equipoise: {error}",
                        hint="install there what this process has, in the same versions",
                    )
                )

    def _recover(self, losses: int, lost: Exception) -> None:
        if self._client.status != "running":
            raise self._scheduler_lost() from lost
        if losses == MOST_LOSSES:
            raise UnusableInput(
                f"the cluster at {self._address} gave up the same candidates {losses} times: "
                f"{lost}",
                hint="look into the workers' logs; give them more memory if it ran out",
            ) from lost
        self._scattered = self._scatter()

    def _scatter(self) -> Any:
        with self._reaching_the_scheduler():
            self._wait_for_a_worker()
            return self._client.scatter(self._payload, broadcast=True, hash=False)

    @contextmanager
    def _reaching_the_scheduler(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._scheduler_lost() from error

    def _scheduler_lost(self) -> UnusableInput:
        return UnusableInput(
            f"the connection to the scheduler at {self._address} was lost",
            hint="start it again, and then the search: the same seed gives the same answer",
        )

    def _wait_for_a_worker(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE_S)
        except TimeoutError as error:
            raise UnusableInput(
                f"the cluster at {self._address} has no worker",
                hint=f"start some: dask worker {self._address}",
            ) from error


def address_of(client: Client) -> str:
    """Return the address of the client's scheduler."""
    scheduler = client.scheduler
    return "an unknown address" if scheduler is None else str(scheduler.address)
