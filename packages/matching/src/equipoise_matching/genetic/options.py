"""Check the options of a genetic search, as ``genoud`` describes them."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching.genetic.worker import Floats
from equipoise_matching.shared.errors import UnusableInput

DEFAULT_BOUND = 10.0
"""Default bounds of a parameter: from minus this number to this number."""
DEFAULT_OPERATOR_WEIGHTS = (50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 0.0)
"""Weights P1 to P9 of the nine operators, which make the next generation."""
MAX_PARAMETERS = 100_000
"""Largest number of parameters of a candidate, and of values that the function returns."""
MAX_GENERATIONS = 1_000_000_000
"""Largest value of the options that count generations."""
RANGES = {
    "nvars": (1, MAX_PARAMETERS),
    "population": (2, 1_000_000),
    "generations": (1, MAX_GENERATIONS),
    "wait_generations": (0, MAX_GENERATIONS),
    "burn_in": (0, MAX_GENERATIONS),
    "seed": (0, 2**64 - 1),
}
"""Smallest and largest value of each integer option."""
FLAGS = ("maximize", "hard_generation_limit", "integer", "polish", "gradient_check", "memory")
"""Names of the options that are true or false."""
MAX_POPULATION_CELLS = 100_000_000
"""Largest number of candidates times parameters, which need 800 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchOptions:
    """The checked options of a search, which ``_native`` reads by name.

    Raise `UnusableInput` if an option cannot be used. The message counts parameters from 1.

    The options are as in :func:`equipoise_matching.genetic.genoud`; ``polish`` is ``bfgs`` there.
    ``nvars`` and ``p9mix`` are R's names: the number of parameters, and the weight of a polished
    point.
    """

    nvars: int
    _: KW_ONLY
    maximize: bool = False
    population: int = 1000
    generations: int = 100
    wait_generations: int = 10
    hard_generation_limit: bool = True
    bounds: ArrayLike | None = None
    boundary_enforcement: int = 0
    starting_values: ArrayLike | None = None
    integer: bool = False
    polish: bool = False
    gradient_check: bool = False
    burn_in: int = 0
    operators: Sequence[float] | None = None
    p9mix: float | None = None
    solution_tolerance: float = 1e-3
    memory: bool = True
    generator: str = "philox"
    seed: int = field(default_factory=lambda: secrets.randbits(64))

    def __post_init__(self) -> None:
        """Check the options, and convert bounds and starting values to arrays."""
        checked: dict[str, Any] = {
            name: whole_number(name, getattr(self, name), *limits)
            for name, limits in RANGES.items()
        }
        checked |= {name: bool(getattr(self, name)) for name in FLAGS}
        nvars, population = checked["nvars"], checked["population"]
        if population * nvars > MAX_POPULATION_CELLS:
            raise UnusableInput(
                f"population is {population}: too many candidates with {nvars} parameters each",
                hint=f"give a population of at most {MAX_POPULATION_CELLS // nvars}",
            )
        require_one_of("generator", self.generator, ("philox", "tlp"))
        require_one_of("boundary_enforcement", self.boundary_enforcement, (0, 1, 2))
        if self.p9mix is not None and not 0 <= self.p9mix <= 1:
            raise UnusableInput(f"p9mix is {self.p9mix}", hint="give a number from 0 to 1")
        if not self.solution_tolerance >= 0:
            raise UnusableInput(
                f"solution_tolerance is {self.solution_tolerance}", hint="give 0 or more"
            )
        bounds = checked_bounds(self.bounds, nvars, integer=checked["integer"])
        starts = checked_starts(self.starting_values, bounds, integer=checked["integer"])
        operators = checked_operators(self.operators)
        checked |= {"bounds": bounds, "starting_values": starts, "operators": operators}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], **changes: Any) -> SearchOptions:
        """Return the options among the arguments of a function, with changes."""
        names = [option.name for option in fields(cls) if option.name in arguments]
        return cls(**{name: arguments[name] for name in names} | changes)

    @property
    def lower(self) -> Floats:
        """Lower bounds, shape (nvars,)."""
        return np.array(self.bounds, dtype=np.float64)[:, 0].copy()

    @property
    def upper(self) -> Floats:
        """Upper bounds, shape (nvars,)."""
        return np.array(self.bounds, dtype=np.float64)[:, 1].copy()

    @property
    def boundary(self) -> int:
        """The option ``boundary_enforcement``, under the name that the engine reads."""
        return self.boundary_enforcement

    @property
    def mix(self) -> float | None:
        """The option ``p9mix``, under the name that the engine reads."""
        return self.p9mix


