"""Decide a gate, during the campaign and at its end, and forecast how many blocks it needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise._native import BettingSequence
from equipoise.campaign.interim import CampaignKind, InterimAnalysis, InterimVerdict
from equipoise.kinds.gate.terms import GateOutcome, GatePlan
from equipoise.model.plan import Plan, Stopping
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import (
    FORECAST_GROWTH,
    MAX_FORECAST_BLOCKS,
    MIN_CONTINUATIONS,
    MIN_FORECAST_BLOCKS,
    ComparisonVerdict,
    blocks_to_win,
    equivalence_level,
    judge_function,
    margin_of,
    select_most,
)

CONTINUATIONS = 20
"""Number of simulated continuations of the campaign that forecast one undecided comparison."""
MAX_CONTINUATIONS = 200
"""Maximum for all undecided comparisons together; each still has at least `MIN_CONTINUATIONS`."""
MIN_BLOCKS_OF_SPREAD = 4
"""Minimum number of blocks for an estimate of the spread; with fewer, the forecast is a bound."""


class GateDecision(Struct, frozen=True):
    """Outcome of one comparison of a gate, and the verdict with the interval that decided it."""

    outcome: GateOutcome
    verdict: ComparisonVerdict


def judge_gate(
    comparisons: Sequence[PairedBlocks], *, min_effect: float, alpha: float
) -> tuple[GateDecision, ...]:
    """Decide for each candidate whether it is slower by more than the smallest effect that matters.

    A candidate fails if its whole interval is beyond the effect. R of K comparisons fail: R is the
    largest number for which R comparisons fail at level alpha·R/K. The null hypothesis of a
    comparison is that the candidate is slower by at most the effect. At level alpha·R/K, a failure
    means an e-value of at least K/(alpha·R) against this hypothesis. So the rule is e-BH (Wang and
    Ramdas 2022): the expected share of false failures is at most alpha. If no candidate is too
    slow, the chance that any fails is at most alpha. The passes are selected in the same way. While
    other comparisons get more blocks, R can only grow, so a comparison keeps its outcome.

    A failure uses one side of the interval at alpha, and a pass uses the other side at alpha. A
    candidate whose mean cost exceeds the baseline's by more than the effect does not pass, even if
    its typical run does: it stays undecided.

    Parameters and errors are those of `equipoise.stats.verdict.judge`.
    """
    verdicts_at, margin = judge_function(comparisons, min_effect, alpha), margin_of(min_effect)
    count = len(comparisons)

    def is_slower(verdict: ComparisonVerdict) -> bool:
        return verdict.equivalence_low > margin

    def passes_gate(verdict: ComparisonVerdict) -> bool:
        return verdict.equivalence_high <= margin and verdict.ln_mean_ratio <= margin

    slower = select_most(verdicts_at, is_slower, alpha, count)
    passing = select_most(verdicts_at, passes_gate, alpha, count)
    undecided = verdicts_at(alpha / count) if count else []
    return tuple(
        GateDecision("slower", slower[index])
        if index in slower
        else GateDecision("passes", passing[index])
        if index in passing
        else GateDecision("undecided", verdict)
        for index, verdict in enumerate(undecided)
    )


class GateForecast(Struct, frozen=True):
    """Forecast for one undecided comparison of a gate."""

    blocks: int
    """Number of blocks that the comparison needs, including the measured blocks."""
    is_lower_bound: bool
    """Whether ``blocks`` is only the minimum that any comparison needs."""


def forecast_gate(
    comparisons: Sequence[PairedBlocks],
    decisions: Sequence[GateDecision],
    *,
    min_effect: float,
    alpha: float,
    seed: int,
) -> tuple[GateForecast | None, ...]:
    """Forecast how many blocks each undecided comparison of a gate needs in all.

    The forecast is the median over simulated continuations of the campaign. A continuation draws
    measured blocks again, in new random orders, so the forecast treats the present estimate as the
    truth. A decided comparison has no forecast. There is none either if half of the continuations
    are still undecided after 20 times the blocks so far (at least 200, at most 4000 more): the
    estimate is then close to the smallest effect that matters. ``decisions`` are those of
    ``judge_gate`` on the same comparisons.
    """
    count = len(decisions)
    is_open = [decision.outcome == "undecided" for decision in decisions]
    # The next decided comparison shares alpha with the comparisons that are decided already.
    level = alpha * min(count - sum(is_open) + 1, count) / max(1, count)
    max_per_comparison = MAX_CONTINUATIONS // max(1, sum(is_open))
    continuation_count = max(MIN_CONTINUATIONS, min(CONTINUATIONS, max_per_comparison))
    margin = margin_of(min_effect)

    def forecast(blocks: PairedBlocks, decision: GateDecision) -> GateForecast | None:
        verdict = decision.verdict
        if len(blocks) < MIN_BLOCKS_OF_SPREAD:
            # All comparisons may be decided in the same block, and then at full alpha.
            minimum = blocks_to_win(equivalence_level(alpha))
            return GateForecast(minimum, is_lower_bound=True)
        if verdict.equivalence_high <= margin < verdict.ln_mean_ratio:
            # The typical run passes. Rare slow runs keep the comparison undecided, and a
            # continuation does not simulate these.
            return None
        side_level = equivalence_level(level)
        block_count = _median_block_count(blocks, margin, side_level, continuation_count, seed)
        return None if block_count is None else GateForecast(block_count, is_lower_bound=False)

    return tuple(
        forecast(blocks, decision) if needs_forecast else None
        for blocks, decision, needs_forecast in zip(comparisons, decisions, is_open, strict=True)
    )


def _median_block_count(
    blocks: PairedBlocks, margin: float, level: float, continuation_count: int, seed: int
) -> int | None:
    """Return the median number of blocks until the interval excludes the margin."""
    count = len(blocks)
    extra_blocks = min(max(FORECAST_GROWTH * count, MIN_FORECAST_BLOCKS), MAX_FORECAST_BLOCKS)
    # The engine estimates the typical log ratio and the slot effect.
    estimate = blocks.engine.centre()
    slot_effect = 0.0 if estimate is None else estimate[1]
    differences, orders, tolerances = blocks.differences, blocks.orders, blocks.tolerances
    generator = np.random.default_rng(seed)
    block_counts: list[float] = []
    for _ in range(continuation_count):
        drawn_blocks = generator.integers(count, size=extra_blocks)
        coins = generator.choice(np.array([-1, 1], dtype=np.int8), extra_blocks)
        continued_sequence = BettingSequence(
            np.concatenate(
                (
                    differences,
                    differences[drawn_blocks] + slot_effect * (coins - orders[drawn_blocks]),
                )
            ),
            np.concatenate((orders, coins)),
            np.concatenate((tolerances, tolerances[drawn_blocks])),
        )
        needed = continued_sequence.blocks_to_exclude(margin, level)
        block_counts.append(math.inf if needed is None else max(needed, count + 1))
    median = sorted(block_counts)[continuation_count // 2]
    return None if math.isinf(median) else int(median)


class GateCampaign(CampaignKind):
    """A gate as a campaign: how it is judged while it runs."""

    def interim(self, plan: Plan, stopping: Stopping) -> InterimAnalysis:
        """Return the analysis that runs after each block."""
        return GateJudge(plan, stopping)


class GateJudge(InterimAnalysis):
    """Interim analysis of a gate, by the same rule as the result."""

    def compared_metrics(self, plan: Plan) -> tuple[str, ...]:
        """Return the metrics of the gate; each of them decides."""
        assert isinstance(plan.terms, GatePlan)
        return plan.terms.metrics

    def interim_verdicts(self) -> tuple[InterimVerdict, ...]:
        """Return the decision on each comparison."""
        judgement = self.plan.judgement
        decisions = judge_gate(
            self.paired_blocks, min_effect=judgement.min_effect, alpha=judgement.alpha
        )
        return tuple(
            InterimVerdict(decision.verdict, decision.outcome != "undecided")
            for decision in decisions
        )

    def blocks_to_verdict(self) -> tuple[int, ...]:
        """Return no forecast: a gate ends only by its decision or its budget."""
        return ()

    def may_learn_size(self, verdict: ComparisonVerdict) -> bool:
        """Return ``False``, because a gate stops at its decision and does not measure the size."""
        return False
