"""What goes to a worker and what it answers: the evaluator as a parcel, values or a failure.

Everything here runs in processes that hold nothing of the search but this package.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from equipoise.genoud.failure import EvaluationFailed, words
from equipoise.model.errors import EquipoiseError, UnusableInput

Floats = NDArray[np.float64]
Evaluate = Callable[[Floats], Floats]
"""Candidates (candidates, n) in, their values (candidates, criteria) out."""

OPENED_AT_MOST = 2
"""So many evaluators a worker keeps: that of a search and that of the one before."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A pickled evaluator; without ``payload``, a note that names one sent before.

    Parameters
    ----------
    token
        Digest of the payload: equal evaluators have equal tokens.
    version
        Of the Equipoise that packed it.
    """

    token: str
    version: str = field(compare=False)
    payload: bytes | None = field(compare=False, repr=False)

    def note(self) -> Parcel:
        """The parcel without what is in it."""
        return Parcel(self.token, self.version, None)


class NotHere(Exception):
    """This worker has never been sent that parcel."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The answer of a worker that got a note of a parcel it does not have."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The answer of a worker that cannot give values."""

    error: EquipoiseError


Outcome = Floats | Failed | Missing


def parcel_of(evaluate: Evaluate) -> Parcel:
    """The evaluator, packed for other processes.

    Raises
    ------
    UnusableInput
        It cannot be pickled.
    """
    try:
        payload = pickle.dumps(evaluate, protocol=pickle.HIGHEST_PROTOCOL)
        fault: Exception | None = None
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        payload, fault = b"", error
    # What lives in __main__ is pickled by name, and a worker of a cluster has another __main__.
    if fault is not None or b"__main__" in payload:
        by_value = _cloudpickle()
        try:
            if by_value is not None:
                payload, fault = by_value.dumps(evaluate), None
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            fault = error
    if fault is not None:
        raise UnusableInput(
            f"the function cannot be sent to other processes: {fault}",
            hint="define it at the top of a module and let it hold no open file, lock or "
            "generator; or use threads",
        ) from fault
    token = hashlib.blake2b(payload, digest_size=16).hexdigest()
    return Parcel(token, version("equipoise"), payload)


def evaluate_parcel(parcel: Parcel, candidates: Floats) -> Outcome:
    """The values (candidates, criteria) by the evaluator of the parcel, or why there are none."""
    try:
        evaluate = _opened(parcel)
    except NotHere:
        return Missing()
    except EquipoiseError as error:
        return Failed(error)
    except Exception as error:  # Unpickling runs whatever the evaluator's classes run.
        return Failed(
            UnusableInput(
                f"a worker cannot unpack the function: {type(error).__name__}: {error}",
                hint="install on every worker what this process has",
            )
        )
    try:
        return evaluated(evaluate, candidates)
    except EquipoiseError as error:
        return Failed(error)


def evaluated(evaluate: Evaluate, candidates: Floats) -> Floats:
    """The values, shape (candidates, criteria).

    Raises
    ------
    EvaluationFailed
        The evaluator raised, named with the parameters that made it do so, or it returned
        something else than a row for each candidate.
    """
    # A copy: what comes out of a cluster's buffers is read-only.
    given = np.array(candidates, dtype=np.float64, order="C")
    try:
        values = np.asarray(evaluate(given), dtype=np.float64)
    except EquipoiseError:
        raise
    except Exception as error:
        raise _blamed(evaluate, candidates, error) from error
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2 or len(values) != len(candidates):
        raise EvaluationFailed(
            f"the function returned shape {values.shape} for {len(candidates)} points, the first "
            f"at {words(candidates[0])}"
        )
    return values


def _blamed(evaluate: Evaluate, candidates: Floats, error: Exception) -> EvaluationFailed:
    culprit, fault = candidates[0], error
    for candidate in candidates:
        try:
            evaluate(np.array(candidate[np.newaxis, :], dtype=np.float64))
        except Exception as alone:
            culprit, fault = candidate, alone
            break
    return EvaluationFailed(
        f"the function raised {type(fault).__name__}: {fault} at {words(culprit)}"
    )


@functools.lru_cache(maxsize=OPENED_AT_MOST)
def _opened(parcel: Parcel) -> Evaluate:
    # Cached by the token, so that a note finds what a parcel brought, with all that the
    # evaluator built since; an exception is not cached.
    if parcel.payload is None:
        raise NotHere
    here = version("equipoise")
    if here != parcel.version:
        raise UnusableInput(
            f"a worker has Equipoise {here} and the search runs on {parcel.version}",
            hint="install the same version on every worker: their answers must agree",
        )
    evaluate: Evaluate = pickle.loads(parcel.payload)
    return evaluate


def _cloudpickle() -> ModuleType | None:
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return None
