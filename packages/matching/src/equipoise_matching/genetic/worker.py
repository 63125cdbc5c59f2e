"""Send an evaluator to a worker process, and return values or a failure from it.

An evaluator is a function of candidates that returns their values. A payload is a pickled
evaluator.
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
Evaluator = Callable[[Floats], Floats]
"""Function of candidates (candidates, n) that returns their values (candidates, criteria).

The values may have shape (candidates,) for a single criterion.
"""

MAX_CACHED_EVALUATORS = 2
"""Number of evaluators that a worker keeps: one for each of the last two searches."""
BATCHES_PER_WORKER = 4
"""Number of batches for each worker; with several, a slow or lost worker delays only one batch."""
SAME_LENGTH_HINT = "return the same number of values at every point"


class EvaluationFailed(UnusableInput):
    """The function could not be evaluated; the message has the parameters. Exit status 2."""

    def __init__(
        self,
        what: str,
        hint: str | None = "return a number at every point within the bounds (infinity for bad "
        "points), or narrow the bounds",
    ) -> None:
        super().__init__(what, hint=hint)

    def __reduce__(self) -> tuple[type[EvaluationFailed], tuple[str, str | None]]:
        """Pickle the arguments of the constructor."""
        return EvaluationFailed, (self.what, self.hint)


def point_as_code(point: Floats) -> str:
    """Return the parameters as Python code that can be copied."""
    return f"par = {[float(value) for value in point]}"


@dataclass(frozen=True, slots=True)
class Payload:
    """A pickled evaluator. Without ``data``, a reference to a payload that was sent earlier.

    The ``token`` is a digest of the data, so equal evaluators have equal tokens. ``version`` is the
    version of equipoise-matching in the process of the search.
    """

    token: str
    version: str = field(compare=False)
    data: bytes | None = field(compare=False, repr=False)


class UnknownPayload(Exception):
    """The answer of a worker that received a reference to a payload that it does not have."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The answer of a worker that could not compute the values."""

    error: EquipoiseError


Outcome = Floats | Failure | UnknownPayload
"""Answer of a worker to a batch."""


def pickle_evaluator(evaluate: Evaluator) -> Payload:
    """Pickle the evaluator for other processes."""
    import cloudpickle

    data, pickle_error = b"", None
    for pickler in (pickle, cloudpickle):
        try:
            data, pickle_error = pickler.dumps(evaluate, protocol=pickle.HIGHEST_PROTOCOL), None
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            pickle_error = error
        # pickle refers to objects of __main__ by name, but a worker has another __main__.
        if pickle_error is None and b"__main__" not in data:
            break
    if pickle_error is not None:
        raise UnusableInput(
            f"the function cannot be sent to other processes: {pickle_error}",
            hint="define the function at the top level of a module, without open files, locks or "
            "generators; or give a ThreadPoolExecutor as the executor",
        ) from pickle_error
    token = hashlib.blake2b(data, digest_size=16).hexdigest()
    return Payload(token, version("equipoise-matching"), data)


def evaluate_payload(payload: Payload, candidates: Floats) -> Outcome:
    """Return the values of candidates by a pickled evaluator, or the failure."""
    try:
        return evaluate_checked(_unpickle_evaluator(payload), candidates)
    except UnknownPayload as unknown:
        return unknown
    except EquipoiseError as error:
        return Failure(error)
    except Exception as error:  # Unpickling runs code of the evaluator's classes.
        return Failure(
            UnusableInput(
                f"a worker cannot unpack the function: {type(error).__name__}: {error}",
                hint="install on every worker the packages that the function imports",
            )
        )


