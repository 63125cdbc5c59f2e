"""The native part of Equipoise (crates/python): typed options and arrays in, results out."""

from collections.abc import Sequence
from typing import Final, Literal, final

import numpy as np
from numpy.typing import NDArray

VERSION: Final[str]

EQUIVALENCE_LEVELS: Final[float]
"""Multiple of the level that the interval has which decides on ``equivalent``."""
EQUIVALENCE_BLOCKS: Final[int]
"""Blocks before ``equivalent`` can be said."""

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
    readings
        What was read before the trials of each block, of c covariates: shapes (n, c), at the
        candidate's trial minus at the baseline's; (n, c), the sum of both; (n,), the sum of the two
        log costs. NaN where one is unknown.

    Raises
    ------
    ValueError
        The lengths differ, there are more than 8 covariates, an order is neither 1 nor -1, a
        tolerance is negative or not finite, a level does not lie between 0 and 1, or a margin is
        not a finite number from 0 up.
    BufferError
        An array is of another type.
    """

    def __new__(
        cls,
        differences: NDArray[np.float64],
        orders: NDArray[np.int8],
        tolerances: NDArray[np.float64],
        readings: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None = ...,
    ) -> BettingSequence: ...
    def push(
        self,
        difference: float,
        order: int,
        tolerance: float,
        readings: tuple[list[float], list[float], float] | None = ...,
    ) -> None:
        """Add the next block; readings as for the whole."""

    def push_pooled(
        self,
        differences: tuple[float, float],
        orders: tuple[int, int],
        tolerances: tuple[float, float],
        readings: tuple[
            tuple[list[float], list[float], float] | None,
            tuple[list[float], list[float], float] | None,
        ] = ...,
    ) -> None:
        """Add the next block of a baseline that ran twice: against it, and against its twin."""

    def __len__(self) -> int: ...
    def running_interval(self, level: float) -> tuple[float, float]:
        """Return {θ : max over n of E±(θ) < 2/level} in log units; empty if low > high."""

    def interval_at_stop(self, level: float) -> tuple[float, float]:
        """Return {θ : E±(θ) < 2/level} after the last block, in log units; never empty."""

    def ln_e_value(self) -> float:
        """Return ln of ½(E⁺(0) + E⁻(0)) after the last block."""

    def ln_e_value_beyond(self, margin: float) -> float:
        """Return ln of ½(E⁺(margin) + E⁻(-margin)): against a difference within ±``margin``."""

    def blocks_to_exclude(self, theta: float, level: float) -> int | None:
        """Return after how many blocks the running interval first excluded ``theta``."""

    def centre(self) -> tuple[float, float, float] | None:
        """Return the typical difference, the slot effect and the scale, in log units."""

    def adjustment(self) -> tuple[int, int, float] | None:
        """Return the covariate that adjusted most blocks, the number adjusted, and a ratio.

        The ratio is the spread of adjusted differences over that of differences. ``None`` if no
        block was adjusted.
        """

    def unadjusted(self) -> BettingSequence:
        """Return the same blocks, as if no covariate had been read."""

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
class BisectionSearch:
    """Bets against each commit between two that differ: commits 0 to ``commits``.

    Parameters
    ----------
    commits
        Number of commits after the first one.
    alpha
        Chance with which the set ever leaves out the culprit.
    direction
        1 if the last commit costs more than the first, -1 if less.
    confirming
        Difference and order of each block (0, ``commits``) that confirmed the gap.
    prior
        Chances of the commits 1 to ``commits``, in any unit; empty for even ones.

    Raises
    ------
    ValueError
        There is no commit, the prior has another length, alpha does not lie between 0 and 1, or a
        pair or a commit does not run.
    """

    def __new__(
        cls,
        commits: int,
        alpha: float,
        direction: float,
        confirming: list[tuple[float, float]],
        prior: list[float],
    ) -> BisectionSearch: ...
    def add(
        self,
        pair: tuple[int, int],
        difference: float,
        order: float,
        tolerance: float,
        number: int,
        rank: int,
    ) -> bool:
        """Add a block; return whether it is the first of its commit's own pair, with that rank.

        ``number`` is remembered for the commits that the block excludes.
        """

    def withdraw(self, commit: int) -> None:
        """Take out a commit that does not run."""

    def choose(self, built: list[int], trials: float) -> tuple[int, int]:
        """Return the pair that runs next; ``trials`` is what a build costs."""

    def outcome(
        self,
    ) -> tuple[Literal["open", "culprit", "several"], tuple[int, int] | None, int | None]:
        """Return how the search stands, the named pair, and the commit at which to split."""

    def ln_e_values(self) -> list[float]:
        """Return ln E against "commit s makes the whole difference", s from 1."""

    def excluded_at(self) -> list[int | None]:
        """Return the number of the block that excluded each commit, from commit 1."""

    def weights(self) -> list[float]:
        """Return the chance of each commit from 1 that steers the search; they sum to 1."""

    def own_ln_e_value(self, commit: int) -> float:
        """Return ln F of a commit that runs: from its own pair alone."""

    def margin(self) -> float:
        """Return the difference in log units up to which two commits count as alike."""

    def step(self) -> float:
        """Return the step learnt so far, in log units and in the direction of the gap."""

    def scale(self) -> float:
        """Return the standard deviation of a block's difference, as it is learnt so far."""

def common_interval(campaigns: Sequence[BettingSequence], level: float) -> tuple[float, float]:
    """Return {θ : max over n of E±(θ) < 2/level} over all campaigns together, in log units.

    The bettors take their wealth from each campaign to the next, in the order given. Empty
    (low > high) where no common ratio agrees with all campaigns. Raises ``ValueError`` for a level
    that does not lie between 0 and 1.
    """

def smallest_effects(
    differences: NDArray[np.float64],
    largest: float,
    *,
    blocks: int,
    level: float,
    campaigns: int,
    seed: int,
) -> list[float]:
    """Return the smallest effect that each simulated campaign tells from none, increasing.

    Parameters
    ----------
    differences
        Shape (n,): block differences in log units without an effect, finite; n > 0. Campaigns draw
        from them, with fresh coins.
    largest
        Largest effect that is tried, in log units.
    blocks
        Number of blocks of a campaign.
    level
        1 minus the coverage of its interval.
    campaigns
        Number of campaigns.
    seed
        Seed of the draws.

    Returns
    -------
    One effect in log units for each campaign; infinite where it does not even tell ``largest``.

    Raises
    ------
    ValueError
        There is no difference, or the level does not lie between 0 and 1.
    """

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

def student_p_value(t: float, freedom: float) -> float:
    """Return P(abs(T) >= abs(t)) of Student's distribution."""

def student_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t; NaN without positive degrees of freedom."""
