"""A stratum of a log on a worker: what is asked, what is answered, and the task between them.

The rows never travel: the worker reads those of the stratum from the same files, and answers with
what the combination over all strata needs.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from equipoise.cluster.messages import from_bytes
from equipoise.model.errors import UnusableInput
from equipoise.observation.question import Question
from equipoise.observation.sample import Arms
from equipoise.observation.strata import StratumOutcome, judge_rows
from equipoise.tables.strata import AnotherFile, StratumRows, check_files, read_rows

LONGEST_ANSWER = 1 << 28
"""Bytes of an answer: it grows with the number of clusters, not of rows."""


class StratumRequest(Struct, frozen=True):
    """Request: judge the rows of one stratum; the answer is a `StratumReply`."""

    version: str
    """That of Equipoise: another one might give another answer."""
    name: str
    rows: StratumRows
    question: Question
    candidate: str
    baseline: str


class Problem(Struct, frozen=True):
    """An error of the user, as its text."""

    what: str
    hint: str | None = None

    @classmethod
    def of(cls, error: UnusableInput) -> Problem:
        """Return what the error says."""
        return cls(error.what, error.hint)

    def to_error(self) -> UnusableInput:
        """Return the error again."""
        return UnusableInput(self.what, hint=self.hint)


class StratumReply(Struct, frozen=True):
    """Answer: the outcome of the stratum, or why there is none."""

    outcome: StratumOutcome | None = None
    problem: Problem | None = None
    """What is wrong with the question or the rows: every worker would say so."""
    unfit: Problem | None = None
    """Why this worker cannot judge any stratum; the text goes on after the worker's name."""


def judge_request(request: bytes) -> bytes:
    """Judge the stratum of a `StratumRequest` on a worker; return a `StratumReply`."""
    try:
        reply = _reply(from_bytes(request, StratumRequest))
    except UnusableInput as error:
        reply = StratumReply(problem=Problem.of(error))
    try:
        answer = msgspec.msgpack.encode(reply, enc_hook=_plain)
    except (TypeError, OverflowError) as error:
        return _encoded_problem(f"the clusters of a stratum cannot be sent: {error}")
    if len(answer) > LONGEST_ANSWER:
        return _encoded_problem(f"the answer of a stratum has {len(answer):,} bytes")
    return answer


def read_reply(content: bytes, name: str) -> StratumReply:
    """Read the answer about the stratum of a name.

    Raises
    ------
    UnusableInput
        It is none: the worker has another version of Equipoise.
    """
    reply = from_bytes(content, StratumReply)
    outcome = reply.outcome
    if (outcome, reply.problem, reply.unfit).count(None) != 2:
        raise _implausible(name)
    if outcome is not None:
        rows = (outcome.candidate_rows, outcome.baseline_rows)
        if (
            outcome.name != name
            or min(rows) < 0
            or sum(rows) > outcome.rows
            or (outcome.candidate is None) != (outcome.candidate_rows == 0)
            or (outcome.baseline is None) != (outcome.baseline_rows == 0)
            or (outcome.answer is None) == (outcome.reason is None)
            or (outcome.answer is not None and not 0 < outcome.answer.weight <= rows[0])
        ):
            raise _implausible(name)
    return reply


def _reply(request: StratumRequest) -> StratumReply:
    here = version("equipoise")
    if here != request.version:
        return StratumReply(
            unfit=Problem(
                f"has Equipoise {here}, and this process {request.version}",
                "install the same version on every worker: their answers must agree",
            )
        )
    try:
        check_files(request.rows)
    except AnotherFile as error:
        return StratumReply(unfit=Problem.of(error))
    nobody = np.empty(0, dtype=np.bool_)
    arms = Arms(request.candidate, request.baseline, nobody, nobody)
    rows = read_rows(request.rows)
    return StratumReply(outcome=judge_rows(request.name, rows, request.question, arms))


def _plain(value: Any) -> Any:
    """Return a number of NumPy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"no value of type {type(value).__name__} can be a cluster on workers")


def _encoded_problem(what: str) -> bytes:
    hint = "observe without --cluster ADDRESS, or name another column with --cluster"
    return msgspec.msgpack.encode(StratumReply(problem=Problem(what, hint)))


def _implausible(name: str) -> UnusableInput:
    return UnusableInput(
        f"what a worker answered about stratum {name} does not fit together",
        hint="install the same version of Equipoise on every host",
    )
