"""Evaluate a population of candidates in this process, in a pool or on a Dask cluster.

The answer does not depend on the size of the batches or the number of workers. Workers receive the
data once. If a worker is lost, another worker repeats the batch. A transport sends batches to one
kind of executor, and receives their values.
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
    SAME_LENGTH_HINT,
    EvaluationFailed,
    Evaluator,
    Failure,
    Floats,
    Payload,
    UnknownPayload,
    candidates_per_batch,
    evaluate_checked,
    evaluate_payload,
    pickle_evaluator,
    point_as_code,
)
from equipoise_matching.shared.errors import UnusableInput

if TYPE_CHECKING:
    from distributed import Client

MAX_FAILURES = 3
"""Number of lost workers, for the same candidates, after which a search ends."""
WORKER_TIMEOUT_S = 30.0
"""Seconds to wait for the first worker of a cluster."""


class BatchEvaluator(AbstractContextManager["BatchEvaluator"]):
    """Function of candidates (candidates, n) that returns values (candidates, criteria).

    Use it in a ``with`` block, because it may own a pool or data on a cluster.
    ``evaluations`` is the number of candidates so far.

    Raise `UnusableInput` if ``executor`` is not an executor, the function cannot be sent to
    other processes, or the cluster has no worker.

    Parameters
    ----------
    evaluate
        Function of candidates (candidates, n) that returns their values, shape (candidates,
        criteria) or (candidates,). Each row must depend only on its own candidate. For other
        processes, the function is pickled once, and each worker keeps a copy. So the function
        should build expensive parts at its first call, and leave them out of the pickle.
    executor
        ``None`` for this process, a ``dask.distributed.Client``, or an object with ``submit``.
    batch_size
        Number of candidates in a batch; by default each worker gets four batches.
    """

    def __init__(
        self, evaluate: Evaluator, executor: Any = None, *, batch_size: int | None = None
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise UnusableInput(f"batch_size is {batch_size}", hint="give 1 or more")
        self._transport = _transport_to(executor, evaluate)
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
        values: list[Floats] = []
        for batch, outcome in zip(batches, self._transport.outcomes(batches), strict=True):
            if isinstance(outcome, Failure):
                raise outcome.error
            if values and outcome.shape[1] != values[0].shape[1]:
                raise EvaluationFailed(
                    f"the function returned {outcome.shape[1]} values at {point_as_code(batch[0])} "
                    f"but {values[0].shape[1]} at {point_as_code(batches[0][0])}",
                    SAME_LENGTH_HINT,
                )
            values.append(outcome)
        return np.concatenate(values)

    def __exit__(self, *_: object) -> None:
        """Close pools and release data of this evaluator; the caller's executor stays open."""
        self._transport.close()


def _transport_to(
    executor: Any, evaluate: Evaluator
) -> LocalTransport | ClusterTransport | PoolTransport:
    """Return the transport to an executor."""
    if executor is None or isinstance(executor, ThreadPoolExecutor):
        return LocalTransport(evaluate, executor)
    # A client exists only if the caller has imported distributed, so no import is needed here.
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(executor, distributed.Client):
        return ClusterTransport(pickle_evaluator(evaluate), executor)
    if not callable(getattr(executor, "submit", None)):
        raise UnusableInput(
            f"executor is {type(executor).__name__}, which has no submit",
            hint="give an executor of concurrent.futures or a dask.distributed Client",
        )
    return PoolTransport(pickle_evaluator(evaluate), executor)


class LocalTransport:
    """Evaluation in this process, in one batch or in a pool of threads, without pickling."""

    def __init__(self, evaluate: Evaluator, executor: ThreadPoolExecutor | None) -> None:
        self._evaluate = partial(evaluate_checked, evaluate)
        self._executor = executor

    def batch_size(self, candidates: int) -> int:
        """Return the number of candidates in a batch: all, or a share for each thread."""
        if self._executor is None:
            return candidates
        return candidates_per_batch(candidates, worker_count(self._executor))

    def outcomes(self, batches: Sequence[Floats]) -> list[Floats | Failure]:
        """Return the values of each batch."""
        if self._executor is None:
            return [*map(self._evaluate, batches)]
        return [*self._executor.map(self._evaluate, batches)]

    def close(self) -> None:
        """Do nothing, because this object owns no pool and no data."""


