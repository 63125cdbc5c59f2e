"""The native part of Equipoise (crates/python): typed options and arrays in, results out."""

from collections.abc import Sequence
from typing import Final, Literal, final

import numpy as np
from numpy.typing import NDArray

VERSION: Final[str]

EQUIVALENCE_LEVELS: Final[float]
"""Factor by which the level is multiplied for the interval that decides on ``equivalent``."""
EQUIVALENCE_BLOCKS: Final[int]
"""Minimum number of blocks for ``equivalent``."""

@final
class BettingSequence:
    """Blocks of one pair of conditions, and the bets on the coin that ordered them.

    Parameters
    ----------
    differences
        Shape (n,): ln(cost of the candidate) - ln(cost of the baseline); infinite if one of the two
        timed out, NaN for a tie.
    orders
        Shape (n,): 1 if the baseline ran first, -1 if the candidate did.
    tolerances
        Shape (n,): difference in log units up to which a block is a tie.
    readings
        Three arrays about c covariates that were read before the two trials of each block: the
        candidate's reading minus the baseline's, shape (n, c); the sum of both, shape (n, c); the
        sum of the two log costs, shape (n,). NaN where a value is unknown.

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
        """Add the next block; ``readings`` are as in the class, for one block."""

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
        """Add the next block of a baseline that ran twice.

        Each pair has the value against the baseline, then the value against its second run.
        """

    def __len__(self) -> int: ...
    def running_interval(self, level: float) -> tuple[float, float]:
        """Return {θ : max over n of E±(θ) < 2/level} in log units; empty if low > high."""

    def interval_at_stop(self, level: float) -> tuple[float, float]:
        """Return {θ : E±(θ) < 2/level} after the last block, in log units; never empty."""

    def ln_e_value(self) -> float:
        """Return ln of ½(E⁺(0) + E⁻(0)) after the last block."""

    def ln_e_value_beyond(self, margin: float) -> float:
        """Return ln of ½(E⁺(margin) + E⁻(-margin)): against a difference within ±``margin``."""

    def ln_e_value_above(self, theta: float) -> float:
        """Return ln of E⁺(theta): against a difference of at most ``theta``, a finite number."""

    def blocks_to_exclude(self, theta: float, level: float) -> int | None:
        """Return the number of blocks after which the running interval first excluded ``theta``."""

    def centre(self) -> tuple[float, float, float] | None:
        """Return the typical difference, the order effect and the scale, in log units."""

    def adjustment(self) -> tuple[int, int, float] | None:
        """Return the covariate that adjusted most blocks, the number of blocks, and a ratio.

        The ratio is the spread of the adjusted differences over the spread of the original ones.
        ``None`` if no block was adjusted.
        """

    def unadjusted(self) -> BettingSequence:
        """Return the same blocks, as if no covariate had been read."""

    def slower_count(self, level: float) -> tuple[int, int, float, float]:
        """Return how often the candidate was slower, and the interval of the probability.

        The values are: the number of blocks with a slower candidate, the number of blocks without a
        tie, and both ends of the interval.
        """

    def blocks_to_go_running(
        self, level: float, margin: float, max_blocks: int, continuations: int, seed: int
    ) -> int | None:
        """Return the median number of further blocks to a verdict by the running interval."""

    def blocks_to_go_at_stop(
        self, level: float, margin: float, max_blocks: int, continuations: int, seed: int
    ) -> int | None:
        """Return the median number of further blocks to a verdict by the interval at the stop."""

    def blocks_to_exclude_margin(
        self, level: float, margin: float, max_blocks: int, continuations: int, seed: int
    ) -> int | None:
        """Return the median number of further blocks until the running interval excludes a margin.

        The margin counts as excluded from either side.
        """

@final
class BisectionSearch:
    """Bets against each commit between two commits whose costs differ: 0 and ``commits``.

    Parameters
    ----------
    commits
        Number of commits after the first one.
    alpha
        Maximum chance of ever excluding the culprit.
    direction
        1 if the last commit costs more than the first, -1 if less.
    gap_blocks
        Difference and order of each block in which the commits 0 and ``commits`` ran.
    prior
        Prior chances of the commits 1 to ``commits``, in any unit; empty if they are equal.

    Raises
    ------
    ValueError
        There is no commit, the prior has another length, alpha does not lie between 0 and 1, or a
        commit cannot run.
    """

    def __new__(
        cls,
        commits: int,
        alpha: float,
        direction: float,
        gap_blocks: list[tuple[float, float]],
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
        """Add a block; return whether it was the first block of a commit's own pair.

        ``number`` is the block's number, which is stored for the commits that the block excludes.
        The own pair is the commit and the commit before it; this is the own pair number ``rank``.
        """

    def withdraw(self, commit: int) -> None:
        """Remove a commit that cannot run."""

    def choose(self, built: list[int], trials: float) -> tuple[int, int]:
        """Return the pair to run next, if a build costs as much as ``trials`` trials."""

    def outcome(
        self,
    ) -> tuple[Literal["open", "culprit", "several"], tuple[int, int] | None, int | None]:
        """Return the state of the search, the culprit's pair, and the commit at which to split."""

    def ln_e_values(self) -> list[float]:
        """Return ln E against "commit s makes the whole difference", s from 1."""

    def excluded_at(self) -> list[int | None]:
        """Return the number of the block that excluded each commit, from commit 1."""

    def weights(self) -> list[float]:
        """Return each commit's chance of being the culprit, from commit 1; they sum to 1."""

    def own_ln_e_value(self, commit: int) -> float:
        """Return ln F of a commit that can run: the evidence from its own pair."""

    def margin(self) -> float:
        """Return the difference, in log units, up to which two commits cost the same."""

    def step(self) -> float:
        """Return the estimated change in cost, in log units and in the direction of the gap."""

    def scale(self) -> float:
        """Return the estimated standard deviation of a block's difference."""

