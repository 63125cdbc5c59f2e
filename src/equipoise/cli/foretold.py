"""How long a study will take: before it begins, and as soon as more is known."""

from __future__ import annotations

from equipoise.campaign.progress import BlockForecast, forecast_block
from equipoise.model.plan import Plan
from equipoise.report.units import waiting_time

WORTH_SAYING_S = 20.0
"""A first block that takes so long is foretold while it runs."""


class Foretold:
    """The time of a study, from the trials of its first block, which may be a warm-up.

    A campaign that goes on has another first block, of the conditions that are still open.

    Parameters
    ----------
    earliest
        The first block after which a verdict is possible.
    blocks_before
        Complete blocks of earlier sittings.
    about_s
        What a block took where the study was written.
    """

    def __init__(
        self, plan: Plan, earliest: int, blocks_before: int, about_s: float | None
    ) -> None:
        self._conditions = len(plan.conditions)
        self._compares = bool(plan.contrasts)
        self._budget_s = plan.stopping.budget_s
        self._blocks = plan.stopping.blocks - blocks_before
        self._earliest = max(1, earliest - blocks_before)
        self._about_s = about_s
        self._seconds: list[float] = []
        self._was_told = False

    @property
    def first_block_s(self) -> float:
        """What the first block took so far."""
        return sum(self._seconds)

    @property
    def first_block_is_over(self) -> bool:
        """Whether every condition had its trial."""
        return len(self._seconds) >= self._conditions

    def before_it_begins(self) -> str:
        """What is known before the first trial."""
        if self._about_s is None:
            until = waiting_time(self._budget_s)
            return (
                f"{self._conditions} conditions, no new block after {until}; how long one takes "
                "is said while the first one runs"
            )
        return (
            f"{self._conditions} conditions, about {waiting_time(self._about_s)} a block where "
            f"the study was written: {self._then(self._about_s)}"
        )

    def trial_ended(self, seconds: float, of: int) -> str | None:
        """Take one of so many trials of the first block, and give what is known where that is due.

        Once while the block runs, if it takes long, and once at its end.
        """
        self._conditions = of
        self._seconds.append(seconds)
        if self.first_block_is_over:
            taken = waiting_time(self.first_block_s)
            return (
                f"{self._conditions} conditions, {taken} a block: {self._then(self.first_block_s)}"
            )
        found = self._forecast()
        if found is None or self._was_told or self.first_block_s < WORTH_SAYING_S:
            return None
        self._was_told = True
        return (
            f"after {found.trials} of {found.conditions} trials: a block takes about "
            f"{waiting_time(found.block_s)} ({waiting_time(found.low_s)} to "
            f"{waiting_time(found.high_s)}); {self._then(found.block_s)}"
        )

    def so_far(self) -> str:
        """Where the first block stands."""
        found = self._forecast()
        words = f"first trials: {len(self._seconds)} of {self._conditions}"
        return words if found is None else f"{words}, about {waiting_time(found.block_s)} in all"

    def _forecast(self) -> BlockForecast | None:
        return forecast_block(self._seconds, self._conditions)

    def _then(self, block_s: float) -> str:
        # The last block begins before the budget is spent.
        end_s = min(self._budget_s + block_s, self._blocks * block_s)
        if not self._compares:
            return f"the end after at most {waiting_time(end_s)}"
        first_s = self._earliest * block_s
        words = f"first verdicts after about {waiting_time(first_s)}"
        if first_s > self._budget_s + block_s:
            return f"{words}, too long for the budget: --budget {2 * first_s:.0f}"
        return f"{words}, the end after at most {waiting_time(end_s)}"
