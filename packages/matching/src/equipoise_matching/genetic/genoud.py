"""Optimise a function by a genetic search that uses derivatives.

The method is by Mebane & Sekhon (2011, JSS 42(11)); docs/methods/genetic-matching.md explains it.
A candidate is a vector of parameters. In each generation, nine operators make new candidates from
good ones. BFGS, a local optimiser, polishes the best of them. R has the names ``fn`` (function),
``nvars`` (number of variables) and ``par`` (parameters).
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
from equipoise_matching.genetic.worker import Floats, FunctionEvaluator
from equipoise_matching.shared import html
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.pictures import require_figures

LOCAL_MINIMUM_INDEX = 8
"""Index of operator 9, local-minimum crossover, among the operators."""


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
    """Search for the minimum or the maximum of a function within bounds.

    Raise `UnusableInput` if an argument cannot be used; the message names the argument. Raise
    `EvaluationFailed` if ``fn`` or ``gradient`` raises an error, or returns NaN, no number, or
    vectors of different lengths; the message has the parameters.

    Examples
    --------
    >>> from equipoise_matching import genoud
    >>> result = genoud(lambda x: (x[0] - 1) ** 2 + (x[1] + 2) ** 2, 2, population=50, seed=1)
    >>> result.par.round(4).tolist()
    [1.0, -2.0]
    >>> result.stopped_because
    'no improvement'

    Parameters
    ----------
    fn
        Function of the parameters, shape (nvars,), that returns a number, or a vector if
        ``lexical``. Infinity is a valid value; NaN is an error.
    nvars
        Number of parameters.
    maximize
        Whether larger values are better.
    population, generations
        Number of candidates in a generation, and largest number of generations. The population may
        grow a little, because some operators make two candidates at a time.
    wait_generations
        The search ends after more than this number of generations without improvement.
    hard_generation_limit
        If false, the limit doubles when it is reached, if the search improved within
        ``wait_generations``.
    bounds
        Shape (nvars, 2), lower and upper bounds; by default -10 and 10.
    boundary_enforcement
        0: the bounds limit only random points. 1: the bounds limit every candidate, but BFGS may
        evaluate points outside. 2: no point outside is evaluated.
    starting_values
        Shape (nvars,) or (rows, nvars): points of the first generation, inside the bounds.
    integer
        Whether all parameters are integers.
    lexical
        Whether ``fn`` returns several values, of which the first that differs decides. An integer
        is the number of values.
    gradient
        Function that returns the gradient at a point, shape (nvars,). With ``None``, gradients are
        computed from differences of ``fn``.
    gradient_check
        If true, a generation without improvement counts towards ``wait_generations`` only if no
        component of the gradient exceeds ``solution_tolerance``.
    bfgs, burn_in
        Whether BFGS polishes the best candidates (never with ``integer`` or ``lexical``), and the
        number of generations before the first polishing.
    operators
        Nine weights P1 to P9, which divide a generation among the operators 1 to 9. By default, the
        first eight are equal and the ninth is 0. P1 keeps good candidates (cloning). P2 draws one
        parameter between its bounds. P3 sets one parameter to a bound. P4 moves one parameter a
        random part of the way to a bound; this part shrinks over the generations. P5 averages
        several parents with random weights. P6 averages the last parameters of two parents with the
        weights 0.1 and 0.9. P7 moves every parameter as P4 does. P8 goes beyond the better of two
        parents, on the line from the worse parent. P9 takes a point between a parent and its
        polished point.
    p9mix
        Weight of the polished point in operator 9; ``None`` to draw a weight for each candidate.
    solution_tolerance
        Smallest improvement that counts.
    memory
        Whether the search remembers values, so that it evaluates no point twice.
    vectorized
        Whether ``fn`` takes many points at once, shape (batch, nvars), and returns values of shape
        (batch,) or (batch, criteria).
    generator
        Random number generator: "philox" (Philox4x32-10) or "tlp" (Tausworthe-Lewis-Payne).
    seed
        0 to 2^64 - 1; ``None`` to draw a seed, which is in the result.
    executor
        An executor of ``concurrent.futures`` or a ``dask.distributed`` Client that evaluates
        points. It receives ``fn`` once. The answer does not depend on the executor.
    callback
        Function that receives each ``Generation``. The search ends if it returns ``True``.
    progress
        Function that receives the number of finished generations and the current limit.
    """
    criteria = None
    if lexical is False:
        criteria = 1
    elif lexical is not True:
        criteria = whole_number("lexical", lexical, 1, MAX_PARAMETERS)
    is_smooth = not integer and lexical is False
    has_operator_9 = checked_operators(operators)[LOCAL_MINIMUM_INDEX] > 0
    if has_operator_9 and not is_smooth:
        raise UnusableInput(
            "operator 9 needs derivatives, which integer and lexical searches do not have",
            hint="set the ninth weight of operators to 0",
        )
    options = SearchOptions.from_arguments(
        locals(),
        polish=bfgs and is_smooth,
        gradient_check=gradient_check and is_smooth and (bfgs or gradient is not None),
        seed=secrets.randbits(64) if seed is None else seed,
    )
    needs_polisher = options.polish or options.gradient_check or (has_operator_9 and is_smooth)
    evaluator = FunctionEvaluator(fn, vectorized=vectorized, criteria=criteria)
    with BatchEvaluator(evaluator, executor) as evaluate:
        polisher = Polisher(options, evaluate, gradient) if needs_polisher else None
        result = search(
            options,
            evaluate,
            polish=None if polisher is None else polisher.polish,
            gradient=None if polisher is None else polisher.gradient,
            callback=callback,
            progress=progress,
        )
        return GenoudResult(
            value=float(result.value[0]) if lexical is False else result.value,
            par=result.parameters,
            gradient=None if polisher is None else polisher.gradient(result.parameters),
            generations=result.generations,
            peak_generation=result.peak_generation,
            population=result.population,
            operators=result.operators,
            stopped_because=result.stopped_because,
            evaluations=evaluate.evaluations,
            seed=options.seed,
            history=result.history,
        )


@dataclass(frozen=True, slots=True, eq=False)
class GenoudResult:
    """The best candidate, and the course of the search.

    Parameters
    ----------
    value
        The best value of the function; shape (criteria,) for a lexical search.
    par
        Shape (nvars,): the parameters of the best candidate.
    gradient
        Shape (nvars,): the gradient at ``par``; ``None`` if the search used no gradients.
    generations
        Number of generations after the random generation 0.
    peak_generation
        The last generation that improved by more than ``solution_tolerance``.
    population
        Number of candidates in a generation, which may exceed the requested number.
    operators
        Number of candidates of a generation from each of the nine operators.
    stopped_because
        "no improvement", "generation limit" or "callback".
    evaluations
        Number of evaluations of the function.
    seed
        Seed that reproduces the answer.
    history
        The generations, from the random generation 0 on.
    """

    value: float | Floats
    par: Floats
    gradient: Floats | None
    generations: int
    peak_generation: int
    population: int
    operators: tuple[int, ...]
    stopped_because: str
    evaluations: int
    seed: int
    history: tuple[Generation, ...] = field(repr=False)

    def summary(self) -> str:
        """Return the facts as text, one per line."""
        return "\n".join(f"{name:<12} {value}" for name, value in self.facts())

    def _repr_html_(self) -> str:
        return html.facts(self.facts())

    def facts(self) -> list[tuple[str, str]]:
        """Return names and values: best value, parameters, and course of the search."""
        value = f"{self.value:.8g}" if isinstance(self.value, float) else str(self.value)
        with np.printoptions(precision=6, threshold=12):
            return [
                ("Value", value),
                ("Parameters", str(self.par)),
                ("Gradients", "none" if self.gradient is None else str(self.gradient)),
                ("Generations", f"{self.generations}, the peak at {self.peak_generation}"),
                ("Stopped by", self.stopped_because),
                ("Evaluations", f"{self.evaluations:,}"),
                ("Population", f"{self.population:,} (P1 to P9: {list(self.operators)})"),
            ]

    def plot(self) -> Any:
        """Draw the best value and the median; needs ``equipoise-matching[charts]``."""
        require_figures()
        from equipoise_matching.charts.balance import search_values

        return search_values(history_rows(self.history), peak=self.peak_generation)
