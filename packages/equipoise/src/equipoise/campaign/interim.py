"""Interim analysis: decides after each block whether the campaign stops, and what runs next.

The number of analyses does not change the error rate (docs/methods/interval.md). A kind of campaign
may have its own interim analysis: `CampaignKind`.
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
from equipoise.stats.verdict import ComparisonVerdict, blocks_to_go, is_precise, judge
from equipoise.stats.verdict import earliest_block as earliest_verdict_block

DIFFERENCE_VERDICTS = ("faster", "slower", "mixed")
"""Verdicts by which two conditions differ."""
DESCRIBED_CONDITION = 0
"""Index of the only condition of a campaign in which nothing is compared."""


def required_blocks(plan: Plan, stopping: Stopping) -> int:
    """Return the minimum number of blocks of a campaign, by ``--min-blocks`` and ``--tail``."""
    if stopping.tail is None:
        return stopping.min_blocks
    return max(stopping.min_blocks, blocks_to_show(stopping.tail / 100.0, plan.judgement.alpha))


class _RunningComparison(Struct, frozen=True):
    """A comparison on one metric, with its blocks so far."""

    contrast: Contrast
    metric: str
    plan: Plan
    """Plan of the campaign. If two candidates are compared, the plan has no control."""
    paired_blocks: PairedBlocks
    layouts: list[int] = []
    """Layout number of each block; empty if the plan has no layouts."""


def _empty_comparison(contrast: Contrast, metric: str, plan: Plan) -> _RunningComparison:
    paired_blocks = PairedBlocks(resolution=Resolution(QUANTA.get(metric)))
    return _RunningComparison(contrast, metric, plan, paired_blocks)


class InterimVerdict(Struct, frozen=True):
    """Verdict of one comparison after an analysis."""

    verdict: ComparisonVerdict
    is_answer: bool
    """Whether the verdict answers the question of the campaign."""


ANALYSE_EVERY_BLOCK = 256
"""Number of blocks up to which an analysis follows each block. With thousands of blocks, an
analysis after each block would use up the budget, because its time grows with their number."""
GROWTH_DIVISOR = 64
"""From `ANALYSE_EVERY_BLOCK` on, each analysis has 1/64 more blocks than the previous analysis."""
SIZE_SECONDS_FACTOR = 5.0
"""Maximum seconds to learn the size of a large effect, as a multiple of ``--min-seconds``."""


def latest_analysis_block(block: int) -> int:
    """Return the last block, up to ``block``, after which a campaign is analysed.

    The result depends only on ``block``. So a resumed campaign is analysed after the same blocks as
    a campaign without interruption.
    """
    latest = min(block, ANALYSE_EVERY_BLOCK)
    while block > ANALYSE_EVERY_BLOCK and latest + latest // GROWTH_DIVISOR <= block:
        latest += latest // GROWTH_DIVISOR
    return latest


class InterimAnalysis(Judge):
    """Judges a campaign with comparisons, by the rule that its result uses."""

    def __init__(self, plan: Plan, stopping: Stopping) -> None:
        self.plan = plan
        self._stopping = stopping
        self._metrics = self.compared_metrics(plan)
        self._comparisons = tuple(
            _empty_comparison(contrast, metric, plan)
            for contrast in plan.contrasts
            for metric in self._metrics
        )
        self._is_about_layouts = bool(plan.layouts)
        self._resolutions: dict[str, Resolution] = {}
        self._block_count = 0
        self._seconds = 0.0
        self._verdicts: tuple[InterimVerdict, ...] = ()
        metric, plan_without_control = plan.judgement.primary_metric, replace(plan, control=None)
        self._candidate_comparisons = {
            pair: _empty_comparison(Contrast(*pair), metric, plan_without_control)
            for contrasts in plan.ranked_groups
            for pair in candidate_pairs(contrasts)
        }
        self._collect_comparisons()
        self._undecided_pairs: tuple[Pair, ...] = ()
        self._may_restart = may_add_washouts(plan)
        self._has_washouts = False
        self._carry_over = CarryOverTrials(plan)
        self._suspected_pairs: tuple[Pair, ...] = ()
        """Pairs of conditions for which carry-over could explain the whole difference."""
        self._unclear_pairs: tuple[Pair, ...] = ()
        """Pairs of conditions whose orders cannot separate their difference from carry-over yet."""

    def compared_metrics(self, plan: Plan) -> tuple[str, ...]:
        """Return the metrics that decide when the campaign stops."""
        return (plan.judgement.primary_metric,)

    def _collect_comparisons(self) -> None:
        """Collect the comparisons after all or some of them were replaced."""
        by_pair = {comparison.contrast.pair: comparison for comparison in self._comparisons}
        self.paired_blocks = tuple(comparison.paired_blocks for comparison in self._comparisons)
        self._all_comparisons = (*self._comparisons, *self._candidate_comparisons.values())
        self._ranked_groups = tuple(
            ranked_group(
                contrasts,
                lambda contrast: by_pair[contrast.pair].paired_blocks,
                lambda pair: self._candidate_comparisons[pair].paired_blocks,
            )
            for contrasts in self.plan.ranked_groups
        )

    def _restart(self, block: tuple[Trial, ...]) -> None:
        """Drop all blocks so far of the comparisons in ``block``, the first with washouts."""
        restarting = restarted_conditions(self.plan, [trial.condition for trial in block])

        def restart(comparison: _RunningComparison) -> _RunningComparison:
            if restarting.isdisjoint(comparison.contrast.pair):
                return comparison
            return _empty_comparison(comparison.contrast, comparison.metric, comparison.plan)

        self._comparisons = tuple(restart(comparison) for comparison in self._comparisons)
        self._candidate_comparisons = {
            pair: restart(comparison) for pair, comparison in self._candidate_comparisons.items()
        }
        self._collect_comparisons()
        # Count blocks from 0, so that an analysis follows each of the next blocks.
        self._has_washouts, self._block_count, self._verdicts = True, 0, ()
        self._suspected_pairs, self._unclear_pairs = (), ()

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block without an analysis."""
        if self._may_restart and not self._has_washouts and is_washout_block(block):
            self._restart(block)
        costs_by_metric = {metric: read_block(block, self.plan, metric) for metric in self._metrics}
        for metric, block_costs in costs_by_metric.items():
            if block_costs.resolution is not None:
                self._resolutions.setdefault(metric, block_costs.resolution)
        for comparison in self._all_comparisons:
            if comparison.metric in self._resolutions:
                comparison.paired_blocks.set_resolution(self._resolutions[comparison.metric])
            block_costs = costs_by_metric[comparison.metric]
            add_block(comparison.paired_blocks, block_costs, comparison.contrast, comparison.plan)
            if self._is_about_layouts and len(comparison.paired_blocks) > len(comparison.layouts):
                comparison.layouts.append(layout_of_block(self.plan, "measured", block[0].block))
        if self._may_restart and not self._has_washouts:
            primary_costs = costs_by_metric[self.plan.judgement.primary_metric].costs
            order = (trial.condition for trial in block)
            self._carry_over.add(block[0].block, order, primary_costs)
        self._block_count += 1
        self._seconds += block_seconds(block)

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the status of each comparison, from the latest analysis that is due."""
        if not self._verdicts or self._block_count == latest_analysis_block(self._block_count):
            self._verdicts = self.interim_verdicts()
            self._undecided_pairs = self._find_undecided_pairs()
            self._check_carry_over()
        names = [condition.name for condition in self.plan.conditions]
        return tuple(
            ComparisonStatus(
                names[comparison.contrast.candidate]
                if len(self._metrics) == 1
                else f"{names[comparison.contrast.candidate]}: {comparison.metric}",
                interim.verdict.verdict,
                interim.verdict.ratio,
                interim.verdict.ratio_ci,
                baseline=names[comparison.contrast.baseline],
                blocks=interim.verdict.blocks,
                metric=comparison.metric,
                more_is_better=comparison.metric in self._resolutions
                and self._resolutions[comparison.metric].more_is_better,
            )
            for comparison, interim in zip(self._comparisons, self._verdicts, strict=True)
        )

    def _check_carry_over(self) -> None:
        """Check before the first washout whether carry-over could explain an answer."""
        if not self._may_restart or self._has_washouts:
            return
        suspected, unclear = [], []
        for comparison, interim in zip(self._comparisons, self._verdicts, strict=True):
            verdict = interim.verdict
            if verdict.verdict not in DIFFERENCE_VERDICTS or not self._is_answered(interim):
                continue
            fitted = self._carry_over.fit(comparison.contrast)
            direction = 1.0 if (verdict.typical or 0.0) > 0 else -1.0
            if fitted is None:
                unclear.append(comparison.contrast.pair)
            elif fitted.explainable_part(direction) == "all":
                suspected.append(comparison.contrast.pair)
        self._suspected_pairs, self._unclear_pairs = tuple(suspected), tuple(unclear)

    def interim_verdicts(self) -> tuple[InterimVerdict, ...]:
        """Return the verdict of each comparison on the blocks so far."""
        judgement = self.plan.judgement
        min_effect, alpha = judgement.min_effect, judgement.alpha
        if self._is_about_layouts:
            verdicts = judge_across_layouts(
                self.paired_blocks,
                [comparison.layouts for comparison in self._comparisons],
                layout_count=len(self.plan.layouts),
                min_effect=min_effect,
                alpha=alpha,
            )
        else:
            verdicts = judge(self.paired_blocks, min_effect=min_effect, alpha=alpha)
        return tuple(
            InterimVerdict(verdict, verdict.verdict != "undecided") for verdict in verdicts
        )

    def _find_undecided_pairs(self) -> tuple[Pair, ...]:
        """Return the pairs of contenders that must be decided before the fastest is known."""
        judgement, min_blocks = self.plan.judgement, self._stopping.min_blocks
        min_effect, alpha = judgement.min_effect, judgement.alpha
        contenders_of_groups = [
            (group, contenders_of(group, min_effect, alpha, min_blocks=min_blocks))
            for group in self._ranked_groups
        ]
        if all(len(contenders) < 2 for _, contenders in contenders_of_groups):
            return ()
        verdict_by_pair = {
            comparison.contrast.pair: interim.verdict.verdict
            for comparison, interim in zip(self._comparisons, self._verdicts, strict=True)
        }
        candidate_verdicts = judge_candidates(self._ranked_groups, min_effect, alpha)
        verdict_by_pair |= {
            pair: candidate_verdict.verdict
            for pair, candidate_verdict in candidate_verdicts.items()
            if candidate_verdict.blocks >= min_blocks
        }
        return tuple(
            pair
            for group, contenders in contenders_of_groups
            for pair in open_pairs(group, contenders, verdict_by_pair)
        )

    @property
    def has_measured_enough(self) -> bool:
        """Whether the blocks took at least the seconds of ``--min-seconds``."""
        return self._seconds >= self._stopping.min_seconds

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Return the reason to stop; ``None`` if another block is needed."""
        if self._suspected_pairs or self._unclear_pairs or not self._is_fully_answered():
            return None
        return "verdict" if self._stopping.precision is None else "precision"

    def runs_washouts(self) -> bool:
        """Return whether the next block has washouts.

        Washouts begin once all questions are answered, carry-over could explain an answer, and the
        orders can separate each difference from carry-over.
        """
        return self._has_washouts or (
            bool(self._suspected_pairs) and not self._unclear_pairs and self._is_fully_answered()
        )

    def _is_fully_answered(self) -> bool:
        """Return whether every question is answered; carry-over may still explain an answer."""
        if not self._verdicts or not all(self._is_answered(interim) for interim in self._verdicts):
            return False
        return not self._undecided_pairs

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the conditions that the next block needs.

        By default a block needs all conditions. If the campaign leaves decided conditions out, a
        block needs the conditions of undecided comparisons and undecided pairs of contenders. The
        choice depends only on earlier blocks (docs/methods/several-comparisons.md).
        """
        all_indices = tuple(range(len(self.plan.conditions)))
        leaves_out = self._stopping.leave_out_decided or self.runs_washouts()
        if not leaves_out or not self._verdicts:
            return all_indices
        compared: set[int] = set()
        needed_pairs = (*self._undecided_pairs, *self._unclear_pairs)
        if self.runs_washouts():
            needed_pairs += self._suspected_pairs
        needed: set[int] = {member for pair in needed_pairs for member in pair}
        for comparison, interim in zip(self._comparisons, self._verdicts, strict=True):
            compared.update(comparison.contrast.pair)
            if not self._is_answered(interim):
                needed.update(comparison.contrast.pair)
        control = self.plan.control
        if control is not None and compared:
            # The control runs only if the baseline runs.
            compared.add(control)
            needed |= {control} if self._comparisons[0].contrast.baseline in needed else set()
        return tuple(index for index in all_indices if index in needed or index not in compared)

    def earliest_block(self) -> int:
        """Return the number of the first block after which a verdict is possible."""
        earliest = earliest_verdict_block(
            self.plan.judgement.alpha, max(1, len(self.paired_blocks))
        )
        return max(earliest, required_blocks(self.plan, self._stopping))

    def blocks_to_verdict(self) -> tuple[int, ...]:
        """Forecast how many more blocks would decide each open comparison, if this is possible."""
        judgement = self.plan.judgement
        min_effect, alpha = judgement.min_effect, judgement.alpha
        if self._is_about_layouts:
            return ()
        verdicts = judge(self.paired_blocks, min_effect=min_effect, alpha=alpha)
        forecasts = blocks_to_go(
            self.paired_blocks, verdicts, min_effect=min_effect, alpha=alpha, seed=self.plan.seed
        )
        return tuple(forecast for forecast in forecasts if forecast is not None)

    def _is_answered(self, interim: InterimVerdict) -> bool:
        stopping = self._stopping
        if interim.verdict.blocks < required_blocks(self.plan, stopping) or not interim.is_answer:
            return False
        if not self.has_measured_enough:
            return False
        if stopping.precision is not None:
            return is_precise(interim.verdict, stopping.precision)
        return not self.may_learn_size(interim.verdict)

    def may_learn_size(self, verdict: ComparisonVerdict) -> bool:
        """Return whether a few more seconds may show the size of a large effect.

        At the first verdict, the effect may still be 2 or 10 times. Two more blocks often show the
        size to a tenth.
        """
        ratio = verdict.ratio
        if self._is_about_layouts or verdict.verdict not in DIFFERENCE_VERDICTS:
            return False
        if ratio is None or not reads_as_factor(ratio) or is_known_to_a_tenth(verdict.ratio_ci):
            return False
        # Only blocks after the earliest possible verdict count.
        share_after = 1.0 - self.earliest_block() / max(1, self._block_count)
        return self._seconds * share_after < SIZE_SECONDS_FACTOR * self._stopping.min_seconds


class DescribingAnalysis(Judge):
    """Judges a campaign of one condition, in which nothing is compared.

    The budget ends the campaign. With ``--precision``, the campaign stops once the interval of the
    median is narrow enough. With ``--tail P``, it stops once slow runs that are P % of all runs
    would have appeared.
    """

    def __init__(self, plan: Plan, stopping: Stopping) -> None:
        self.plan = plan
        self._stopping = stopping
        self._sorted_costs: list[float] = []
        self._seconds = 0.0

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block."""
        bisect.insort(self._sorted_costs, read_block(block, self.plan).costs[DESCRIBED_CONDITION])
        self._seconds += block_seconds(block)

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return no status, because nothing is compared."""
        return ()

    def stop_reason(self) -> Literal["precision", "tail"] | None:
        """Return ``precision`` or, without ``--precision``, ``tail``; ``None`` to continue."""
        stopping = self._stopping
        if stopping.precision is None and stopping.tail is None:
            return None
        if len(self._sorted_costs) < self.earliest_block() or self._seconds < stopping.min_seconds:
            return None
        if stopping.precision is None:
            return "tail"
        low, high = median_at_any_stop(self._sorted_costs, self.plan.judgement.alpha)
        if not low or high is None or not math.isfinite(high):
            return None
        return "precision" if 100.0 * (high / low - 1.0) <= stopping.precision else None

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return all conditions of the plan."""
        return tuple(range(len(self.plan.conditions)))

    def earliest_block(self) -> int:
        """Return the number of the first block after which the campaign may stop."""
        return required_blocks(self.plan, self._stopping)


class CampaignKind:
    """Makes the judge of a kind of campaign; by default the judge of a comparison."""

    def judge(self, plan: Plan, stopping: Stopping) -> Judge:
        """Return the judge of a plan; ``stopping`` replaces the limits of the plan."""
        if plan.describes_single_condition:
            return DescribingAnalysis(plan, stopping)
        return self.interim(plan, stopping)

    def interim(self, plan: Plan, stopping: Stopping) -> InterimAnalysis:
        """Return the interim analysis of the comparisons of a plan."""
        return InterimAnalysis(plan, stopping)


def interim_for(plan: Plan, stopping: Stopping) -> InterimAnalysis:
    """Return the interim analysis of the comparisons of a plan of any kind."""
    return plan.kind.part("campaign", CampaignKind).interim(plan, stopping)


def judge_for(plan: Plan, stopping: Stopping) -> Judge:
    """Return the judge of a plan of any kind; ``stopping`` replaces the limits of the plan."""
    return plan.kind.part("campaign", CampaignKind).judge(plan, stopping)
