"""Evaluates a population of candidates: in this process, in a pool or on a cluster.

The population is cut into batches that keep their order, and each candidate's values depend on
its parameters alone: where it was evaluated, and beside whom, changes no bit. The data go out
once (`process_pool`, `cluster`), and a batch whose worker is lost is done again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from equipoise.genoud.cluster import Cluster
from equipoise.genoud.failure import EvaluationFailed, words
from equipoise.genoud.process_pool import Pool, pool_workers, share
from equipoise.genoud.worker import Evaluate, Failed, Floats, evaluated, parcel_of
from equipoise.model.errors import UnusableInput


class Carrier(Protocol):
    """Takes batches to where they are evaluated, and brings back the values in their order."""

    def batch_size(self, candidates: int) -> int:
        """How many of so many candidates go together."""

    def outcomes(self, batches: Sequence[Floats]) -> list[Floats | Failed]:
        """The values of each batch, (candidates, criteria), or why there are none."""

    def close(self) -> None:
        """Lets go of all that this carrier made or keeps elsewhere."""


class BatchEvaluator:
    """Evaluates candidates (candidates, n) to values (candidates, criteria).

    Close it, or use it in a ``with`` block: it may own a pool, or hold data on a cluster.
    """

    def __init__(self, carrier: Carrier, batch_size: int | None) -> None:
        self._carrier = carrier
        self._batch_size = batch_size

    def __call__(self, candidates: Floats) -> Floats:
        """The values of the candidates, in their order.

        Raises
        ------
        EvaluationFailed
            The function raised or returned something that is no table of values, named with the
            parameters.
        UnusableInput
            Workers were lost again and again, or the scheduler cannot be reached.
        """
        if not len(candidates):
            return np.empty((0, 0))
        batches = self._batches(np.ascontiguousarray(candidates, dtype=np.float64))
        answers: list[Floats] = []
        for batch, outcome in zip(batches, self._carrier.outcomes(batches), strict=True):
            if isinstance(outcome, Failed):
                raise outcome.error
            if answers and outcome.shape[1] != answers[0].shape[1]:
                raise EvaluationFailed(
                    f"the function returned {outcome.shape[1]} values at {words(batch[0])} and "
                    f"{answers[0].shape[1]} at {words(batches[0][0])}: there must be as many at "
                    "every point"
                )
            answers.append(outcome)
        return np.concatenate(answers)

    def _batches(self, candidates: Floats) -> list[Floats]:
        size = self._batch_size or self._carrier.batch_size(len(candidates))
        return [candidates[first : first + size] for first in range(0, len(candidates), size)]

    def close(self) -> None:
        """Let go of what was made for the evaluation; the executor that was given stays open."""
        self._carrier.close()

    def __enter__(self) -> BatchEvaluator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def batch_evaluator(
    evaluate: Evaluate, executor: Any = None, *, batch_size: int | None = None
) -> BatchEvaluator:
    """An evaluator of populations, by the executor.

    Parameters
    ----------
    evaluate
        Takes candidates, shape (candidates, n), and returns their values, shape (candidates,
        criteria) or (candidates,); each row must depend on its own candidate only. For other
        processes it is pickled once, and each worker keeps its copy as long as it is in use: what
        is dear to build may be built at the first call and left out of the pickle.
    executor
        ``None``: this process, all in one call. A ``dask.distributed.Client``, or
        anything with ``submit`` as in ``concurrent.futures``.
    batch_size
        Candidates in a batch; by default four batches for each worker.

    Raises
    ------
    UnusableInput
        ``executor`` is nothing of the kind, the function cannot be sent to other processes, or
        the cluster has no worker.
    """
    if batch_size is not None and batch_size < 1:
        raise UnusableInput(f"batch_size is {batch_size}", hint="give 1 or more")
    return BatchEvaluator(_carrier(evaluate, executor), batch_size)


def _carrier(evaluate: Evaluate, executor: Any) -> Carrier:
    if executor is None:
        return Here(evaluate)
    # A client exists only where distributed is imported: that heavy import is never made here.
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(executor, distributed.Client):
        return Cluster(parcel_of(evaluate), executor)
    if isinstance(executor, ThreadPoolExecutor):
        return Threads(evaluate, executor)
    if not callable(getattr(executor, "submit", None)):
        raise UnusableInput(
            f"executor is {type(executor).__name__}, which has no submit",
            hint="give an executor of concurrent.futures or a dask.distributed Client",
        )
    return Pool(parcel_of(evaluate), executor)


class Here:
    """This process; threads are the evaluator's own."""

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate

    def batch_size(self, candidates: int) -> int:
        """All of them."""
        return candidates

    def outcomes(self, batches: Sequence[Floats]) -> list[Floats | Failed]:
        """The values of each batch."""
        return [evaluated(self._evaluate, batch) for batch in batches]

    def close(self) -> None:
        """Nothing is kept."""


class Threads:
    """A pool of threads: nothing is pickled."""

    def __init__(self, evaluate: Evaluate, executor: ThreadPoolExecutor) -> None:
        self._evaluate = evaluate
        self._executor = executor

    def batch_size(self, candidates: int) -> int:
        """A share for each thread of the pool."""
        return share(candidates, pool_workers(self._executor))

    def outcomes(self, batches: Sequence[Floats]) -> list[Floats | Failed]:
        """The values of each batch."""
        futures: list[Future[Floats]] = []
        try:
            for batch in batches:
                futures.append(self._executor.submit(evaluated, self._evaluate, batch))
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """Nothing is kept."""
