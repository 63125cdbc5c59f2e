"""Interim analysis: after every block of a campaign, at no cost to the error rate.

A kind of campaign may have its own interim analysis: `CampaignKind`.
"""

from __future__ import annotations

import bisect
import math
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from equipoise.campaign.blocks import QUANTA, add_block, block_seconds, read_block
from equipoise.campaign.progress import ComparisonStatus
from equipoise.campaign.segment import Judge
from equipoise.campaign.washouts import (
    CarryOverTrials,
    is_washout_block,
    may_add_washouts,
    restarted_conditions,
)
from equipoise.design.coin import layout_of_block
from equipoise.model.plan import Contrast, Plan, Stopping
from equipoise.model.quantities import is_known_to_a_tenth, reads_as_factor
from equipoise.model.record import Phase, Trial
from equipoise.stats.describe import median_at_any_stop
from equipoise.stats.layouts import judge_across_layouts
from equipoise.stats.ranking import (
    Pair,
    candidate_pairs,
    contenders_of,
    judge_candidates,
    open_pairs,
    ranked_group,
)
from equipoise.stats.resolution import Resolution
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.slow_runs import blocks_to_show
from equipoise.stats.verdict import (
    ComparisonVerdict,
    blocks_to_go,
    is_precise,
    judge,
)
from equipoise.stats.verdict import earliest_block as earliest_possible

CALLS = ("faster", "slower", "mixed")
"""Verdicts that call two conditions different."""
DESCRIBED = 0
"""Condition that is described if
nothing is compared."""


def required_blocks(plan: Plan, stopping: Stopping) -> int:
    """Return the minimum number of blocks of a campaign, by ``--min-blocks`` and ``--tail``."""
    if stopping.tail is None:
        return stopping.min_blocks
    return max(stopping.min_blocks, blocks_to_show(stopping.tail / 100.0, plan.judgement.alpha))


class _RunningComparison(Struct, frozen=True):
    """One comparison on one metric, with its blocks so far."""

    contrast: Contrast
    metric: str
    plan: Plan
    """Plan; without its control if two candidates are compared, which the control does not
    concern."""
    pairs: PairedBlocks
    layouts: list[int] = []
    """Layout of each block, if the verdict concerns layouts in general."""


def _running_comparison(contrast: Contrast, metric: str, plan: Plan) -> _RunningComparison:
    resolution = Resolution(QUANTA.get(metric))
    pairs = PairedBlocks(resolution=resolution)
    return _RunningComparison(contrast, metric, plan, pairs)


class Interim(Struct, frozen=True):
    """Verdict of one comparison after an analysis, and whether its question is answered."""

    judged: ComparisonVerdict
    answered: bool


ANALYSE_EVERY_BLOCK = 256
"""Number of blocks up to which a campaign is analysed after each block. From then on it is analysed
after each growth by 1/64: the time of an analysis is proportional to the number of blocks, and
would use up the budget of thousands of short trials."""
GROWTH = 64
SECONDS_FOR_SIZE = 5.0
"""Maximum seconds of blocks after the earliest verdict for the size of a factor of 2 and more, for
each second of ``--min-seconds``."""


def latest_analysed(block: int) -> int:
    """Return the last block, up to ``block``, after which a campaign is analysed.

    It depends only on the number of blocks, so a resumed campaign is analysed after the same blocks
    as a campaign without interruption.
    """
    latest = min(block, ANALYSE_EVERY_BLOCK)
    while block > ANALYSE_EVERY_BLOCK and latest + latest // GROWTH <= block:
        latest += latest // GROWTH
    return latest


