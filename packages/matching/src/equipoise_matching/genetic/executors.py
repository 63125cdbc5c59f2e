"""Evaluation of a population of candidates: in this process, in a pool or on a cluster.

The population is cut into batches that keep their order, and each candidate's values depend on
its parameters alone: where it was evaluated, or in which batch, changes no bit. The data go out
once, and a batch whose worker is lost is done again.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise_matching.genetic.worker import (
    Evaluate,
    EvaluationFailed,
    Failure,
    Floats,
    Payload,
    UnknownPayload,
    batch_share,
    evaluate_checked,
    evaluate_payload,
    pack,
    point_text,
)
from equipoise_matching.shared.errors import UnusableInput

if TYPE_CHECKING:
    from distributed import Client

MAX_LOSSES = 3
"""Times that a pool may break down, or a scheduler give up, over the same candidates."""
PATIENCE_S = 30.0
"""Seconds that a cluster may be without any worker."""


class BatchEvaluator(AbstractContextManager["BatchEvaluator"]):
    """Function of candidates (candidates, n) that returns values (candidates, criteria).

    Use it in a ``with`` block: it may own a pool, or hold data on a cluster.
    ``evaluations`` counts the candidates.

    Raise `UnusableInput` if ``executor`` is not an executor, the function cannot be sent to
    other processes, or the cluster has no worker.

    Parameters
    ----------
    evaluate
        Takes candidates, shape (candidates, n), and returns their values, shape (candidates,
        criteria) or (candidates,); each row must depend on its own candidate only. For other
        processes it is pickled once, and each worker keeps its copy as long as it is in use:
        build expensive parts at the first call, and leave them out of the pickle.
    executor
        ``None``: this process, all in one call. A ``dask.distributed.Client``, or
        anything with ``submit`` as in ``concurrent.futures``.
    batch_size
        Candidates in a batch; by default four batches for each worker.
    """

    def __init__(
        self, evaluate: Evaluate, executor: Any = None, *, batch_size: int | None = None
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise UnusableInput(f"batch_size is {batch_size}", hint="give 1 or more")
        self._transport = _transport(evaluate, executor)
        self._batch_size = batch_size
        self.evaluations = 0

    def __call__(self, candidates: Floats) -> Floats:
        """Return the values of the candidates, in their order."""
        if not len(candidates):
            return np.empty((0, 0))
        self.evaluations += len(candidates)
        points = np.ascontiguousarray(candidates, dtype=np.float64)
        size = self._batch_size or self._transport.batch_size(len(points))
        batches = [points[first : first + size] for first in range(0, len(points), size)]
        answers: list[Floats] = []
        for batch, outcome in zip(batches, self._transport.outcomes(batches), strict=True):
            if isinstance(outcome, Failure):
                raise outcome.error
            if answers and outcome.shape[1] != answers[0].shape[1]:
                raise EvaluationFailed(
                    f"the function returned {outcome.shape[1]} values at {point_text(batch[0])} "
                    f"and {answers[0].shape[1]} at {point_text(batches[0][0])}: there must be as "
                    "many at every point"
                )
            answers.append(outcome)
        return np.concatenate(answers)

    def __exit__(self, *_: object) -> None:
        """Release what was made for the evaluation; the caller's executor stays open."""
        self._transport.close()


def _transport(evaluate: Evaluate, executor: Any) -> Local | Cluster | Pool:
    if executor is None or isinstance(executor, ThreadPoolExecutor):
        return Local(evaluate, executor)
    # A client exists only where distributed is imported: that heavy import is never made here.
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(executor, distributed.Client):
        return Cluster(pack(evaluate), executor)
    if not callable(getattr(executor, "submit", None)):
        raise UnusableInput(
            f"executor is {type(executor).__name__}, which has no submit",
            hint="give an executor of concurrent.futures or a dask.distributed Client",
        )
    return Pool(pack(evaluate), executor)


class Local:
    """Evaluation in this process, in one batch or in a pool of threads: nothing is pickled."""

    def __init__(self, evaluate: Evaluate, executor: ThreadPoolExecutor | None) -> None:
        self._evaluate = partial(evaluate_checked, evaluate)
        self._executor = executor

    def batch_size(self, candidates: int) -> int:
        """Return all candidates, or a share for each thread of the pool."""
        if self._executor is None:
            return candidates
        return batch_share(candidates, pool_workers(self._executor))

    def outcomes(self, batches: Sequence[Floats]) -> list[Floats | Failure]:
        """Return the values of each batch."""
        if self._executor is None:
            return [*map(self._evaluate, batches)]
        return [*self._executor.map(self._evaluate, batches)]

    def close(self) -> None:
        """Release nothing: nothing is kept."""


