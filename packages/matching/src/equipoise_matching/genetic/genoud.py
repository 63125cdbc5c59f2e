"""Optimise a function by a genetic search that uses derivatives.

Mebane & Sekhon (2011, JSS 42(11)); the operators, and where R's package rgenoud differs:
docs/methods/genetic-matching.md.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching.genetic.executors import BatchEvaluator
from equipoise_matching.genetic.options import (
    MAX_PARAMETERS,
    SearchOptions,
    checked_operators,
    whole_number,
)
from equipoise_matching.genetic.polish import Polisher
from equipoise_matching.genetic.search import Generation, history_rows, search
from equipoise_matching.genetic.worker import Floats, FunctionRows
from equipoise_matching.shared import html
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.pictures import require_figures

LOCAL_MINIMUM = 8
"""The place of operator 9 among the operators."""


def genoud(
    fn: Callable[[Any], Any],
    nvars: int,
    *,
    maximize: bool = False,
    population: int = 1000,
    generations: int = 100,
    wait_generations: int = 10,
    hard_generation_limit: bool = True,
    bounds: ArrayLike | None = None,
    boundary_enforcement: Literal[0, 1, 2] = 0,
    starting_values: ArrayLike | None = None,
    integer: bool = False,
    lexical: bool | int = False,
    gradient: Callable[[Any], Any] | None = None,
    gradient_check: bool = True,
    bfgs: bool = True,
    burn_in: int = 0,
    operators: Sequence[float] | None = None,
    p9mix: float | None = None,
    solution_tolerance: float = 1e-3,
    memory: bool = True,
    vectorized: bool = False,
    generator: Literal["philox", "tlp"] = "philox",
    seed: int | None = None,
    executor: Any = None,
    callback: Callable[[Generation], object] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> GenoudResult:
    """Search for the minimum (or maximum) of a function in a box.

    Raise `UnusableInput` if an argument cannot be used; the message names it. Raise
    `EvaluationFailed` if ``fn`` or ``gradient`` raises an error, or returns NaN, something that is
    not a number, or a vector of changing length; the message names the parameters.

    Examples
    --------
    >>> from equipoise_matching import genoud
    >>> result = genoud(lambda x: (x[0] - 1) ** 2 + (x[1] + 2) ** 2, 2, population=50, seed=1)
    >>> result.par.round(4).tolist()
    [1.0, -2.0]
    >>> result.stopped_because
    'no improvement'

    Examples
    --------
    >>> from equipoise_matching import genoud
    >>> def distance(point):
    ...     return (point[0] - 1.0) ** 2 + (point[1] + 2.0) ** 2
    >>> found = genoud(distance, 2, population=50, generations=10, seed=1)
    >>> found.par.round(3).tolist()
    [1.0, -2.0]

    Parameters
    ----------
    fn
        Takes the parameters, shape (nvars,), and returns a number; a vector if ``lexical``.
        Infinity is a value like any other, NaN an error.
    nvars
        Number of parameters.
    maximize
        Whether more is better.
    population, generations
        Number of individuals in a generation (it may grow a little:
        docs/methods/genetic-matching.md), and of generations at most.
    wait_generations
        The search ends after more generations than this without improvement.
    hard_generation_limit
        If not, the limit doubles as long as the search improved within ``wait_generations``.
    bounds
        Shape (nvars, 2), lower and upper; -10 and 10 where none are given.
    boundary_enforcement
        0: the bounds limit random points only. 1: every individual lies inside, but
        BFGS may look outside. 2: nothing outside is ever evaluated.
    starting_values
        Shape (nvars,) or (rows, nvars): points of the first generation, inside the bounds.
    integer
        Whether only whole numbers count; there is then no BFGS.
    lexical
        Whether ``fn`` returns several values, compared in order; a whole number is the number of
        values. There is then no BFGS.
    gradient
        The gradient of ``fn``, shape (nvars,) to (nvars,); ``None`` takes differences.
    gradient_check
        Whether waiting begins only where every component of the gradient is within
        ``solution_tolerance``.
    bfgs, burn_in
        Whether the best of each generation is polished, and number of generations before that.
    operators
        Nine weights P1 to P9; ``None`` weighs the first eight alike and leaves out the ninth.
        P1 keeps the best (cloning). P2 draws one parameter between its bounds (uniform mutation).
        P3 sets one parameter to a bound. P4 moves one parameter towards a bound by (1 - t/T)^6 u,
        with the generation t, the largest number of generations T and u uniform; P7 does so for
        every parameter. P5 makes a convex combination of max(2, nvars) parents (polytope
        crossover). P6 swaps the parameters of two parents behind a cut, except a tenth. P8 goes
        beyond the better of two parents, on the line from the worse (heuristic crossover). P9
        takes a point between a parent and its result of BFGS (local-minimum crossover).
    p9mix
        The share of the polished point in operator 9; drawn again each time if ``None``.
    solution_tolerance
        Smallest improvement that counts.
    memory
        Whether no point is evaluated twice.
    vectorized
        Whether ``fn`` takes many points at once: shape (batch, nvars) to (batch,) or
        (batch, criteria).
    generator
        The random source: Philox4x32-10, or Tausworthe-Lewis-Payne ("tlp").
    seed
        0 to 2^64 - 1; drawn, and kept in the result, if ``None``.
    executor
        Evaluates points elsewhere: an executor of ``concurrent.futures`` or a
        ``dask.distributed`` Client, to which ``fn`` is sent once. The answer is the same.
    callback
        Called with each :class:`~equipoise_matching.genetic.search.Generation`; ends the search
        by ``True``.
    progress
        Called with the number of the generation that ended, and of generations at most.
    """
    criteria = None
    if lexical is False:
        criteria = 1
    elif lexical is not True:
        criteria = whole_number("lexical", lexical, 1, MAX_PARAMETERS)
    smooth = not integer and lexical is False
    crosses = checked_operators(operators)[LOCAL_MINIMUM] > 0
    if crosses and not smooth:
        raise UnusableInput(
            "operator 9 polishes by derivatives, and there are none of whole numbers and of "
            "several values",
            hint="give P9 the weight 0",
        )
    options = SearchOptions.from_arguments(
        locals(),
        polish=bfgs and smooth,
        gradient_check=gradient_check and smooth and (bfgs or gradient is not None),
        seed=secrets.randbits(64) if seed is None else seed,
    )
    wants_polisher = options.polish or options.gradient_check or (crosses and smooth)
    rows = FunctionRows(fn, vectorized=vectorized, criteria=criteria)
    with BatchEvaluator(rows, executor) as evaluate:
        polisher = Polisher(options, evaluate, gradient) if wants_polisher else None
        best = search(
            options,
            evaluate,
            polish=None if polisher is None else polisher.polish,
            gradient=None if polisher is None else polisher.gradient,
            callback=callback,
            progress=progress,
        )
        return GenoudResult(
            value=float(best.value[0]) if lexical is False else best.value,
            par=best.par,
            gradients=None if polisher is None else polisher.gradient(best.par),
            generations=best.generations,
            peak_generation=best.peak_generation,
            population=best.population,
            operators=best.operators,
            stopped_because=best.stopped_because,
            evaluations=evaluate.evaluations,
            seed=options.seed,
            history=best.history,
        )


@dataclass(frozen=True, slots=True, eq=False)
class GenoudResult:
    """The best individual, and the course of the search.

    Parameters
    ----------
    value
        The function's best value; shape (criteria,) if the search was lexical.
    par
        Shape (nvars,): its parameters.
    gradients
        Shape (nvars,): the gradient there; ``None`` for whole numbers, lexical searches and
        without ``bfgs`` or ``gradient``.
    generations
        Number of generations that were bred.
    peak_generation
        Generation in which the best last improved by more than the tolerance.
    population
        Individuals in a generation; it may be more than requested.
    operators
        Individuals of a generation from each of the nine operators.
    stopped_because
        "no improvement", "generation limit" or "callback".
    evaluations
        Number of evaluations of the function.
    seed
        Seed that gives the same answer again.
    history
        The generations, the random one first.
    """

    value: float | Floats
    par: Floats
    gradients: Floats | None
    generations: int
    peak_generation: int
    population: int
    operators: tuple[int, ...]
    stopped_because: str
    evaluations: int
    seed: int
    history: tuple[Generation, ...] = field(repr=False)

    def summary(self) -> str:
        """Return a few lines with the value, the point and the course of the search."""
        return "\n".join(f"{name:<12} {value}" for name, value in self.facts())

    def _repr_html_(self) -> str:
        """Return the facts as a notebook shows them."""
        return html.facts(self.facts())

    def facts(self) -> list[tuple[str, str]]:
        """Return the value, the point and the course of the search: names with their values."""
        value = f"{self.value:.8g}" if isinstance(self.value, float) else str(self.value)
        with np.printoptions(precision=6, threshold=12):
            return [
                ("Value", value),
                ("Parameters", str(self.par)),
                ("Gradients", "none" if self.gradients is None else str(self.gradients)),
                ("Generations", f"{self.generations}, the peak at {self.peak_generation}"),
                ("Stopped by", self.stopped_because),
                ("Evaluations", f"{self.evaluations:,}"),
                ("Population", f"{self.population:,} (P1 to P9: {list(self.operators)})"),
            ]

    def plot(self) -> Any:
        """Draw the best value and the median over the generations.

        Needs ``equipoise-matching[charts]``.
        """
        require_figures()
        from equipoise_matching.charts.balance import search_values

        return search_values(history_rows(self.history), peak=self.peak_generation)
