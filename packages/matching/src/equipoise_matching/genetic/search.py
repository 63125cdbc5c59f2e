"""The search: the native engine asks for values, and any evaluator of batches gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from equipoise_matching._native import GenoudSearch
from equipoise_matching.genetic.options import SearchOptions
from equipoise_matching.genetic.worker import Evaluate, EvaluationFailed, Floats, point_text
from equipoise_matching.shared.errors import UnusableInput

Part = TypeVar("Part")

Polish = Callable[[Floats], tuple[Floats, Floats]]
"""Shape (nvars,), a start, to the point that a local optimiser makes of it and its values."""
Gradient = Callable[[Floats], Floats]
"""Shape (nvars,), a point, to the gradient there, shape (nvars,)."""
Progress = Callable[[int, int], None]
"""Called with the number of the generation that ended, and of generations at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """A finished generation.

    Parameters
    ----------
    number
        Number of the generation; 0 is the random one.
    value
        Shape (criteria,): values of the best individual.
    par
        Shape (nvars,): the best individual.
    median
        First criterion of the middle individual.
    evaluations
        Number of points evaluated so far, without those of the local optimiser.
    """

    number: int
    value: Floats
    par: Floats
    median: float
    evaluations: int


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """The best individual of a search, and its course.

    Parameters
    ----------
    value, par
        Values (criteria,) and parameters (nvars,) of the best individual.
    peak_generation
        Generation in which it last improved by more than the tolerance.
    operators
        Individuals of a generation from each of the nine operators.
    population
        Individuals in a generation.
    stopped_because
        "no improvement" or "generation limit".
    history
        The generations, the random one first.
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
        """Number of generations that were bred."""
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
    """Search until nothing improves for long enough, or all generations have run.

    The same options, seed among them, and the same values give the same answer, however
    ``evaluate`` computes them.

    Raise `UnusableInput` if the options do not fit together, the values are NaN or not as many as
    before, or a ``polish`` or ``gradient`` that is needed is missing.

    Parameters
    ----------
    polish
        Needed with ``options.polish`` and with operator 9.
    gradient
        Needed with ``options.gradient_check``.
    callback
        Called with each generation; ends the search where it returns ``True``.
    """
    try:
        native = GenoudSearch(options)
    except ValueError as error:
        raise UnusableInput(str(error)) from error
    history: list[Generation] = []
    step = "evaluate"
    while step in {"evaluate", "polish", "gradient"}:
        step, points = native.ask()
        if step == "evaluate":
            native.tell(checked_values(evaluate(points), points, history))
        elif step == "polish":
            polished = [required_part(polish, "polish")(point) for point in points]
            native.tell_polished(
                np.array([point for point, _ in polished], dtype=np.float64),
                np.array([np.atleast_1d(values) for _, values in polished], dtype=np.float64),
            )
        elif step == "gradient":
            slope = required_part(gradient, "gradient")(points[0])
            native.tell_gradient(bool(np.all(np.abs(slope) <= options.solution_tolerance)))
        for record in native.history(len(history)):
            history.append(Generation(*record))
            if progress is not None:
                progress(history[-1].number, native.generation_limit)
            if callback is not None and callback(history[-1]) is True:
                step = "callback"
                break
    return SearchResult(
        value=history[-1].value,
        par=history[-1].par,
        peak_generation=native.peak_generation,
        operators=tuple(native.operators),
        population=native.population_size,
        stopped_because=step,
        history=tuple(history),
    )


def required_part(part: Part | None, name: str) -> Part:
    """Return a part of the search; refuse options that need it if it is missing."""
    if part is None:
        raise UnusableInput(f"the search needs {name}, which is not given", hint=f"give {name}=")
    return part


def checked_values(values: Floats, points: Floats, history: list[Generation]) -> Floats:
    """Return values of shape (batch, criteria), none NaN, with as many criteria as before."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2 or len(values) != len(points) or values.shape[1] == 0:
        raise UnusableInput(
            f"{len(points)} points were evaluated and values of shape {values.shape} came back"
        )
    if history and values.shape[1] != len(history[0].value):
        raise UnusableInput(
            f"{values.shape[1]} values at {point_text(points[0])}, after {len(history[0].value)} "
            "elsewhere: there must be as many at every point"
        )
    rows = np.flatnonzero(np.isnan(values).any(axis=1))
    if len(rows):
        raise EvaluationFailed(f"the function returned NaN at {point_text(points[rows[0]])}")
    return values


def history_rows(history: Sequence[Generation]) -> list[dict[str, Any]]:
    """Return a row for each generation, as the chart of a search takes it."""
    return [
        {
            "generation": generation.number,
            "best": float(generation.value[0]),
            "median": generation.median,
            "evaluations": generation.evaluations,
        }
        for generation in history
    ]
