"""A problem whose candidates are to be judged: checked data that travel to any process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise import _native
from equipoise.matching import validate
from equipoise.matching.ks import MOST_BOOT
from equipoise.matching.match import check_choices, trimmed
from equipoise.matching.support import common_rows, effective_caliper
from equipoise.matching.validate import Floats, Indices
from equipoise.model.errors import UnusableInput

DISTANCES = {
    "qqmean.mean": ("mean", "mean"),
    "qqmean.max": ("mean", "max"),
    "qqmedian.median": ("median", "median"),
    "qqmedian.max": ("median", "max"),
    "qqmax.mean": ("max", "mean"),
    "qqmax.max": ("max", "max"),
}
"""The distances of distributions: within a column, and across columns."""
LOSSES = {1: "sorted", 2: "smallest"}
NOBODY_MATCHED = 9999.0
"""What a function's answer counts as if no unit can be matched; it is never asked then."""


@dataclass(frozen=True, slots=True, eq=False)
class CandidateMatches:
    """The pairs of one candidate: rows from 0 of the data that are left, and what a pair weighs."""

    treated_index: Indices
    control_index: Indices
    weights: Floats


FitnessFunction = Callable[[CandidateMatches, Floats], ArrayLike]
LossFunction = Callable[[Floats], ArrayLike]


class FitnessOptions(TypedDict, total=False):
    """The options of ``fitness_problem``."""

    estimand: Literal["ATT", "ATC", "ATE"]
    m: int
    fitness: str | FitnessFunction
    loss: int | LossFunction
    boot: int
    ks: bool
    paired: bool
    weights: ArrayLike | None
    exact: Any
    caliper: ArrayLike | None
    replace: bool
    ties: bool
    common_support: bool
    restrict: ArrayLike | None
    distance_tolerance: float
    r_compatible: bool
    threads: int | None
    seed: int | None


