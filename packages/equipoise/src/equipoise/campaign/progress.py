"""The progress of a campaign, for whoever watches it, and the forecast of a block's time."""

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
    """Number of blocks in which both ran."""
    closes: str = ""
    """Sentence on the part of a gap that an intervention closes; then there is no ratio."""
    metric: str = ""
    """Metric that is compared; empty for an intervention."""
    more_is_better: bool = False
    """Whether more of the metric is better, so that a cost is the inverse of a value."""
    search: str = ""
    """Clause on how far a search is: ``12 of 64 commits are left``; then there is no ratio."""


class CampaignProgress(Struct, frozen=True):
    """Progress of a campaign after a block."""

    blocks: int
    """Number of analysed blocks."""
    elapsed_s: float
    """Seconds of the budget that are spent."""
    statuses: tuple[ComparisonStatus, ...]


class ProgressListener:
    """Hears of a campaign's progress, between trials only; this one does nothing."""

    def segment_started(
        self, run_id: str, plan: Plan, earliest_block: int, blocks_before: int
    ) -> None:
        """Hear that a segment started.

        Parameters
        ----------
        earliest_block
            First block after which a verdict is possible.
        blocks_before
            Number of complete blocks of earlier segments.
        """

    def trial_ended(self, seconds: float, of: int) -> None:
        """Hear that one of the ``of`` trials of a block ended; with washout, a pair of trials."""

    def warmed_up(self) -> None:
        """Hear that the warm-up trials ended."""

    def building(self, names: tuple[str, ...]) -> None:
        """Hear that conditions are built, while nothing is measured."""

    def block_ended(self, progress: CampaignProgress) -> None:
        """Hear that a block is complete and analysed."""

    def trial_running(self) -> None:
        """Hear, about once a second, that a long trial is running."""

    def segment_ended(self) -> None:
        """Hear that the segment ended, for whatever reason."""


MAX_EXTRA_BUDGET_SHARE = 0.5
"""Part of the budget again that a verdict may take and still be near."""


def nearest_enough(forecasts: Sequence[int], block_s: float, budget_s: float) -> int | None:
    """Return how many more blocks decide every comparison whose verdict is near; ``None`` if none.

    A verdict is near where it takes less than half of the budget again.

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
"""Standard errors to either side: covers 95 % for similar trials, and some 80 % where they differ a
hundredfold (tests/campaign/test_progress.py)."""


class BlockForecast(Struct, frozen=True):
    """Forecast of a block's time, in seconds."""

    block_s: float
    low_s: float
    """Never below the time that has passed."""
    high_s: float


def forecast_block(seconds: Sequence[float], conditions: int) -> BlockForecast | None:
    """Forecast the time of a block from its first trials; ``None`` before `MIN_TRIALS` of them.

    The coin draws the order, so the first trials are a simple random sample, without replacement,
    of the trials of the block. Their mean times the number of conditions estimates the whole
    without bias, with the standard error of a sample from a finite population (Cochran 1977,
    section 2.5).

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
