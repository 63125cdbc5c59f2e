"""Run a search: the native engine makes points, and an evaluator computes the values there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from equipoise_matching._native import GenoudSearch
from equipoise_matching.genetic.options import SearchOptions
from equipoise_matching.genetic.worker import Evaluate, EvaluationFailed, Floats, point_code
from equipoise_matching.shared.errors import UnusableInput

LocalMethod = TypeVar("LocalMethod")

Polish = Callable[[Floats], tuple[Floats, Floats]]
"""Function of a start (nvars,) that returns the local optimum (nvars,) and its values."""
Gradient = Callable[[Floats], Floats]
"""Function of a point (nvars,) that returns the gradient (nvars,)."""
Progress = Callable[[int, int], None]
"""Function that receives the number of finished generations and the current limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """A finished generation.

    Parameters
    ----------
    number
        Number of the generation; 0 is the random one.
    value
        Shape (criteria,): values of the best candidate.
    par
        Shape (nvars,): the best candidate.
    median
        First criterion of the candidate in the middle of the order.
    evaluations
        Number of points evaluated so far, without the points of the local optimiser.
    """

    number: int
    value: Floats
    par: Floats
    median: float
    evaluations: int


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """The best candidate of a search, and its course.

    The fields are as in ``GenoudResult``. ``value`` has shape (criteria,), ``par`` (nvars,).
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
        """Number of generations after the random one."""
        return self.history[-1].number


def search(
    options: SearchOptions,
    evaluate: Evaluate,
    *,
    polish: Polish | None = None,
    gradient: Gradient | None = None,
    callback: Callable[[Generation], object] | None = None,
    progress: Progress | None = None,
) -> SearchResult:
    """Search until the best value no longer improves, or the generation limit is reached.

    The same options and seed, and the same values, give the same answer on any evaluator.

    Raise `UnusableInput` if options cannot be combined, or ``polish`` or ``gradient`` is missing.
    Raise it also if values are NaN or differ in number.

    Parameters
    ----------
    polish
        Needed with ``options.polish`` and with operator 9.
    gradient
        Needed with ``options.gradient_check``.
    callback
        Function that receives each generation. The search ends if it returns ``True``.
    """
    try:
        native = GenoudSearch(options)
    except ValueError as error:
        raise UnusableInput(
            f"the options of the search cannot be combined: {error}", hint="change one of them"
        ) from error
    history: list[Generation] = []
    step = "evaluate"
    while step in {"evaluate", "polish", "gradient"}:
        step, points = native.ask()
        if step == "evaluate":
            native.tell(checked_values(evaluate(points), points, history))
        elif step == "polish":
            polished = [require_method(polish, "polish")(point) for point in points]
            native.tell_polished(
                np.array([point for point, _ in polished], dtype=np.float64),
                np.array([np.atleast_1d(values) for _, values in polished], dtype=np.float64),
            )
        elif step == "gradient":
            slope = require_method(gradient, "gradient")(points[0])
            native.tell_gradient(bool(np.all(np.abs(slope) <= options.solution_tolerance)))
        for record in native.history(len(history)):
            history.append(Generation(*record))
            if progress is not None:
                progress(history[-1].number, native.generation_limit)
            if callback is not None and callback(history[-1]) is True:
                step = "callback"
                break
    # The last step is the reason for the end.
    return SearchResult(
        value=history[-1].value,
        par=history[-1].par,
        peak_generation=native.peak_generation,
        operators=tuple(native.operators),
        population=native.population_size,
        stopped_because=step,
        history=tuple(history),
    )


def require_method(method: LocalMethod | None, name: str) -> LocalMethod:
    """Return the method; raise `UnusableInput` if it is missing."""
    if method is None:
        raise UnusableInput(f"{name} is missing, which the options need", hint=f"give {name}=")
    return method


def checked_values(values: Floats, points: Floats, history: list[Generation]) -> Floats:
    """Return values of shape (batch, criteria); raise `UnusableInput` if they cannot be used."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2 or len(values) != len(points) or values.shape[1] == 0:
        raise UnusableInput(
            f"the function returned values of shape {values.shape} for {len(points)} points",
            hint="return a row of values for each point",
        )
    if history and values.shape[1] != len(history[0].value):
        raise UnusableInput(
            f"the function returned {values.shape[1]} values at {point_code(points[0])}, but "
            f"{len(history[0].value)} at earlier points",
            hint="return the same number of values at every point",
        )
    rows = np.flatnonzero(np.isnan(values).any(axis=1))
    if len(rows):
        raise EvaluationFailed(f"the function returned NaN at {point_code(points[rows[0]])}")
    return values


def history_rows(history: Sequence[Generation]) -> list[dict[str, Any]]:
    """Return a row for each generation, for the chart of a search."""
    return [
        {
            "generation": generation.number,
            "best": float(generation.value[0]),
            "median": generation.median,
            "evaluations": generation.evaluations,
        }
        for generation in history
    ]
