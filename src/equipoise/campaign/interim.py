"""Looking at a campaign while it runs: after every block, at no cost to the error rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from equipoise.campaign.blocks import QUANTA, add_block, read_block
from equipoise.campaign.progress import Standing
from equipoise.model.plan import Judgement, Plan, Stopping
from equipoise.model.record import Phase, Trial
from equipoise.stats.gate import gauge
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import Judged, Known, is_precise, judge
from equipoise.stats.verdict import earliest_block as earliest_possible


@dataclass(frozen=True, slots=True)
class _Seen:
    """One comparison at a look, and whether what is asked of it is known."""

    judged: Judged
    known: bool


LOOK_AT_EVERY_BLOCK = 256
"""Up to so many blocks; from then on a gate looks whenever they have grown by 1/64. A look takes
as long as there are blocks, and would use up the budget of a gate of thousands of short trials.
When it looks depends on the number of blocks alone, and what was known in between still is."""
GROWTH = 64

_Rule = Callable[[Sequence[PairedBlocks], Judgement, Known], tuple[_Seen, ...]]


class Look:
    """Judges the blocks as they come, by the same rule as the result afterwards."""

    def __init__(self, plan: Plan, stopping: Stopping) -> None:
        self._plan = plan
        self._stopping = stopping
        gated = plan.gated
        self._rule: _Rule = _by_verdict if gated is None else _by_gate
        self._metrics = (plan.judgement.primary_metric,) if gated is None else gated.metrics
        self._asked = tuple(
            (contrast, metric) for contrast in plan.contrasts for metric in self._metrics
        )
        self._pairs = tuple(
            PairedBlocks(quantum=QUANTA.get(metric, 0.0)) for _, metric in self._asked
        )
        self._looks_at_every_block = gated is None
        self._blocks = 0
        self._looked_at = 0
        self._seen: tuple[_Seen, ...] = ()
        self._known: Known = {}

    def add(self, block: tuple[Trial, ...]) -> None:
        """Take one complete block without looking, as when a campaign is read back."""
        read = {metric: read_block(block, self._plan, metric) for metric in self._metrics}
        for (contrast, metric), pairs in zip(self._asked, self._pairs, strict=True):
            add_block(pairs, read[metric], contrast, self._plan)
        self._blocks += 1

    def standings(self) -> tuple[Standing, ...]:
        """Look, if it is time to: where each comparison stands after the blocks so far."""
        if self._is_time_to_look():
            self._seen = self._rule(self._pairs, self._plan.judgement, self._known)
            self._looked_at = self._blocks
        names = [condition.name for condition in self._plan.conditions]
        return tuple(
            Standing(
                names[contrast.candidate]
                if len(self._metrics) == 1
                else f"{names[contrast.candidate]}: {metric}",
                one.judged.verdict,
                one.judged.ratio,
                one.judged.ratio_ci,
                baseline=names[contrast.baseline],
                blocks=one.judged.blocks,
            )
            for (contrast, metric), one in zip(self._asked, self._seen, strict=True)
        )

    def _is_time_to_look(self) -> bool:
        if self._looks_at_every_block or self._blocks <= LOOK_AT_EVERY_BLOCK:
            return True
        return self._blocks >= self._looked_at + self._looked_at // GROWTH

    def settled(self) -> Literal["verdict", "precision"] | None:
        """Why no further block is needed, as of the last look; ``None`` while one is."""
        if not self._seen or not all(self._is_settled(one) for one in self._seen):
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
        if not self._stopping.leave_out_decided or not self._seen:
            return everything
        compared: set[int] = set()
        needed: set[int] = set() if self._plan.control is None else {self._plan.control}
        for (contrast, _), one in zip(self._asked, self._seen, strict=True):
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

    def _is_settled(self, one: _Seen) -> bool:
        stopping = self._stopping
        if one.judged.blocks < stopping.min_blocks or not one.known:
            return False
        return stopping.precision is None or is_precise(one.judged, stopping.precision)


def _by_verdict(
    pairs: Sequence[PairedBlocks], judgement: Judgement, known: Known
) -> tuple[_Seen, ...]:
    judged = judge(pairs, min_effect=judgement.min_effect, alpha=judgement.alpha, known=known)
    return tuple(_Seen(one, one.verdict != "undecided") for one in judged)


def _by_gate(
    pairs: Sequence[PairedBlocks], judgement: Judgement, known: Known
) -> tuple[_Seen, ...]:
    gauged = gauge(pairs, min_effect=judgement.min_effect, alpha=judgement.alpha, known=known)
    return tuple(_Seen(one.judged, one.outcome != "undecided") for one in gauged)
