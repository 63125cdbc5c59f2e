"""Run a genetic search: the native engine makes points, and the caller's functions answer.

The engine, in Rust, asks for one step after the other: to ``evaluate`` points, to ``polish`` points
(move each to a local optimum), or to check the ``gradient`` at a point. A criterion is one of the
values of the function at a point; the first criterion that differs decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from equipoise_matching._native import GenoudSearch
from equipoise_matching.genetic.options import SearchOptions
from equipoise_matching.genetic.worker import EvaluationFailed, Evaluator, Floats, point_as_code
from equipoise_matching.shared.errors import UnusableInput

LocalMethod = TypeVar("LocalMethod")

Polish = Callable[[Floats], tuple[Floats, Floats]]
"""Function of a point (nvars,) that returns the local optimum near it (nvars,) and its values."""
Gradient = Callable[[Floats], Floats]
"""Function of a point (nvars,) that returns the gradient (nvars,)."""
Progress = Callable[[int, int], None]
"""Function that receives the number of finished generations and the current limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """A finished generation."""

    number: int
    """Number of the generation; generation 0 is random."""
    value: Floats
    """Shape (criteria,): values of the best candidate."""
    parameters: Floats
    """Shape (nvars,): the best candidate."""
    median: float
    """First criterion of the candidate in the middle of the order."""
    evaluations: int
    """Number of points evaluated so far, without the points of the local optimiser."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """The best candidate of a search, and its course.

    The fields are as in ``GenoudResult``; ``value`` has shape (criteria,), ``parameters`` (nvars,).
    """

    value: Floats
    parameters: Floats
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
    evaluate: Evaluator,
    *,
    polish: Polish | None = None,
    gradient: Gradient | None = None,
    callback: Callable[[Generation], object] | None = None,
    progress: Progress | None = None,
) -> SearchResult:
    """Search until the best value no longer improves, or the generation limit is reached.

    The same options and seed, and the same values, give the same answer on any evaluator.

    Raise `UnusableInput` if options cannot be combined, ``polish`` or ``gradient`` is missing, or
    the values of a point are NaN or differ in number from the values of earlier points.

    ``options.polish`` and operator 9 need ``polish``, and ``options.gradient_check`` needs
    ``gradient``. The search ends if ``callback`` returns ``True`` for a finished generation.
    """
    try:
        engine = GenoudSearch(options)
    except ValueError as error:
        raise UnusableInput(
            f"the options of the search cannot be combined: {error}", hint="change one of them"
        ) from error
    history: list[Generation] = []
    step = "evaluate"
    while step in {"evaluate", "polish", "gradient"}:
        step, points = engine.ask()
        if step == "evaluate":
            engine.tell(checked_values(evaluate(points), points, history))
        elif step == "polish":
            polished = [require_method(polish, "polish")(point) for point in points]
            engine.tell_polished(
                np.array([point for point, _ in polished], dtype=np.float64),
                np.array([np.atleast_1d(values) for _, values in polished], dtype=np.float64),
            )
        elif step == "gradient":
            slopes = require_method(gradient, "gradient")(points[0])
            engine.tell_gradient(bool(np.all(np.abs(slopes) <= options.solution_tolerance)))
        for record in engine.history(len(history)):
            history.append(Generation(*record))
            if progress is not None:
                progress(history[-1].number, engine.generation_limit)
            if callback is not None and callback(history[-1]) is True:
                step = "callback"
                break
    # The last step is the reason for the end.
    return SearchResult(
        value=history[-1].value,
        parameters=history[-1].parameters,
        peak_generation=engine.peak_generation,
        operators=tuple(engine.operators),
        population=engine.population_size,
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
            f"the function returned {values.shape[1]} values at {point_as_code(points[0])}, but "
            f"{len(history[0].value)} at earlier points",
            hint="return the same number of values at every point",
        )
    rows = np.flatnonzero(np.isnan(values).any(axis=1))
    if len(rows):
        raise EvaluationFailed(f"the function returned NaN at {point_as_code(points[rows[0]])}")
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
