"""Sentences that forecast how long a study will take.

There are three forecasts: before the first block, during a long first block, and at its end.
"""

from __future__ import annotations

import math

from equipoise.campaign.progress import forecast_block
from equipoise.model.plan import Plan
from equipoise.report.units import waiting_time

MIN_FORECAST_S = 20.0
"""Seconds of the first block after which there is a forecast while the block runs."""


class StudyForecast:
    """Forecast of a study's time, from the trials of its first block.

    The first block may be a warm-up. A resumed campaign has ``blocks_before`` complete blocks; its
    first block is the next. The first verdict is possible after the block ``first_verdict_block``.
    ``author_block_s`` is the time of one block on the machine of the study's author, if known.
    """

    def __init__(
        self, plan: Plan, first_verdict_block: int, blocks_before: int, author_block_s: float | None
    ) -> None:
        self._trial_count = len(plan.conditions)
        self._has_comparisons = bool(plan.contrasts)
        self._budget_s = plan.stopping.budget_s
        stopping = plan.stopping
        self._max_blocks = math.inf if stopping.blocks is None else stopping.blocks - blocks_before
        self._min_blocks = stopping.blocks_before_budget - blocks_before
        self._blocks_before_verdict = max(1, first_verdict_block - blocks_before)
        self._author_block_s = author_block_s
        self._trial_seconds: list[float] = []
        self._gave_early_forecast = False

    @property
    def first_block_s(self) -> float:
        """Seconds that the first block has taken so far."""
        return sum(self._trial_seconds)

    @property
    def first_block_is_over(self) -> bool:
        """Whether all trials of the first block have ended."""
        return len(self._trial_seconds) >= self._trial_count

    def initial_forecast(self) -> str:
        """Return the forecast before the first trial."""
        if self._author_block_s is None:
            return (
                f"{self._trial_count} conditions, no new block after "
                f"{waiting_time(self._budget_s)}; the first block will show how long a block takes"
            )
        return (
            f"{self._trial_count} conditions, "
            f"about {waiting_time(self._author_block_s)} a block on the machine of the study's "
            f"author: {self._milestones(self._author_block_s)}"
        )

    def trial_ended(self, seconds: float, trial_count: int) -> str | None:
        """Record a trial of the first block, which has ``trial_count`` trials.

        Return a forecast, or ``None`` if there is no new forecast.
        """
        self._trial_count = trial_count
        self._trial_seconds.append(seconds)
        if self.first_block_is_over:
            block_s = self.first_block_s
            milestones = self._milestones(block_s)
            return f"{trial_count} conditions, {waiting_time(block_s)} a block: {milestones}"
        forecast = forecast_block(self._trial_seconds, self._trial_count)
        if forecast is None or self._gave_early_forecast or self.first_block_s < MIN_FORECAST_S:
            return None
        self._gave_early_forecast = True
        return (
            f"after {len(self._trial_seconds)} of {trial_count} trials: a block takes about "
            f"{waiting_time(forecast.block_s)} ({waiting_time(forecast.low_s)} to "
            f"{waiting_time(forecast.high_s)}); {self._milestones(forecast.block_s)}"
        )

    def first_block_progress(self) -> str:
        """Return the number of ended trials of the first block, and the forecast of its time."""
        forecast = forecast_block(self._trial_seconds, self._trial_count)
        total = "" if forecast is None else f", about {waiting_time(forecast.block_s)} in all"
        return f"first trials: {len(self._trial_seconds)} of {self._trial_count}{total}"

    def _milestones(self, block_s: float) -> str:
        """Return when the first verdicts and the end are expected, if a block takes ``block_s``."""
        # The last block may begin just before the budget is spent, so its time is added.
        budget_s = max(self._budget_s + block_s, self._min_blocks * block_s)
        end_s = min(budget_s, self._max_blocks * block_s)
        end_phrase = f"the end after at most {waiting_time(end_s)}"
        if not self._has_comparisons:
            return end_phrase
        first_verdict_s = self._blocks_before_verdict * block_s
        if first_verdict_s > budget_s:
            end_phrase = f"too long for the budget: add --budget {2 * first_verdict_s:.0f}"
        return f"first verdicts after about {waiting_time(first_verdict_s)}, {end_phrase}"
