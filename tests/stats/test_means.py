"""The ratio of means, as description."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.stats.means import ln_ratio_of_means, ratio_of_means
from tests.stats.simulated import at_least, costs_and_orders, white


def test_the_ratio_is_what_many_runs_cost_in_total() -> None:
    baseline, candidate = np.ones(10), np.array([0.9] * 9 + [5.0])
    assert ratio_of_means(baseline, candidate, seed=1).ratio == pytest.approx(1.31)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        baseline, candidate, _ = costs_and_orders(white(0.05), generator, 80, math.log(1.1))
        low, high = ratio_of_means(baseline, candidate, seed=1).ratio_ci
        assert low is not None
        assert high is not None
        covered += low < 1.1 < high
    assert covered >= at_least(200, 0.90)


def test_the_same_seed_gives_the_same_interval_and_another_one_another() -> None:
    baseline, candidate, _ = costs_and_orders(white(0.05), np.random.default_rng(6), 50)
    first = ratio_of_means(baseline, candidate, seed=1)
    assert first == ratio_of_means(baseline, candidate, seed=1)
    assert first != ratio_of_means(baseline, candidate, seed=2)


@pytest.mark.parametrize(
    ("baseline", "candidate", "logarithm"),
    [
        ([1.0, 1.0], [1.0, math.inf], math.inf),
        ([math.inf], [1.0], -math.inf),
        ([0.0], [1.0], math.inf),
    ],
)
def test_a_mean_without_bound_has_a_direction_but_no_ratio(
    baseline: list[float], candidate: list[float], logarithm: float
) -> None:
    costs = np.array(baseline), np.array(candidate)
    assert ln_ratio_of_means(*costs) == logarithm
    assert ratio_of_means(*costs, seed=1).ratio is None
    assert ratio_of_means(*costs, seed=1).ratio_ci == (None, None)


def test_two_unbounded_means_say_nothing() -> None:
    assert math.isnan(ln_ratio_of_means(np.array([math.inf]), np.array([math.inf])))
    assert math.isnan(ln_ratio_of_means(np.array([]), np.array([])))


def test_four_blocks_have_a_ratio_but_no_interval() -> None:
    described = ratio_of_means(np.ones(4), np.full(4, 2.0), seed=1)
    assert described.ratio == 2.0
    assert described.ratio_ci == (None, None)
