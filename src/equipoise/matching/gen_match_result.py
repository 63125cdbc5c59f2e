"""What a search for weights found, with its table and its picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise.genoud.drive import Generation
from equipoise.matching.fitness_problem import FitnessProblem
from equipoise.matching.result import MatchResult

if TYPE_CHECKING:
    from altair import LayerChart

    from equipoise.matching.balance_result import Balance

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class GenMatchResult:
    """The weights that balance best, and how the search came to them.

    Parameters
    ----------
    weights
        Shape (k,): the diagonal of the weight matrix, on the standardised columns.
    names
        Of the columns of X.
    fitness
        Shape (criteria,): of these weights, in the order in which candidates were compared.
    matches
        Who is matched by them, without an outcome.
    generations, peak_generation
        How many were bred, and when the best last improved by more than the tolerance.
    population, evaluations
        How many candidates a generation had, and how many were evaluated in all.
    stopped_because
        "no improvement" or "generation limit".
    seed
        Gives the same answer again.
    maximize, measure
        Whether larger criteria are better; by what balance was judged ("pvals", …).
    history
        A generation each, the random one first: ``par`` has its best weights, ``value`` their
        criteria.
    balance_names
        Of what was to be balanced.
    problem
        What was searched.
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
        """The weights as ``match`` takes them: ``match(y, treat, X, metric=found.to_metric())``."""
        return self.weights.copy()

    def balance(self, weights: Floats | None = None, *, boot: int = 0, ks: bool = True) -> Balance:
        """The balance before matching and by these weights, by default the best ones.

        Of the rows that took part in the search; needs ``equipoise[matching]``.
        """
        from equipoise.matching.balance import match_balance

        native = self.problem.native
        return match_balance(
            dict(zip(self.balance_names, self.problem.balance.T, strict=True)),
            native["treated"],
            self.problem.matches(self.weights if weights is None else weights),
            boot=boot,
            ks=ks,
            paired=native["paired"],
            weights=native["weights"],
            seed=self.seed,
            estimand=native["estimand"],
            r_compatible=native["r_compatible"],
        )

    def summary(self) -> str:
        """A few lines with the weights, the worst balance and how the search came to them."""
        width = max(len(name) for name in self.names)
        lines = ["weights of the standardised covariates"]
        lines += [
            f"  {name:<{width}}  {weight:.6g}"
            for name, weight in zip(self.names, self.weights, strict=True)
        ]
        facts = self.facts()
        width = max(len(name) for name, _ in facts)
        return "\n".join([*lines, "", *(f"{name:<{width}}  {value}" for name, value in facts)])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from equipoise.report.html_table import facts, table

        weights = [
            (name, f"{weight:.6g}") for name, weight in zip(self.names, self.weights, strict=True)
        ]
        headings = ("Weights of the standardised covariates", "")
        return f"<div>{table(headings, weights)}{facts(self.facts())}</div>"

    def facts(self) -> list[tuple[str, str]]:
        """How well the covariates are balanced, and how the search came to it."""
        return [
            (self._criterion(), f"{self.fitness[0]:.5g}"),
            ("Generations", f"{self.generations}, the peak at {self.peak_generation}"),
            ("Stopped by", self.stopped_because),
            ("Candidates evaluated", f"{self.evaluations:,} ({self.population:,} a generation)"),
            ("Matched observations", f"{self.matches.n_weighted:.6g}"),
            ("Matched pairs (unweighted)", f"{len(self.matches.weights)}"),
            ("Dropped", f"{self.matches.n_dropped}"),
            ("Seed", f"{self.seed}"),
        ]

    def plot(self) -> LayerChart:
        """Each covariate's difference before matching, along the search and after it.

        Raises
        ------
        UnusableInput
            altair is not installed (``equipoise[report]``).
        """
        from equipoise.figures.save import require_figures

        require_figures()
        from equipoise.figures.search import search_balance

        last = self.balance(ks=False)
        along: list[tuple[int, list[float]]] = []
        best: Floats | None = None
        for generation in self.history:
            if best is None or not np.array_equal(best, generation.par):
                best = generation.par
                found = self.balance(best, ks=False)
            along.append((generation.number, [one.sdiff for one in found.after or ()]))
        first, end = self.history[0].value[0], self.fitness[0]
        return search_balance(
            self.balance_names,
            [one.sdiff for one in last.before],
            along,
            notes=[f"{self._criterion()}: {first:.3g} in generation 0, {end:.3g} at the end"],
        )

    def search_plot(self) -> LayerChart:
        """The first criterion's best and median over the generations.

        Raises
        ------
        UnusableInput
            altair is not installed (``equipoise[report]``).
        """
        from equipoise.figures.save import require_figures

        require_figures()
        from equipoise.figures.search import search_values

        return search_values(
            [
                {
                    "generation": one.number,
                    "best": float(one.value[0]),
                    "median": one.median,
                    "evaluations": one.evaluations,
                }
                for one in self.history
            ],
            peak=self.peak_generation,
            value=self._criterion().lower(),
        )

    def _criterion(self) -> str:
        if self.measure == "pvals" and self.problem.loss is None:
            return "Smallest p-value"
        return f"First criterion ({self.measure})"
