"""The test of whether a source of noise that is held lowers the spread: error rate and power."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.stats.arrays import FloatArray
from equipoise.stats.spread import MIN_BLOCKS, describe_spread, holm, spread, spread_change

SIMULATIONS = 300


def blocks(generator: np.random.Generator, count: int, own: float) -> FloatArray:
    """Times with a heavy tail; their logarithms have an sd of about ``own``."""
    return np.asarray(np.exp(own * generator.standard_t(4, count) / np.sqrt(2.0)))


def test_a_held_variable_without_effect_is_hardly_ever_called_a_source() -> None:
    generator = np.random.default_rng(1)
    low = 0
    for number in range(SIMULATIONS):
        together = np.exp(0.2 * generator.normal(size=20))
        free, held = (together * blocks(generator, 20, 0.2) for _ in range(2))
        change = spread_change(free, 1.1 * held, seed=number)
        assert change is not None
        low += change.p_value <= 0.05
    # 5 % plus three standard errors.
    assert low / SIMULATIONS <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / SIMULATIONS)


def test_a_source_of_most_of_the_variance_is_found_with_its_share() -> None:
    generator = np.random.default_rng(2)
    shares, low, covered = [], 0, 0
    truth = 1 - 0.1**2 / (0.1**2 + 0.3**2)
    for number in range(SIMULATIONS):
        free = np.exp(np.hypot(0.1, 0.3) * generator.normal(size=40))
        held = np.exp(0.1 * generator.normal(size=40))
        change = spread_change(free, held, seed=number)
        assert change is not None and change.share is not None and change.share_ci[0] is not None
        assert change.share_ci[1] is not None
        shares.append(change.share)
        low += change.p_value <= 0.01
        covered += change.share_ci[0] <= truth <= change.share_ci[1]
    assert low / SIMULATIONS > 0.95
    assert np.median(shares) == pytest.approx(truth, abs=0.02)
    assert covered / SIMULATIONS > 0.88


def test_few_disturbed_trials_neither_make_nor_hide_a_source() -> None:
    generator = np.random.default_rng(3)
    free, held = blocks(generator, 40, 0.3), blocks(generator, 40, 0.02)
    held[[3, 17]] *= 20.0
    change = spread_change(free, held, seed=3)
    assert change is not None and change.p_value < 0.001
    assert change.held_spread < 0.1


def test_a_source_that_spreads_more_when_held_has_a_negative_share() -> None:
    generator = np.random.default_rng(4)
    change = spread_change(blocks(generator, 40, 0.1), blocks(generator, 40, 0.3), seed=4)
    assert change is not None and change.share is not None and change.share < 0
    assert change.p_value > 0.5


def test_times_that_do_not_vary_have_no_share_to_explain() -> None:
    change = spread_change(np.full(20, 2.0), np.full(20, 3.0), seed=5)
    assert change is not None
    assert (change.varying_spread, change.share, change.share_ci) == (0.0, None, (None, None))
    assert change.p_value == 1.0


def test_a_few_blocks_have_no_result() -> None:
    few = np.linspace(1.0, 2.0, MIN_BLOCKS - 1)
    assert spread_change(few, few, seed=6) is None


def test_the_same_seed_gives_the_same_answer() -> None:
    generator = np.random.default_rng(7)
    free, held = blocks(generator, 30, 0.3), blocks(generator, 30, 0.2)
    assert spread_change(free, held, seed=7) == spread_change(free, held, seed=7)


def test_the_spread_does_not_depend_on_the_unit() -> None:
    values = blocks(np.random.default_rng(8), 50, 0.3)
    assert spread(values) == pytest.approx(spread(1000.0 * values))


def test_holms_correction_is_that_of_the_definition() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert holm([0.9, 0.8]) == (1.0, 1.0)
    assert holm([]) == ()


def test_a_wide_spread_is_a_factor_and_a_narrow_one_a_percentage() -> None:
    assert describe_spread(0.031) == "±3.1 %"
    assert describe_spread(np.log(2.6)) == "×÷2.6"
