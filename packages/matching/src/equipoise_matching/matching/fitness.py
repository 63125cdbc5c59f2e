"""The fitness of a candidate: the balance of the covariates after matching with its weights.

A candidate has a weight for each column of X. Its fitness is one or more numbers, the criteria. Of
two candidates, the first criterion that differs decides which is better. The measure is the rule
that computes the criteria: from p-values, by a ``loss``, or from distances.

Diamond and Sekhon 2013 (Review of Economics and Statistics 95(3)); Sekhon 2011 (JSS 42(7)).
Formulae, and where R's GenMatch differs: docs/methods/genetic-matching.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching import _native
from equipoise_matching.matching.distributions import MAX_BOOT_SAMPLES, MIN_BOOT_SAMPLES
from equipoise_matching.matching.options import MatchProblem, PairingOptions, match_problem
from equipoise_matching.matching.units import (
    Floats,
    Indices,
    check_length,
    checked_table,
    to_floats,
    units_of,
)
from equipoise_matching.shared.errors import UnusableInput

DISTANCES = {
    "qqmean.mean": ("mean", "mean"),
    "qqmean.max": ("mean", "max"),
    "qqmedian.median": ("median", "median"),
    "qqmedian.max": ("median", "max"),
    "qqmax.mean": ("max", "mean"),
    "qqmax.max": ("max", "max"),
}
"""Measures of distance: a statistic within a column, then a statistic across columns."""
LOSSES = {1: "sorted", 2: "smallest"}
"""Names of the measures of p-values by the number ``loss``: 1 sorts them, 2 takes the smallest."""
UNMATCHED_CRITERION = 9999.0
"""Criterion of a candidate that matches no unit."""


@dataclass(frozen=True, slots=True, eq=False)
class CandidateMatches:
    """The pairs of one candidate, and their weights.

    The indices count the units that take part, from 0.
    """

    treated_index: Indices
    control_index: Indices
    weights: Floats


FitnessFunction = Callable[[CandidateMatches, Floats], ArrayLike]
"""Function that returns the criteria from the matches and the covariates to balance."""
LossFunction = Callable[[Floats], ArrayLike]
"""Function that returns the criteria from the p-values."""


class FitnessOptions(PairingOptions, total=False):
    """The options of ``fitness_problem``."""

    fitness: str | FitnessFunction
    loss: int | LossFunction
    boot: int
    ks: bool
    paired: bool
    weights: ArrayLike | None


def match_fitness(
    treat: ArrayLike,
    X: ArrayLike,
    balance: ArrayLike | None = None,
    w: Any = None,
    **options: Unpack[FitnessOptions],
) -> Floats:
    """Return the fitness of one candidate, or of several.

    Raise `UnusableInput` if the data or options cannot be used; the message names the column and
    the rows. Raise it also if a function given as ``fitness`` or ``loss`` raises an error or
    returns values that cannot be compared; the message has the weights of the candidate.

    Examples
    --------
    >>> from equipoise_matching import match_fitness
    >>> import numpy as np
    >>> random = np.random.default_rng(1)
    >>> X = random.normal(size=(60, 2))
    >>> treat = X[:, 0] + random.normal(size=60) > 0
    >>> match_fitness(treat, X).round(3).tolist()
    [0.031, 0.271, 0.458, 0.555]
    >>> match_fitness(treat, X, w=[[1, 1], [1, 0]]).shape
    (2, 4)

    Parameters
    ----------
    treat
        Shape (n,), 1 for treated units, 0 for controls.
    X
        Shape (n, k), the covariates to match on: array or frame.
    balance
        Shape (n, b), the covariates to balance; by default X.
    w
        Weights of 0 or more, shape (k,), or (c, k) for c candidates; by default all 1. The weight
        of a column of X multiplies the squared differences of the standardised column.
    options
        Options of ``fitness_problem``.

    Returns
    -------
    Criteria of shape (criteria,), or (c, criteria). P-values are sorted from the smallest on, and
    larger p-values are better. Distances are sorted from the largest on, and smaller are better.
    """
    problem = fitness_problem(treat, X, balance, **options)
    weights = np.ones(problem.columns) if w is None else np.asarray(w)
    criteria = problem.evaluate(weights)
    return criteria[0] if weights.ndim == 1 else criteria


def fitness_problem(
    treat: ArrayLike,
    X: ArrayLike,
    balance: ArrayLike | None = None,
    *,
    fitness: str | FitnessFunction = "pvals",
    loss: int | LossFunction = 1,
    boot: int = 0,
    ks: bool = True,
    paired: bool = True,
    weights: ArrayLike | None = None,
    **pairing: Unpack[PairingOptions],
) -> FitnessProblem:
    """Check the data and the options, and return the problem that evaluates candidates.

    Raise `UnusableInput` if they cannot be used; the message names the column and the rows.

    Parameters
    ----------
    treat, X, balance
        As in ``match_fitness``.
    fitness
        "pvals": the p-values of each covariate's t-test and Kolmogorov-Smirnov test. Or a name of
        two statistics, such as "qqmean.max" (see ``DISTANCES``). The first gives the distance of a
        covariate: the mean, median or maximum of ``|F_treated - F_control|`` over its values, where
        F is the distribution function of a group. The second gives the criterion: the mean or
        median of the distances; with "max", all distances are criteria, the largest first. Or a
        function that takes the matches (``CandidateMatches``) and the covariates to balance, and
        returns criteria; smaller is better.
    loss
        How p-values become criteria: 1 sorts them, the smallest first; 2 takes the smallest. Or a
        function that takes the p-values, first of the t-tests and then of the Kolmogorov-Smirnov
        tests, and returns criteria; larger is better.
    boot
        Number of bootstrap samples for the Kolmogorov-Smirnov (KS) tests; below 10 means none.
    ks
        Whether to use KS tests.
    paired
        Whether t-tests are paired, not Welch's.
    weights, pairing
        As in ``match``. The draws are the same for every candidate.
    """
    units = units_of(None, treat, X, weights)
    balance_matrix = units.x if balance is None else checked_table(balance, "balance", "b")[0]
    check_length(len(balance_matrix), "balance", len(units.x))
    problem = match_problem(units, **pairing)
    if problem.rows is not None:
        balance_matrix = np.ascontiguousarray(balance_matrix[problem.rows])
    return FitnessProblem(
        match_problem=problem,
        balance=balance_matrix,
        measure=checked_measure(fitness, loss, boot),
        ks=ks,
        boot=boot if boot >= MIN_BOOT_SAMPLES else 0,
        paired=paired,
        fitness=fitness if callable(fitness) else None,
        loss=loss if callable(loss) else None,
        maximize=fitness == "pvals",
    )


@dataclass(frozen=True, eq=False)
class FitnessProblem:
    """Checked data and options of a search, with methods that evaluate candidates.

    A `FitnessProblem` can be pickled; each process builds its native engine once. ``ks``, ``boot``
    and ``paired`` are as in ``fitness_problem``; without a bootstrap, ``boot`` is 0.
    """

    match_problem: MatchProblem
    """The units that take part, and how they are matched."""
    balance: Floats
    """Shape (rows, b), the covariates to balance, of the units that take part."""
    measure: str | tuple[str, str]
    """P-values ``sorted``, ``smallest`` or ``unsorted``; else two statistics as in `DISTANCES`."""
    ks: bool
    boot: int
    paired: bool
    fitness: FitnessFunction | None
    loss: LossFunction | None
    """The functions of the caller; ``None`` if the option is not a function."""
    maximize: bool
    """Whether larger criteria are better."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        return self.match_problem.units.names

    @property
    def columns(self) -> int:
        """Number of weights of a candidate."""
        return len(self.names)

    @cached_property
    def engine(self) -> _native.FitnessEngine:
        """The native engine, built when it is first used."""
        return _native.FitnessEngine(self.match_problem.units, self.match_problem.options, self)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the engine, which each process builds itself."""
        return {name: value for name, value in self.__dict__.items() if name != "engine"}

    def evaluate(
        self, weights: ArrayLike, progress: Callable[[int, int], None] | None = None
    ) -> Floats:
        """Return the criteria, shape (candidates, criteria), for weights (candidates, columns).

        ``progress`` receives the numbers of evaluated and of all candidates, from any thread.
        """
        candidates = self._candidates(weights)
        if self.fitness is None and self.loss is None:
            return self.engine.evaluate(candidates, progress)
        criteria = []
        for evaluated, candidate in enumerate(candidates, start=1):
            criteria.append(self._criteria_by_function(candidate))
            if progress is not None:
                progress(evaluated, len(candidates))
        name = "loss" if self.fitness is None else "fitness"
        return _as_table(name, criteria, candidates, self._unmatched_criterion())

    def matches(self, weights: ArrayLike) -> CandidateMatches:
        """Return the pairs of one candidate."""
        metric = np.diag(self._candidates(weights)[0])
        options = dataclasses.replace(self.match_problem.options, metric=metric)
        pairs = _native.Matcher(self.match_problem.units, options).pairs(None)
        is_treated = self.match_problem.units.treated[pairs.query]
        return CandidateMatches(
            np.where(is_treated, pairs.query, pairs.matched),
            np.where(is_treated, pairs.matched, pairs.query),
            pairs.weights,
        )

    def _candidates(self, weights: ArrayLike) -> Floats:
        candidates = np.atleast_2d(to_floats(weights, "w"))
        if candidates.ndim != 2 or candidates.shape[1] != self.columns:
            raise UnusableInput(
                f"w has shape {np.shape(weights)} and X has {self.columns} columns",
                hint=f"give {self.columns} weights for each candidate",
            )
        wrong_cells = np.argwhere(~(np.isfinite(candidates) & (candidates >= 0)))
        if len(wrong_cells):
            candidate, column = wrong_cells[0]
            raise UnusableInput(
                f"w has the weight {candidates[candidate, column]:g} for column "
                f"{self.names[column]!r} in candidate {candidate} (from 0)",
                hint="give finite weights of 0 or more",
            )
        return np.ascontiguousarray(candidates)

    def _unmatched_criterion(self) -> float:
        return -UNMATCHED_CRITERION if self.maximize else UNMATCHED_CRITERION

    def _criteria_by_function(self, candidate: Floats) -> Floats | None:
        """Return the criteria of the caller's function; ``None`` if no unit is matched."""
        if self.fitness is not None:
            name, matches = "fitness", self.matches(candidate)
            if not len(matches.weights):
                return None
            call_function = partial(self.fitness, matches, self.balance)
        else:
            assert self.loss is not None
            (values,) = self.engine.evaluate(candidate[np.newaxis], None)
            if values[0] == self._unmatched_criterion():
                return None
            name, call_function = "loss", partial(self.loss, values)
        try:
            criteria = np.atleast_1d(np.asarray(call_function(), dtype=np.float64))
        except Exception as error:
            raise UnusableInput(
                f"the function {name} raised {type(error).__name__}: {error}, for the weights w = "
                f"{_weights_text(candidate)}",
                hint=f"correct the function {name}; to see its error, call match_fitness with w",
            ) from error
        if criteria.ndim != 1 or not len(criteria) or np.isnan(criteria).any():
            raise UnusableInput(
                f"{name} returned {criteria} for w = {_weights_text(candidate)}",
                hint=f"let the function {name} return a number or a list of numbers, without NaN",
            )
        return criteria


