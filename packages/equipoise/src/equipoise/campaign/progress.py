"""The progress of a campaign, for a listener, and the forecast of a block's time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise.model.plan import Plan
from equipoise.model.quantities import Interval
from equipoise.model.result import Verdict
from equipoise.model.why import Outcome


class ComparisonStatus(Struct, frozen=True):
    """Status of one comparison, of one intervention or of a search, after the latest block."""

    candidate: str
    verdict: Verdict | Outcome
    ratio: float | None
    """Ratio of costs, as in a result."""
    ratio_ci: Interval
    baseline: str = ""
    blocks: int = 0
    """Number of blocks in which both conditions ran."""
    closes: str = ""
    """Sentence on the part of a gap that an intervention closes, instead of a ratio."""
    metric: str = ""
    """Compared metric; empty for an intervention."""
    more_is_better: bool = False
    """Whether more of the metric is better, so that a cost is the inverse of a value."""
    search: str = ""
    """Clause on the progress of a search, instead of a ratio: ``12 of 64 commits are left``."""


class CampaignProgress(Struct, frozen=True):
    """Progress of a campaign after a block."""

    blocks: int
    """Number of analysed blocks."""
    elapsed_s: float
    """Seconds of the budget that are spent."""
    statuses: tuple[ComparisonStatus, ...]


class ProgressListener:
    """Receiver of a campaign's events, called only between trials; this class does nothing."""

    def segment_started(
        self, run_id: str, plan: Plan, earliest_block: int, blocks_before: int
    ) -> None:
        """Receive the start of a segment.

        Parameters
        ----------
        earliest_block
            First block after which a verdict is possible.
        blocks_before
            Number of complete blocks of earlier segments.
        """

    def trial_ended(self, seconds: float, of: int) -> None:
        """Receive the end of one of ``of`` trials of a block; with washout, of a pair of trials."""

    def warmed_up(self) -> None:
        """Receive the end of the warm-up trials."""

    def building(self, names: tuple[str, ...]) -> None:
        """Receive the names of conditions that are being built, while nothing is measured."""

    def block_ended(self, progress: CampaignProgress) -> None:
        """Receive the progress after a complete and analysed block."""

    def trial_running(self) -> None:
        """Receive, about once a second, that a long trial is running."""

    def segment_ended(self) -> None:
        """Receive the end of the segment, for whatever reason."""


MAX_EXTRA_BUDGET_SHARE = 0.5
"""Maximum share by which a near verdict may exceed the budget."""


def blocks_to_near_verdicts(
    forecasts: Sequence[int], block_s: float, budget_s: float
) -> int | None:
    """Return the number of blocks that decide all near verdicts; ``None`` if no verdict is near.

    A verdict is near if it takes less than half of the budget again.

    Parameters
    ----------
    forecasts
        Forecast number of blocks of each open comparison.
    block_s
        Seconds that a block takes.
    """
    near = [blocks for blocks in forecasts if blocks * block_s < MAX_EXTRA_BUDGET_SHARE * budget_s]
    return max(near, default=None)


MIN_TRIALS = 5
_REACH = 2.0
"""Standard errors to either side. They cover 95 % for similar trials, and about 80 % if trials
differ a hundredfold (tests/campaign/test_progress.py)."""


class BlockForecast(Struct, frozen=True):
    """Forecast of a block's time, in seconds."""

    block_s: float
    low_s: float
    """Lower bound, never below the elapsed time."""
    high_s: float


def forecast_block(seconds: Sequence[float], conditions: int) -> BlockForecast | None:
    """Forecast the time of a block from its first trials; ``None`` before `MIN_TRIALS` trials.

    The coin draws the order, so the first trials are a simple random sample, without replacement,
    of the trials of the block. Their mean times the number of conditions is an unbiased estimate of
    the whole, with the standard error of a sample from a finite population (Cochran 1977, section
    2.5).

    Parameters
    ----------
    seconds
        Time of each of the first k trials, shape (k,).
    conditions
        Number of trials in the block.
    """
    count = len(seconds)
    if count < min(MIN_TRIALS, conditions):
        return None
    block_s = conditions * float(np.mean(seconds))
    spread = float(np.std(seconds, ddof=1)) if count > 1 else 0.0
    reach = _REACH * conditions * spread * math.sqrt((1.0 - count / conditions) / count)
    return BlockForecast(block_s, max(sum(seconds), block_s - reach), block_s + reach)
