"""Interim analysis: after every block of a campaign, at no cost to the error rate."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from equipoise.campaign.blocks import QUANTA, add_block, block_seconds, read_block
from equipoise.campaign.progress import ComparisonStatus
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import Phase, Trial
from equipoise.stats.gate import judge_gate
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import ComparisonVerdict, VerdictCache, blocks_to_go, is_precise, judge
from equipoise.stats.verdict import earliest_block as earliest_possible


class _Interim(Struct, frozen=True):
    """One comparison after an analysis, and whether its question is answered."""

    judged: ComparisonVerdict
    answered: bool


ANALYSE_EVERY_BLOCK = 256
"""Number of blocks up to which a campaign is analysed after each. From then on it is analysed
whenever the blocks have grown by 1/64: an analysis takes as long as there are blocks, and would use
up the budget of a campaign of thousands of short trials."""
GROWTH = 64


def latest_analysed(block: int) -> int:
    """Return the last block, up to this one, after which a campaign is analysed.

    It depends on the number of blocks alone, so a campaign that is read back is analysed after the
    same blocks as one that ran on.
    """
    latest = min(block, ANALYSE_EVERY_BLOCK)
    while block > ANALYSE_EVERY_BLOCK and latest + latest // GROWTH <= block:
        latest += latest // GROWTH
    return latest


class InterimAnalysis:
    """The judge of a campaign that compares: the same rule as in the result afterwards."""

    def __init__(self, plan: Plan, stopping: Stopping) -> None:
        self._plan = plan
        self._stopping = stopping
        gated = plan.gated
        self._metrics = (plan.judgement.primary_metric,) if gated is None else gated.metrics
        self._compared = tuple(
            (contrast, metric) for contrast in plan.contrasts for metric in self._metrics
        )
        self._pairs = tuple(
            PairedBlocks(quantum=QUANTA.get(metric), engine=plan.judgement.engine)
            for _, metric in self._compared
        )
        self._blocks = 0
        self._seconds = 0.0
        self._latest: tuple[_Interim, ...] = ()
        self._known: VerdictCache = {}

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block without an analysis, as when a campaign is read back."""
        read = {metric: read_block(block, self._plan, metric) for metric in self._metrics}
        for (contrast, metric), pairs in zip(self._compared, self._pairs, strict=True):
            add_block(pairs, read[metric], contrast, self._plan)
        self._blocks += 1
        self._seconds += block_seconds(block)

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the status of each comparison; analyse the blocks anew if that is due."""
        if not self._latest or self._blocks == latest_analysed(self._blocks):
            self._latest = self._judged()
        names = [condition.name for condition in self._plan.conditions]
        return tuple(
            ComparisonStatus(
                names[contrast.candidate]
                if len(self._metrics) == 1
                else f"{names[contrast.candidate]}: {metric}",
                one.judged.verdict,
                one.judged.ratio,
                one.judged.ratio_ci,
                baseline=names[contrast.baseline],
                blocks=one.judged.blocks,
            )
            for (contrast, metric), one in zip(self._compared, self._latest, strict=True)
        )

    def _judged(self) -> tuple[_Interim, ...]:
        judgement = self._plan.judgement
        effect, alpha = judgement.min_effect, judgement.alpha
        if self._plan.gated is None:
            judged = judge(self._pairs, min_effect=effect, alpha=alpha, cache=self._known)
            return tuple(_Interim(one, one.verdict != "undecided") for one in judged)
        gated = judge_gate(self._pairs, min_effect=effect, alpha=alpha, cache=self._known)
        return tuple(_Interim(one.judged, one.outcome != "undecided") for one in gated)

    @property
    def has_measured_enough(self) -> bool:
        """Whether the blocks have taken the least time before a verdict."""
        return self._seconds >= self._stopping.min_seconds

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Return why no further block is needed; ``None`` while one is."""
        if not self._latest or not all(self._is_answered(one) for one in self._latest):
            return None
        return "verdict" if self._stopping.precision is None else "precision"

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the conditions that the next block needs.

        All of them, unless decided comparisons are left out. The choice depends on the earlier
        blocks alone. So the end of a pair is a stopping time of that pair, at which its interval
        and its e-value hold as at any other, and a campaign that is read back continues alike. A
        pair keeps its verdict: it gets no more blocks, and the pairs selected with it can only
        become more (docs/statistics.md).
        """
        everything = tuple(range(len(self._plan.conditions)))
        if not self._stopping.leave_out_decided or not self._latest:
            return everything
        compared: set[int] = set()
        needed: set[int] = set() if self._plan.control is None else {self._plan.control}
        for (contrast, _), one in zip(self._compared, self._latest, strict=True):
            pair = {contrast.baseline, contrast.candidate}
            compared |= pair
            if not self._is_answered(one):
                needed |= pair
        return tuple(i for i in everything if i in needed or i not in compared)

    def tolerates(self, trial: Trial) -> bool:
        """Return ``False``: without a condition there is no comparison."""
        return False

    def earliest_block(self) -> int:
        """Return the number of the first block after which a verdict is possible."""
        return earliest_possible(self._plan.judgement.alpha, max(1, len(self._pairs)))

    def blocks_to_verdict(self) -> tuple[int, ...]:
        """Forecast how many more blocks would decide each open comparison.

        Comparisons without a forecast, and those at a gate, are left out.
        """
        judgement = self._plan.judgement
        effect, alpha = judgement.min_effect, judgement.alpha
        if self._plan.gated is not None:
            return ()
        judged = judge(self._pairs, min_effect=effect, alpha=alpha, cache=self._known)
        forecasts = blocks_to_go(
            self._pairs, judged, min_effect=effect, alpha=alpha, seed=self._plan.seed
        )
        return tuple(one for one in forecasts if one is not None)

    def _is_answered(self, one: _Interim) -> bool:
        stopping = self._stopping
        if one.judged.blocks < stopping.min_blocks or not one.answered:
            return False
        if not self.has_measured_enough:
            return False
        return stopping.precision is None or is_precise(one.judged, stopping.precision)
