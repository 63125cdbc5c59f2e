"""What a trial owes to the condition that ran before it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.model.errors import UnusableInput
from equipoise.model.result import CarryOver
from equipoise.stats.carry_over import carry_over, should_warn
from packages.equipoise.tests.stats.simulated import NOISES, Noise, at_least, at_most, white


def simulate(
    generator: np.random.Generator,
    *,
    after: tuple[float, ...],
    effects: tuple[float, ...],
    noise: Noise,
    blocks: int = 200,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Orders and costs where each condition adds ``after`` to whatever runs next, in log units."""
    conditions = len(after)
    orders = np.array([generator.permutation(conditions) for _ in range(blocks)])
    flat = orders.ravel()
    logs = noise(generator, blocks * conditions) + np.array(effects)[flat]
    logs[1:] += np.array(after)[flat[:-1]]
    return orders, np.exp(logs).reshape(orders.shape)


def estimate(measured: CarryOver | None) -> float:
    assert measured is not None
    return math.log(measured.ratio)


def covers(measured: CarryOver | None, truth: float) -> bool:
    assert measured is not None
    low, high = measured.ratio_ci
    assert low is not None
    assert high is not None
    return math.log(low) <= truth <= math.log(high)


def test_three_percent_are_recovered_and_warned_of() -> None:
    generator = np.random.default_rng(31)
    measured = [
        carry_over(
            *simulate(generator, after=(0.0, 0.03), effects=(0.0, 0.0), noise=white(0.006)),
            candidate=1,
        )
        for _ in range(100)
    ]
    estimates = [estimate(one) for one in measured]
    assert np.mean(estimates) == pytest.approx(0.030, abs=0.0005)
    assert np.std(estimates) < 0.0015
    assert all(one is not None and should_warn(one, min_effect=1.0) for one in measured)
    assert sum(covers(one, 0.03) for one in measured) >= at_least(100, 0.93)


@pytest.mark.parametrize("noise", ["independent", "random walk", "drift of 1 % per run", "spikes"])
def test_equal_conditions_are_not_warned_of_whatever_the_drift(noise: str) -> None:
    generator = np.random.default_rng(32)
    covered = warned = 0
    for _ in range(150):
        orders, costs = simulate(
            generator, after=(0.01, 0.01), effects=(0.0, 0.05), noise=NOISES[noise], blocks=80
        )
        measured = carry_over(orders, costs, candidate=1)
        assert measured is not None
        covered += covers(measured, 0.0)
        warned += should_warn(measured, min_effect=1.0)
    assert covered >= at_least(150, 0.94)
    assert warned <= at_most(150, 0.01)


def test_a_drift_hides_little_of_it() -> None:
    generator = np.random.default_rng(33)
    estimates = [
        estimate(
            carry_over(
                *simulate(
                    generator,
                    after=(0.03, 0.0),
                    effects=(0.0, 0.1),
                    noise=NOISES["drift of 1 % per run"],
                ),
                candidate=1,
            )
        )
        for _ in range(60)
    ]
    assert np.mean(estimates) == pytest.approx(-0.030, abs=0.002)


def test_among_three_conditions_it_is_that_of_the_pair() -> None:
    generator = np.random.default_rng(34)
    orders, costs = simulate(
        generator,
        after=(0.0, 0.2, 0.03),
        effects=(0.0, 0.1, -0.2),
        noise=white(0.006),
        blocks=400,
    )
    measured = carry_over(orders, costs, candidate=2)
    assert estimate(measured) == pytest.approx(0.03, abs=0.004)
    assert measured is not None
    assert measured.trials == int((orders[:-1, -1] != 1).sum())


def test_a_block_after_one_that_was_left_out_does_not_count() -> None:
    generator = np.random.default_rng(35)
    orders, costs = simulate(
        generator, after=(0.0, 0.0), effects=(0.0, 0.0), noise=white(0.01), blocks=60
    )
    follows = np.arange(60) % 4 != 0
    measured = carry_over(orders, costs, candidate=1, follows=follows)
    assert measured is not None
    assert measured.trials == 45


def test_timeouts_count_as_the_slowest_that_finished() -> None:
    generator = np.random.default_rng(36)
    orders, costs = simulate(generator, after=(0.0, 0.03), effects=(0.0, 0.0), noise=white(0.006))
    costs[20, 0] = math.inf
    assert estimate(carry_over(orders, costs, candidate=1)) == pytest.approx(0.03, abs=0.004)


def test_a_short_campaign_has_no_estimate() -> None:
    generator = np.random.default_rng(37)
    orders, costs = simulate(
        generator, after=(0.0, 0.0), effects=(0.0, 0.0), noise=white(0.01), blocks=8
    )
    assert carry_over(orders, costs, candidate=1) is None
    assert carry_over(orders[:1], costs[:1], candidate=1) is None


def test_a_certain_but_tiny_carry_over_is_not_warned_of() -> None:
    tiny = CarryOver(ratio=1.002, ratio_ci=(1.0019, 1.0021), trials=1000)
    assert not should_warn(tiny, min_effect=1.0)
    assert should_warn(tiny, min_effect=0.0)


def test_a_large_but_uncertain_carry_over_is_not_warned_of() -> None:
    assert not should_warn(CarryOver(1.05, (0.99, 1.11), 40), min_effect=1.0)


def test_shapes_that_do_not_agree_are_refused() -> None:
    with pytest.raises(UnusableInput, match="do not agree"):
        carry_over(np.zeros((3, 2), dtype=np.int64), np.zeros((3, 3)), candidate=1)
