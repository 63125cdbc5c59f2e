"""Drives a native search with any evaluator of batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise._native import GenoudSearch
from equipoise.genoud.failure import EvaluationFailed, words
from equipoise.genoud.options import SearchOptions
from equipoise.model.errors import UnusableInput

Floats = NDArray[np.float64]
Given = TypeVar("Given")

Evaluate = Callable[[Floats], Floats]
"""Shape (batch, nvars) to shape (batch, criteria), or (batch,) for a single criterion."""
Polish = Callable[[Floats], tuple[Floats, Floats]]
"""Shape (nvars,), a start, to the point that a local optimiser makes of it and its values."""
Gradient = Callable[[Floats], Floats]
"""Shape (nvars,), a point, to the gradient there, shape (nvars,)."""
Progress = Callable[[int, int], None]
"""The generation that ended, and how many there are at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """What a generation has come to.

    Parameters
    ----------
    number
        From 0, the random one.
    value
        Shape (criteria,): the best individual's.
    par
        Shape (nvars,): the best individual.
    median
        The first criterion of the middle individual.
    evaluations
        How many points were evaluated so far, those of the local optimiser left out.
    """

    number: int
    value: Floats
    par: Floats
    median: float
    evaluations: int


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a search found.

    Parameters
    ----------
    value, par
        Of the best individual: shape (criteria,) and (nvars,).
    peak_generation
        When it last improved by more than the tolerance.
    operators
        How many individuals of a generation came from each of the nine operators.
    population
        How many individuals a generation had.
    stopped_because
        "no improvement" or "generation limit".
    history
        A generation each, the random one first.
    """

    value: Floats
    par: Floats
    peak_generation: int
    operators: tuple[int, ...]
    population: int
    stopped_because: str
    history: tuple[Generation, ...] = field(repr=False)

    @property
    def generations(self) -> int:
        """How many generations were bred."""
        return self.history[-1].number


def search(
    options: SearchOptions,
    evaluate: Evaluate,
    *,
    polish: Polish | None = None,
    gradient: Gradient | None = None,
    callback: Callable[[Generation], object] | None = None,
    progress: Progress | None = None,
) -> Found:
    """Searches until it has waited long enough or had all its generations.

    The same options, seed among them, and the same values give the same answer, however
    ``evaluate`` comes to the values.

    Parameters
    ----------
    polish
        Needed with ``options.polish`` and with operator 9.
    gradient
        Needed with ``options.gradient_check``.
    callback
        Told of each generation; ends the search where it returns ``True``.

    Raises
    ------
    UnusableInput
        If the options do not fit together, the values are NaN or not as many as before, or a
        ``polish`` or ``gradient`` that is needed is missing.
    """
    try:
        native = GenoudSearch(options.native())
    except ValueError as error:
        raise UnusableInput(str(error)) from error
    history: list[Generation] = []
    while True:
        step, told = native.ask()
        points = np.frombuffer(told, dtype=np.float64).reshape(-1, options.nvars)
        if step == "evaluate":
            values = checked(evaluate(points), points, history)
            native.tell(values, values.shape[1])
        elif step == "polish":
            polished = [needed(polish, "polish")(point) for point in points]
            native.tell_polished(
                np.array([point for point, _ in polished], dtype=np.float64),
                np.array([np.atleast_1d(values) for _, values in polished], dtype=np.float64),
                len(polished),
            )
        elif step == "gradient":
            slope = needed(gradient, "gradient")(points[0])
            native.tell_gradient(bool(np.all(np.abs(slope) <= options.solution_tolerance)))
        for generation in finished(native, len(history)):
            history.append(generation)
            if progress is not None:
                progress(generation.number, native.generation_limit)
            if callback is not None and callback(generation) is True:
                return found(native, history, "callback")
        if step not in {"evaluate", "polish", "gradient"}:
            return found(native, history, step)


def needed(given: Given | None, name: str) -> Given:
    """What the options ask for must be given."""
    if given is None:
        raise UnusableInput(f"the search asks for {name}, and there is none", hint=f"give {name}=")
    return given


def checked(given: Floats, points: Floats, history: list[Generation]) -> Floats:
    """Shape (batch, criteria), none NaN, as many criteria as before."""
    values = np.ascontiguousarray(given, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2 or len(values) != len(points) or values.shape[1] == 0:
        raise UnusableInput(
            f"{len(points)} points were evaluated and values of shape {values.shape} came back"
        )
    if history and values.shape[1] != len(history[0].value):
        raise UnusableInput(
            f"{values.shape[1]} values at {words(points[0])}, after {len(history[0].value)} "
            "elsewhere: there must be as many at every point"
        )
    refuse_nan(values, points)
    return values


def refuse_nan(values: Floats, points: Floats) -> None:
    """Names the first point whose value is NaN."""
    rows = np.flatnonzero(np.isnan(values).any(axis=1))
    if len(rows):
        raise EvaluationFailed(f"the value is NaN at {words(points[rows[0]])}")


def finished(native: GenoudSearch, known: int) -> list[Generation]:
    """The generations that ended since so many were known."""
    return [
        Generation(number, np.frombuffer(value), np.frombuffer(par), median, evaluations)
        for number, par, value, median, evaluations in native.history(known)
    ]


def found(native: GenoudSearch, history: list[Generation], why: str) -> Found:
    """The best of the last generation."""
    last = history[-1]
    return Found(
        value=last.value,
        par=last.par,
        peak_generation=native.peak_generation,
        operators=tuple(native.operators),
        population=native.population_size,
        stopped_because=why,
        history=tuple(history),
    )
