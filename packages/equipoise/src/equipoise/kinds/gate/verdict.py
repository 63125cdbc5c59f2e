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
"""Simulated continuations of the campaign for the forecast of one undecided comparison."""
MAX_CONTINUATIONS = 200
"""Limit for all undecided comparisons together; each still has at least `MIN_CONTINUATIONS`."""
MIN_BLOCKS_OF_SPREAD = 4
"""Blocks that estimate the spread. With fewer, the forecast is the minimum for any gate."""


class GateDecision(Struct, frozen=True):
    """Outcome of one comparison of a gate, and the verdict with the interval that decided it."""

    outcome: GateOutcome
    verdict: ComparisonVerdict


def judge_gate(
    comparisons: Sequence[PairedBlocks], *, min_effect: float, alpha: float
) -> tuple[GateDecision, ...]:
    """Decide for each candidate whether it is slower by more than the smallest effect that matters.

    The null hypothesis is that the candidate is slower by at most that effect. A candidate fails if
    its whole interval is beyond the effect. Of K comparisons R fail if each fails at level
    alpha·R/K; R is the largest such number. Inverting the intervals at the stop gives an e-value of
    at least K/(alpha·R) against each of these hypotheses, so this is e-BH (Wang and Ramdas 2022):
    the expected share of false failures is at most alpha. If no candidate is too slow, the chance
    that any fails is at most alpha. The passes are selected in the same way. A comparison keeps its
    outcome while the others get more blocks, because R can only grow.

    A failure uses one side of the interval at alpha, and a pass uses the other side at alpha. A
    candidate whose mean cost exceeds the baseline's by more than the effect does not pass, even if
    its typical run does: it stays undecided.

    Parameters and errors are those of ``judge``.
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
    """Whether ``blocks`` is the minimum for any comparison; this one may need many more."""


def forecast_gate(
    comparisons: Sequence[PairedBlocks],
    decisions: Sequence[GateDecision],
    *,
    min_effect: float,
    alpha: float,
    seed: int,
) -> tuple[GateForecast | None, ...]:
    """Forecast how many blocks each undecided comparison of a gate needs in all.

    The forecast is the median over simulated continuations of the campaign. They draw from its
    own blocks with new random orders, so the forecast treats the present estimate as the truth.
    The forecast is ``None`` for a decided comparison, and if half of the continuations are still
    undecided after 20 times the blocks so far (at least 200, at most 4000 more): the estimate is
    then close to the smallest effect that matters. ``decisions`` are those of ``judge_gate`` on
    the same comparisons.
    """
    count = len(decisions)
    is_open = [decision.outcome == "undecided" for decision in decisions]
    # The next decided comparison shares alpha with the comparisons that are decided already.
    level = alpha * min(count - sum(is_open) + 1, count) / max(1, count)
    max_per_comparison = MAX_CONTINUATIONS // max(1, sum(is_open))
    continuations = max(MIN_CONTINUATIONS, min(CONTINUATIONS, max_per_comparison))
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
        needed = _median_length(blocks, margin, equivalence_level(level), continuations, seed)
        return None if needed is None else GateForecast(needed, is_lower_bound=False)

    return tuple(
        forecast(blocks, decision) if needs_forecast else None
        for blocks, decision, needs_forecast in zip(comparisons, decisions, is_open, strict=True)
    )


def _median_length(
    blocks: PairedBlocks, margin: float, level: float, continuations: int, seed: int
) -> int | None:
    """Return the median number of blocks until the interval excludes the margin."""
    count = len(blocks)
    extra_blocks = min(max(FORECAST_GROWTH * count, MIN_FORECAST_BLOCKS), MAX_FORECAST_BLOCKS)
    centre = blocks.engine.centre()
    order_effect = 0.0 if centre is None else centre[1]
    differences, orders, tolerances = blocks.differences, blocks.orders, blocks.tolerances
    generator = np.random.default_rng(seed)
    lengths: list[float] = []
    for _ in range(continuations):
        drawn_blocks = generator.integers(count, size=extra_blocks)
        coins = generator.choice(np.array([-1, 1], dtype=np.int8), extra_blocks)
        continued_sequence = BettingSequence(
            np.concatenate(
                (
                    differences,
                    differences[drawn_blocks] + order_effect * (coins - orders[drawn_blocks]),
                )
            ),
            np.concatenate((orders, coins)),
            np.concatenate((tolerances, tolerances[drawn_blocks])),
        )
        length = continued_sequence.blocks_to_exclude(margin, level)
        lengths.append(math.inf if length is None else max(length, count + 1))
    median = sorted(lengths)[continuations // 2]
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
        """Return ``False``: a gate stops at its decision and does not measure the size."""
        return False
