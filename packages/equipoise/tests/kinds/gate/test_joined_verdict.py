"""Several runners, one decision: what is red, and what it names."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.joins.simulate import MIXED, RUNNERS, Truth, joined
from equipoise.kinds.gate.joined_verdict import JoinedDecision, judge_joined
from equipoise.kinds.gate.verdict import judge_gate, judge_slice
from equipoise.model.errors import UnusableInput
from equipoise.stats.sequence import PairedBlocks
from packages.equipoise.tests.stats.simulated import NOISES, at_most, campaign, white

ALPHA, LIMIT = 0.05, 2.0


def runners_with(
    *percents: float, blocks: int | Sequence[int] = 60, sd: float = 0.01, seed: int = 1
) -> list[PairedBlocks]:
    """The blocks of a benchmark on runners with these changes."""
    counts = [blocks] * len(percents) if isinstance(blocks, int) else blocks
    generator = np.random.default_rng(seed)
    return [
        campaign(white(sd), generator, count, math.log1p(percent / 100))
        for percent, count in zip(percents, counts, strict=True)
    ]


def decided(*benchmarks: Sequence[PairedBlocks]) -> tuple[JoinedDecision, ...]:
    return judge_joined(benchmarks, min_effect=LIMIT, alpha=ALPHA)


def test_a_slowdown_on_each_runner_names_each_runner_and_the_mean() -> None:
    (decision,) = decided(runners_with(6, 6, 6))
    assert (decision.outcome, decision.mean_outcome) == ("slower", "slower")
    assert decision.runner_outcomes == ("slower",) * 3
    assert decision.mean.ratio == pytest.approx(1.06, abs=0.01)
    low, high = decision.mean.ratio_ci
    assert low is not None and high is not None
    assert 1.02 < low < 1.06 < high
    # The mean over three runners is known better than any of them.
    assert high - low < min(one.high - one.low for one in decision.runners)


def test_a_slowdown_on_one_runner_names_that_runner_and_not_the_mean() -> None:
    (decision,) = decided(runners_with(-3, 5, -3))
    assert decision.outcome == "slower"
    assert decision.runner_outcomes == ("passes", "slower", "passes")
    assert decision.mean_outcome == "passes"


def test_a_slowdown_too_small_for_each_runner_alone_is_found_by_all_together() -> None:
    runners = runners_with(4, 4, 4, blocks=12, sd=0.02)
    alone = [judge_gate([one], min_effect=LIMIT, alpha=ALPHA)[0].outcome for one in runners]
    (decision,) = decided(runners)
    assert (decision.outcome, alone) == ("slower", ["undecided"] * 3)
    assert decision.runner_outcomes == ("undecided",) * 3
    assert decision.mean_outcome == "slower"
    # The product needs no rounds: a benchmark can be slower without a name for where.
    (unnamed,) = decided(runners_with(4, 4, 4, blocks=16, sd=0.02, seed=2))
    assert (unnamed.outcome, unnamed.mean_outcome) == ("slower", "undecided")


def test_a_benchmark_passes_only_if_it_passes_on_each_runner() -> None:
    assert decided(runners_with(0, 0, 0))[0].outcome == "passes"
    (decision,) = decided(runners_with(0, 0, 2))
    assert (decision.outcome, decision.runner_outcomes[:2]) == ("undecided", ("passes", "passes"))


def test_a_runner_without_a_block_prevents_a_pass_and_not_a_failure() -> None:
    (decision,) = decided([*runners_with(0, 0), PairedBlocks()])
    assert (decision.outcome, decision.runner_outcomes[2]) == ("undecided", "undecided")
    assert decision.mean.ratio is None
    assert decided([*runners_with(6, 6), PairedBlocks()])[0].outcome == "slower"


def test_a_join_of_one_slice_decides_as_the_gate_of_that_runner() -> None:
    for percent in (0.0, 2.0, 6.0):
        (blocks,) = runners_with(percent)
        (decision,) = decided([blocks])
        (alone,) = judge_gate([blocks], min_effect=LIMIT, alpha=ALPHA)
        assert decision.outcome == decision.mean_outcome == alone.outcome
        assert decision.mean.ratio_ci == alone.verdict.ratio_ci


def test_runners_may_have_unequal_numbers_of_blocks() -> None:
    (decision,) = decided(runners_with(6, 6, 6, blocks=(12, 60, 30)))
    assert decision.outcome == "slower"


def test_benchmarks_share_one_false_discovery_rate() -> None:
    suspect = runners_with(4, 4, 4, blocks=16, sd=0.02, seed=4)
    assert decided(suspect)[0].outcome == "slower"
    others = [runners_with(0, 0, 0, blocks=16, sd=0.02, seed=seed) for seed in range(10, 60)]
    assert decided(suspect, *others)[0].outcome == "undecided"


def test_a_slice_goes_on_until_a_join_of_four_would_find_it_alone() -> None:
    (blocks,) = runners_with(5, blocks=40)
    ends = [
        next(
            end
            for end in range(6, 41)
            if decide([shortened(blocks, end)], min_effect=LIMIT, alpha=ALPHA)[0].outcome
            == "slower"
        )
        for decide in (judge_gate, judge_slice)
    ]
    assert ends[0] < ends[1]
    others = runners_with(-2, -2, -2)
    at_ends = [decided([shortened(blocks, end), *others])[0].outcome for end in ends]
    assert at_ends == ["undecided", "slower"]


def shortened(blocks: PairedBlocks, end: int) -> PairedBlocks:
    return PairedBlocks(blocks.baseline[:end], blocks.candidate[:end], blocks.orders[:end])


def test_joins_are_red_in_at_most_alpha_and_find_a_slowdown() -> None:
    # The long simulation is `python -m benchmarks.joins.simulate`.
    at_the_margin, everywhere = Truth("margin", ((LIMIT,) * 3,)), Truth("5 %", ((5.0,) * 3,))
    red = sum(
        joined(at_the_margin, noises, 16, seed).red
        for noises in (RUNNERS["independent"], MIXED)
        for seed in range(30)
    )
    assert red <= at_most(60, ALPHA)
    outcomes = [joined(everywhere, RUNNERS["independent"], 60, seed) for seed in range(5)]
    assert all(outcome.red and not outcome.wrong for outcome in outcomes)


def test_an_invalid_level_is_refused() -> None:
    blocks = campaign(NOISES["independent"], np.random.default_rng(1), 8)
    with pytest.raises(UnusableInput, match="alpha cannot be 2"):
        judge_joined([[blocks]], min_effect=LIMIT, alpha=2.0)
