"""Evaluation on a Dask cluster: batches through the workers of a connected client.

`equipoise.cluster.connection` connects one.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from equipoise.genoud.worker import Failed, Floats, Payload, batch_share, evaluate_payload
from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from distributed import Client

MOST_LOSSES = 3
"""Times that the scheduler may give up the same batch before the search is given up."""
PATIENCE_S = 30.0
"""Seconds that a cluster may be without any worker."""


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
