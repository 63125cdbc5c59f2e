"""The native part (packages/matching/crates/python)."""

from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.designs.nearest import ScoreProblem
from equipoise_matching.designs.quick import QuickProblem
from equipoise_matching.genetic.options import SearchOptions
from equipoise_matching.matching.fitness import FitnessProblem
from equipoise_matching.matching.options import MatchOptions
from equipoise_matching.matching.units import Units

@final
class GenoudSearch:
    """A genetic search that requests the values of points, and takes the answers.

    Raise `ValueError` if options cannot be combined, or an answer does not fit the request.
    """

    def __new__(cls, options: SearchOptions) -> GenoudSearch: ...
    def ask(self) -> tuple[str, NDArray[np.float64]]:
        """Return the next step and the points (rows, nvars) that it needs.

        The last step is the reason for the end: "no improvement" or "generation limit".
        """

    def tell(self, values: NDArray[np.float64]) -> None:
        """Take the values (rows, criteria) of the points to evaluate."""

    def tell_polished(self, points: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        """Take the polished points (rows, nvars) and their values (rows, criteria)."""

    def tell_gradient(self, is_small: bool) -> None:
        """Take the answer whether the gradient at the point is small."""

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
        """Return the finished generations from this index on, as fields of ``Generation``."""

@final
class Pairs:
    """The pairs of a match: rows of units (``query``) and of matches (``matched``), from 0."""

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
    """The effect and its errors, in units of the outcome (``crates/matching/src/estimate.rs``)."""

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
    """Units and options, ready for the search of nearest neighbours.

    Raise `ValueError` if lengths differ, or the processor lacks the requested instructions.
    """

    def __new__(cls, units: Units, options: MatchOptions) -> Matcher: ...
    @property
    def uses_tree(self) -> bool: ...
    def pairs(self, progress: Callable[[int, int], None] | None) -> Pairs:
        """Match the units. An exception of ``progress`` or Ctrl-C stops the search."""

    def variances(self, pairs: Pairs, neighbors: float) -> NDArray[np.float64]:
        """Return the variance of the outcome of each unit in a pair, from its nearest neighbours.

        Neighbours are of the same arm. The variance is NaN without a neighbour or a pair.
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
    """Estimate the effect, adjusted by ``covariates`` (n, l). Unknown ``variances`` are NaN."""

@final
class FitnessEngine:
    """Computes the fitness of candidates: the balance of the covariates after matching by them.

    The metric of the options is ignored, because the candidates are the metric.
    """

    def __new__(
        cls, units: Units, options: MatchOptions, criteria: FitnessProblem
    ) -> FitnessEngine: ...
    def evaluate(
        self, candidates: NDArray[np.float64], progress: Callable[[int, int], None] | None
    ) -> NDArray[np.float64]:
        """Return the criteria (candidates, criteria) of candidates (candidates, k)."""

@final
class PairFlow:
    """Pairs of smallest total cost; each unit of both arms has a number of pairs in its limits.

    An arm is a tuple of shapes (n,): smallest and largest numbers of pairs, and numbers of equal
    rows of each unit. ``max_omitted`` has the numbers of units with a minimum of 1 that may be in
    no pair. A pair that is missing costs ``penalty``.
    """

    def __new__(
        cls,
        first: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
        second: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
        max_omitted: tuple[int, int],
        penalty: int,
    ) -> PairFlow: ...
    def add(
        self,
        first: NDArray[np.int64],
        second: NDArray[np.int64],
        cost: NDArray[np.int64],
    ) -> None:
        """Add pairs that are not in the graph, and solve again. Ctrl-C stops the work.

        Raise `ValueError` for a unit that does not exist, or a negative cost.
        """

    def pairs(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]:
        """Return the first and the second unit of each pair, sorted, and how often it is formed."""

    def prices(self, arm: int) -> NDArray[np.int64]:
        """Return the price of each unit of an arm (0 or 1).

        cost + price of the first - price of the second unit is at least 0 for a pair outside the
        solution, and at most 0 for a pair of the solution.
        """

    def missing(self, arm: int) -> NDArray[np.int64]:
        """Return how many pairs each unit of an arm lacks to its minimum."""

def cheap_pairs(
    first: tuple[
        NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]
    ],
    second: tuple[
        NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]
    ],
    calipers: NDArray[np.float64],
    limits: NDArray[np.int64],
    max_distance: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return first and second units of pairs with distance < price + price, sorted.

    An arm is a tuple: points (n, d), values (n, c) that may differ in a pair by at most
    ``calipers`` (c,), prices (n,), and radii (n,): all pairs nearer than the radius of a unit are
    left out. A unit of the first arm has at most ``limits`` (n1,) pairs, the cheapest.
    """

def kolmogorov_p_value(x: float, as_in_r: bool) -> float:
    """Return P(K >= x) of Kolmogorov's distribution; ``as_in_r`` ends the series as R does."""

def smirnov_p_value(reach: int, treated: int, control: int, ends: list[int]) -> float:
    """Return P(distance >= reach / (treated * control)) for samples of these two sizes.

    ``ends`` has the index behind each group of ties among the sorted values of both samples.
    """

def match_on_score(
    problem: ScoreProblem, progress: Callable[[int, int], None] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the taker and the donor of each pair, in the order of the takers."""

def quick_strata(
    problem: QuickProblem, progress: Callable[[int, int], None] | None
) -> tuple[NDArray[np.int64], float, float]:
    """Return the stratum of each row, -1 for a row that is left out, and two distances.

    The distances are the largest distance of a row from the seed of its stratum, and a lower bound
    of the largest distance in any strata.
    """