def evaluate_checked(evaluate: Evaluator, candidates: Floats) -> Floats:
    """Return the values, shape (candidates, criteria)."""
    # The function gets a copy, because arrays from a cluster's buffers are read-only.
    copy = np.array(candidates, dtype=np.float64, order="C")
    try:
        values = np.asarray(evaluate(copy), dtype=np.float64)
    except EquipoiseError:
        raise
    except Exception as error:
        raise _first_error(evaluate, candidates, error) from error
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2 or len(values) != len(candidates):
        raise EvaluationFailed(
            f"the function returned shape {values.shape} for {len(candidates)} points, the first "
            f"at {point_as_code(candidates[0])}"
        )
    return values


class FunctionEvaluator:
    """An evaluator of points (batch, nvars), from a function of one point.

    A ``vectorized`` function takes all points at once. ``criteria`` is the number of values of each
    point; with ``None``, the first point decides the number.
    """

    def __init__(
        self, function: Callable[[Any], Any], *, vectorized: bool, criteria: int | None
    ) -> None:
        self._function = function
        self._vectorized = vectorized
        self._criteria = criteria

    def __call__(self, points: Floats) -> Floats:
        """Return the values of the points, shape (batch, criteria)."""
        if not self._vectorized:
            return np.array([self._row(point) for point in points], dtype=np.float64)
        try:
            values = np.asarray(self._function(points.copy()), dtype=np.float64)
        except Exception as error:
            raise EvaluationFailed(
                f"the function raised {describe_error(error)} in a batch of {len(points)} points, "
                f"the first at {point_as_code(points[0])}"
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
                f"the function raised {describe_error(error)} at {point_as_code(point)}"
            ) from error
        if outcome is None:
            # NumPy would convert the None of a forgotten return statement to NaN.
            raise EvaluationFailed(f"the function returned None at {point_as_code(point)}")
        try:
            row = np.atleast_1d(np.asarray(outcome, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise EvaluationFailed(
                f"the function returned {type(outcome).__name__}, not a number, "
                f"at {point_as_code(point)}"
            ) from error
        if row.ndim != 1 or len(row) == 0:
            raise EvaluationFailed(
                f"the function returned shape {row.shape}, neither a number nor a vector, at "
                f"{point_as_code(point)}"
            )
        self._check_length(len(row), point)
        return row

    def _check_length(self, length: int, point: Floats) -> None:
        if self._criteria is None:
            self._criteria = length
        if length != self._criteria:
            raise EvaluationFailed(
                f"the function returned {length} values at {point_as_code(point)} instead of "
                f"{self._criteria}",
                SAME_LENGTH_HINT,
            )


def describe_error(error: Exception) -> str:
    """Return the type and the message of the exception."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _first_error(evaluate: Evaluator, candidates: Floats, error: Exception) -> EvaluationFailed:
    """Return the error of the first candidate for which the function raises an exception."""
    failing = candidates[0]
    for candidate in candidates:
        try:
            evaluate(np.array(candidate[np.newaxis, :], dtype=np.float64))
        except Exception as caught:
            failing, error = candidate, caught
            break
    return EvaluationFailed(
        f"the function raised {describe_error(error)} at {point_as_code(failing)}"
    )


@functools.lru_cache(maxsize=MAX_CACHED_EVALUATORS)
def _unpickle_evaluator(payload: Payload) -> Evaluator:
    """Return the evaluator of a payload, from the cache if an equal payload came earlier."""
    # The cache compares only tokens, so a payload without data finds the evaluator of an earlier
    # payload. Exceptions are not cached.
    if payload.data is None:
        raise UnknownPayload
    installed = version("equipoise-matching")
    if installed != payload.version:
        raise UnusableInput(
            f"a worker has equipoise-matching {installed}, but the search has {payload.version}",
            hint=f"run on every worker: pip install equipoise-matching=={payload.version}",
        )
    evaluate: Evaluator = pickle.loads(payload.data)
    return evaluate


def candidates_per_batch(candidates: int, workers: int) -> int:
    """Return the size of a batch so that each worker gets ``BATCHES_PER_WORKER`` batches."""
    return -(-candidates // (workers * BATCHES_PER_WORKER))
