"""Looking at a campaign while it runs: after every block, at no cost to the error rate."""

from __future__ import annotations

from typing import Literal

from equipoise.campaign.blocks import QUANTA, add_block, read_block
from equipoise.campaign.watch import Standing
from equipoise.model.plan import Plan, Stopping
from equipoise.model.trial import Phase, Trial
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import Judged, Known, is_precise, judge
from equipoise.stats.verdict import earliest_block as earliest_possible


class Look:
    """Judges the blocks as they come, by the same rule as the result afterwards."""

    def __init__(self, plan: Plan, stopping: Stopping) -> None:
        self._plan = plan
        self._stopping = stopping
        quantum = QUANTA.get(plan.judgement.primary_metric, 0.0)
        self._contrasts = plan.contrasts
        self._pairs = tuple(PairedBlocks(quantum=quantum) for _ in self._contrasts)
        self._judged: tuple[Judged, ...] = ()
        self._known: Known = {}

    def add(self, block: tuple[Trial, ...]) -> None:
        """Take one complete block without looking, as when a campaign is read back."""
        read = read_block(block, self._plan)
        for contrast, pairs in zip(self._contrasts, self._pairs, strict=True):
            add_block(pairs, read, contrast, self._plan)

    def standings(self) -> tuple[Standing, ...]:
        """Look: where each comparison stands after the blocks so far."""
        judgement = self._plan.judgement
        self._judged = judge(
            self._pairs,
            min_effect=judgement.min_effect,
            alpha=judgement.alpha,
            known=self._known,
        )
        names = [condition.name for condition in self._plan.conditions]
        return tuple(
            Standing(
                names[contrast.candidate],
                one.verdict,
                one.ratio,
                one.ratio_ci,
                baseline=names[contrast.baseline],
                blocks=one.blocks,
            )
            for contrast, one in zip(self._contrasts, self._judged, strict=True)
        )

    def settled(self) -> Literal["verdict", "precision"] | None:
        """Why no further block is needed, as of the last look; ``None`` while one is."""
        if not self._judged or not all(self._is_settled(one) for one in self._judged):
            return None
        return "verdict" if self._stopping.precision is None else "precision"

    def wanted(self, phase: Phase, block: int) -> tuple[int, ...]:
        """The conditions that this block needs, which comes next, as of the last look.

        All of them, unless what is decided is left out. Which they are depends on the blocks so
        far alone: leaving a pair out is a stopping time of that pair, at which its interval and
        its e-value hold as at any other, and a campaign that is read back goes on alike. A pair
        that got its verdict keeps it: it gets no more blocks, and what is selected with it can
        only grow (docs/statistics.md).
        """
        everything = tuple(range(len(self._plan.conditions)))
        if not self._stopping.leave_out_decided or not self._judged:
            return everything
        compared: set[int] = set()
        needed: set[int] = set() if self._plan.control is None else {self._plan.control}
        for contrast, one in zip(self._contrasts, self._judged, strict=True):
            pair = {contrast.baseline, contrast.candidate}
            compared |= pair
            if not self._is_settled(one):
                needed |= pair
        return tuple(i for i in everything if i in needed or i not in compared)

    def excuses(self, trial: Trial) -> bool:
        """No: without a condition there is no comparison."""
        return False

    def earliest_block(self) -> int:
        """The least number of blocks after which any verdict is possible."""
        return earliest_possible(self._plan.judgement.alpha, max(1, len(self._pairs)))

    def _is_settled(self, one: Judged) -> bool:
        stopping = self._stopping
        if one.blocks < stopping.min_blocks or one.verdict == "undecided":
            return False
        return stopping.precision is None or is_precise(one, stopping.precision)
