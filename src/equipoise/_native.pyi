"""The native part of Equipoise (crates/python): converts arrays and errors, nothing else."""

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

@final
class BettingSequence:
    """The blocks of one pair of conditions, and the bets on the coin that ordered them.

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
        If the lengths differ, an order is neither 1 nor -1, a tolerance is negative or not finite,
        a level does not lie between 0 and 1, or a margin is not a finite number from 0 up.
    BufferError
        If an array is of another type.
    """

    def __new__(
        cls,
        differences: NDArray[np.float64],
        orders: NDArray[np.int8],
        tolerances: NDArray[np.float64],
    ) -> BettingSequence: ...
    def push(self, difference: float, order: int, tolerance: float) -> None:
        """Adds the next block."""

    def push_pooled(
        self,
        differences: tuple[float, float],
        orders: tuple[int, int],
        tolerances: tuple[float, float],
    ) -> None:
        """Adds the next block of a baseline that ran twice: against it, and against its twin."""

    def __len__(self) -> int: ...
    def running_interval(self, level: float) -> tuple[float, float]:
        """{θ : max over n of E±(θ) < 2/level} in log units; empty if low > high."""

    def interval_at_stop(self, level: float) -> tuple[float, float]:
        """{θ : E±(θ) < 2/level} after the last block, in log units; never empty."""

    def ln_e_value(self) -> float:
        """ln of ½(E⁺(0) + E⁻(0)) after the last block."""

    def blocks_to_exclude(self, theta: float, level: float) -> int | None:
        """After how many blocks the running interval first excluded ``theta``."""

    def centre(self) -> tuple[float, float, float] | None:
        """The typical difference, the slot effect and the scale, in log units."""

    def slower_count(self, level: float) -> tuple[int, int, float, float]:
        """Blocks in which the candidate was slower, blocks that were no tie, low, high."""

    def blocks_to_go_running(
        self, level: float, margin: float, cap: int, continuations: int, seed: int
    ) -> int | None:
        """The median number of further blocks to a verdict by the running interval."""

    def blocks_to_go_at_stop(
        self, level: float, margin: float, cap: int, continuations: int, seed: int
    ) -> int | None:
        """The median number of further blocks to a verdict by the interval at the stop."""

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
