"""Batches through an executor of concurrent.futures whose workers are other processes.

Nobody can be told apart in such a pool and nothing can be sent to all: the first batches carry
the evaluator, as many as there are workers, the others a note of it; a worker that was passed
over answers that it does not have it, and its batch goes out again with the evaluator.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from typing import Any

from equipoise.genoud.worker import Failed, Floats, Missing, Parcel, evaluate_parcel
from equipoise.model.errors import UnusableInput

BATCHES_PER_WORKER = 4
"""So that a slow or lost worker holds up a quarter of its share."""
MOST_LOSSES = 3
"""So often a pool may break over the same population before the search is given up."""


class Pool:
    """An executor with ``submit``, which stays the caller's."""

    def __init__(self, parcel: Parcel, executor: Any) -> None:
        self._parcel = parcel
        self._executor = executor
        self._own: Executor | None = None
        self._to_send = pool_workers(executor)

    def batch_size(self, candidates: int) -> int:
        """A share for each worker, as many as the executor says or this machine has cores."""
        return share(candidates, pool_workers(self._executor))

    def outcomes(self, batches: Sequence[Floats]) -> list[Floats | Failed]:
        """The values of each batch; those that a broken pool swallowed are done in a new one.

        Raises
        ------
        UnusableInput
            The pool is broken and no new one can be made, or new ones break too.
        """
        done: dict[int, Floats | Failed] = {}
        passed_over: set[int] = set()
        losses = 0
        while len(done) < len(batches):
            try:
                self._round(batches, done, passed_over)
            except BrokenExecutor as error:
                losses += 1
                self._replace(losses, error)
        return [done[place] for place in range(len(batches))]

    def close(self) -> None:
        """Ends the pool that replaced a broken one, if any."""
        if self._own is not None:
            self._own.shutdown(wait=True, cancel_futures=True)
            self._own = None

    def _round(
        self, batches: Sequence[Floats], done: dict[int, Floats | Failed], passed_over: set[int]
    ) -> None:
        futures: dict[int, Any] = {}
        try:
            for place in range(len(batches)):
                if place not in done:
                    parcel = self._parcel if place in passed_over else self._parcel_or_note()
                    futures[place] = self._executor.submit(evaluate_parcel, parcel, batches[place])
            for place, future in futures.items():
                outcome = future.result()
                if isinstance(outcome, Missing):
                    passed_over.add(place)
                else:
                    done[place] = outcome
        finally:
            for future in futures.values():
                future.cancel()

    def _parcel_or_note(self) -> Parcel:
        if self._to_send == 0:
            return self._parcel.note()
        self._to_send -= 1
        return self._parcel

    def _replace(self, losses: int, error: BrokenExecutor) -> None:
        broken = self._executor
        if not isinstance(broken, ProcessPoolExecutor):
            raise UnusableInput(
                f"the executor broke down: {error}",
                hint="give a new one; if its workers ran out of memory, one with fewer of them",
            ) from error
        if losses == MOST_LOSSES:
            raise UnusableInput(
                f"the pool of processes lost a worker {losses} times over the same candidates "
                "(killed, crashed or out of memory)",
                hint="use fewer processes if memory ran out",
            ) from error
        self.close()
        # The executor tells nobody how it was made; without these it gets its defaults.
        self._own = self._executor = ProcessPoolExecutor(
            max_workers=getattr(broken, "_max_workers", None),
            mp_context=getattr(broken, "_mp_context", None),
            initializer=getattr(broken, "_initializer", None),
            initargs=getattr(broken, "_initargs", ()),
        )
        self._to_send = pool_workers(self._executor)


def pool_workers(executor: Any) -> int:
    """How many workers the executor has; as many as this machine has cores if it does not say."""
    given = getattr(executor, "_max_workers", None)
    return given if isinstance(given, int) and given > 0 else os.cpu_count() or 1


def share(candidates: int, workers: int) -> int:
    """How many candidates go together if each worker gets some batches."""
    return -(-candidates // (workers * BATCHES_PER_WORKER))
