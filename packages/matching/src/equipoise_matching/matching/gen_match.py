"""Search for the weights of the covariates with which matching balances them best.

A candidate is a vector of weights, one for each column of X; ``domains`` (R's name) has their
bounds. Diamond and Sekhon 2013 (Review of Economics and Statistics 95(3)); Sekhon 2011 (JSS 42(7)).
Formulae, and where R's GenMatch differs: docs/methods/genetic-matching.md.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching.genetic.executors import BatchEvaluator
from equipoise_matching.genetic.options import SearchOptions
from equipoise_matching.genetic.search import Generation, search
from equipoise_matching.matching.balance import Balance, match_balance
from equipoise_matching.matching.fitness import (
    FitnessFunction,
    FitnessProblem,
    LossFunction,
    fitness_problem,
)
from equipoise_matching.matching.match import MatchResult, aligned, match
from equipoise_matching.matching.options import Estimand, pairing_options
from equipoise_matching.matching.units import Floats, column_names, to_floats
from equipoise_matching.shared import html
from equipoise_matching.shared.errors import UnusableInput

MIN_WEIGHT, MAX_WEIGHT = 0.0, 1000.0
"""Default bounds of a column's weight; only the ratios of weights matter."""
SEED_BITS = 63
"""Number of random bits of a seed that the caller does not give; seeds are below 2^63."""

Progress = Callable[[Generation, int], object]
"""Function that receives each finished generation and the largest number of generations."""


