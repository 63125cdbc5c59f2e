"""The native part (packages/matching/crates/python): typed options and arrays in, results out."""

from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.genetic.options import SearchOptions
from equipoise_matching.matching.fitness import FitnessProblem
from equipoise_matching.matching.options import MatchOptions
from equipoise_matching.matching.units import Units

@final
class GenoudSearch:
    """A genetic search that requests values of points and takes them.

    Raises
    ------
    ValueError
        If options do not fit together, or values come that were not requested.
    """

    def __new__(cls, options: SearchOptions) -> GenoudSearch: ...
    def ask(self) -> tuple[str, NDArray[np.float64]]:
        """Return the next step and the points (rows, nvars) that it needs.

        Steps are "evaluate", "polish" and "gradient"; the last one is "no improvement" or
        "generation limit".
        """

    def tell(self, values: NDArray[np.float64]) -> None:
        """Take the values (rows, criteria) of the points to evaluate."""

    def tell_polished(self, points: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        """Take the polished points (rows, nvars) and their values (rows, criteria)."""

    def tell_gradient(self, is_small: bool) -> None:
        """Take whether the gradient at the point is small."""

    @property
    def generation_limit(self) -> int: ...
    @property
    def peak_generation(self) -> int: ...
    @property
    def population_size(self) -> int: ...
    @property
    def operators(self) -> list[int]: ...
    def history(
        self, start: int
    ) -> list[tuple[int, NDArray[np.float64], NDArray[np.float64], float, int]]:
        """Return the finished generations from this place on, as fields of ``Generation``."""

@final
class Pairs:
    """Rows of the units that were matched and of their matches, with the weight of each pair.

    Parameters
    ----------
    query, matched
        Shape (pairs,): the unit that was matched, and its match of the other arm.
    weights
        Shape (pairs,).
    dropped
        Rows of units without enough admissible matches.
    """

    def __new__(
        cls,
        query: NDArray[np.int64],
        matched: NDArray[np.int64],
        weights: NDArray[np.float64],
        dropped: NDArray[np.int64],
    ) -> Pairs: ...
    @property
    def query(self) -> NDArray[np.int64]: ...
    @property
    def matched(self) -> NDArray[np.int64]: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...
    @property
    def dropped(self) -> NDArray[np.int64]: ...

@final
class Estimate:
    """The effect and its errors, in units of the outcome."""

    @property
    def effect(self) -> float: ...
    @property
    def unadjusted(self) -> float: ...
    @property
    def population_variance(self) -> float: ...
    @property
    def sample_variance(self) -> float: ...
    @property
    def standard_error_of_pairs(self) -> float: ...
    @property
    def conditional_error(self) -> float: ...

@final
class Matcher:
    """Units that are in place for a search of their nearest neighbours.

    Raises
    ------
    ValueError
        If lengths do not fit together or the processor lacks the instructions.
    """

    def __new__(cls, units: Units, options: MatchOptions) -> Matcher: ...
    @property
    def uses_tree(self) -> bool: ...
    def pairs(self, progress: Callable[[int, int], None] | None) -> Pairs:
        """Match the units; what ``progress`` raises stops the search, and so does Ctrl-C."""

    def variances(self, pairs: Pairs, neighbors: float) -> NDArray[np.float64]:
        """Return the variance of each paired unit's outcome among its nearest of the same arm.

        It is NaN for a unit without such a neighbour, and for units in no pair.
        """

def match_strata(
    units: Units,
    options: MatchOptions,
    strata: NDArray[np.int64],
    count: int,
    neighbors: float | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[Pairs, NDArray[np.float64] | None]:
    """Match inside each stratum; with ``neighbors`` also return the variances of the outcomes."""

def estimate_effect(
    units: Units,
    options: MatchOptions,
    pairs: Pairs,
    covariates: NDArray[np.float64] | None,
    variances: NDArray[np.float64] | None,
) -> Estimate:
    """Estimate the effect; ``covariates`` (n, l) adjust it, unknown ``variances`` are NaN."""

@final
class FitnessEngine:
    """Judges candidates: how well each balances the covariates when units are matched by it.

    The metric of the options is left out of account: the candidates are the metric.
    """

    def __new__(
        cls, units: Units, options: MatchOptions, criteria: FitnessProblem
    ) -> FitnessEngine: ...
    def evaluate(
        self, candidates: NDArray[np.float64], progress: Callable[[int, int], None] | None
    ) -> NDArray[np.float64]:
        """Return the criteria (candidates, criteria) of candidates (candidates, k)."""

def kolmogorov_p_value(x: float, as_in_r: bool) -> float:
    """Return P(K >= x) of Kolmogorov's distribution; ``as_in_r`` ends the series as R does."""

def smirnov_p_value(reach: int, treated: int, control: int, ends: list[int]) -> float:
    """Return P(distance >= reach / (treated * control)), given where groups of ties end."""
