"""The time of a block is forecast from its first trials, with an interval."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.campaign.progress import MIN_TRIALS, forecast_block


def test_too_few_trials_give_no_forecast_and_all_of_them_an_exact_one() -> None:
    assert forecast_block([1.0] * (MIN_TRIALS - 1), 50) is None
    seconds = [float(number) for number in range(1, 51)]
    found = forecast_block(seconds, 50)
    assert found is not None
    assert (found.low_s, found.block_s, found.high_s) == pytest.approx((sum(seconds),) * 3)


def test_a_block_of_few_conditions_is_forecast_from_its_first_trial() -> None:
    assert forecast_block([1.0, 2.0, 3.0], 3) is not None
    assert forecast_block([1.0, 2.0], 3) is None


def test_a_block_takes_at_least_the_time_that_has_passed() -> None:
    found = forecast_block([0.1, 0.1, 0.1, 0.1, 100.0], 6)
    assert found is not None
    assert found.low_s == pytest.approx(100.4)


def test_blocks_in_random_order_are_forecast_without_bias() -> None:
    """2000 orders of 99 trials in three groups, whose times differ up to a hundredfold."""
    generator = np.random.default_rng(3)
    seconds = np.exp(generator.normal(0.0, 1.0, size=99))
    whole, covered, forecasts = float(seconds.sum()), 0, []
    for _ in range(2000):
        found = forecast_block(list(generator.permutation(seconds)[:33]), 99)
        assert found is not None
        forecasts.append(found.block_s)
        covered += found.low_s <= whole <= found.high_s
    error = float(np.std(forecasts)) / np.sqrt(len(forecasts))
    assert abs(float(np.mean(forecasts)) - whole) < 4.0 * error
    # For such a skewed sample, two standard errors cover less than for a normal one.
    assert covered >= 0.75 * 2000
