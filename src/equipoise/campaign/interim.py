"""Interim analysis: after every block of a campaign, at no cost to the error rate."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from equipoise.campaign.blocks import QUANTA, BlockRead, add_block, block_seconds, read_block
from equipoise.campaign.progress import ComparisonStatus
from equipoise.campaign.segment import Judge
from equipoise.design.coin import layout_of_block
from equipoise.model.plan import Contrast, Plan, Stopping
from equipoise.model.record import Phase, Trial
from equipoise.model.result import Verdict
from equipoise.stats.describe import median_at_any_stop
from equipoise.stats.layouts import judge_across_layouts, judges_across_layouts
from equipoise.stats.ranking import (
    Pair,
    RankedGroup,
    contenders_of,
    judge_candidates,
    open_pairs,
    pair_of,
)
from equipoise.stats.resolution import Resolution
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import (
    ComparisonVerdict,
    blocks_to_go,
    is_precise,
    judge,
    judge_gate,
)
from equipoise.stats.verdict import earliest_block as earliest_possible

DESCRIBED = 0
"""The condition that is described, where nothing is compared."""


def judge_for(plan: Plan, stopping: Stopping) -> Judge:
    """Return the judge of a plan under its own or later limits."""
    if plan.describes_one:
        return DescribingAnalysis(plan, stopping)
    return InterimAnalysis(plan, stopping)


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


class InterimAnalysis(Judge):
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
            PairedBlocks(resolution=Resolution(QUANTA.get(metric)), engine=plan.judgement.engine)
            for _, metric in self._compared
        )
        self._across_layouts = judges_across_layouts(plan)
        self._layouts: tuple[list[int], ...] = tuple([] for _ in self._pairs)
        self._resolutions: dict[str, Resolution] = {}
        self._blocks = 0
        self._seconds = 0.0
        self._latest: tuple[_Interim, ...] = ()
        # A gate compares several metrics, and ranks nothing.
        self._race = _Race(plan, stopping, self._pairs)
        self._open_race: tuple[Pair, ...] = ()

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block without an analysis, as when a campaign is read back."""
        read = {metric: read_block(block, self._plan, metric) for metric in self._metrics}
        for metric, one in read.items():
            if one.resolution is not None:
                self._resolutions.setdefault(metric, one.resolution)
        compared = zip(self._compared, self._pairs, self._layouts, strict=True)
        for (contrast, metric), pairs, layouts in compared:
            if metric in self._resolutions:
                pairs.set_resolution(self._resolutions[metric])
            add_block(pairs, read[metric], contrast, self._plan)
            if self._across_layouts and len(pairs) > len(layouts):
                layouts.append(layout_of_block(self._plan, "measured", block[0].block))
        self._race.add(read, self._resolutions)
        self._blocks += 1
        self._seconds += block_seconds(block)

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the status of each comparison; analyse the blocks anew if that is due."""
        if not self._latest or self._blocks == latest_analysed(self._blocks):
            self._latest = self._judged()
            self._open_race = self._race.open_pairs(
                {
                    (contrast.baseline, contrast.candidate): one.judged.verdict
                    for (contrast, _), one in zip(self._compared, self._latest, strict=True)
                }
            )
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
                metric=metric,
                more_is_better=metric in self._resolutions
                and self._resolutions[metric].more_is_better,
            )
            for (contrast, metric), one in zip(self._compared, self._latest, strict=True)
        )

    def _judged(self) -> tuple[_Interim, ...]:
        judgement = self._plan.judgement
        effect, alpha = judgement.min_effect, judgement.alpha
        if self._plan.gated is None:
            judged = self._judged_pairs(effect, alpha)
            return tuple(_Interim(one, one.verdict != "undecided") for one in judged)
        gated = judge_gate(self._pairs, min_effect=effect, alpha=alpha)
        return tuple(_Interim(one.judged, one.outcome != "undecided") for one in gated)

    def _judged_pairs(self, effect: float, alpha: float) -> tuple[ComparisonVerdict, ...]:
        if not self._across_layouts:
            return judge(self._pairs, min_effect=effect, alpha=alpha)
        count = len(self._plan.layouts)
        return judge_across_layouts(
            self._pairs, self._layouts, count=count, min_effect=effect, alpha=alpha
        )

    @property
    def has_measured_enough(self) -> bool:
        """Whether the blocks have taken the least time before a verdict."""
        return self._seconds >= self._stopping.min_seconds

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Return why no further block is needed; ``None`` while one is."""
        if not self._latest or not all(self._is_answered(one) for one in self._latest):
            return None
        if self._open_race:
            return None
        return "verdict" if self._stopping.precision is None else "precision"

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the conditions that the next block needs.

        All of them, unless decided ones are left out. A condition is left out where its
        comparisons with the baseline are decided and, if a ranking is asked, no open pair of
        contenders for the fastest needs it. The choice depends on the earlier blocks alone. So each
        pair's coin stays fair given the past, its interval and its e-value hold, and a campaign
        that is read back continues alike (docs/statistics.md).
        """
        everything = tuple(range(len(self._plan.conditions)))
        if not self._stopping.leave_out_decided or not self._latest:
            return everything
        compared: set[int] = set()
        needed: set[int] = {member for pair in self._open_race for member in pair}
        for (contrast, _), one in zip(self._compared, self._latest, strict=True):
            pair = {contrast.baseline, contrast.candidate}
            compared |= pair
            if not self._is_answered(one):
                needed |= pair
        control = self._plan.control
        if control is not None and compared:
            # It runs beside the baseline, and only there.
            compared.add(control)
            needed |= {control} if self._compared[0][0].baseline in needed else set()
        return tuple(i for i in everything if i in needed or i not in compared)

    def earliest_block(self) -> int:
        """Return the number of the first block after which a verdict is possible."""
        return earliest_possible(self._plan.judgement.alpha, max(1, len(self._pairs)))

    def blocks_to_verdict(self) -> tuple[int, ...]:
        """Forecast how many more blocks would decide each open comparison.

        Comparisons without a forecast, those at a gate and those across layouts are left out.
        """
        judgement = self._plan.judgement
        effect, alpha = judgement.min_effect, judgement.alpha
        if self._plan.gated is not None or self._across_layouts:
            return ()
        judged = judge(self._pairs, min_effect=effect, alpha=alpha)
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


class _Race:
    """The pairs of each group of conditions among which the fastest is asked.

    Parameters
    ----------
    with_baseline
        Blocks of each contrast of the plan, in their order.
    """

    def __init__(
        self, plan: Plan, stopping: Stopping, with_baseline: Sequence[PairedBlocks]
    ) -> None:
        self._judgement = plan.judgement
        self._min_blocks = stopping.min_blocks
        # The twin of the baseline says nothing of two candidates.
        self._without_control = replace(plan, control=None)
        blocks = dict(zip(map(pair_of, plan.contrasts), with_baseline, strict=False))
        judgement = plan.judgement
        resolution = Resolution(QUANTA.get(judgement.primary_metric))
        self._groups = tuple(
            RankedGroup(
                {pair_of(one): blocks[pair_of(one)] for one in contrasts},
                {
                    pair: PairedBlocks(resolution=resolution, engine=judgement.engine)
                    for pair in itertools.combinations((one.candidate for one in contrasts), 2)
                },
            )
            for contrasts in plan.ranked_groups
        )

    def add(self, read: Mapping[str, BlockRead], resolutions: Mapping[str, Resolution]) -> None:
        """Add one complete block to every pair of candidates; metrics may have resolutions."""
        metric = self._judgement.primary_metric
        for group in self._groups:
            block = read[metric]
            for (baseline, candidate), pairs in group.among_candidates.items():
                if metric in resolutions:
                    pairs.set_resolution(resolutions[metric])
                add_block(pairs, block, Contrast(baseline, candidate), self._without_control)

    def open_pairs(self, with_baseline: Mapping[Pair, Verdict]) -> tuple[Pair, ...]:
        """Return the open pairs of contenders in all groups, given the claims with the baseline."""
        effect, alpha = self._judgement.min_effect, self._judgement.alpha
        races = [
            (group, contenders_of(group, effect, alpha, min_blocks=self._min_blocks))
            for group in self._groups
        ]
        if all(len(contenders) < 2 for _, contenders in races):
            return ()
        judged = judge_candidates(self._groups, effect, alpha)
        among = {
            pair: one.verdict for pair, one in judged.items() if one.blocks >= self._min_blocks
        }
        verdicts = {**with_baseline, **among}
        return tuple(
            pair for group, contenders in races for pair in open_pairs(group, contenders, verdicts)
        )


class DescribingAnalysis(Judge):
    """The judge of a campaign of one condition: nothing is compared, and its budget ends it.

    With ``--precision`` it stops before, when the interval of the median is narrow enough.
    """

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

    def earliest_block(self) -> int:
        """Return the number of the first block after which the campaign may stop."""
        return self._stopping.min_blocks