class PoolTransport:
    """Evaluation by an executor with ``submit``, whose workers may be other processes.

    Such an executor cannot send data to each of its workers. So the first batches carry the
    evaluator, as many as there are workers. Later batches carry a reference to it. If a worker
    lacks the evaluator, the batch is sent to the pool again, with the evaluator.
    """

    def __init__(self, payload: Payload, executor: Any) -> None:
        self._payload = payload
        self._callers_executor = self._executor = executor
        # Number of batches that still carry the evaluator.
        self._payloads_to_send = worker_count(executor)

    def batch_size(self, candidates: int) -> int:
        """Return the number of candidates in a batch, by the number of workers."""
        return candidates_per_batch(candidates, worker_count(self._executor))

    def outcomes(self, batches: Sequence[Floats]) -> list[Floats | Failure]:
        """Return the values of each batch; after a failure, a new pool runs the lost batches."""
        finished: dict[int, Floats | Failure] = {}
        without_evaluator: set[int] = set()
        failures = 0
        while len(finished) < len(batches):
            try:
                self._run_unfinished(batches, finished, without_evaluator)
            except BrokenExecutor as error:
                failures += 1
                self._replace_pool(failures, error)
        return [finished[index] for index in range(len(batches))]

    def close(self) -> None:
        """Close the pool that replaced a broken pool, if there is one."""
        if self._executor is not self._callers_executor:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def _run_unfinished(
        self,
        batches: Sequence[Floats],
        finished: dict[int, Floats | Failure],
        without_evaluator: set[int],
    ) -> None:
        futures: dict[int, Any] = {}
        try:
            for index, batch in enumerate(batches):
                if index not in finished:
                    payload = self._payload_to_send(index in without_evaluator)
                    futures[index] = self._executor.submit(evaluate_payload, payload, batch)
            for index, future in futures.items():
                outcome = future.result()
                if isinstance(outcome, UnknownPayload):
                    without_evaluator.add(index)
                else:
                    finished[index] = outcome
        finally:
            for future in futures.values():
                future.cancel()

    def _payload_to_send(self, worker_lacked_evaluator: bool) -> Payload:
        if not worker_lacked_evaluator:
            if self._payloads_to_send == 0:
                return replace(self._payload, data=None)
            self._payloads_to_send -= 1
        return self._payload

    def _replace_pool(self, failures: int, error: BrokenExecutor) -> None:
        broken_pool = self._executor
        if not isinstance(broken_pool, ProcessPoolExecutor):
            raise UnusableInput(
                f"the executor broke down: {error}",
                hint="give a new executor, with fewer workers if memory ran out",
            ) from error
        if failures == MAX_FAILURES:
            raise UnusableInput(
                f"the pool of processes lost a worker {failures} times with the same "
                "candidates (killed, crashed or out of memory)",
                hint="give a pool with fewer processes if memory ran out",
            ) from error
        self.close()
        # The options of an executor are private attributes, which another Python may lack.
        self._executor = ProcessPoolExecutor(
            max_workers=getattr(broken_pool, "_max_workers", None),
            mp_context=getattr(broken_pool, "_mp_context", None),
            initializer=getattr(broken_pool, "_initializer", None),
            initargs=getattr(broken_pool, "_initargs", ()),
        )
        self._payloads_to_send = worker_count(self._executor)


class DaskClient:
    """The workers of a Dask client that the caller owns; errors name the address of the cluster."""

    lost_work = "the search"
    """Name, in a hint, of the work to start again if the scheduler is lost."""

    def __init__(self, client: Client) -> None:
        self._client: Any = client  # Dask types half of its methods.
        scheduler = client.scheduler
        self._address = "an unknown address" if scheduler is None else str(scheduler.address)
        self._worker_argument = "SCHEDULER:PORT" if scheduler is None else self._address
        self._distributed = importlib.import_module("distributed")

    def threads_by_worker(self) -> Mapping[str, int]:
        """Wait for a worker, and return the number of threads of each worker."""
        with self._reports_lost_scheduler():
            threads = self._client.nthreads()
            if not threads:
                self._wait_for_a_worker()
                threads = self._client.nthreads()
        return {str(worker): int(count) for worker, count in threads.items()}

    @contextmanager
    def _reports_lost_scheduler(self) -> Iterator[None]:
        """Convert errors of the connection in the ``with`` block to an error with a hint."""
        try:
            yield
        except OSError as error:
            raise self._scheduler_lost() from error

    def _scheduler_lost(self) -> UnusableInput:
        return UnusableInput(
            f"the connection to the scheduler at {self._address} was lost",
            hint=f"start the scheduler, then {self.lost_work} again, which gives the same answer",
        )

    def _wait_for_a_worker(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=WORKER_TIMEOUT_S)
        except TimeoutError as error:
            raise UnusableInput(
                f"the cluster at {self._address} has no worker",
                hint=f"start a worker: dask worker {self._worker_argument}",
            ) from error

    def _unusable_worker(self, problem: str) -> UnusableInput:
        return UnusableInput(
            f"a worker of the cluster at {self._address} {problem}",
            hint="install on every worker the same versions of equipoise-matching and its packages",
        )