class InterimAnalysis(Judge):
    """The judge of a campaign that compares, by the same rule as the result."""

    def __init__(self, plan: Plan, stopping: Stopping) -> None:
        self.plan = plan
        self._stopping = stopping
        self._metrics = self.compared_metrics(plan)
        self._comparisons = tuple(
            _running_comparison(contrast, metric, plan)
            for contrast in plan.contrasts
            for metric in self._metrics
        )
        self._across_layouts = bool(plan.layouts)
        self._resolutions: dict[str, Resolution] = {}
        self._blocks = 0
        self._seconds = 0.0
        self._latest: tuple[Interim, ...] = ()
        # The ranking uses the primary metric.
        metric, without_control = plan.judgement.primary_metric, replace(plan, control=None)
        self._among_candidates = {
            pair: _running_comparison(Contrast(*pair), metric, without_control)
            for contrasts in plan.ranked_groups
            for pair in candidate_pairs(contrasts)
        }
        self._collect_pairs()
        self._open_race: tuple[Pair, ...] = ()
        self._may_restart = may_add_washouts(plan)
        self._has_washouts = False
        self._carry_over = CarryOverTrials(plan)
        self._suspected: tuple[Pair, ...] = ()
        self._unclear: tuple[Pair, ...] = ()

    def compared_metrics(self, plan: Plan) -> tuple[str, ...]:
        """Return the metrics that decide."""
        return (plan.judgement.primary_metric,)

    def _collect_pairs(self) -> None:
        """Collect the pairs of all comparisons for the verdicts and for the ranking."""
        with_baseline = {comparison.contrast.pair: comparison for comparison in self._comparisons}
        self.pairs = tuple(comparison.pairs for comparison in self._comparisons)
        self._every_pair = (*self._comparisons, *self._among_candidates.values())
        self._ranked = tuple(
            ranked_group(
                contrasts,
                lambda contrast: with_baseline[contrast.pair].pairs,
                lambda pair: self._among_candidates[pair].pairs,
            )
            for contrasts in self.plan.ranked_groups
        )

    def _restart(self, block: tuple[Trial, ...]) -> None:
        """Restart the bets of the comparisons in the first block with washouts."""
        left_out = restarted_conditions(self.plan, [trial.condition for trial in block])

        def restarted(comparison: _RunningComparison) -> _RunningComparison:
            if left_out.isdisjoint(comparison.contrast.pair):
                return comparison
            return _running_comparison(comparison.contrast, comparison.metric, comparison.plan)

        self._comparisons = tuple(restarted(comparison) for comparison in self._comparisons)
        self._among_candidates = {
            pair: restarted(comparison) for pair, comparison in self._among_candidates.items()
        }
        self._collect_pairs()
        # Analyses follow each of the first blocks again, as at the beginning.
        self._has_washouts, self._blocks, self._latest = True, 0, ()
        self._suspected, self._unclear = (), ()

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block without an analysis."""
        if self._may_restart and not self._has_washouts and is_washout_block(block):
            self._restart(block)
        read = {metric: read_block(block, self.plan, metric) for metric in self._metrics}
        for metric, costs in read.items():
            if costs.resolution is not None:
                self._resolutions.setdefault(metric, costs.resolution)
        for comparison in self._every_pair:
            if comparison.metric in self._resolutions:
                comparison.pairs.set_resolution(self._resolutions[comparison.metric])
            add_block(
                comparison.pairs, read[comparison.metric], comparison.contrast, comparison.plan
            )
            if self._across_layouts and len(comparison.pairs) > len(comparison.layouts):
                comparison.layouts.append(layout_of_block(self.plan, "measured", block[0].block))
        if self._may_restart and not self._has_washouts:
            primary = read[self.plan.judgement.primary_metric]
            order = (trial.condition for trial in block)
            self._carry_over.add(block[0].block, order, primary.costs)
        self._blocks += 1
        self._seconds += block_seconds(block)

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the status of each comparison, after a new analysis if one is due."""
        if not self._latest or self._blocks == latest_analysed(self._blocks):
            self._latest = self.judged()
            self._open_race = self._open_pairs()
            self._suspect_carry_over()
        names = [condition.name for condition in self.plan.conditions]
        return tuple(
            ComparisonStatus(
                names[comparison.contrast.candidate]
                if len(self._metrics) == 1
                else f"{names[comparison.contrast.candidate]}: {comparison.metric}",
                interim.judged.verdict,
                interim.judged.ratio,
                interim.judged.ratio_ci,
                baseline=names[comparison.contrast.baseline],
                blocks=interim.judged.blocks,
                metric=comparison.metric,
                more_is_better=comparison.metric in self._resolutions
                and self._resolutions[comparison.metric].more_is_better,
            )
            for comparison, interim in zip(self._comparisons, self._latest, strict=True)
        )

    def _suspect_carry_over(self) -> None:
        """Find differences that carry-over could explain, at the stop and before any washout."""
        if not self._may_restart or self._has_washouts:
            return
        suspected, unclear = [], []
        for comparison, interim in zip(self._comparisons, self._latest, strict=True):
            judged = interim.judged
            if judged.verdict not in CALLS or not self._is_answered(interim):
                continue
            fit = self._carry_over.fit(comparison.contrast)
            side = 1.0 if (judged.typical or 0.0) > 0 else -1.0
            if fit is None:
                unclear.append(comparison.contrast.pair)
            elif fit.could_make(side) == "all":
                suspected.append(comparison.contrast.pair)
        self._suspected, self._unclear = tuple(suspected), tuple(unclear)

    def judged(self) -> tuple[Interim, ...]:
        """Return the verdict of each comparison on the blocks so far."""
        judgement = self.plan.judgement
        effect, alpha = judgement.min_effect, judgement.alpha
        if self._across_layouts:
            layouts, count = (
                [comparison.layouts for comparison in self._comparisons],
                len(self.plan.layouts),
            )
            judged = judge_across_layouts(
                self.pairs, layouts, count=count, min_effect=effect, alpha=alpha
            )
        else:
            judged = judge(self.pairs, min_effect=effect, alpha=alpha)
        return tuple(Interim(judgement, judgement.verdict != "undecided") for judgement in judged)

    def _open_pairs(self) -> tuple[Pair, ...]:
        """Return the open pairs of contenders in all ranked groups."""
        judgement, least = self.plan.judgement, self._stopping.min_blocks
        effect, alpha = judgement.min_effect, judgement.alpha
        races = [
            (group, contenders_of(group, effect, alpha, min_blocks=least)) for group in self._ranked
        ]
        if all(len(contenders) < 2 for _, contenders in races):
            return ()
        compared = zip(self._comparisons, self._latest, strict=True)
        verdicts = {
            comparison.contrast.pair: interim.judged.verdict for comparison, interim in compared
        }
        judged = judge_candidates(self._ranked, effect, alpha)
        verdicts |= {
            pair: judgement.verdict
            for pair, judgement in judged.items()
            if judgement.blocks >= least
        }
        return tuple(
            pair for group, contenders in races for pair in open_pairs(group, contenders, verdicts)
        )

    @property
    def has_measured_enough(self) -> bool:
        """Whether the blocks have taken the minimum time before a verdict."""
        return self._seconds >= self._stopping.min_seconds

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Return the reason why no further block is needed; ``None`` while one is."""
        if self._suspected or self._unclear or not self._has_ended():
            return None
        return "verdict" if self._stopping.precision is None else "precision"

    def runs_washouts(self) -> bool:
        """Return whether the next block has washouts.

        It has washouts if all questions are answered and carry-over could explain an answer. While
        the orders so far cannot separate a difference from carry-over, it gets ordinary blocks.
        """
        return self._has_washouts or (
            bool(self._suspected) and not self._unclear and self._has_ended()
        )

    def _has_ended(self) -> bool:
        """Return whether every question is answered, without regard to carry-over."""
        if not self._latest or not all(self._is_answered(interim) for interim in self._latest):
            return False
        return not self._open_race

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the conditions that the next block needs.

        These are all conditions, unless decided conditions are left out. A condition is left out if
        its comparisons with the baseline are decided and, with a ranking, no open pair of
        contenders needs it. The choice depends only on the earlier blocks. So each pair's coin
        stays fair given the past, its interval and its e-value hold, and a resumed campaign
        continues in the same way (docs/methods/several-comparisons.md).
        """
        all_places = tuple(range(len(self.plan.conditions)))
        leaves_out = self._stopping.leave_out_decided or self.runs_washouts()
        if not leaves_out or not self._latest:
            return all_places
        compared: set[int] = set()
        open_pairs = (*self._open_race, *self._unclear)
        if self.runs_washouts():
            open_pairs += self._suspected
        needed: set[int] = {member for pair in open_pairs for member in pair}
        for comparison, interim in zip(self._comparisons, self._latest, strict=True):
            compared.update(comparison.contrast.pair)
            if not self._is_answered(interim):
                needed.update(comparison.contrast.pair)
        control = self.plan.control
        if control is not None and compared:
            # The control runs only together with the baseline.
            compared.add(control)
            needed |= {control} if self._comparisons[0].contrast.baseline in needed else set()
        return tuple(i for i in all_places if i in needed or i not in compared)

    def earliest_block(self) -> int:
        """Return the number of the first block after which a verdict is possible."""
        earliest = earliest_possible(self.plan.judgement.alpha, max(1, len(self.pairs)))
        return max(earliest, required_blocks(self.plan, self._stopping))

    def blocks_to_verdict(self) -> tuple[int, ...]:
        """Forecast how many more blocks would decide each open comparison.

        Comparisons without a forecast and those across layouts are left out.
        """
        judgement = self.plan.judgement
        effect, alpha = judgement.min_effect, judgement.alpha
        if self._across_layouts:
            return ()
        judged = judge(self.pairs, min_effect=effect, alpha=alpha)
        forecasts = blocks_to_go(
            self.pairs, judged, min_effect=effect, alpha=alpha, seed=self.plan.seed
        )
        return tuple(forecast for forecast in forecasts if forecast is not None)

    def _is_answered(self, interim: Interim) -> bool:
        stopping = self._stopping
        if interim.judged.blocks < required_blocks(self.plan, stopping) or not interim.answered:
            return False
        if not self.has_measured_enough:
            return False
        if stopping.precision is not None:
            return is_precise(interim.judged, stopping.precision)
        return not self.measures_size(interim.judged)

    def measures_size(self, judged: ComparisonVerdict) -> bool:
        """Return whether a few more seconds may show the size of a called factor.

        After the first verdict on a large effect its size may be 2 or 10 times; two more blocks
        often determine it to a tenth. The seconds count from the first block that allows a verdict,
        so that a resumed campaign ends after the same block.
        """
        ratio = judged.ratio
        if self._across_layouts or judged.verdict not in CALLS:
            return False
        if ratio is None or not reads_as_factor(ratio) or is_known_to_a_tenth(judged.ratio_ci):
            return False
        since_earliest = 1.0 - self.earliest_block() / max(1, self._blocks)
        return self._seconds * since_earliest < SECONDS_FOR_SIZE * self._stopping.min_seconds


