"""Reports the progress of a campaign to a listener, and forecasts the time of a block."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise.model.plan import Plan
from equipoise.model.quantities import Interval
from equipoise.model.record import CampaignWarning
from equipoise.model.result import Verdict
from equipoise.model.why import Outcome


class ComparisonStatus(Struct, frozen=True):
    """Status of a comparison, an intervention or a search after the latest block."""

    candidate: str
    verdict: Verdict | Outcome
    ratio: float | None
    """Ratio of costs, as in a result."""
    ratio_ci: Interval
    baseline: str = ""
    blocks: int = 0
    """Number of blocks in which both conditions ran."""
    closed_fraction: str = ""
    """Text that replaces the ratio of an intervention: the fraction of the gap that it closes."""
    metric: str = ""
    """Metric of the comparison; empty for an intervention."""
    more_is_better: bool = False
    """Whether more of the metric is better, so that a cost is the inverse of a value."""
    search_status: str = ""
    """Text that replaces the ratio of a search: ``12 of 64 commits are left``."""
    warning: CampaignWarning | None = None
    """Warning that the rest of the budget cannot decide the comparison."""


class CampaignProgress(Struct, frozen=True):
    """Progress of a campaign after a block."""

    blocks: int
    """Number of analysed blocks."""
    elapsed_s: float
    """Spent seconds of the budget."""
    statuses: tuple[ComparisonStatus, ...]


class ProgressListener:
    """Receives the events of a campaign between trials; here, each method does nothing."""

    def segment_started(
        self, run_id: str, plan: Plan, earliest_block: int, blocks_before: int
    ) -> None:
        """Receive the start of a segment; earlier segments have ``blocks_before`` complete blocks.

        The first possible verdict is after ``earliest_block``.
        """

    def trial_ended(self, seconds: float, trial_count: int) -> None:
        """Receive the seconds of a trial and its washout, and the number of trials in the block."""

    def warmed_up(self) -> None:
        """Receive the end of the warm-up trials."""

    def building(self, names: tuple[str, ...]) -> None:
        """Receive the names of the conditions whose build starts."""

    def block_ended(self, progress: CampaignProgress) -> None:
        """Receive the progress after a block is complete and analysed."""

    def trial_running(self) -> None:
        """Receive a signal, about once a second, while a long trial runs."""

    def segment_ended(self) -> None:
        """Receive the end of the segment, whatever its reason."""


def new_warnings(
    statuses: Sequence[ComparisonStatus], shown: set[CampaignWarning]
) -> tuple[CampaignWarning, ...]:
    """Return the warnings of comparisons that are not in ``shown`` yet, and add them to it."""
    warnings = dict.fromkeys(status.warning for status in statuses)
    unseen = tuple(each for each in warnings if each is not None and each not in shown)
    shown.update(unseen)
    return unseen


MAX_EXTRA_BUDGET_SHARE = 0.5
"""Maximum share of the budget that a campaign may add to reach a verdict."""


def blocks_to_near_verdicts(
    forecasts: Sequence[int], block_s: float, budget_s: float
) -> int | None:
    """Return the number of blocks until all near verdicts; ``None`` if no verdict is near.

    ``forecasts`` has the number of blocks that each open comparison probably needs. A verdict is
    near if these blocks take less than `MAX_EXTRA_BUDGET_SHARE` of the budget.
    """
    max_extra_s = MAX_EXTRA_BUDGET_SHARE * budget_s
    return max((blocks for blocks in forecasts if blocks * block_s < max_extra_s), default=None)


MIN_TRIALS = 5
"""Minimum number of ended trials before the time of a block is forecast."""
_STANDARD_ERRORS = 2.0
"""Half the width of a forecast's interval, in standard errors. The interval contains the true time
of 95 % of blocks; of 80 % if trials differ by a factor of 100 (tests/campaign/test_progress.py)."""


class BlockForecast(Struct, frozen=True):
    """Forecast of a block's time, in seconds."""

    block_s: float
    low_s: float
    """Lower bound, never below the elapsed time."""
    high_s: float


def forecast_block(trial_seconds: Sequence[float], trial_count: int) -> BlockForecast | None:
    """Forecast the time of a block from its first trials; ``None`` before `MIN_TRIALS` trials.

    ``trial_seconds`` has the times of the first trials, a random sample of the ``trial_count``
    trials of the block. The standard error is from Cochran (1977, section 2.5).
    """
    ended_count = len(trial_seconds)
    if ended_count < min(MIN_TRIALS, trial_count):
        return None
    block_s = trial_count * float(np.mean(trial_seconds))
    deviation = float(np.std(trial_seconds, ddof=1)) if ended_count > 1 else 0.0
    error_factor = math.sqrt((1.0 - ended_count / trial_count) / ended_count)
    half_width = _STANDARD_ERRORS * trial_count * deviation * error_factor
    low_s = max(sum(trial_seconds), block_s - half_width)
    return BlockForecast(block_s, low_s, block_s + half_width)
