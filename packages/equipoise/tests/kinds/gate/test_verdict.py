"""A gate's question: is the whole interval beyond the smallest effect that matters?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.kinds.gate.terms import GateOutcome
from equipoise.kinds.gate.verdict import GateDecision, judge_gate
from equipoise.model.errors import UnusableInput
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import judge
from packages.equipoise.tests.stats.simulated import at_most, campaign, costs_and_orders, white

ALPHA = 0.05
LIMIT = 2.0


def effect_of(percent: float, seed: int = 1, blocks: int = 200, sd: float = 0.01) -> PairedBlocks:
    return campaign(white(sd), np.random.default_rng(seed), blocks, math.log1p(percent / 100))


def decisions_of(*comparisons: PairedBlocks, min_effect: float = LIMIT) -> tuple[GateDecision, ...]:
    return judge_gate(comparisons, min_effect=min_effect, alpha=ALPHA)


@pytest.mark.parametrize(
    ("percent", "outcome"),
    [(5.0, "slower"), (2.0, "undecided"), (0.0, "passes"), (-5.0, "passes"), (1.0, "passes")],
)
def test_only_an_interval_wholly_beyond_the_limit_is_slower(
    percent: float, outcome: GateOutcome
) -> None:
    (decision,) = decisions_of(effect_of(percent))
    assert decision.outcome == outcome
    assert decision.verdict.level == ALPHA


def test_slower_but_not_certainly_by_more_than_the_limit_does_not_fail() -> None:
    blocks = effect_of(2.2, blocks=60)
    (verdict,) = judge([blocks], min_effect=LIMIT, alpha=ALPHA)
    assert verdict.verdict == "slower"
    assert decisions_of(blocks)[0].outcome == "undecided"


def test_without_a_limit_anything_slower_fails_and_anything_faster_passes() -> None:
    slower, faster = decisions_of(effect_of(1.0), effect_of(-1.0), min_effect=0.0)
    assert (slower.outcome, faster.outcome) == ("slower", "passes")


def test_a_candidate_that_always_times_out_is_slower() -> None:
    blocks = PairedBlocks()
    for number in range(12):
        blocks.append(1.0, math.inf, 1 if number % 2 else -1)
    assert decisions_of(blocks)[0].outcome == "slower"


def test_one_failure_among_many_needs_more_evidence_than_one_alone() -> None:
    alone, among = 0, 0
    for seed in range(20):
        suspect = effect_of(4.5, seed, blocks=24, sd=0.015)
        alone += decisions_of(suspect)[0].outcome == "slower"
        others = [effect_of(0.0, 100 * seed + n, blocks=24, sd=0.015) for n in range(1, 20)]
        among += decisions_of(suspect, *others)[0].outcome == "slower"
    assert among < alone


def test_without_a_slow_benchmark_a_suite_fails_in_at_most_alpha_of_campaigns() -> None:
    # The worst case: every benchmark is slower by exactly the limit, and each block is analysed.
    campaigns, benchmarks = 120, 8
    failed = 0
    for seed in range(campaigns):
        generator = np.random.default_rng(seed)
        whole = [
            costs_and_orders(white(0.02), generator, 40, math.log1p(LIMIT / 100))
            for _ in range(benchmarks)
        ]
        failed += any(
            decision.outcome == "slower"
            for blocks in (10, 20, 40)
            for decision in decisions_of(
                *(
                    PairedBlocks(old[:blocks], new[:blocks], orders[:blocks])
                    for old, new, orders in whole
                )
            )
        )
    assert failed <= at_most(campaigns, ALPHA)


def test_at_most_alpha_of_the_failures_are_false() -> None:
    shares = []
    for seed in range(60):
        generator = np.random.default_rng(1000 + seed)
        effects = [LIMIT] * 8 + [8.0] * 2
        comparisons = [
            campaign(white(0.02), generator, 60, math.log1p(effect / 100)) for effect in effects
        ]
        failed = [decision.outcome == "slower" for decision in decisions_of(*comparisons)]
        assert all(failed[8:])
        shares.append(sum(failed[:8]) / sum(failed))
    assert np.mean(shares) <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / len(shares))


def test_judging_again_gives_the_same_decisions() -> None:
    comparisons = [effect_of(percent, seed) for seed, percent in enumerate((0.0, 2.0, 5.0))]
    first, repeated = decisions_of(*comparisons), decisions_of(*comparisons)
    copies = (
        PairedBlocks(comparison.baseline, comparison.candidate, comparison.orders)
        for comparison in comparisons
    )
    assert first == repeated == decisions_of(*copies)
    assert [decision.outcome for decision in first] == ["passes", "undecided", "slower"]


def test_an_invalid_level_is_refused() -> None:
    with pytest.raises(UnusableInput, match="alpha cannot be 2"):
        judge_gate([effect_of(0.0, blocks=8)], min_effect=LIMIT, alpha=2.0)
