"""How long a study will take, in sentences: before, during and after its first block."""

from __future__ import annotations

import math

from equipoise.campaign.progress import forecast_block
from equipoise.model.plan import Plan
from equipoise.report.units import waiting_time

MIN_FORECAST_S = 20.0
"""Time of a first block from which it is forecast while it runs."""


class StudyForecast:
    """Forecast of a study's time from the trials of its first block, which may be a warm-up.

    A resumed campaign has another first block, of the conditions that are still open.

    Parameters
    ----------
    earliest
        First block after which a verdict is possible.
    blocks_before
        Number of complete blocks of earlier segments.
    author_block_s
        Seconds of a block where the study was written.
    """

    def __init__(
        self, plan: Plan, earliest: int, blocks_before: int, author_block_s: float | None
    ) -> None:
        self._conditions = len(plan.conditions)
        self._compares = bool(plan.contrasts)
        self._budget_s = plan.stopping.budget_s
        stopping = plan.stopping
        self._blocks = math.inf if stopping.blocks is None else stopping.blocks - blocks_before
        self._before_budget = stopping.blocks_before_budget - blocks_before
        self._earliest = max(1, earliest - blocks_before)
        self._author_block_s = author_block_s
        self._seconds: list[float] = []
        self._was_given = False

    @property
    def first_block_s(self) -> float:
        """Seconds that the first block has taken so far."""
        return sum(self._seconds)

    @property
    def first_block_is_over(self) -> bool:
        """Whether every condition had its trial."""
        return len(self._seconds) >= self._conditions

    def before_it_begins(self) -> str:
        """Return a forecast from the facts that are known before the first trial."""
        if self._author_block_s is None:
            return (
                f"{self._conditions} conditions, no new block after "
                f"{waiting_time(self._budget_s)}; the first block will show how long a block takes"
            )
        return (
            f"{self._conditions} conditions, "
            f"about {waiting_time(self._author_block_s)} a block where "
            f"the study was written: {self._then(self._author_block_s)}"
        )

    def trial_ended(self, seconds: float, of: int) -> str | None:
        """Note a trial of the first block, and return a forecast where one is due.

        A forecast is due once while a long first block runs, and once at its end.

        Parameters
        ----------
        of
            Number of trials of the first block.
        """
        self._conditions = of
        self._seconds.append(seconds)
        if self.first_block_is_over:
            block_s = self.first_block_s
            return f"{of} conditions, {waiting_time(block_s)} a block: {self._then(block_s)}"
        forecast = forecast_block(self._seconds, self._conditions)
        if forecast is None or self._was_given or self.first_block_s < MIN_FORECAST_S:
            return None
        self._was_given = True
        return (
            f"after {len(self._seconds)} of {of} trials: a block takes about "
            f"{waiting_time(forecast.block_s)} ({waiting_time(forecast.low_s)} to "
            f"{waiting_time(forecast.high_s)}); {self._then(forecast.block_s)}"
        )

    def so_far(self) -> str:
        """Return how far the first block is."""
        forecast = forecast_block(self._seconds, self._conditions)
        total = "" if forecast is None else f", about {waiting_time(forecast.block_s)} in all"
        return f"first trials: {len(self._seconds)} of {self._conditions}{total}"

    def _then(self, block_s: float) -> str:
        # The last block begins before the budget is spent.
        budget_s = max(self._budget_s + block_s, self._before_budget * block_s)
        end_s = min(budget_s, self._blocks * block_s)
        end = f"the end after at most {waiting_time(end_s)}"
        if not self._compares:
            return end
        first_s = self._earliest * block_s
        if first_s > budget_s:
            end = f"too long for the budget: --budget {2 * first_s:.0f}"
        return f"first verdicts after about {waiting_time(first_s)}, {end}"
