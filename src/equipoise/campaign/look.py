"""Looking at a campaign while it runs: after every block, at no cost to the error rate."""

from __future__ import annotations

from typing import Literal

from equipoise.campaign.blocks import QUANTA, add_block
from equipoise.campaign.watch import Standing
from equipoise.model.plan import Plan, Stopping
from equipoise.model.trial import Trial
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import Judged, is_precise, judge
from equipoise.stats.verdict import earliest_block as earliest_possible


class Look:
    """Judges the blocks as they come, by the same rule as the result afterwards."""

    def __init__(self, plan: Plan, stopping: Stopping) -> None:
        self._plan = plan
        self._stopping = stopping
        quantum = QUANTA.get(plan.judgement.primary_metric, 0.0)
        self._pairs = tuple(PairedBlocks(quantum=quantum) for _ in plan.candidates)
        self._judged: tuple[Judged, ...] = ()

    def add(self, block: tuple[Trial, ...]) -> None:
        """Take one complete block without looking, as when a campaign is read back."""
        for candidate, pairs in zip(self._plan.candidates, self._pairs, strict=True):
            add_block(pairs, block, candidate, self._plan)

    def standings(self) -> tuple[Standing, ...]:
        """Look: where each comparison stands after the blocks so far."""
        judgement = self._plan.judgement
        self._judged = judge(self._pairs, min_effect=judgement.min_effect, alpha=judgement.alpha)
        return tuple(
            Standing(self._plan.conditions[index].name, one.verdict, one.ratio, one.ratio_ci)
            for index, one in zip(self._plan.candidates, self._judged, strict=True)
        )

    def settled(self) -> Literal["verdict", "precision"] | None:
        """Why no further block is needed, as of the last look; ``None`` while one is."""
        stopping = self._stopping
        if not self._judged:
            return None
        if len(self._pairs[0]) < stopping.min_blocks:
            return None
        if any(one.verdict == "undecided" for one in self._judged):
            return None
        if stopping.precision is None:
            return "verdict"
        narrow = all(is_precise(one, stopping.precision) for one in self._judged)
        return "precision" if narrow else None

    def earliest_block(self) -> int:
        """The least number of blocks after which any verdict is possible."""
        return earliest_possible(self._plan.judgement.alpha, len(self._pairs))
