"""The decision of a gate, during the campaign and at its end, and a forecast of its blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise._native import BettingSequence
from equipoise.campaign.interim import CampaignKind, Interim, InterimAnalysis
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
    judged_at_level,
    margin_of,
    select_most,
)

CONTINUATIONS = 20
MAX_CONTINUATIONS = 200
"""Continuations of all open comparisons together, down to `MIN_CONTINUATIONS` for each."""
MIN_BLOCKS_OF_SPREAD = 4
"""Blocks that estimate the spread. With fewer, the forecast is the least that any gate needs."""


class GateDecision(Struct, frozen=True):
    """Outcome of one comparison of a gate, and the verdict with the interval that decided it."""

    outcome: GateOutcome
    judged: ComparisonVerdict


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
    judged_at, margin = judged_at_level(comparisons, min_effect, alpha), margin_of(min_effect)
    tested = len(comparisons)

    def is_within(judged: ComparisonVerdict) -> bool:
        return judged.equivalence_high <= margin and judged.ln_mean_ratio <= margin

    slower = select_most(
        judged_at, lambda sequence: sequence.equivalence_low > margin, alpha, tested
    )
    passes = select_most(judged_at, is_within, alpha, tested)
    undecided = judged_at(alpha / tested) if tested else []
    return tuple(
        GateDecision("slower", slower[place])
        if place in slower
        else GateDecision("passes", passes[place])
        if place in passes
        else GateDecision("undecided", judged)
        for place, judged in enumerate(undecided)
    )


class GateForecast(Struct, frozen=True):
    """Forecast for one open comparison of a gate."""

    blocks: int
    """Number of blocks that it needs, those measured included."""
    is_lower_bound: bool
    """Whether this is the least number for any comparison; this one may need many more."""


def forecast_gate(
    comparisons: Sequence[PairedBlocks],
    decisions: Sequence[GateDecision],
    *,
    min_effect: float,
    alpha: float,
    seed: int,
) -> tuple[GateForecast | None, ...]:
    """Forecast how many blocks each undecided comparison of a gate needs in all.

    The forecast is the median over simulated continuations of the campaign, drawn from its own
    blocks with fresh coins, so it takes the present estimate for the truth. A decided comparison
    has ``None``. So has one that half of the continuations do not decide within 20 times the blocks
    so far (at least 200, at most 4000 more): its estimate is close to the smallest effect that
    matters. Comparisons and decisions are the input and the output of ``judge_gate``.
    """
    tested = len(decisions)
    is_open = [decision.outcome == "undecided" for decision in decisions]
    # The next comparison shares alpha with those that are already decided.
    level = alpha * min(tested - sum(is_open) + 1, tested) / max(1, tested)
    share = MAX_CONTINUATIONS // max(1, sum(is_open))
    continuations = max(MIN_CONTINUATIONS, min(CONTINUATIONS, share))
    margin = margin_of(min_effect)

    def forecast(blocks: PairedBlocks, decision: GateDecision) -> GateForecast | None:
        judged = decision.judged
        if len(blocks) < MIN_BLOCKS_OF_SPREAD:
            # All of them may be decided in the same block, and then at full alpha.
            least = blocks_to_win(equivalence_level(alpha))
            return GateForecast(least, is_lower_bound=True)
        if judged.equivalence_high <= margin < judged.ln_mean_ratio:
            # Its typical run passes. Slow runs keep it undecided, and these are not resampled.
            return None
        own_level = equivalence_level(level)
        needed = _median_length(blocks, margin, own_level, continuations, seed)
        return None if needed is None else GateForecast(needed, is_lower_bound=False)

    return tuple(
        forecast(blocks, decision) if one_is_open else None
        for blocks, decision, one_is_open in zip(comparisons, decisions, is_open, strict=True)
    )


def _median_length(
    blocks: PairedBlocks, margin: float, level: float, continuations: int, seed: int
) -> int | None:
    """Return the median number of blocks until the interval excludes the margin."""
    count = len(blocks)
    extra_blocks = min(max(FORECAST_GROWTH * count, MIN_FORECAST_BLOCKS), MAX_FORECAST_BLOCKS)
    centre = blocks.engine.centre()
    slot = 0.0 if centre is None else centre[1]
    differences, orders, tolerances = blocks.differences, blocks.orders, blocks.tolerances
    generator = np.random.default_rng(seed)
    lengths: list[float] = []
    for _ in range(continuations):
        drawn_blocks = generator.integers(count, size=extra_blocks)
        coins = generator.choice(np.array([-1, 1], dtype=np.int8), extra_blocks)
        continued = BettingSequence(
            np.concatenate(
                (differences, differences[drawn_blocks] + slot * (coins - orders[drawn_blocks]))
            ),
            np.concatenate((orders, coins)),
            np.concatenate((tolerances, tolerances[drawn_blocks])),
        )
        length = continued.blocks_to_exclude(margin, level)
        lengths.append(math.inf if length is None else max(length, count + 1))
    median = sorted(lengths)[continuations // 2]
    return None if math.isinf(median) else int(median)


class GateCampaign(CampaignKind):
    """The interim analysis of a gate."""

    def interim(self, plan: Plan, stopping: Stopping) -> InterimAnalysis:
        """Return the judge of the gate."""
        return GateJudge(plan, stopping)


class GateJudge(InterimAnalysis):
    """The judge of a gate: it decides as the result does."""

    def compared_metrics(self, plan: Plan) -> tuple[str, ...]:
        """Return the metrics of the gate, which all decide."""
        assert isinstance(plan.terms, GatePlan)
        return plan.terms.metrics

    def judged(self) -> tuple[Interim, ...]:
        """Return the decision on each comparison."""
        judgement = self.plan.judgement
        decisions = judge_gate(self.pairs, min_effect=judgement.min_effect, alpha=judgement.alpha)
        return tuple(
            Interim(decision.judged, decision.outcome != "undecided") for decision in decisions
        )

    def blocks_to_verdict(self) -> tuple[int, ...]:
        """Return no forecast: a gate ends by its decision or its budget alone."""
        return ()

    def measures_size(self, judged: ComparisonVerdict) -> bool:
        """Return ``False``: a gate ends at its decision, whatever the size of the effect."""
        return False
