"""The judge of a campaign of one condition: nothing is compared, and its budget ends it.

With ``--precision`` it stops before, when the interval of the median is narrow enough.
"""

from __future__ import annotations

import bisect
import math
from typing import Literal

from equipoise.campaign.blocks import block_seconds, read_block
from equipoise.campaign.interim import InterimAnalysis
from equipoise.campaign.progress import ComparisonStatus
from equipoise.campaign.segment import Judge
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import Phase, Trial
from equipoise.stats.describe import median_at_any_stop

DESCRIBED = 0
"""The condition that is described."""


def judge_for(plan: Plan, stopping: Stopping) -> Judge:
    """Return the judge of a plan under its own or later limits."""
    if plan.describes_one:
        return DescribingAnalysis(plan, stopping)
    return InterimAnalysis(plan, stopping)


class DescribingAnalysis:
    """The judge of a campaign of one condition: the same interval as in the result afterwards."""

    def __init__(self, plan: Plan, stopping: Stopping) -> None:
        self._plan = plan
        self._stopping = stopping
        self._ordered: list[float] = []
        self._seconds = 0.0

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block."""
        bisect.insort(self._ordered, read_block(block, self._plan).costs[DESCRIBED])
        self._seconds += block_seconds(block)

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return nothing: no two conditions are compared."""
        return ()

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Return ``precision`` once the interval is narrow enough, if that is asked for."""
        stopping = self._stopping
        if stopping.precision is None or len(self._ordered) < stopping.min_blocks:
            return None
        if self._seconds < stopping.min_seconds:
            return None
        low, high = median_at_any_stop(self._ordered, self._plan.judgement.alpha)
        if not low or high is None or not math.isfinite(high):
            return None
        return "precision" if 100.0 * (high / low - 1.0) <= stopping.precision else None

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return every condition: the one, and its control."""
        return tuple(range(len(self._plan.conditions)))

    def tolerates(self, trial: Trial) -> bool:
        """Return ``False``: without its trials nothing can be told of the condition."""
        return False

    def earliest_block(self) -> int:
        """Return the number of the first block after which the campaign may stop."""
        return self._stopping.min_blocks

    def blocks_to_verdict(self) -> tuple[int, ...]:
        """Return nothing: there is no verdict."""
        return ()
