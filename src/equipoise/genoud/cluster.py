"""Batches through a cluster of Dask.

The evaluator is scattered to all workers once; a worker that joins later gets it from another.
The scheduler does a lost worker's batches again by itself; what it gives up, we submit anew.
"""

from __future__ import annotations

import importlib
import re
import ssl
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.genoud.process_pool import share
from equipoise.genoud.worker import Failed, Floats, Parcel, evaluate_parcel
from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from distributed import Client

MOST_LOSSES = 3
"""So often the scheduler may give up the same batch before the search is given up."""
PATIENCE_S = 30.0
"""So long a cluster may be without any worker."""
CONNECT_S = 5.0
"""So long a scheduler may take to answer."""

_FORM = "tcp://HOST:PORT"
_ADDRESS = re.compile(
    r"(?P<scheme>tcp|tls)://(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^\s/:@\[\]]+):(?P<port>[0-9]{1,5})/?"
)
_LARGEST_PORT = 65_535


class Cluster:
    """A client that is connected; it stays the caller's."""

    def __init__(self, parcel: Parcel, client: Client) -> None:
        if client.asynchronous:
            raise UnusableInput(
                "executor is an asynchronous Client", mend="give one made without asynchronous=True"
            )
        self._parcel = parcel
        self._client: Any = client  # Dask types half of its methods.
        self._address = address_of(client)
        self._distributed = importlib.import_module("distributed")
        self._scattered = self._scatter()

    def batch_size(self, candidates: int) -> int:
        """A share for each thread of all workers."""
        with self._reaching_the_scheduler():
            threads = self._client.nthreads()
        return share(candidates, max(1, sum(int(count) for count in threads.values())))

    def outcomes(self, batches: Sequence[Floats]) -> list[Floats | Failed]:
        """The values of each batch; those of a lost worker are done again by another.

        Raises
        ------
        UnusableInput
            The scheduler or all workers are lost, or batch after batch kills its worker.
        """
        done: dict[int, Floats | Failed] = {}
        losses = 0
        while True:
            with self._reaching_the_scheduler():
                lost = self._round(batches, done)
                if lost is None:
                    return [done[place] for place in range(len(batches))]
                losses += 1
                self._recover(losses, lost)

    def close(self) -> None:
        """Lets the workers forget the evaluator's pickle."""
        self._scattered.release()

    def _round(
        self, batches: Sequence[Floats], done: dict[int, Floats | Failed]
    ) -> Exception | None:
        """Adds to ``done``; returns why some batches are not in it."""
        futures = {
            place: self._client.submit(evaluate_parcel, self._scattered, batch, pure=False)
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
            open_still = [future for place, future in futures.items() if place not in done]
            if open_still:
                self._client.cancel(open_still, force=True)
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
                        mend="install there what this process has, in the same versions",
                    )
                )

    def _recover(self, losses: int, lost: Exception) -> None:
        if self._client.status != "running":
            raise self._scheduler_lost() from lost
        if losses == MOST_LOSSES:
            raise UnusableInput(
                f"the cluster at {self._address} gave up the same candidates {losses} times: "
                f"{lost}",
                mend="look into the workers' logs; give them more memory if it ran out",
            ) from lost
        self._scattered = self._scatter()

    def _scatter(self) -> Any:
        with self._reaching_the_scheduler():
            self._wait_for_a_worker()
            return self._client.scatter(self._parcel, broadcast=True, hash=False)

    @contextmanager
    def _reaching_the_scheduler(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._scheduler_lost() from error

    def _scheduler_lost(self) -> UnusableInput:
        return UnusableInput(
            f"the connection to the scheduler at {self._address} was lost",
            mend="start it again, and then the search: the same seed gives the same answer",
        )

    def _wait_for_a_worker(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE_S)
        except TimeoutError as error:
            raise UnusableInput(
                f"the cluster at {self._address} has no worker",
                mend=f"start some: dask worker {self._address}",
            ) from error


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files (PEM) by which this process and a scheduler prove to each other who they are."""

    authority: Path
    """Certificate of the authority that signed the certificates of the cluster."""
    certificate: Path
    """Certificate of this process."""
    key: Path
    """Private key of that certificate."""


def connect(
    address: str, *, tls: TlsFiles | None = None, timeout_s: float = CONNECT_S
) -> Client:
    """Connect to a Dask scheduler; close the client after use.

    The scheduler and this process send each other pickles: whoever answers at the address, or can
    reach that scheduler without TLS, can run code as this user.

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
    _check_address(address, tls)
    security = {} if tls is None else {"security": _security(tls)}
    distributed = _distributed()
    try:
        client: Client = distributed.Client(
            address, timeout=timeout_s, set_as_default=False, **security
        )
    except (OSError, TimeoutError, ValueError) as error:
        raise UnusableInput(
            f"the scheduler at {address} cannot be reached: {error}",
            mend=f"start one with `dask scheduler` and give the address that it prints, {_FORM}",
        ) from error
    return client


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise UnusableInput(
            "a cluster needs dask.distributed, which is not installed",
            mend="pip install 'equipoise[cluster]'",
        ) from error


def _check_address(address: str, tls: TlsFiles | None) -> None:
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"]) <= _LARGEST_PORT:
        raise UnusableInput(
            f"{address!r} is not the address of a scheduler",
            mend=f"give the address that `dask scheduler` prints, {_FORM}",
        )
    if found["scheme"] == "tls" and tls is None:
        raise UnusableInput(
            f"the scheduler at {address} needs TLS files",
            mend="add --tls-ca, --tls-cert and --tls-key",
        )
    if found["scheme"] == "tcp" and tls is not None:
        raise UnusableInput(
            f"the connection to {address} would not be encrypted, TLS files or not",
            mend=f"write tls://{found['host']}:{found['port']}, or leave the TLS files out",
        )


def _security(tls: TlsFiles) -> Any:
    """Return Dask's form of the files, once they are known to be usable."""
    for what, load in (
        (tls.authority, lambda: ssl.create_default_context(cafile=tls.authority)),
        (
            tls.key,
            lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(
                tls.certificate, tls.key, password=_no_password
            ),
        ),
    ):
        try:
            load()
        except FileNotFoundError as error:
            raise UnusableInput(f"a TLS file is missing: {what}", mend="check its name") from error
        except (OSError, ValueError) as error:
            raise UnusableInput(
                f"the TLS file {what} cannot be used: {error}",
                mend="give PEM files: --tls-key is the key, without a password, of --tls-cert",
            ) from error
    return _distributed().Security(
        tls_ca_file=str(tls.authority),
        tls_client_cert=str(tls.certificate),
        tls_client_key=str(tls.key),
        require_encryption=True,
    )


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal.
    raise ValueError("it has a password")


def address_of(client: Client) -> str:
    """Where the client's scheduler is."""
    scheduler = client.scheduler
    return "an unknown address" if scheduler is None else str(scheduler.address)
