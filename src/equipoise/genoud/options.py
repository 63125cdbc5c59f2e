"""The options of a search, checked."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.model.errors import UnusableInput

Floats = NDArray[np.float64]
Choice = TypeVar("Choice")

DEFAULT_BOUND = 10.0
"""Bound of each parameter without bounds, on either side of 0."""
EVEN_OPERATORS = (50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 0.0)
GENERATORS = ("philox", "tlp")
BOUNDARIES = (0, 1, 2)
LARGEST_SEED = 2**64 - 1
MOST_PARAMETERS = 100_000
MOST_POPULATION = 1_000_000
MOST_GENERATIONS = 1_000_000_000
MOST_NUMBERS = 100_000_000
"""Numbers of a whole population, candidates times parameters: 800 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchOptions:
    """The options of a search, which ``_native`` reads by name; :func:`search_options` checks them.

    Parameters
    ----------
    lower, upper
        Shape (nvars,): the bounds.
    starting_values
        Shape (rows, nvars), inside the bounds.
    polish, gradient_check
        Whether the search asks for a polished best, and for the gradient before it waits.
    seed
        0 to 2^64 - 1.

    The others are those of :func:`equipoise.genoud.genoud`.
    """

    lower: Floats
    upper: Floats
    starting_values: Floats
    maximize: bool
    population: int
    generations: int
    wait_generations: int
    hard_generation_limit: bool
    boundary: int
    integer: bool
    polish: bool
    gradient_check: bool
    burn_in: int
    operators: tuple[float, ...]
    mix: float | None
    solution_tolerance: float
    memory: bool
    generator: str
    seed: int

    @property
    def nvars(self) -> int:
        """Number of parameters."""
        return len(self.lower)


def search_options(
    nvars: int,
    *,
    maximize: bool = False,
    population: int = 1000,
    generations: int = 100,
    wait_generations: int = 10,
    hard_generation_limit: bool = True,
    bounds: ArrayLike | None = None,
    boundary_enforcement: int = 0,
    starting_values: ArrayLike | None = None,
    integer: bool = False,
    polish: bool = False,
    gradient_check: bool = False,
    burn_in: int = 0,
    operators: Sequence[float] | None = None,
    p9mix: float | None = None,
    solution_tolerance: float = 1e-3,
    memory: bool = True,
    generator: str = "philox",
    seed: int | None = None,
) -> SearchOptions:
    """Check the options of :func:`equipoise.genoud.genoud`.

    Raises
    ------
    UnusableInput
        Naming the argument that cannot be used, and the parameter (from 1) that it is wrong for.
    """
    nvars = whole("nvars", nvars, 1, MOST_PARAMETERS)
    candidates = whole("population", population, 2, MOST_POPULATION)
    if candidates * nvars > MOST_NUMBERS:
        raise UnusableInput(
            f"a population of {candidates} candidates with {nvars} parameters each",
            hint=f"give a population of at most {MOST_NUMBERS // nvars}",
        )
    lower, upper = checked_bounds(bounds, nvars, integer=integer)
    chosen = one_of("generator", generator, GENERATORS)
    boundary = one_of("boundary_enforcement", boundary_enforcement, BOUNDARIES)
    if seed is None:
        seed = secrets.randbits(64)
    if p9mix is not None and not 0 <= p9mix <= 1:
        raise UnusableInput(f"p9mix is {p9mix}: a share between 0 and 1 is needed")
    if not solution_tolerance >= 0:
        raise UnusableInput(f"solution_tolerance is {solution_tolerance}: 0 or more is needed")
    return SearchOptions(
        lower=lower,
        upper=upper,
        starting_values=checked_starts(starting_values, lower, upper, integer=integer),
        maximize=bool(maximize),
        population=candidates,
        generations=whole("generations", generations, 1, MOST_GENERATIONS),
        wait_generations=whole("wait_generations", wait_generations, 0, MOST_GENERATIONS),
        hard_generation_limit=bool(hard_generation_limit),
        boundary=boundary,
        integer=bool(integer),
        polish=bool(polish),
        gradient_check=bool(gradient_check),
        burn_in=whole("burn_in", burn_in, 0, MOST_GENERATIONS),
        operators=checked_operators(operators),
        mix=None if p9mix is None else float(p9mix),
        solution_tolerance=float(solution_tolerance),
        memory=bool(memory),
        generator=chosen,
        seed=whole("seed", seed, 0, LARGEST_SEED),
    )


