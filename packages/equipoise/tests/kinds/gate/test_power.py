"""How often a gate fails what it should, and what it should not, asked after every block.

Campaigns are simulated with known truth; every bound leaves room for the error of the simulation.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.kinds.gate.terms import GateOutcome
from equipoise.kinds.gate.verdict import judge_gate
from equipoise.stats.sequence import PairedBlocks
from packages.equipoise.tests.stats.simulated import (
    NOISES,
    FloatArray,
    Noise,
    at_least,
    at_most,
    costs_and_orders,
    student,
    white,
)

ALPHA = 0.05
LIMIT = 2.0
SLOWER = 5.0
BLOCKS = 1000
"""Number of blocks that fit about into a minute if a trial takes 20 ms."""
MARGIN = math.log1p(LIMIT / 100)


def interrupted_now_and_then(sd: float) -> Noise:
    """Independent normal log times, of which one in ten takes up to several times as long."""

    def noise(generator: np.random.Generator, trials: int) -> FloatArray:
        waited = (generator.random(trials) < 0.1) * generator.exponential(1.0, trials)
        whole: FloatArray = generator.normal(0.0, sd, trials) + waited
        return whole

    return noise


def outcome(noise: Noise, percent: float, seed: int, blocks: int = BLOCKS) -> GateOutcome:
    """The first outcome of a gate that asks after every block; where the engine excludes +2 %.

    Each side of a gate has alpha for itself: half of the two-sided level.
    """
    generator = np.random.default_rng(seed)
    old, new, orders = costs_and_orders(noise, generator, blocks, math.log1p(percent / 100))
    end = PairedBlocks(old, new, orders).engine.blocks_to_exclude(MARGIN, 2 * ALPHA)
    if end is None:
        return "undecided"
    until_then = PairedBlocks(old[:end], new[:end], orders[:end])
    (decision,) = judge_gate([until_then], min_effect=LIMIT, alpha=ALPHA)
    return decision.outcome


def failures(noise: Noise, percent: float, gates: int, blocks: int = BLOCKS) -> int:
    return sum(outcome(noise, percent, seed, blocks) == "slower" for seed in range(gates))


def test_the_first_outcome_is_that_of_an_analysis_after_every_block() -> None:
    for seed in range(5):
        generator = np.random.default_rng(seed)
        rows = zip(
            *costs_and_orders(white(0.03), generator, 120, math.log1p(SLOWER / 100)), strict=True
        )
        growing = PairedBlocks()
        result: GateOutcome = "undecided"
        while result == "undecided" and (row := next(rows, None)) is not None:
            growing.append(*row)
            (decision,) = judge_gate([growing], min_effect=LIMIT, alpha=ALPHA)
            result = decision.outcome
        assert growing.engine.blocks_to_exclude(MARGIN, 2 * ALPHA) == len(growing)
        assert result == outcome(white(0.03), SLOWER, seed, 120) == "slower"


@pytest.mark.parametrize("name", NOISES)
def test_a_candidate_slower_by_exactly_the_limit_fails_in_at_most_alpha(name: str) -> None:
    gates = 200
    assert failures(NOISES[name], LIMIT, gates, blocks=400) <= at_most(gates, ALPHA)


@pytest.mark.parametrize("noise", [white(0.1), student(0.05, 2.0), interrupted_now_and_then(0.1)])
def test_an_equal_candidate_passes_and_a_slowdown_of_5_percent_fails(
    noise: Noise,
) -> None:
    # The largest noise with which 19 of 20 gates of this length find it.
    gates = 100
    assert failures(noise, 0.0, gates) <= at_most(gates, ALPHA)
    assert failures(noise, SLOWER, gates) >= at_least(gates, 0.95)


def test_with_a_spread_of_a_third_gates_are_undecided_and_not_wrong() -> None:
    outcomes = [outcome(white(0.3), SLOWER, seed) for seed in range(60)]
    assert outcomes.count("undecided") > 30
    assert outcomes.count("passes") <= at_most(60, ALPHA)