def checked_measure(
    fitness: str | FitnessFunction, loss: int | LossFunction, boot: int
) -> str | tuple[str, str]:
    """Check the measure of balance, and return its name for the native engine."""
    if not isinstance(boot, int | np.integer) or not 0 <= boot <= MAX_BOOT_SAMPLES:
        raise UnusableInput(
            f"boot is {boot}", hint=f"give a whole number from 0 to {MAX_BOOT_SAMPLES}"
        )
    if not callable(loss) and loss not in LOSSES:
        raise UnusableInput(
            f"there is no loss {loss!r}",
            hint="give 1 to sort the p-values, 2 to use the smallest p-value, or a function",
        )
    if fitness == "pvals":
        return "unsorted" if callable(loss) else LOSSES[loss]
    if callable(fitness):
        if loss != 1:
            raise UnusableInput(
                "loss is for fitness='pvals', but fitness is a function", hint="leave out loss"
            )
        return "unsorted"
    if fitness not in DISTANCES:
        raise UnusableInput(
            f"there is no fitness {fitness!r}",
            hint=f"choose 'pvals' or one of {', '.join(DISTANCES)}, or give a function",
        )
    if loss != 1:
        raise UnusableInput(
            f"loss is for fitness='pvals', not for {fitness!r}", hint="leave out loss"
        )
    return DISTANCES[fitness]


def _weights_text(candidate: Floats) -> str:
    return f"[{', '.join(f'{weight:g}' for weight in candidate)}]"


def _as_table(name: str, criteria: list[Floats | None], candidates: Floats, worst: float) -> Floats:
    """Return the criteria as a matrix (candidates, criteria); ``None`` becomes ``worst``."""
    length = next((len(row) for row in criteria if row is not None), 1)
    matrix = np.full((len(criteria), length), worst)
    for index, row in enumerate(criteria):
        if row is None:
            continue
        if len(row) != length:
            raise UnusableInput(
                f"{name} returned {len(row)} values for w = {_weights_text(candidates[index])} "
                f"but {length} values for an earlier w",
                hint=f"return the same number of values from {name} for every w",
            )
        matrix[index] = row
    return matrix