@dataclass(frozen=True, eq=False)
class FitnessProblem:
    """Checked data and options. It can be pickled; each process builds its engine once.

    Parameters
    ----------
    native
        What ``_native.FitnessEngine`` is built from.
    balance
        Shape (rows, b), the covariates to balance, of the rows that are left.
    fitness, loss
        A function where one was given, else ``None``.
    names
        Of the columns of X.
    kept
        The rows that are left, out of those given.
    maximize
        Whether larger criteria are better.
    """

    native: dict[str, Any]
    balance: Floats
    fitness: FitnessFunction | None
    loss: LossFunction | None
    names: tuple[str, ...]
    kept: Indices
    maximize: bool

    @property
    def columns(self) -> int:
        """How many weights a candidate has."""
        return len(self.names)

    @cached_property
    def _engine(self) -> _native.FitnessEngine:
        return _native.FitnessEngine(self.native)

    def __getstate__(self) -> dict[str, Any]:
        """All but the engine, which each process builds for itself."""
        return {name: value for name, value in self.__dict__.items() if name != "_engine"}

    def engine(self) -> _native.FitnessEngine:
        """The native engine, built at the first call."""
        return self._engine

    def evaluate(
        self, weights: ArrayLike, progress: Callable[[int, int], None] | None = None
    ) -> Floats:
        """The criteria of candidates.

        Parameters
        ----------
        weights
            Shape (candidates, columns), or (columns,) for a single one.
        progress
            Called with how many candidates are done, of how many; may be called by any thread.

        Returns
        -------
        Shape (candidates, criteria).

        Raises
        ------
        UnusableInput
            If a weight cannot be used, or a given function fails.
        """
        candidates = self._candidates(weights)
        if self.fitness is None and self.loss is None:
            criteria = self.engine().evaluate(candidates.ravel(), progress)
            return np.frombuffer(criteria, np.float64).reshape(len(candidates), -1).copy()
        answers = []
        for done, candidate in enumerate(candidates, start=1):
            answers.append(self._asked(candidate))
            if progress is not None:
                progress(done, len(candidates))
        return _of_one_length(answers, candidates, self._worst())

    def matches(self, weights: ArrayLike) -> CandidateMatches:
        """The pairs of one candidate; rows count from 0 among those that are left.

        Raises
        ------
        UnusableInput
            If a weight cannot be used.
        """
        candidate = self._candidates(weights)[0]
        query, matched, weight, _ = self.engine().pairs(candidate)
        first, second = np.frombuffer(query, np.int64), np.frombuffer(matched, np.int64)
        is_treated = self.native["treated"][first] == 1
        return CandidateMatches(
            np.where(is_treated, first, second),
            np.where(is_treated, second, first),
            np.frombuffer(weight, np.float64),
        )

    def _candidates(self, weights: ArrayLike) -> Floats:
        given = np.atleast_2d(validate.numbers(weights, "w"))
        if given.ndim != 2 or given.shape[1] != self.columns:
            raise UnusableInput(
                f"w has shape {np.shape(weights)} and X has {self.columns} columns",
                hint=f"give {self.columns} weights for each candidate",
            )
        wrong = np.argwhere(~(np.isfinite(given) & (given >= 0)))
        if len(wrong):
            row, column = wrong[0]
            raise UnusableInput(
                f"w, column {self.names[column]!r} is {given[row, column]:g} in candidate {row} "
                "(from 0)",
                hint="give finite weights of 0 or more",
            )
        return np.ascontiguousarray(given)

    def _worst(self) -> float:
        return -NOBODY_MATCHED if self.maximize else NOBODY_MATCHED

    def _asked(self, candidate: Floats) -> Floats | None:
        """What the given function answers; ``None`` if nobody is matched."""
        function: Callable[[], ArrayLike]
        if self.fitness is not None:
            given, found = self.fitness, self.matches(candidate)
            if not len(found.weights):
                return None
            name, function = "fitness", lambda: given(found, self.balance)
        else:
            assert self.loss is not None
            values = np.frombuffer(self.engine().evaluate(candidate, None), np.float64)
            if values[0] == self._worst():
                return None
            loss = self.loss
            name, function = "loss", lambda: loss(values.copy())
        try:
            answer = np.atleast_1d(np.asarray(function(), dtype=np.float64))
        except Exception as error:
            raise UnusableInput(
                f"{name} raised {type(error).__name__}: {error}, for w = {_told(candidate)}"
            ) from error
        if answer.ndim != 1 or not len(answer) or np.isnan(answer).any():
            raise UnusableInput(
                f"{name} answered {answer} for w = {_told(candidate)}",
                hint="answer a number, or a list of numbers to be compared lexically",
            )
        return answer


def _told(candidate: Floats) -> str:
    return f"[{', '.join(f'{weight:g}' for weight in candidate)}]"


def _of_one_length(answers: list[Floats | None], candidates: Floats, worst: float) -> Floats:
    length = next((len(answer) for answer in answers if answer is not None), 1)
    criteria = np.full((len(answers), length), worst)
    for row, answer in enumerate(answers):
        if answer is None:
            continue
        if len(answer) != length:
            raise UnusableInput(
                f"the function answered {len(answer)} numbers for w = {_told(candidates[row])}, "
                f"and {length} before",
                hint="answer as many numbers for each candidate",
            )
        criteria[row] = answer
    return criteria


