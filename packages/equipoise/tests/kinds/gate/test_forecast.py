"""The forecast of a gate, compared with gates that continue with the same truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.kinds.gate.verdict import GateForecast, forecast_gate, judge_gate
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import blocks_to_win, equivalence_level
from packages.equipoise.tests.stats.simulated import costs_and_orders, white

ALPHA = 0.05
LIMIT = 2.0
MIN_BLOCKS = blocks_to_win(equivalence_level(ALPHA))


def forecast(*comparisons: PairedBlocks) -> tuple[GateForecast | None, ...]:
    decisions = judge_gate(comparisons, min_effect=LIMIT, alpha=ALPHA)
    return forecast_gate(
        comparisons, decisions, min_effect=LIMIT, alpha=ALPHA, min_blocks=MIN_BLOCKS, seed=1
    )


def begun_comparison(percent: float, blocks: int, seed: int, sd: float = 0.05) -> PairedBlocks:
    effect = math.log1p(percent / 100)
    return PairedBlocks(*costs_and_orders(white(sd), np.random.default_rng(seed), blocks, effect))


def test_after_one_block_the_forecast_is_the_least_that_any_gate_needs() -> None:
    (short_forecast,) = forecast(begun_comparison(50.0, 1, seed=1, sd=0.001))
    assert short_forecast is not None and short_forecast.is_lower_bound
    decided = [
        judge_gate(
            [begun_comparison(50.0, blocks, seed=1, sd=0.001)], min_effect=LIMIT, alpha=ALPHA
        )[0].outcome
        for blocks in (short_forecast.blocks - 1, short_forecast.blocks)
    ]
    assert decided == ["undecided", "slower"]


def test_the_forecast_is_near_the_blocks_of_simulated_gates() -> None:
    margin = math.log1p(LIMIT / 100)
    took = [
        begun_comparison(8.0, 600, seed).engine.blocks_to_exclude(margin, 2 * ALPHA)
        for seed in range(40)
    ]
    median = float(np.median([600 if length is None else length for length in took]))
    forecasts = [forecast(begun_comparison(8.0, 12, 1000 + seed))[0] for seed in range(40)]
    known = [forecast.blocks for forecast in forecasts if forecast is not None]
    assert len(known) > 20
    assert median / 2.0 < float(np.median(known)) < 2.0 * median


def test_a_change_at_the_limit_has_no_forecast() -> None:
    costs = np.tile([1.0, 1.1, 0.9, 1.05], 15)
    noise = np.tile([1.0, 1.04, 1.0 / 1.04, 1.0], 15)
    orders = np.tile([1, -1], 30)
    blocks = PairedBlocks(costs, costs * noise * (1.0 + LIMIT / 100), orders)
    assert forecast(blocks) == (None,)


def test_a_decided_benchmark_has_no_forecast() -> None:
    decided, undecided = forecast(
        begun_comparison(0.0, 200, 1, sd=0.01), begun_comparison(15.0, 5, 2)
    )
    assert decided is None
    assert undecided is not None


@pytest.mark.parametrize("seed", range(3))
def test_a_forecast_is_more_than_the_measured_blocks(seed: int) -> None:
    (single_forecast,) = forecast(begun_comparison(6.0, 10, seed))
    assert single_forecast is None or single_forecast.blocks > 10
