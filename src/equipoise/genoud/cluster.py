"""Batches through a cluster of Dask.

The evaluator is scattered to all workers once; a worker that joins later gets it from another.
The scheduler does a lost worker's batches again by itself; what it gives up, we submit anew.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
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


class Cluster:
    """A client that is connected; it stays the caller's."""

    def __init__(self, parcel: Parcel, client: Client) -> None:
        if client.asynchronous:
            raise UnusableInput(
                "executor is an asynchronous Client", hint="give one made without asynchronous=True"
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
    """Where the client's scheduler is."""
    scheduler = client.scheduler
    return "an unknown address" if scheduler is None else str(scheduler.address)