class DescribingAnalysis(Judge):
    """The judge of a campaign of one condition: nothing is compared, and the budget ends it.

    With ``--precision`` it stops earlier, when the interval of the median is narrow enough; with
    ``--tail``, when slow runs of that share would have appeared.
    """

    def __init__(self, plan: Plan, stopping: Stopping) -> None:
        self.plan = plan
        self._stopping = stopping
        self._ordered: list[float] = []
        self._seconds = 0.0

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block."""
        bisect.insort(self._ordered, read_block(block, self.plan).costs[DESCRIBED])
        self._seconds += block_seconds(block)

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return nothing: no two conditions are compared."""
        return ()

    def stop_reason(self) -> Literal["precision", "tail"] | None:
        """Return ``precision`` once the interval is narrow enough, with ``--precision``.

        Return ``tail`` once there are enough runs, with ``--tail`` alone.
        """
        stopping = self._stopping
        if stopping.precision is None and stopping.tail is None:
            return None
        if len(self._ordered) < self.earliest_block() or self._seconds < stopping.min_seconds:
            return None
        if stopping.precision is None:
            return "tail"
        low, high = median_at_any_stop(self._ordered, self.plan.judgement.alpha)
        if not low or high is None or not math.isfinite(high):
            return None
        return "precision" if 100.0 * (high / low - 1.0) <= stopping.precision else None

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return every condition: the described condition and its control."""
        return tuple(range(len(self.plan.conditions)))

    def earliest_block(self) -> int:
        """Return the number of the first block after which the campaign may stop."""
        return required_blocks(self.plan, self._stopping)


class CampaignKind:
    """Conduct of a campaign; the methods here are those of an ordinary comparison."""

    def judge(self, plan: Plan, stopping: Stopping) -> Judge:
        """Return the judge of a plan under its own or later limits."""
        if plan.describes_one:
            return DescribingAnalysis(plan, stopping)
        return self.interim(plan, stopping)

    def interim(self, plan: Plan, stopping: Stopping) -> InterimAnalysis:
        """Return the interim analysis of the comparisons of a plan."""
        return InterimAnalysis(plan, stopping)


def interim_for(plan: Plan, stopping: Stopping) -> InterimAnalysis:
    """Return the interim analysis of the comparisons of a plan of any kind."""
    return plan.kind.part("campaign", CampaignKind).interim(plan, stopping)


def judge_for(plan: Plan, stopping: Stopping) -> Judge:
    """Return the judge of a plan of any kind under its own or later limits."""
    return plan.kind.part("campaign", CampaignKind).judge(plan, stopping)
