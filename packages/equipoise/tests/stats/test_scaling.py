"""The scaling law finds the true exponents, and its intervals cover them as often as claimed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.model.errors import UnusableInput
from equipoise.stats.arrays import FloatArray
from equipoise.stats.scaling import describe_law, scaling_law

SIZES = (445.0, 890.0, 1780.0, 5340.0)


def costs_of(
    power: float, log_power: int, *, blocks: int = 20, noise: float = 0.02, seed: int = 1
) -> FloatArray:
    """Log-normal costs that follow a law, with a drift common to all trials of a block."""
    sizes = np.asarray(SIZES)
    generator = np.random.default_rng(seed)
    true = np.log(1e-7 * sizes**power * np.log(sizes) ** log_power)
    drift = np.linspace(0.0, 0.3, blocks)[:, None]
    spread = noise * generator.standard_t(3, size=(blocks, len(sizes)))
    return np.asarray(np.exp(true + drift + spread), dtype=np.float64)


@pytest.mark.parametrize(("power", "log_power"), [(2.0, 1), (1.0, 0), (1.5, 2), (0.0, 0)])
def test_a_law_without_noise_is_found_exactly(power: float, log_power: int) -> None:
    law = scaling_law(SIZES, costs_of(power, log_power, noise=0.0), seed=1)
    found = law.exponents[log_power]
    assert found.exponent == pytest.approx(power, abs=1e-12)
    assert found.largest_deviation == pytest.approx(0.0, abs=1e-12)
    assert (power, log_power) in law.simple_laws


def test_the_interval_of_the_exponent_covers_it_as_often_as_claimed() -> None:
    covered, campaigns = 0, 200
    for seed in range(campaigns):
        law = scaling_law(SIZES, costs_of(2.0, 1, seed=seed), seed=seed)
        low, high = law.exponents[1].exponent_ci
        assert low is not None and high is not None
        covered += low <= 2.0 <= high
    # 95 % minus three standard errors and the known deficit of percentile intervals of 20 blocks.
    assert covered / campaigns > 0.95 - 3 * math.sqrt(0.05 * 0.95 / campaigns) - 0.03


def test_the_true_law_is_seldom_excluded_and_distant_ones_are() -> None:
    excluded, campaigns = 0, 200
    for seed in range(campaigns):
        law = scaling_law(SIZES, costs_of(2.0, 1, seed=seed), seed=seed)
        excluded += (2.0, 1) not in law.simple_laws
        assert (2.5, 1) not in law.simple_laws
        assert (1.5, 1) not in law.simple_laws
    assert excluded / campaigns < 0.05 + 3 * math.sqrt(0.05 * 0.95 / campaigns)


def test_only_enough_blocks_show_whether_there_is_a_logarithm() -> None:
    many = scaling_law(SIZES, costs_of(2.0, 1, blocks=60, noise=0.005), seed=1)
    assert many.has_intervals
    assert many.simple_laws == ((2.0, 1),)
    few = scaling_law(SIZES, costs_of(2.0, 1, blocks=3), seed=1)
    assert not few.has_intervals
    assert few.power_law.exponent_ci == (None, None)


def test_sizes_left_out_of_blocks_have_no_costs() -> None:
    costs = costs_of(2.0, 0, blocks=30)
    costs[10:, 3] = np.nan
    law = scaling_law(SIZES, costs, seed=1)
    assert law.power_law.exponent == pytest.approx(2.0, abs=0.15)
    assert [growth.blocks for growth in law.growth] == [30, 30, 10]


def test_the_order_of_the_sizes_and_the_unit_of_the_cost_change_nothing() -> None:
    costs = costs_of(1.0, 1)
    forward = scaling_law(SIZES, costs, seed=1)
    back = scaling_law(SIZES[::-1], 1e9 * costs[:, ::-1], seed=1)
    assert back.sizes == forward.sizes
    assert back.power_law.exponent == pytest.approx(forward.power_law.exponent)
    assert back.simple_laws == forward.simple_laws


def test_trials_that_timed_out_are_slowest_and_leave_the_median() -> None:
    costs = costs_of(2.0, 0, blocks=21, noise=0.001)
    costs[::5, 3] = math.inf
    assert scaling_law(SIZES, costs, seed=1).power_law.exponent == pytest.approx(2.0, abs=0.05)
    costs[:, 3] = math.inf
    with pytest.raises(UnusableInput, match="5340"):
        scaling_law(SIZES, costs, seed=1)


@pytest.mark.parametrize("sizes", [(10.0,), (10.0, 10.0), (1.0, 10.0), (0.0, 5.0)])
def test_values_that_are_not_a_series_of_sizes_are_refused(sizes: tuple[float, ...]) -> None:
    with pytest.raises(UnusableInput, match="no scaling law"):
        scaling_law(sizes, np.ones((6, len(sizes))), seed=1)


def test_laws_are_written_as_people_write_them() -> None:
    words = [describe_law(*law) for law in [(2.0, 1), (1.0, 0), (0.0, 0), (0.0, 2), (1.5, 0)]]
    assert words == ["N^2 log N", "N", "constant", "(log N)^2", "N^1.5"]