class Pool:
    """Evaluation by an executor with ``submit``, whose workers may be other processes.

    The workers of such a pool have no names, and nothing can be sent to all of them. As many first
    batches as there are workers carry the evaluator, the others a reference to it. A worker without
    the evaluator reports this, and its batch goes out again with the evaluator.
    """

    def __init__(self, payload: Payload, executor: Any) -> None:
        self._payload = payload
        self._callers_executor = self._executor = executor
        self._payloads_to_send = pool_workers(executor)

    def batch_size(self, candidates: int) -> int:
        """Return a share for each worker, by the number of workers of the executor, or of cores."""
        return batch_share(candidates, pool_workers(self._executor))

    def outcomes(self, batches: Sequence[Floats]) -> list[Floats | Failure]:
        """Return the values of each batch; a new pool does those that a broken one lost."""
        done: dict[int, Floats | Failure] = {}
        without_evaluator: set[int] = set()
        losses = 0
        while len(done) < len(batches):
            try:
                self._round(batches, done, without_evaluator)
            except BrokenExecutor as error:
                losses += 1
                self._replace(losses, error)
        return [done[place] for place in range(len(batches))]

    def close(self) -> None:
        """End the pool that replaced a broken one, if any."""
        if self._executor is not self._callers_executor:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def _round(
        self,
        batches: Sequence[Floats],
        done: dict[int, Floats | Failure],
        without_evaluator: set[int],
    ) -> None:
        futures: dict[int, Any] = {}
        try:
            for place, batch in enumerate(batches):
                if place not in done:
                    payload = self._payload_to_send(place in without_evaluator)
                    futures[place] = self._executor.submit(evaluate_payload, payload, batch)
            for place, future in futures.items():
                outcome = future.result()
                if isinstance(outcome, UnknownPayload):
                    without_evaluator.add(place)
                else:
                    done[place] = outcome
        finally:
            for future in futures.values():
                future.cancel()

    def _payload_to_send(self, is_missing: bool) -> Payload:
        if not is_missing:
            if self._payloads_to_send == 0:
                return replace(self._payload, data=None)
            self._payloads_to_send -= 1
        return self._payload

    def _replace(self, losses: int, error: BrokenExecutor) -> None:
        broken = self._executor
        if not isinstance(broken, ProcessPoolExecutor):
            raise UnusableInput(
                f"the executor broke down: {error}",
                hint="give a new one; if its workers ran out of memory, one with fewer of them",
            ) from error
        if losses == MAX_LOSSES:
            raise UnusableInput(
                f"the pool of processes lost a worker {losses} times over the same candidates "
                "(killed, crashed or out of memory)",
                hint="use fewer processes if memory ran out",
            ) from error
        self.close()
        # An executor has no public record of its options; without these the new one has defaults.
        self._executor = ProcessPoolExecutor(
            max_workers=getattr(broken, "_max_workers", None),
            mp_context=getattr(broken, "_mp_context", None),
            initializer=getattr(broken, "_initializer", None),
            initargs=getattr(broken, "_initargs", ()),
        )
        self._payloads_to_send = pool_workers(self._executor)


class DaskClient:
    """The workers of a connected client, which stays the caller's; errors name their cluster."""

    lost_work = "the search"
    """Name of the work that must be started again after the scheduler was lost."""

    def __init__(self, client: Client) -> None:
        self._client: Any = client  # Dask types half of its methods.
        scheduler = client.scheduler
        self._address = "an unknown address" if scheduler is None else str(scheduler.address)
        self._distributed = importlib.import_module("distributed")

    def threads(self) -> Mapping[str, int]:
        """Return the number of threads of each worker, once there is any."""
        with self._reaching_the_scheduler():
            threads = self._client.nthreads()
            if not threads:
                self._wait_for_a_worker()
                threads = self._client.nthreads()
        return {str(worker): int(count) for worker, count in threads.items()}

    @contextmanager
    def _reaching_the_scheduler(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._scheduler_lost() from error

    def _scheduler_lost(self) -> UnusableInput:
        return UnusableInput(
            f"the connection to the scheduler at {self._address} was lost",
            hint=f"start it again, and then {self.lost_work}: the same seed gives the same answer",
        )

    def _wait_for_a_worker(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE_S)
        except TimeoutError as error:
            raise UnusableInput(
                f"the cluster at {self._address} has no worker",
                hint=f"start some: dask worker {self._address}",
            ) from error

    def _unusable_worker(self, what: str) -> UnusableInput:
        return UnusableInput(
            f"a worker of the cluster at {self._address} {what}",
            hint="install there what this process has, in the same versions",
        )


class Cluster(DaskClient):
    """Evaluation by the workers of a connected client.

    The evaluator is scattered to all workers once; a worker that joins later gets it from another.
    The scheduler repeats the batches of a lost worker; batches that it gives up are
    submitted again.
    """

    def __init__(self, payload: Payload, client: Client) -> None:
        if client.asynchronous:
            raise UnusableInput(
                "executor is an asynchronous Client", hint="give one made without asynchronous=True"
            )
        super().__init__(client)
        self._payload = payload
        self._scattered = self._scatter()

    def batch_size(self, candidates: int) -> int:
        """Return a share for each thread of all workers."""
        return batch_share(candidates, max(1, sum(self.threads().values())))

    def outcomes(self, batches: Sequence[Floats]) -> list[Floats | Failure]:
        """Return the values of each batch; another worker does those of a lost one again."""
        done: dict[int, Floats | Failure] = {}
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
        self, batches: Sequence[Floats], done: dict[int, Floats | Failure]
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
                # A worker's own exceptions come as a `Failure`: this is the wait that ended.
                self._wait_for_a_worker()
            except (ImportError, RuntimeError) as error:
                # Dask's error of a task that the worker could not even unpack.
                return Failure(self._unusable_worker(f"cannot run Equipoise: {error}"))

    def _recover(self, losses: int, lost: Exception) -> None:
        if self._client.status != "running":
            raise self._scheduler_lost() from lost
        if losses == MAX_LOSSES:
            raise UnusableInput(
                f"the cluster at {self._address} gave up the same candidates {losses} times: "
                f"{lost}",
                hint="read the workers' logs; give them more memory if it ran out",
            ) from lost
        self._scattered = self._scatter()

    def _scatter(self) -> Any:
        with self._reaching_the_scheduler():
            self._wait_for_a_worker()
            return self._client.scatter(self._payload, broadcast=True, hash=False)


def pool_workers(executor: Any) -> int:
    """Return the number of workers; of an executor without this number, that of the cores."""
    workers = getattr(executor, "_max_workers", None)
    return workers if isinstance(workers, int) and workers > 0 else os.cpu_count() or 1
