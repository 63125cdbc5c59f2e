"""The native part of Equipoise (crates/python): converts arrays and errors, nothing else."""

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

@final
class BettingSequence:
    """Blocks of one pair of conditions, and the bets on the coin that ordered them.

    Parameters
    ----------
    differences
        Shape (n,): d = ln(cost of the candidate) - ln(cost of the baseline); infinite where one
        timed out, NaN for a tie.
    orders
        Shape (n,): 1 where the baseline ran first, -1 where the candidate did.
    tolerances
        Shape (n,), log units: differences below it cannot be told from none.

    Raises
    ------
    ValueError
        The lengths differ, an order is neither 1 nor -1, a tolerance is negative or not finite,
        a level does not lie between 0 and 1, or a margin is not a finite number from 0 up.
    BufferError
        An array is of another type.
    """

    def __new__(
        cls,
        differences: NDArray[np.float64],
        orders: NDArray[np.int8],
        tolerances: NDArray[np.float64],
    ) -> BettingSequence: ...
    def push(self, difference: float, order: int, tolerance: float) -> None:
        """Add the next block."""

    def push_pooled(
        self,
        differences: tuple[float, float],
        orders: tuple[int, int],
        tolerances: tuple[float, float],
    ) -> None:
        """Add the next block of a baseline that ran twice: against it, and against its twin."""

    def __len__(self) -> int: ...
    def running_interval(self, level: float) -> tuple[float, float]:
        """Return {θ : max over n of E±(θ) < 2/level} in log units; empty if low > high."""

    def interval_at_stop(self, level: float) -> tuple[float, float]:
        """Return {θ : E±(θ) < 2/level} after the last block, in log units; never empty."""

    def ln_e_value(self) -> float:
        """Return ln of ½(E⁺(0) + E⁻(0)) after the last block."""

    def blocks_to_exclude(self, theta: float, level: float) -> int | None:
        """Return after how many blocks the running interval first excluded ``theta``."""

    def centre(self) -> tuple[float, float, float] | None:
        """Return the typical difference, the slot effect and the scale, in log units."""

    def slower_count(self, level: float) -> tuple[int, int, float, float]:
        """Return the blocks with a slower candidate, those that were no tie, low and high."""

    def blocks_to_go_running(
        self, level: float, margin: float, cap: int, continuations: int, seed: int
    ) -> int | None:
        """Return the median number of further blocks to a verdict by the running interval."""

    def blocks_to_go_at_stop(
        self, level: float, margin: float, cap: int, continuations: int, seed: int
    ) -> int | None:
        """Return the median number of further blocks to a verdict by the interval at the stop."""

@final
class FractionSequence:
    """Blocks of one intervention, and the bets against each fraction of the gap explained.

    Parameters
    ----------
    level
        1 minus the coverage of the whole sequence of confidence sets.

    Raises
    ------
    ValueError
        The level does not lie between 0 and 1.
    """

    def __new__(cls, level: float) -> FractionSequence: ...
    def push(self, without: float, with_it: float) -> None:
        """Add the gaps of the next block, without and with the intervention.

        Both in log units or both in the metric's unit; ±inf where one of a pair timed out, NaN
        where both did.
        """

    def estimate(self) -> float | None:
        """Return one minus the median gap with the intervention over that without it."""

    def rounded_set(self) -> list[tuple[float | None, float | None]]:
        """Return the pieces of the confidence set, their ends rounded outwards: quick."""

    def exact_set(self) -> list[tuple[float | None, float | None]]:
        """Return the pieces of the confidence set; each end is the nearest fraction outside."""

    def fits(self, fraction: float) -> bool:
        """Return whether one fraction lies in the confidence set."""