def fitness_problem(
    treat: ArrayLike,
    X: ArrayLike,
    balance: ArrayLike | None = None,
    *,
    estimand: Literal["ATT", "ATC", "ATE"] = "ATT",
    m: int = 1,
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
    distance_tolerance: float = 1e-5,
    r_compatible: bool = False,
    threads: int | None = None,
    seed: int | None = None,
) -> FitnessProblem:
    """Check what is to be judged; who is matched to whom is as in ``match``.

    Parameters
    ----------
    treat, X, balance
        As in ``match_fitness``.
    fitness
        "pvals": of each covariate's t-test and Kolmogorov-Smirnov test. "qqmean.mean" and so on:
        the mean, median or max of each covariate's ``|F_treated - F_control|`` over its values,
        then the mean or median of these, or all of them ("max"), the largest first. Or a function
        of the matches (``CandidateMatches``) and the covariates, whose answer, a number or several
        to be compared lexically, is to be small.
    loss
        What becomes of the p-values: 1 sorts them, the smallest first; 2 leaves the smallest; or a
        function of them, those of the t-tests first, whose answer is to be large.
    boot
        How many bootstrap samples for the p-values of Kolmogorov and Smirnov; below 10 for none.
    ks
        Whether there are Kolmogorov-Smirnov tests.
    paired
        Whether t-tests are paired; Welch's otherwise.
    estimand, m, weights, exact, caliper, replace, ties, common_support, restrict
        As in ``match``.
    distance_tolerance, r_compatible, threads
        As in ``match``.
    seed
        Of lots and bootstrap samples, 0 by default; every candidate draws the same.

    Raises
    ------
    UnusableInput
        If something cannot be used, naming column and rows.
    """
    given = validate.units(None, treat, X, weights, None)
    check_choices(estimand, m, 0, "population", distance_tolerance, threads, seed)
    rows = len(given.x)
    balanced = given.x if balance is None else validate.table(balance, "balance", "b")[0]
    validate.same_length(len(balanced), "balance", rows)
    triples = validate.restrictions(restrict, rows)
    kept: Indices = np.arange(rows)
    if common_support:
        tolerance = distance_tolerance if r_compatible else 0.0
        kept = common_rows(given.x[:, 0], given.treated, given.names[0], tolerance)
        given, triples = trimmed(given, triples, kept, r_compatible)
        balanced = np.ascontiguousarray(balanced[kept])
    limit = None
    if caliper is not None or exact is not None:
        limit, _ = effective_caliper(given, caliper, exact, distance_tolerance, r_compatible)
    function, measure = _measure(fitness, loss, boot)
    return FitnessProblem(
        native={
            "x": given.x.ravel(),
            "columns": given.x.shape[1],
            "treated": given.treated,
            "weights": given.weights,
            "estimand": estimand,
            "matches": min(m, _servants(given.treated, estimand)),
            "metric": "inverse_variance",
            "matrix": None,
            "caliper": limit,
            "restrict": triples,
            "replace": replace,
            "ties": ties and replace,
            "tolerance": distance_tolerance,
            "r_compatible": r_compatible,
            "threads": threads or 0,
            "seed": 0 if seed is None else seed,
            "method": "chosen",
            "balance": balanced.ravel(),
            "balance_columns": balanced.shape[1],
            "ks": ks,
            "boot": boot if boot >= 10 else 0,
            "paired": paired,
            **measure,
        },
        balance=balanced,
        fitness=function,
        loss=loss if callable(loss) else None,
        names=given.names,
        kept=kept,
        maximize=fitness == "pvals",
    )


def _servants(treated: NDArray[np.uint8], estimand: str) -> int:
    """How many units there are to be matched to, at most."""
    arms = {"ATT": (0,), "ATC": (1,), "ATE": (0, 1)}[estimand]
    return min(int((treated == arm).sum()) for arm in arms)


def _measure(
    fitness: str | FitnessFunction, loss: int | LossFunction, boot: int
) -> tuple[FitnessFunction | None, dict[str, str]]:
    """A given function, and what the engine computes."""
    if not isinstance(boot, int | np.integer) or not 0 <= boot <= MOST_BOOT:
        raise UnusableInput(f"boot is {boot}", hint=f"give a whole number from 0 to {MOST_BOOT}")
    if not callable(loss) and loss not in LOSSES:
        raise UnusableInput(f"there is no loss {loss!r}", hint="give 1, 2 or a function")
    if callable(fitness):
        if loss != 1:
            raise UnusableInput("loss is for fitness='pvals', and fitness is a function")
        return fitness, {"loss": "unsorted"}
    if fitness == "pvals":
        return None, {"loss": "unsorted" if callable(loss) else LOSSES[loss]}
    if fitness not in DISTANCES:
        raise UnusableInput(
            f"there is no fitness {fitness!r}",
            hint=f"give 'pvals', a function, or one of {', '.join(DISTANCES)}",
        )
    if loss != 1:
        raise UnusableInput(f"loss is for fitness='pvals', not for {fitness!r}")
    within, across = DISTANCES[fitness]
    return None, {"within": within, "across": across}
