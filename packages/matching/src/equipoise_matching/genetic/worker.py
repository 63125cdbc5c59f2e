"""The messages to and from a worker: a packed evaluator; values or a failure.

Everything here runs in processes that hold nothing of the search but this package.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.shared.errors import EquipoiseError, UnusableInput

Floats = NDArray[np.float64]
Evaluate = Callable[[Floats], Floats]
"""Function of candidates (candidates, n) that returns their values (candidates, criteria).

The values may have shape (candidates,) for a single criterion.
"""

KEPT_EVALUATORS = 2
"""Evaluators that a worker keeps: those of the last two searches."""
BATCHES_PER_WORKER = 4
"""Batches of each worker: a slow or lost worker holds up a quarter of its share."""


class EvaluationFailed(UnusableInput):
    """The function could not be evaluated; the message names the parameters. Exit status 2."""

    def __init__(self, what: str) -> None:
        super().__init__(
            what,
            hint="return a number at every point of the domain (infinity where it is worthless), "
            "or narrow the bounds",
        )

    def __reduce__(self) -> tuple[type[EvaluationFailed], tuple[str]]:
        """Pickle the problem alone: the hint is added again where it arrives."""
        return EvaluationFailed, (self.what,)


def point_text(point: Floats) -> str:
    """Return the parameters, to be read and pasted."""
    return f"par = {[float(value) for value in point]}"


@dataclass(frozen=True, slots=True)
class Payload:
    """A pickled evaluator; without ``data``, a reference to one sent before.

    The token is a digest of the data: equal evaluators have equal tokens. ``version`` is that of
    the Equipoise that packed it.
    """

    token: str
    version: str = field(compare=False)
    data: bytes | None = field(compare=False, repr=False)


class UnknownPayload(Exception):
    """The worker lacks the payload of a reference: raised there, and returned as its answer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The answer of a worker that cannot give values."""

    error: EquipoiseError


Outcome = Floats | Failure | UnknownPayload


def pack(evaluate: Evaluate) -> Payload:
    """Pack the evaluator for other processes."""
    import cloudpickle

    data, fault = b"", None
    for pickler in (pickle, cloudpickle):
        try:
            data, fault = pickler.dumps(evaluate, protocol=pickle.HIGHEST_PROTOCOL), None
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            fault = error
        # Objects of __main__ are pickled by name, and a worker of a cluster has another __main__.
        if fault is None and b"__main__" not in data:
            break
    if fault is not None:
        raise UnusableInput(
            f"the function cannot be sent to other processes: {fault}",
            hint="define it at the top of a module and let it hold no open file, lock or "
            "generator; or use threads",
        ) from fault
    token = hashlib.blake2b(data, digest_size=16).hexdigest()
    return Payload(token, version("equipoise-matching"), data)


def evaluate_payload(payload: Payload, candidates: Floats) -> Outcome:
    """Return the values of candidates by a packed evaluator, or the failure."""
    try:
        return evaluate_checked(_unpack(payload), candidates)
    except UnknownPayload as unknown:
        return unknown
    except EquipoiseError as error:
        return Failure(error)
    except Exception as error:  # Unpickling runs code of the evaluator's classes.
        return Failure(
            UnusableInput(
                f"a worker cannot unpack the function: {type(error).__name__}: {error}",
                hint="install on every worker what this process has",
            )
        )


def evaluate_checked(evaluate: Evaluate, candidates: Floats) -> Floats:
    """Return the values, shape (candidates, criteria)."""
    # A copy: arrays from a cluster's buffers are read-only.
    copy = np.array(candidates, dtype=np.float64, order="C")
    try:
        values = np.asarray(evaluate(copy), dtype=np.float64)
    except EquipoiseError:
        raise
    except Exception as error:
        raise _failure(evaluate, candidates, error) from error
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2 or len(values) != len(candidates):
        raise EvaluationFailed(
            f"the function returned shape {values.shape} for {len(candidates)} points, the first "
            f"at {point_text(candidates[0])}"
        )
    return values


class FunctionRows:
    """A function of one point as an evaluator of batches, (batch, nvars) to (batch, criteria).

    A ``vectorized`` function takes all rows at once. ``criteria`` is the number of values of each
    point; ``None`` takes that of the first point.
    """

    def __init__(
        self, function: Callable[[Any], Any], *, vectorized: bool, criteria: int | None
    ) -> None:
        self._function = function
        self._vectorized = vectorized
        self._criteria = criteria

    def __call__(self, points: Floats) -> Floats:
        """Return the values of the rows."""
        if not self._vectorized:
            return np.array([self._row(point) for point in points], dtype=np.float64)
        try:
            values = np.asarray(self._function(points.copy()), dtype=np.float64)
        except Exception as error:
            raise EvaluationFailed(
                f"the function raised {describe_error(error)} in a batch of {len(points)} points, "
                f"the first at {point_text(points[0])}"
            ) from error
        if values.ndim == 2:
            self._check_length(values.shape[1], points[0])
        elif values.ndim == 1:
            self._check_length(1, points[0])
        return values

    def _row(self, point: Floats) -> Floats:
        try:
            # A copy, because the function may write into its argument.
            outcome = self._function(point.copy())
        except Exception as error:
            raise EvaluationFailed(
                f"the function raised {describe_error(error)} at {point_text(point)}"
            ) from error
        if outcome is None:
            # NumPy would make NaN of a forgotten return.
            raise EvaluationFailed(f"the function returned None at {point_text(point)}")
        try:
            row = np.atleast_1d(np.asarray(outcome, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise EvaluationFailed(
                f"the function returned {type(outcome).__name__}, not a number, "
                f"at {point_text(point)}"
            ) from error
        if row.ndim != 1 or len(row) == 0:
            raise EvaluationFailed(
                f"the function returned shape {row.shape} at {point_text(point)}: "
                "a number or a vector is needed"
            )
        self._check_length(len(row), point)
        return row

    def _check_length(self, length: int, point: Floats) -> None:
        if self._criteria is None:
            self._criteria = length
        if length != self._criteria:
            raise EvaluationFailed(
                f"the function returned {length} values at {point_text(point)} and "
                f"{self._criteria} elsewhere: there must be as many at every point"
            )


def describe_error(error: Exception) -> str:
    """Return the exception in a few words."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _failure(evaluate: Evaluate, candidates: Floats, error: Exception) -> EvaluationFailed:
    """Return the error of the first candidate at which the function raises alone."""
    culprit = candidates[0]
    for candidate in candidates:
        try:
            evaluate(np.array(candidate[np.newaxis, :], dtype=np.float64))
        except Exception as fault:
            culprit, error = candidate, fault
            break
    return EvaluationFailed(f"the function raised {describe_error(error)} at {point_text(culprit)}")


@functools.lru_cache(maxsize=KEPT_EVALUATORS)
def _unpack(payload: Payload) -> Evaluate:
    # Cached by the token, so that a reference finds the evaluator of an earlier payload, with all
    # that it built since; an exception is not cached.
    if payload.data is None:
        raise UnknownPayload
    installed = version("equipoise-matching")
    if installed != payload.version:
        raise UnusableInput(
            f"a worker has Equipoise {installed} and the search runs on {payload.version}",
            hint="install the same version on every worker: their answers must agree",
        )
    evaluate: Evaluate = pickle.loads(payload.data)
    return evaluate


def batch_share(candidates: int, workers: int) -> int:
    """Return the size of a batch if each worker gets several batches."""
    return -(-candidates // (workers * BATCHES_PER_WORKER))