class ClusterTransport(DaskClient):
    """Evaluation by the workers of a connected client.

    All workers receive the evaluator once. A later worker gets the evaluator from another worker.
    The scheduler repeats lost batches. If it gives up, this object submits them again.
    """

    def __init__(self, payload: Payload, client: Client) -> None:
        if client.asynchronous:
            raise UnusableInput(
                "executor is an asynchronous Client", hint="make the Client without asynchronous"
            )
        super().__init__(client)
        self._payload = payload
        self._remote_payload = self._scatter()

    def batch_size(self, candidates: int) -> int:
        """Return the number of candidates in a batch, by the number of threads of all workers."""
        return candidates_per_batch(candidates, max(1, sum(self.threads_by_worker().values())))

    def outcomes(self, batches: Sequence[Floats]) -> list[Floats | Failure]:
        """Return the values of each batch; batches of lost workers run again."""
        finished: dict[int, Floats | Failure] = {}
        with self._reports_lost_scheduler():
            for failures in itertools.count(1):
                last_error = self._run_unfinished(batches, finished)
                if last_error is None:
                    break
                self._recover(failures, last_error)
        return [finished[index] for index in range(len(batches))]

    def close(self) -> None:
        """Release the pickled evaluator on the workers."""
        self._remote_payload.release()

    def _run_unfinished(
        self, batches: Sequence[Floats], finished: dict[int, Floats | Failure]
    ) -> Exception | None:
        """Add values to ``finished``; return the last error if some batches failed."""
        futures = {
            index: self._client.submit(evaluate_payload, self._remote_payload, batch, pure=False)
            for index, batch in enumerate(batches)
            if index not in finished
        }
        last_error: Exception | None = None
        try:
            for index, future in futures.items():
                try:
                    finished[index] = self._result(future)
                except (self._distributed.KilledWorker, CancelledError) as error:
                    last_error = error
        finally:
            unfinished = [future for index, future in futures.items() if index not in finished]
            if unfinished:
                self._client.cancel(unfinished, force=True)
        return last_error

    def _result(self, future: Any) -> Any:
        while True:
            try:
                return future.result(timeout=WORKER_TIMEOUT_S)
            except TimeoutError:
                # Exceptions of the function come as a `Failure`, so this is the timeout above.
                self._wait_for_a_worker()
            except (ImportError, RuntimeError) as error:
                # Dask raises these if a worker cannot unpack the task.
                return Failure(self._unusable_worker(f"cannot run Equipoise: {error}"))

    def _recover(self, failures: int, last_error: Exception) -> None:
        if self._client.status != "running":
            raise self._scheduler_lost() from last_error
        if failures == MAX_FAILURES:
            raise UnusableInput(
                f"the cluster at {self._address} gave up the same candidates {failures} times: "
                f"{last_error}",
                hint="read the logs of the workers, and give them more memory if it ran out",
            ) from last_error
        self._remote_payload = self._scatter()

    def _scatter(self) -> Any:
        with self._reports_lost_scheduler():
            self._wait_for_a_worker()
            return self._client.scatter(self._payload, broadcast=True, hash=False)


def worker_count(executor: Any) -> int:
    """Return the number of workers of an executor, or of cores if it is unknown."""
    workers = getattr(executor, "_max_workers", None)
    return workers if isinstance(workers, int) and workers > 0 else os.cpu_count() or 1
