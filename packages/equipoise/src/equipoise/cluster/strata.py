"""Analyse the strata of a log on Dask workers; the answer is the same as on one machine.

A stratum is a group of rows that is matched alone. A worker analyses one stratum at a time. The
worker reads the rows of the stratum from the files of the log, which every worker must see. The
answer of the worker is a `MatchedStratum`. If a worker is lost, the next free worker repeats the
stratum. If several strata cannot be analysed, the error is about the first such stratum.

In this file, a worker is a Dask worker, and a cluster is a group of dependent rows.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from importlib.metadata import version
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.cluster.messages import Refusal, from_bytes, to_bytes, version_mismatch
from equipoise.matching import converted_errors
from equipoise.model.errors import UnusableInput
from equipoise.shared.spelling import command_line_spelling, option
from equipoise_matching.genetic.executors import DaskClient
from equipoise_matching.observation.matching import Progress
from equipoise_matching.observation.question import Question
from equipoise_matching.observation.sample import Versions
from equipoise_matching.observation.strata import (
    MatchedStratum,
    MatchStrata,
    StratifiedLog,
    match_stratum,
)
from equipoise_matching.tables.strata import StratumRows, UnusableFile, check_files, read_rows

MAX_LOSSES = 3
"""Number of workers lost with the same stratum at which the command fails."""
POLL_INTERVAL_S = 1.0
"""Seconds between two checks for lost workers."""
MAX_ANSWER_BYTES = 1 << 28
"""Maximum size of an answer. The size grows with the number of clusters of rows."""


class StratumRequest(Struct, frozen=True):
    """Request: analyse the rows of one stratum; the answer is a `StratumReply`."""

    equipoise_version: str
    """Version of Equipoise; another version may give another answer."""
    name: str
    """Name of the stratum."""
    rows: StratumRows
    question: Question
    versions: Versions
    """Candidate and baseline: the two versions that the log compares."""


class StratumReply(Struct, frozen=True, forbid_unknown_fields=True):
    """Answer: the outcome of the stratum, or the problem of this worker.

    If the question or the rows are unusable, the answer is a `Refusal` instead.
    """

    outcome: MatchedStratum | None = None
    worker_problem: Refusal | None = None
    """Reason why this worker cannot analyse any stratum, such as "has Equipoise 1.0"."""


@command_line_spelling()
def analyse_stratum(request: bytes) -> bytes:
    """Analyse the stratum of a `StratumRequest` on a worker; return a `StratumReply`."""
    try:
        with converted_errors():
            reply = _reply_to(from_bytes(request, StratumRequest))
        answer = msgspec.msgpack.encode(reply, enc_hook=_python_number)
    except UnusableInput as error:
        return to_bytes(Refusal.of(error))
    except (TypeError, OverflowError) as error:
        return _refusal_bytes(f"a stratum cannot be analysed on workers: {error}")
    if len(answer) > MAX_ANSWER_BYTES:
        return _refusal_bytes(f"the answer of a stratum has {len(answer):,} bytes")
    return answer


def read_reply(content: bytes, name: str) -> StratumReply:
    """Read the reply about the stratum ``name``.

    Raise `UnusableInput` if the content is a `Refusal`, or not a reply of this version.
    """
    reply = from_bytes(content, StratumReply)
    outcome = reply.outcome
    if (outcome is None) == (reply.worker_problem is None):
        raise _inconsistent_reply(name)
    if outcome is not None:
        # A worker may be faulty, so its numbers must not contradict each other.
        rows = (outcome.candidate_rows, outcome.baseline_rows)
        if (
            outcome.name != name
            or min(rows) < 0
            or sum(rows) > outcome.rows
            or (outcome.candidate_moments is None) != (outcome.candidate_rows == 0)
            or (outcome.baseline_moments is None) != (outcome.baseline_rows == 0)
            or (outcome.answer is None) == (outcome.reason is None)
            or (outcome.answer is not None and not 0 < outcome.answer.weight <= rows[0])
        ):
            raise _inconsistent_reply(name)
    return reply


def _reply_to(request: StratumRequest) -> StratumReply:
    release = version("equipoise")
    if release != request.equipoise_version:
        return StratumReply(
            worker_problem=Refusal(
                f"has Equipoise {release}, and this process {request.equipoise_version}",
                "install the same version on every worker: their answers must agree",
            )
        )
    try:
        check_files(request.rows)
    except UnusableFile as error:
        return StratumReply(worker_problem=Refusal.of(error))
    rows = read_rows(request.rows)
    outcome = match_stratum(request.name, rows, request.question, request.versions)
    return StratumReply(outcome=outcome)


def _python_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a name of a cluster of rows has the type {type(value).__name__}")


def _refusal_bytes(what: str) -> bytes:
    hint = f"remove {option('cluster', 'ADDRESS')}, so that this machine alone analyses the log"
    return to_bytes(Refusal(what, hint))


def _inconsistent_reply(name: str) -> UnusableInput:
    return version_mismatch(f"the answer of a worker about stratum {name} is inconsistent")


class LostWorker(Exception):
    """Error: the worker of a task is gone, so the answer is lost."""


def strata_on_workers(workers: DaskWorkers) -> MatchStrata[StratumRows]:
    """Return a function that analyses the strata of a log on workers."""

    def match_strata(
        log: StratifiedLog[StratumRows], question: Question, versions: Versions, progress: Progress
    ) -> list[MatchedStratum]:
        release = version("equipoise")

        def make_request(name: str, thread_count: int) -> bytes:
            # The number of threads does not change an answer.
            full_question = replace(question, threads=question.threads or thread_count)
            return to_bytes(StratumRequest(release, name, log.rows[name], full_question, versions))

        return _StrataQueue(workers, tuple(log.rows), make_request, progress).outcomes()

    return match_strata


class _StrataQueue:
    """The waiting, running and finished strata, by their index in the log."""

    def __init__(
        self,
        workers: DaskWorkers,
        names: Sequence[str],
        make_request: Callable[[str, int], bytes],
        progress: Progress,
    ) -> None:
        self._workers = workers
        self._names = names
        self._make_request = make_request
        """Function of the name of a stratum and the number of threads; returns a request."""
        self._progress = progress
        self._waiting_indices = list(range(len(names)))
        self._tasks: dict[str, tuple[int, Any]] = {}
        """Index of the stratum, and the task, by worker; only busy workers are keys."""
        self._outcome_by_index: dict[int, MatchedStratum] = {}
        self._losses: Counter[int] = Counter()
        """Number of workers that were lost with a stratum, by the index of the stratum."""
        self._first_problem: tuple[int, UnusableInput] | None = None
        """Index of the first stratum that cannot be analysed, and the error."""

    def outcomes(self) -> list[MatchedStratum]:
        """Return the outcomes in the order of the strata."""
        try:
            while self._waiting_indices or self._tasks:
                self._start(self._workers.threads_by_worker())
                self._workers.wait([task for _, task in self._tasks.values()])
                self._collect(self._workers.threads_by_worker())
        finally:
            self._workers.forget(task for _, task in self._tasks.values())
        if self._first_problem is not None:
            _, problem = self._first_problem
            raise problem
        return [self._outcome_by_index[index] for index in range(len(self._names))]

    def _start(self, threads_by_worker: Mapping[str, int]) -> None:
        """Give a waiting stratum to each free worker."""
        for worker, thread_count in threads_by_worker.items():
            if worker not in self._tasks and self._waiting_indices:
                index = heapq.heappop(self._waiting_indices)
                request = self._make_request(self._names[index], thread_count)
                self._tasks[worker] = (index, self._workers.start(worker, request))

    def _collect(self, threads_by_worker: Mapping[str, int]) -> None:
        """Note the answers of ended tasks, and the workers that are gone."""
        for worker, (index, task) in list(self._tasks.items()):
            if worker not in self._tasks:
                # `_note_reply` has dropped this stratum, because an earlier stratum failed.
                continue
            if self._workers.has_ended(task):
                del self._tasks[worker]
                try:
                    self._note_reply(worker, index, self._workers.answer(task))
                except LostWorker as loss:
                    self._note_loss(index, str(loss))
            elif worker not in threads_by_worker:
                del self._tasks[worker]
                self._workers.forget([task])
                self._note_loss(index, f"{worker} is gone")

    def _note_reply(self, worker: str, index: int, answer: bytes) -> None:
        """Note the outcome or the problem in the answer of a worker."""
        try:
            reply = read_reply(answer, self._names[index])
        except UnusableInput as problem:
            self._note_problem(index, problem)
            return
        if reply.worker_problem is not None:
            raise UnusableInput(
                f"the worker {worker} {reply.worker_problem.what}",
                hint=reply.worker_problem.hint
                or "every worker must see the same files at the same path: share the folder, or "
                "use local:N on the machine that has the files",
            )
        if reply.outcome is not None:
            self._outcome_by_index[index] = reply.outcome
            count, total = len(self._outcome_by_index), len(self._names)
            self._progress(f"analysed {count:,} of {total:,} strata")

    def _note_problem(self, index: int, problem: UnusableInput) -> None:
        """Note a problem of a stratum, and drop the strata after this stratum."""
        if self._first_problem is not None and self._first_problem[0] < index:
            return
        self._first_problem = (index, problem)
        self._waiting_indices = [earlier for earlier in self._waiting_indices if earlier < index]
        heapq.heapify(self._waiting_indices)
        dropped = {worker: task for worker, (later, task) in self._tasks.items() if later > index}
        for worker in dropped:
            del self._tasks[worker]
        self._workers.forget(dropped.values())

    def _note_loss(self, index: int, reason: str) -> None:
        """Note that a worker was lost with a stratum, and put the stratum back."""
        self._losses[index] += 1
        if self._losses[index] < MAX_LOSSES:
            heapq.heappush(self._waiting_indices, index)
            return
        raise UnusableInput(
            f"stratum {self._names[index]} made {MAX_LOSSES} workers fail; the last error was: "
            f"{reason}",
            hint="read the logs of the workers; if memory ran out, start fewer workers, or name a "
            f"column with smaller groups: {option('strata', 'COLUMN')}",
        )


class DaskWorkers(DaskClient):
    """The workers of a connected client, each with one stratum at a time."""

    lost_work = "the command"
    """Work that the user must start again after the loss of the scheduler, for the hint."""

    def start(self, worker: str, request: bytes) -> Any:
        """Start a task that no other worker may take."""
        return self._client.submit(
            analyse_stratum, request, workers=[worker], allow_other_workers=False, pure=False
        )

    def wait(self, tasks: Sequence[Any]) -> None:
        """Return once a task has ended, or after `POLL_INTERVAL_S`."""
        try:
            with self._client.as_current():
                self._distributed.wait(
                    tasks, timeout=POLL_INTERVAL_S, return_when="FIRST_COMPLETED"
                )
        except (TimeoutError, CancelledError):
            return

    def has_ended(self, task: Any) -> bool:
        """Return whether the task has ended, with or without an answer."""
        return bool(task.done())

    def answer(self, task: Any) -> bytes:
        """Return the answer of an ended task; raise `LostWorker` if the worker was lost."""
        try:
            content = task.result()
        except (self._distributed.KilledWorker, CancelledError) as error:
            if self._client.status != "running":
                raise self._scheduler_lost() from error
            raise LostWorker(str(error)) from error
        except MemoryError as error:
            raise LostWorker("the worker ran out of memory") from error
        except (ImportError, RuntimeError) as error:
            # Dask raises these errors if the worker could not unpack the task.
            raise self._unusable_worker(f"cannot run Equipoise: {error}") from error
        if not isinstance(content, bytes):
            raise self._unusable_worker("did not answer with a message")
        return content

    def forget(self, tasks: Iterable[Any]) -> None:
        """Cancel tasks whose answers are not needed."""
        self._client.cancel([*tasks], force=True)
