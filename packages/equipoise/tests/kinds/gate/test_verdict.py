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


def gauged(*comparisons: PairedBlocks, min_effect: float = LIMIT) -> tuple[GateDecision, ...]:
    return judge_gate(comparisons, min_effect=min_effect, alpha=ALPHA)


@pytest.mark.parametrize(
    ("percent", "outcome"),
    [(5.0, "slower"), (2.0, "undecided"), (0.0, "passes"), (-5.0, "passes"), (1.0, "passes")],
)
def test_only_what_lies_wholly_beyond_the_limit_is_slower(
    percent: float, outcome: GateOutcome
) -> None:
    (one,) = gauged(effect_of(percent))
    assert one.outcome == outcome
    assert one.judged.level == ALPHA


def test_slower_but_not_certainly_by_more_than_the_limit_does_not_fail() -> None:
    blocks = effect_of(2.2, blocks=60)
    (verdict,) = judge([blocks], min_effect=LIMIT, alpha=ALPHA)
    assert verdict.verdict == "slower"
    assert gauged(blocks)[0].outcome == "undecided"


def test_without_a_limit_anything_slower_fails_and_anything_faster_passes() -> None:
    slower, faster = gauged(effect_of(1.0), effect_of(-1.0), min_effect=0.0)
    assert (slower.outcome, faster.outcome) == ("slower", "passes")


def test_a_candidate_that_always_times_out_is_slower() -> None:
    blocks = PairedBlocks()
    for number in range(12):
        blocks.append(1.0, math.inf, 1 if number % 2 else -1)
    assert gauged(blocks)[0].outcome == "slower"


def test_one_failure_among_many_needs_more_evidence_than_one_alone() -> None:
    alone, among = 0, 0
    for seed in range(20):
        suspect = effect_of(4.5, seed, blocks=24, sd=0.015)
        alone += gauged(suspect)[0].outcome == "slower"
        others = [effect_of(0.0, 100 * seed + n, blocks=24, sd=0.015) for n in range(1, 20)]
        among += gauged(suspect, *others)[0].outcome == "slower"
    assert among < alone


def test_where_nothing_is_too_slow_a_suite_fails_in_at_most_alpha_of_campaigns() -> None:
    # The worst case: every benchmark is slower by just as much as may be, and one looks each time.
    campaigns, benchmarks = 120, 8
    failed = 0
    for seed in range(campaigns):
        generator = np.random.default_rng(seed)
        whole = [
            costs_and_orders(white(0.02), generator, 40, math.log1p(LIMIT / 100))
            for _ in range(benchmarks)
        ]
        failed += any(
            one.outcome == "slower"
            for blocks in (10, 20, 40)
            for one in gauged(
                *(
                    PairedBlocks(old[:blocks], new[:blocks], orders[:blocks])
                    for old, new, orders in whole
                )
            )
        )
    assert failed <= at_most(campaigns, ALPHA)


def test_of_what_fails_at_most_alpha_was_not_too_slow() -> None:
    shares = []
    for seed in range(60):
        generator = np.random.default_rng(1000 + seed)
        effects = [LIMIT] * 8 + [8.0] * 2
        comparisons = [
            campaign(white(0.02), generator, 60, math.log1p(effect / 100)) for effect in effects
        ]
        failed = [one.outcome == "slower" for one in gauged(*comparisons)]
        assert all(failed[8:])
        shares.append(sum(failed[:8]) / sum(failed))
    assert np.mean(shares) <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / len(shares))


def test_asking_again_from_what_is_known_is_asking_anew() -> None:
    comparisons = [effect_of(percent, seed) for seed, percent in enumerate((0.0, 2.0, 5.0))]
    first, again = gauged(*comparisons), gauged(*comparisons)
    anew = (PairedBlocks(one.baseline, one.candidate, one.orders) for one in comparisons)
    assert first == again == gauged(*anew)
    assert [one.outcome for one in first] == ["passes", "undecided", "slower"]


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(UnusableInput, match="alpha cannot be 2"):
        judge_gate([effect_of(0.0, blocks=8)], min_effect=LIMIT, alpha=2.0)
