"""The difference and the carry-over that are fitted together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from equipoise.stats.arrays import FloatArray, IntArray
from equipoise.stats.carry_over import FittedDifference, fit_differences

BLOCKS = 40
SIMULATIONS = 300


def simulated(
    random: np.random.Generator, *, difference: float, carried: float, drift: float, heavy: bool
) -> tuple[IntArray, IntArray, FloatArray]:
    """Blocks, conditions and costs of one campaign of two conditions, sd 2 %."""
    conditions = np.array([random.permutation(2) for _ in range(BLOCKS)]).ravel()
    noise = random.standard_t(3, len(conditions)) if heavy else random.normal(size=len(conditions))
    logs = 0.02 * noise + drift * np.arange(len(conditions)) + difference * conditions
    logs[1:] += carried * conditions[:-1]
    return np.repeat(np.arange(BLOCKS), 2), conditions, np.exp(logs)


def fitted(random: np.random.Generator, **case: float | bool) -> FittedDifference:
    blocks, conditions, costs = simulated(random, **case)  # type: ignore[arg-type]
    return fit_differences(blocks, conditions, costs, baseline=0)[1]


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("drift", [0.0, 0.01])
def test_both_intervals_cover_the_truth(heavy: bool, drift: float) -> None:
    random = np.random.default_rng(18)
    case = {"difference": 0.02, "carried": 0.03, "drift": drift, "heavy": heavy}
    fits = [fitted(random, **case) for _ in range(SIMULATIONS)]
    for truth, intervals in (
        (np.exp(0.02), [one.ratio_ci for one in fits]),
        (np.exp(0.03), [one.carry_over_ci for one in fits]),
    ):
        missed = sum(not (low or 0.0) <= truth <= (high or np.inf) for low, high in intervals)
        # The intervals are approximate: 8 % instead of 5, and chance.
        assert missed <= binom.ppf(0.999, SIMULATIONS, 0.08)


def test_carry_over_alone_could_make_all_and_a_true_difference_nothing() -> None:
    random = np.random.default_rng(19)
    alone = [
        fitted(random, difference=0.0, carried=0.03, drift=0.0, heavy=False) for _ in range(100)
    ]
    true = [fitted(random, difference=0.1, carried=0.0, drift=0.0, heavy=False) for _ in range(100)]
    # It seems faster by half of the carry-over; 85 % of the fits are expected beyond the level.
    assert sum(one.could_make(-1.0) == "all" for one in alone) >= 70
    assert all(one.could_make(1.0) == "nothing" for one in true)


def test_orders_that_cannot_tell_the_two_apart_give_no_fit() -> None:
    conditions = np.tile([0, 1], 8)
    costs = np.exp(0.01 * np.arange(16))
    assert fit_differences(np.repeat(np.arange(8), 2), conditions, costs, baseline=0) == {}


def test_a_condition_that_always_times_out_is_no_carry_over() -> None:
    random = np.random.default_rng(20)
    blocks, conditions, costs = simulated(
        random, difference=0.0, carried=0.0, drift=0.0, heavy=False
    )
    costs[conditions == 1] = np.inf
    assert fit_differences(blocks, conditions, costs, baseline=0)[1].could_make(1.0) == "nothing"