def whole(name: str, value: Any, low: int, high: int) -> int:
    """Return a whole number in its range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise UnusableInput(
            f"{name} is {value!r}", hint=f"give a whole number from {low} to {high}"
        ) from None
    if not low <= number <= high:
        raise UnusableInput(f"{name} is {number}", hint=f"give {low} to {high}")
    return number


def one_of(name: str, value: Choice, choices: Sequence[Choice]) -> Choice:
    """Return one of the choices."""
    if value not in choices:
        raise UnusableInput(
            f"{name} is {value!r}", hint=f"give one of {', '.join(map(str, choices))}"
        )
    return value


def checked_bounds(bounds: ArrayLike | None, nvars: int, *, integer: bool) -> tuple[Floats, Floats]:
    """Return lower and upper bounds, shape (nvars,) each."""
    if bounds is None:
        return np.full(nvars, -DEFAULT_BOUND), np.full(nvars, DEFAULT_BOUND)
    table = numbers("bounds", bounds)
    if table.shape != (nvars, 2):
        raise UnusableInput(
            f"bounds have shape {table.shape}",
            hint=f"give a lower and an upper bound for each parameter: shape ({nvars}, 2)",
        )
    for place, (low, high) in enumerate(table, 1):
        if not np.isfinite(high - low):
            raise UnusableInput(f"bounds of parameter {place}: {low:g} and {high:g} are not finite")
        if low > high:
            raise UnusableInput(
                f"bounds of parameter {place} cross: {low:g} > {high:g}",
                hint="give the lower bound first",
            )
        if integer and not (low.is_integer() and high.is_integer()):
            raise UnusableInput(
                f"bounds of parameter {place}: {low:g} and {high:g} are no whole numbers"
            )
    return np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])


def checked_starts(
    starting_values: ArrayLike | None, lower: Floats, upper: Floats, *, integer: bool
) -> Floats:
    """Return starting values of shape (rows, nvars), all inside the bounds."""
    nvars = len(lower)
    if starting_values is None:
        return np.empty((0, nvars))
    starts = np.atleast_2d(numbers("starting_values", starting_values))
    if starts.ndim != 2 or starts.shape[1] != nvars:
        raise UnusableInput(
            f"starting_values have shape {starts.shape}",
            hint=f"give one row of {nvars} parameters for each starting value",
        )
    for row, start in enumerate(starts, 1):
        outside = ~((start >= lower) & (start <= upper))
        if outside.any():
            place = int(np.argmax(outside))
            raise UnusableInput(
                f"starting value {row}: parameter {place + 1} is {start[place]:g}, outside "
                f"{lower[place]:g} to {upper[place]:g}",
                hint="move it inside or widen the bounds",
            )
        if integer and not np.all(start == np.round(start)):
            raise UnusableInput(f"starting value {row} has a parameter that is no whole number")
    return np.ascontiguousarray(starts)


def checked_operators(operators: Sequence[float] | None) -> tuple[float, ...]:
    """Return the nine weights of the operators."""
    if operators is None:
        return EVEN_OPERATORS
    weights = tuple(numbers("operators", operators).ravel().tolist())
    usable = len(weights) == len(EVEN_OPERATORS) and all(0 <= weight < np.inf for weight in weights)
    if not usable or sum(weights) == 0:
        raise UnusableInput(
            f"operators are {weights}", hint="give nine weights of 0 or more, not all 0: P1 to P9"
        )
    return weights


def numbers(name: str, values: ArrayLike) -> Floats:
    """Return the values as an array of floats."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UnusableInput(f"{name} cannot be read as numbers: {error}") from error