def common_interval(campaigns: Sequence[BettingSequence], level: float) -> tuple[float, float]:
    """Return {θ : max over n of E±(θ) < 2/level} over all campaigns together, in log units.

    The bettors take their wealth from each campaign to the next, in the given order. The interval
    is empty (low > high) if no common ratio agrees with all campaigns. Raises ``ValueError`` for a
    level that does not lie between 0 and 1.
    """

def smallest_effects(
    differences: NDArray[np.float64],
    max_effect: float,
    *,
    blocks: int,
    level: float,
    campaigns: int,
    seed: int,
) -> list[float]:
    """Return the smallest effect that each simulated campaign detects, in increasing order.

    Effects are in log units. ``differences``, shape (n,), are finite block differences of campaigns
    without an effect, from which a campaign draws its ``blocks`` blocks, with new coins. An effect
    is infinite if the campaign does not detect ``max_effect``. ``level`` is 1 minus the coverage of
    a campaign's interval. Raises ``ValueError`` if there is no difference, or the level does not
    lie between 0 and 1.
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
    def push(self, original_gap: float, changed_gap: float) -> None:
        """Add the gaps of the next block, without and with the intervention.

        Both gaps are in log units, or both in the metric's unit. A gap is ±inf if one of its two
        trials timed out, NaN if both did.
        """

    def estimate(self) -> float | None:
        """Return 1 minus the median gap with the intervention over the median gap without it."""

    def rounded_set(self) -> list[tuple[float | None, float | None]]:
        """Return the intervals of the confidence set, with ends rounded outwards; this is quick."""

    def exact_set(self) -> list[tuple[float | None, float | None]]:
        """Return the intervals of the confidence set, with exact ends."""

    def fits(self, fraction: float) -> bool:
        """Return whether one fraction lies in the confidence set."""

def student_p_value(t: float, degrees_of_freedom: float) -> float:
    """Return P(abs(T) >= abs(t)) of Student's distribution."""

def student_quantile(probability: float, degrees_of_freedom: float) -> float:
    """Return the quantile of Student's t; NaN without positive degrees of freedom."""
