"""Searches for the weights of the covariates whose matches balance them best.

Diamond and Sekhon 2013 (Review of Economics and Statistics 95(3)); Sekhon 2011 (JSS 42(7)). The
search is genoud's (Mebane and Sekhon 2011, JSS 42(11)). Formulae, and where R's GenMatch differs:
docs/genmatch.md.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise.genoud.drive import Generation, search
from equipoise.genoud.executors import batch_evaluator
from equipoise.genoud.options import SearchOptions, search_options
from equipoise.matching import validate
from equipoise.matching.fitness_problem import (
    FitnessFunction,
    FitnessProblem,
    LossFunction,
    fitness_problem,
)
from equipoise.matching.gen_match_result import GenMatchResult
from equipoise.matching.match import match
from equipoise.matching.validate import Floats
from equipoise.model.errors import UnusableInput

LOWEST_WEIGHT, HIGHEST_WEIGHT = 0.0, 1000.0
"""Between which each column's weight is sought; only their ratios matter."""
SEED_BITS = 63

Progress = Callable[[Generation, int], object]
"""Told of each generation that ended, and how many there are at most."""


def gen_match(
    treat: ArrayLike,
    X: ArrayLike,
    balance: ArrayLike | None = None,
    *,
    estimand: Literal["ATT", "ATC", "ATE"] = "ATT",
    m: int = 1,
    population: int = 100,
    generations: int = 100,
    wait_generations: int = 4,
    hard_generation_limit: bool = False,
    fitness: str | FitnessFunction = "pvals",
    loss: int | LossFunction = 1,
    boot: int = 0,
    ks: bool = True,
    paired: bool = True,
    weights: ArrayLike | None = None,
    exact: Any = None,
    caliper: ArrayLike | None = None,
    replace: bool = True,
    ties: bool = True,
    common_support: bool = False,
    restrict: ArrayLike | None = None,
    domains: ArrayLike | None = None,
    integer: bool = False,
    starting_values: ArrayLike | None = None,
    distance_tolerance: float = 1e-5,
    r_compatible: bool = False,
    seed: int | None = None,
    threads: int | None = None,
    executor: Any = None,
    progress: Progress | None = None,
) -> GenMatchResult:
    """Finds a weight for each covariate by which matching balances ``balance`` best.

    Parameters
    ----------
    treat
        Shape (n,), 1 for treated units, 0 for controls.
    X
        Shape (n, k), the covariates to match on: array or frame.
    balance
        Shape (n, b), what is to be balanced, interactions and squares among it; by default X.
    population, generations, wait_generations, hard_generation_limit
        How many candidates a generation has; how many generations at most, unless the search
        still improves and the limit is soft; after how many without improvement it ends.
    fitness, loss, boot, ks, paired
        What good balance is, as in ``match_fitness``.
    estimand, m, weights, exact, caliper, replace, ties, common_support, restrict, \
distance_tolerance, r_compatible
        As in ``match``.
    domains
        Shape (k, 2), between which each weight is sought; 0 to 1000 by default.
    integer
        Whether only whole weights are sought.
    starting_values
        Shape (k,) or (starts, k), candidates of the first generation; all 1 by default.
    seed
        The same seed gives the same answer, whatever evaluates; drawn and told where none is given.
    threads
        All cores by default; with an executor 1 for each of its workers.
    executor
        ``None``, an executor of ``concurrent.futures`` or a ``dask.distributed`` Client: the data
        are sent once, the candidates in batches, and a lost worker's batch is done again. It stays
        open.
    progress
        Told of each generation as it ends, and of how many there are at most.

    Raises
    ------
    UnusableInput
        If something cannot be used, naming column and rows or the weights that a function failed
        at; if the best candidate matches nobody; if the workers are lost.
    """
    seed = secrets.randbits(SEED_BITS) if seed is None else seed
    problem = fitness_problem(
        treat,
        X,
        balance,
        estimand=estimand,
        m=m,
        fitness=fitness,
        loss=loss,
        boot=boot,
        ks=ks,
        paired=paired,
        weights=weights,
        exact=exact,
        caliper=caliper,
        replace=replace,
        ties=ties,
        common_support=common_support,
        restrict=restrict,
        distance_tolerance=distance_tolerance,
        r_compatible=r_compatible,
        threads=threads if executor is None else threads or 1,
        seed=seed,
    )
    options = settings(
        problem,
        domains,
        starting_values,
        population=population,
        generations=generations,
        wait_generations=wait_generations,
        hard_generation_limit=hard_generation_limit,
        integer=integer,
        seed=seed,
    )
    listener = Listener(progress)
    with batch_evaluator(problem.evaluate, executor) as evaluate:
        found = search(options, evaluate, progress=listener.limit, callback=listener.ended)
    matches = match(
        None,
        treat,
        X,
        estimand=estimand,
        m=m,
        metric=found.par,
        exact=exact,
        caliper=caliper,
        replace=replace,
        ties=ties,
        common_support=common_support,
        weights=weights,
        restrict=restrict,
        distance_tolerance=distance_tolerance,
        r_compatible=r_compatible,
        threads=threads,
        seed=seed,
    )
    given = X if balance is None else balance
    return GenMatchResult(
        weights=found.par.copy(),
        names=problem.names,
        fitness=found.value.copy(),
        matches=matches,
        generations=found.generations,
        peak_generation=found.peak_generation,
        population=found.population,
        evaluations=found.history[-1].evaluations,
        stopped_because=found.stopped_because,
        seed=seed,
        maximize=problem.maximize,
        measure=fitness if isinstance(fitness, str) else "a function",
        history=found.history,
        balance_names=validate.names_of(given, problem.balance.shape[1], "b"),
        problem=problem,
    )


def settings(
    problem: FitnessProblem,
    domains: ArrayLike | None,
    starting_values: ArrayLike | None,
    **search_for: Any,
) -> SearchOptions:
    """The search that is asked for, with the bounds and the start that a weight has."""
    count = problem.columns
    if domains is None:
        domains = np.tile([LOWEST_WEIGHT, HIGHEST_WEIGHT], (count, 1))
    bounds = validate.numbers(domains, "domains")
    if bounds.shape != (count, 2):
        raise UnusableInput(
            f"domains have shape {bounds.shape} and X has {count} columns",
            hint=f"give a lowest and a highest weight for each: shape ({count}, 2)",
        )
    for (low, high), name in zip(bounds, problem.names, strict=True):
        if not 0 <= low <= high < np.inf:
            raise UnusableInput(
                f"domains, column {name!r}: a weight cannot lie between {low:g} and {high:g}",
                hint="give the lowest weight first, 0 or more, and then a finite highest one",
            )
    options = search_options(
        count,
        bounds=bounds,
        starting_values=starting_values,
        maximize=problem.maximize,
        boundary_enforcement=2,  # A negative weight is no weight.
        **search_for,
    )
    if starting_values is not None:
        return options
    start: Floats = np.clip(np.ones((1, count)), options.lower, options.upper)
    return dataclasses.replace(options, starting_values=start)


class Listener:
    """Hands on each generation together with how many there are at most."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._most = 0

    def limit(self, number: int, most: int) -> None:
        """How far the search may go, as of now: a soft limit moves."""
        self._most = most

    def ended(self, generation: Generation) -> None:
        """A generation ended."""
        if self._progress is not None:
            self._progress(generation, self._most)