def gen_match(
    treat: ArrayLike,
    X: ArrayLike,
    balance: ArrayLike | None = None,
    *,
    estimand: Estimand = "ATT",
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
    """Find the weight of each covariate with which matching balances ``balance`` best.

    Raise `UnusableInput` if data or options cannot be used, a given function fails, all workers are
    lost, or the best candidate has no match. The error names the column and rows, or the weights.

    Examples
    --------
    >>> from equipoise_matching import gen_match, match
    >>> import numpy as np
    >>> random = np.random.default_rng(1)
    >>> X = random.normal(size=(60, 2))
    >>> treat = X[:, 0] + random.normal(size=60) > 0
    >>> y = X[:, 0] + treat
    >>> result = gen_match(treat, X, population=20, generations=3, seed=1)
    >>> effect = match(y, treat, X, metric=result.to_metric())

    Parameters
    ----------
    treat
        Shape (n,), 1 for treated units, 0 for controls.
    X
        Shape (n, k), the covariates to match on: array or frame.
    balance
        Shape (n, b), the covariates to balance, such as interactions and squares; by default X.
    population
        Number of candidates in a generation.
    generations, hard_generation_limit
        Largest number of generations. If the limit is not hard, it doubles while the search
        improves.
    wait_generations
        Number of generations without improvement after which the search stops.
    fitness, loss, boot, ks, paired
        The measure of balance, as in ``fitness_problem``.
    estimand, m, weights, exact, caliper, replace, ties, common_support, restrict, \
distance_tolerance, r_compatible
        As in ``match``.
    domains
        Shape (k, 2), smallest and largest weight of each column; by default 0 and 1000.
    integer
        Whether all weights are integers.
    starting_values
        Shape (k,) or (starts, k), candidates in the first generation; by default all weights are 1.
    seed
        Seed of the search, which gives the same answer on every executor; drawn by default.
    threads
        Number of threads, by default one for each core; with an executor, one for each worker.
    executor
        ``None``, an executor of ``concurrent.futures`` or a ``dask.distributed`` Client. It
        receives the data once, then batches of candidates. If a worker is lost, another worker
        repeats the batch. The executor stays open.
    progress
        Function that receives each finished generation and the largest number of generations.
    """
    seed = secrets.randbits(SEED_BITS) if seed is None else seed
    pairing = pairing_options(locals())
    problem = fitness_problem(
        treat,
        X,
        balance,
        fitness=fitness,
        loss=loss,
        boot=boot,
        ks=ks,
        paired=paired,
        weights=weights,
        **(pairing | {"threads": threads if executor is None else threads or 1}),
    )
    bounds = weight_bounds(problem, domains)
    options = SearchOptions.from_arguments(
        locals(),
        nvars=problem.columns,
        starting_values=np.clip(1.0, *bounds.T) if starting_values is None else starting_values,
        maximize=problem.maximize,
        boundary_enforcement=2,  # A weight is not negative.
    )
    max_generations = generations

    def set_limit(finished: int, new_limit: int) -> None:
        nonlocal max_generations
        max_generations = new_limit

    def report(generation: Generation) -> None:
        if progress is not None:
            progress(generation, max_generations)

    with BatchEvaluator(problem.evaluate, executor) as evaluate:
        result = search(options, evaluate, progress=set_limit, callback=report)
    matches = match(None, treat, X, metric=result.parameters, weights=weights, **pairing)
    balance_table = X if balance is None else balance
    return GenMatchResult(
        weights=result.parameters,
        names=problem.names,
        fitness=result.value,
        matches=matches,
        generations=result.generations,
        peak_generation=result.peak_generation,
        population=result.population,
        evaluations=result.history[-1].evaluations,
        stopped_because=result.stopped_because,
        seed=seed,
        maximize=problem.maximize,
        measure=fitness if isinstance(fitness, str) else "a function",
        history=result.history,
        balance_names=column_names(balance_table, problem.balance.shape[1], "b"),
        problem=problem,
    )


@dataclass(frozen=True, slots=True, eq=False)
class GenMatchResult:
    """The weights with the best balance, and the course of the search.

    Examples
    --------
    >>> from equipoise_matching import gen_match
    >>> result = gen_match([1, 0, 1, 0, 0, 1], X=[1, 2, 4, 5, 7, 9], population=20, seed=1)
    >>> result.names, result.criterion
    (('x1',), 'Smallest p-value')

    Parameters
    ----------
    weights
        Shape (k,): the diagonal of the weight matrix, on the standardised columns.
    names
        Names of the columns of X.
    fitness
        Shape (criteria,): criteria of these weights, in the order of comparison.
    matches
        The match with these weights, without an outcome.
    generations, peak_generation
        Number of generations; the last generation that improved by more than the tolerance.
    population, evaluations
        Number of candidates in a generation, and number of all evaluated candidates.
    stopped_because
        "no improvement" or "generation limit".
    seed
        Seed that reproduces the answer.
    maximize, measure
        Whether larger criteria are better, and the measure of balance ("pvals", …).
    history
        The generations, from the random generation 0 on. ``parameters`` has the best weights of a
        generation, and ``value`` their criteria.
    balance_names
        Names of the covariates to balance.
    problem
        The data and the options of the search.
    """

    weights: Floats
    names: tuple[str, ...]
    fitness: Floats
    matches: MatchResult = field(repr=False)
    generations: int
    peak_generation: int
    population: int
    evaluations: int
    stopped_because: str
    seed: int
    maximize: bool
    measure: str
    history: tuple[Generation, ...] = field(repr=False)
    balance_names: tuple[str, ...] = field(repr=False)
    problem: FitnessProblem = field(repr=False)

    def to_metric(self) -> Floats:
        """Return the weights for ``match(y, treat, X, metric=result.to_metric())``."""
        return self.weights.copy()

    def balance(self, weights: Floats | None = None, *, boot: int = 0, ks: bool = True) -> Balance:
        """Return the balance before matching and after matching with the given weights.

        By default, the weights are the best weights. Only rows of the search are compared.
        """
        match_problem = self.problem.match_problem
        units, options = match_problem.units, match_problem.options
        return match_balance(
            dict(zip(self.balance_names, self.problem.balance.T, strict=True)),
            units.treated,
            self.problem.matches(self.weights if weights is None else weights),
            boot=boot,
            ks=ks,
            paired=self.problem.paired,
            weights=units.weights,
            seed=self.seed,
            estimand=options.estimand,
            r_compatible=options.r_compatible,
        )

    def summary(self) -> str:
        """Return the weights and the facts of the search as text."""
        weights = [
            (f"  {name}", f"{weight:.6g}")
            for name, weight in zip(self.names, self.weights, strict=True)
        ]
        return "\n".join(
            ("weights of the standardised covariates", aligned(weights), "", aligned(self.facts()))
        )

    def facts(self) -> list[tuple[str, str]]:
        """Return names and values: the balance and the course of the search."""
        return [
            (self.criterion, f"{self.fitness[0]:.5g}"),
            ("Generations", f"{self.generations}, the peak at {self.peak_generation}"),
            ("Stopped by", self.stopped_because),
            ("Candidates evaluated", f"{self.evaluations:,} ({self.population:,} a generation)"),
            ("Matched observations", f"{self.matches.n_weighted:.6g}"),
            ("Matched pairs (unweighted)", f"{len(self.matches.weights)}"),
            ("Dropped", f"{self.matches.n_dropped}"),
            ("Seed", f"{self.seed}"),
        ]

    @property
    def criterion(self) -> str:
        """Name of the first criterion."""
        if self.measure == "pvals" and self.problem.loss is None:
            return "Smallest p-value"
        return f"First criterion ({self.measure})"

    def plot(self) -> Any:
        """Draw each covariate's difference in the search; needs ``equipoise-matching[charts]``."""
        from equipoise_matching.matching.drawing import search_course_chart

        return search_course_chart(self)

    def search_plot(self) -> Any:
        """Draw the best and median first criterion; needs ``equipoise-matching[charts]``."""
        from equipoise_matching.matching.drawing import search_history_chart

        return search_history_chart(self)

    def _repr_html_(self) -> str:
        weights = [
            (name, f"{weight:.6g}") for name, weight in zip(self.names, self.weights, strict=True)
        ]
        headings = ("Weights of the standardised covariates", "")
        return f"<div>{html.table(headings, weights)}{html.facts(self.facts())}</div>"


def weight_bounds(problem: FitnessProblem, domains: ArrayLike | None) -> Floats:
    """Return the smallest and the largest weight of each column, shape (k, 2)."""
    count = problem.columns
    if domains is None:
        domains = np.tile([MIN_WEIGHT, MAX_WEIGHT], (count, 1))
    bounds = to_floats(domains, "domains")
    if bounds.shape != (count, 2):
        raise UnusableInput(
            f"domains have shape {bounds.shape} and X has {count} columns",
            hint=f"give the smallest and the largest weight of each column: shape ({count}, 2)",
        )
    for (low, high), name in zip(bounds, problem.names, strict=True):
        if not 0 <= low <= high < np.inf:
            raise UnusableInput(
                f"domains, column {name!r}: a weight cannot lie between {low:g} and {high:g}",
                hint="give the smallest weight first, 0 or more, then a finite largest weight",
            )
    return bounds