def whole_number(name: str, value: Any, minimum: int, maximum: int) -> int:
    """Return the value as an integer; raise `UnusableInput` if it is not one within the limits."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or not minimum <= number <= maximum:
        hint = f"give a whole number from {minimum} to {maximum}"
        raise UnusableInput(f"{name} is {value!r}", hint=hint)
    return number


def require_one_of(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise `UnusableInput` if the value is not one of the choices."""
    if value not in choices:
        raise UnusableInput(
            f"{name} is {value!r}", hint=f"choose one of {', '.join(map(str, choices))}"
        )


def checked_bounds(bounds: ArrayLike | None, nvars: int, *, integer: bool) -> Floats:
    """Return lower and upper bounds, shape (nvars, 2)."""
    if bounds is None:
        return np.tile([-DEFAULT_BOUND, DEFAULT_BOUND], (nvars, 1))
    bounds_table = to_floats("bounds", bounds)
    if bounds_table.shape != (nvars, 2):
        raise UnusableInput(
            f"bounds have shape {bounds_table.shape}",
            hint=f"give a lower and an upper bound for each parameter: shape ({nvars}, 2)",
        )
    for parameter, (lower, upper) in enumerate(bounds_table, 1):
        if not np.isfinite(upper - lower):
            raise UnusableInput(
                f"bounds of parameter {parameter}: {lower:g} and {upper:g} are not finite",
                hint="give two finite numbers, such as -1000 and 1000",
            )
        if lower > upper:
            raise UnusableInput(
                f"bounds of parameter {parameter} cross: {lower:g} > {upper:g}",
                hint="give the lower bound first",
            )
        if integer and not (lower.is_integer() and upper.is_integer()):
            raise UnusableInput(
                f"bounds of parameter {parameter}: {lower:g} and {upper:g} are not whole numbers",
                hint="give whole numbers, or leave out integer=True",
            )
    return bounds_table


def checked_starts(starting_values: ArrayLike | None, bounds: Floats, *, integer: bool) -> Floats:
    """Return starting values of shape (rows, nvars), all inside the bounds."""
    nvars, (lower, upper) = len(bounds), bounds.T
    if starting_values is None:
        return np.empty((0, nvars))
    starts = np.atleast_2d(to_floats("starting_values", starting_values))
    if starts.ndim != 2 or starts.shape[1] != nvars:
        raise UnusableInput(
            f"starting_values have shape {starts.shape}",
            hint=f"give a row of {nvars} parameters for each starting value",
        )
    for row, start in enumerate(starts, 1):
        is_outside = ~((start >= lower) & (start <= upper))
        if is_outside.any():
            index = int(np.argmax(is_outside))
            raise UnusableInput(
                f"starting value {row}: parameter {index + 1} is {start[index]:g}, outside "
                f"{lower[index]:g} to {upper[index]:g}",
                hint="move the starting value inside the bounds, or widen the bounds",
            )
        if integer and not np.all(start == np.round(start)):
            raise UnusableInput(
                f"starting value {row} has a parameter that is not a whole number",
                hint="give whole numbers, or leave out integer=True",
            )
    return np.ascontiguousarray(starts)


def checked_operators(operators: Sequence[float] | None) -> tuple[float, ...]:
    """Return the nine weights of the operators."""
    if operators is None:
        return DEFAULT_OPERATOR_WEIGHTS
    weights = tuple(to_floats("operators", operators).ravel().tolist())
    if len(weights) != len(DEFAULT_OPERATOR_WEIGHTS):
        problem = f"nine weights are needed, one for each of P1 to P9, not {len(weights)}"
    elif not all(0 <= weight < np.inf for weight in weights):
        problem = f"a weight is negative or not finite: {weights}"
    elif sum(weights) > 0:
        return weights
    else:
        problem = "all nine weights are 0, so no operator makes candidates"
    hint = "give nine weights of 0 or more, such as operators=(50, 50, 50, 50, 50, 50, 50, 50, 0)"
    raise UnusableInput(f"operators: {problem}", hint=hint)


def to_floats(name: str, values: ArrayLike) -> Floats:
    """Return the values as an array of floats."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        hint = "give a number, or a list or an array of numbers"
        raise UnusableInput(f"{name} cannot be read as numbers: {error}", hint=hint) from error