@final
class GenoudSearch:
    """A genetic search that asks for values and is told them.

    Parameters
    ----------
    options
        The fields of :class:`equipoise.genoud.options.SearchOptions`, by name; lower, upper
        (nvars float64), starting_values (rows*nvars float64), operators (a list of nine).

    Raises
    ------
    ValueError
        If options do not fit together, or something is told that was not asked for.
    KeyError
        If an option is missing.
    """

    def __new__(cls, options: dict[str, Any]) -> GenoudSearch: ...
    def ask(self) -> tuple[str, bytes]:
        """What is needed, and the points (float64) that it is needed for, one after another.

        "evaluate", "polish" or "gradient"; at the end "no improvement" or "generation limit".
        """

    def tell(self, values: NDArray[np.float64], criteria: int) -> None:
        """The values of the points that were to be evaluated, ``criteria`` for each."""

    def tell_polished(
        self, points: NDArray[np.float64], values: NDArray[np.float64], rows: int
    ) -> None:
        """What became of the ``rows`` points that were to be polished, and the values there."""

    def tell_gradient(self, small: bool) -> None:
        """Whether the gradient at the point is small."""

    @property
    def generation(self) -> int: ...
    @property
    def generation_limit(self) -> int: ...
    @property
    def peak_generation(self) -> int: ...
    @property
    def population_size(self) -> int: ...
    @property
    def operators(self) -> list[int]: ...
    def population(self) -> tuple[bytes, bytes]:
        """Points and values (float64) of all individuals, the best first."""

    def history(self, start: int) -> list[tuple[int, bytes, bytes, float, int]]:
        """Of each generation that ended, from this place: number, best point, its values, the
        median of the first criterion, evaluations so far."""

@final
class MatchingEngine:
    """A matching problem whose units are in place for searching.

    Parameters
    ----------
    options
        x (n*k float64, row after row), columns, treated (n uint8), weights (n float64 or None),
        estimand (ATT, ATC, ATE), matches, metric (inverse_variance, mahalanobis, matrix), matrix
        (k*k float64 or None), caliper (k float64, units of x, or None), restrict (triples),
        replace, ties, tolerance, r_compatible, threads (0: all cores), seed, method (chosen,
        brute_force, tree), instructions (avx512, avx2, portable; the best if left out).

    Raises
    ------
    ValueError
        If something is missing, lengths do not fit together or the processor lacks the
        instructions.
    """

    def __new__(cls, options: dict[str, Any]) -> MatchingEngine: ...
    @property
    def uses_tree(self) -> bool: ...
    def pairs(
        self, progress: Callable[[int, int], None] | None
    ) -> tuple[bytes, bytes, bytes, bytes]:
        """Queries and matches (int64), weights (float64), dropped rows (int64).

        Stops at what ``progress`` raises, and at Ctrl-C.
        """

    def variances(self, outcome: NDArray[np.float64], neighbours: float) -> bytes:
        """Of each row among its nearest of the same arm (float64); NaN without a neighbour."""

def matching_strata(
    options: dict[str, Any], progress: Callable[[int, int], None] | None
) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """Inside each stratum: queries and matches (int64), weights (float64), dropped rows (int64),
    and the outcome's variances (float64, NaN for unknown; empty unless asked for).

    ``options``: those of ``MatchingEngine``, strata (n int64), stratum_count, calipers
    (stratum_count*columns float64, or None), outcome (n, or None for no variances), neighbours.
    """

def matching_estimate(
    options: dict[str, Any],
) -> tuple[float, float, float, float, float, float]:
    """Effect, unadjusted effect, variance in the population and in the sample, error of the
    pairs, conditional error.

    ``options``: treated, outcome, weights (n), query, matched (int64), weight (pairs), covariates
    (n*columns or None), columns, variances (n, NaN for unknown, or None), estimand, r_compatible.
    """

@final
class FitnessEngine:
    """Judges candidates: how well each balances the covariates that it matches by.

    Parameters
    ----------
    options
        Those of ``MatchingEngine`` (metric and matrix are left out of account), and balance
        (n*b float64, row after row), balance_columns, ks, boot (0 for none), paired; either loss
        (sorted, smallest, unsorted), or within (mean, median, max) and across (the same).

    Raises
    ------
    ValueError
        If something is missing or lengths do not fit together.
    """

    def __new__(cls, options: dict[str, Any]) -> FitnessEngine: ...
    @property
    def criteria(self) -> int: ...
    def evaluate(
        self, weights: NDArray[np.float64], progress: Callable[[int, int], None] | None
    ) -> bytes:
        """The criteria (float64), candidate after candidate as the weights are."""

    def pairs(self, weights: NDArray[np.float64]) -> tuple[bytes, bytes, bytes, bytes]:
        """As ``MatchingEngine.pairs``, of one candidate."""

def student_p_value(t: float, freedom: float) -> float:
    """P(abs(T) >= abs(t)) of Student's distribution."""

def student_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t; NaN without positive degrees of freedom."""

def kolmogorov_p_value(x: float, as_in_r: bool) -> float:
    """P(K >= x) of Kolmogorov's distribution; the series ended where R ends it if ``as_in_r``."""

def exact_smirnov_p_value(reach: int, size: int, ends: list[int]) -> float:
    """P(distance >= reach / size) of two samples of one size, given where groups of ties end."""
