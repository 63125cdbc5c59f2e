"""Optimises a function by a genetic search that uses derivatives.

Mebane & Sekhon (2011, JSS 42(11)); the operators, and where R's package rgenoud differs:
docs/genmatch.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.genoud.drive import Found, Generation, search
from equipoise.genoud.evaluate import Batches
from equipoise.genoud.options import (
    MOST_PARAMETERS,
    SearchOptions,
    checked_operators,
    search_options,
    whole,
)
from equipoise.genoud.polish import Polisher
from equipoise.genoud.result import GenoudResult
from equipoise.model.errors import UnusableInput

Floats = NDArray[np.float64]

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
    """Searches for the minimum (or maximum) of a function in a box.

    Parameters
    ----------
    fn
        Takes the parameters, shape (nvars,), and returns a number; a vector if ``lexical``.
        Infinity is a value like any other, NaN an error.
    nvars
        How many parameters there are.
    maximize
        Whether more is better.
    population, generations
        How many individuals a generation has (it may grow a little: docs/genmatch.md), and how many
        generations are bred at most.
    wait_generations
        The search ends after more generations than this without improvement.
    hard_generation_limit
        If not, the limit doubles as long as the search improved within ``wait_generations``.
    bounds
        Shape (nvars, 2), lower and upper; -10 and 10 where none are given.
    boundary_enforcement
        0: the bounds only say where random points come from. 1: every individual lies inside, but
        BFGS may look outside. 2: nothing outside is ever evaluated.
    starting_values
        Shape (nvars,) or (rows, nvars): points of the first generation, inside the bounds.
    integer
        Whether only whole numbers count; there is then no BFGS.
    lexical
        Whether ``fn`` returns several values, compared in order; a number says how many. There is
        then no BFGS.
    gradient
        The gradient of ``fn``, shape (nvars,) to (nvars,); ``None`` takes differences.
    gradient_check
        Whether waiting begins only where every component of the gradient is within
        ``solution_tolerance``.
    bfgs, burn_in
        Whether the best of each generation is polished, and how many generations are bred first.
    operators
        Nine weights P1 to P9; ``None`` weighs the first eight alike and leaves out the ninth.
    p9mix
        The share of the polished point in operator 9; drawn anew each time if ``None``.
    solution_tolerance
        What improves by no more than this is no improvement.
    memory
        Whether no point is evaluated twice.
    vectorized
        Whether ``fn`` takes many points at once: shape (batch, nvars) to (batch,) or
        (batch, criteria).
    generator
        The random source: Philox4x32-10, or Tausworthe-Lewis-Payne ("tlp").
    seed
        0 to 2^64 - 1; drawn, and told in the result, if ``None``.
    executor
        Evaluates points elsewhere: an executor of ``concurrent.futures`` or a
        ``dask.distributed`` Client, to which ``fn`` is sent once. The answer is the same.
    callback
        Told of each :class:`~equipoise.genoud.drive.Generation`; ends the search by ``True``.
    progress
        Told the generation that ended, and how many there are at most.

    Raises
    ------
    UnusableInput
        If an argument cannot be used; the words name it.
    EvaluationFailed
        If ``fn`` or ``gradient`` raises, or returns NaN, no number or a vector of changing length;
        the words name the parameters.
    """
    criteria = None
    if lexical is False:
        criteria = 1
    elif lexical is not True:
        criteria = whole("lexical", lexical, 1, MOST_PARAMETERS)
    smooth = not integer and lexical is False
    crosses = checked_operators(operators)[LOCAL_MINIMUM] > 0
    if crosses and not smooth:
        raise UnusableInput(
            "operator 9 polishes by derivatives, and there are none of whole numbers and of "
            "several values",
            hint="give P9 the weight 0",
        )
    options = search_options(
        nvars,
        maximize=maximize,
        population=population,
        generations=generations,
        wait_generations=wait_generations,
        hard_generation_limit=hard_generation_limit,
        bounds=bounds,
        boundary_enforcement=boundary_enforcement,
        starting_values=starting_values,
        integer=integer,
        polish=bfgs and smooth,
        gradient_check=gradient_check and smooth and (bfgs or gradient is not None),
        burn_in=burn_in,
        operators=operators,
        p9mix=p9mix,
        solution_tolerance=solution_tolerance,
        memory=memory,
        generator=generator,
        seed=seed,
    )
    wants_polisher = options.polish or options.gradient_check or (crosses and smooth)
    with Batches(fn, vectorized=vectorized, executor=executor, criteria=criteria) as evaluate:
        polisher = Polisher(options, evaluate, gradient) if wants_polisher else None
        found = search(
            options,
            evaluate,
            polish=None if polisher is None else polisher.polish,
            gradient=None if polisher is None else polisher.gradient,
            callback=callback,
            progress=progress,
        )
        return result_of(found, options, evaluate, polisher, scalar=lexical is False)


def result_of(
    found: Found,
    options: SearchOptions,
    evaluate: Batches,
    polisher: Polisher | None,
    *,
    scalar: bool,
) -> GenoudResult:
    """What the search found, with the gradients there."""
    gradients = None if polisher is None else polisher.gradient(found.par)
    return GenoudResult(
        value=float(found.value[0]) if scalar else found.value,
        par=found.par,
        gradients=gradients,
        generations=found.generations,
        peak_generation=found.peak_generation,
        population=found.population,
        operators=found.operators,
        stopped_because=found.stopped_because,
        evaluations=evaluate.evaluations,
        seed=options.seed,
        history=found.history,
    )
