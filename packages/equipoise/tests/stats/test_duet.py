"""A pilot finds a slowdown and a gain that are there, and rarely one that is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.stats.duet import MIN_PAIRS, gain, slowdown
from equipoise.stats.sequence import BASELINE_FIRST, CANDIDATE_FIRST, PairedBlocks
from equipoise.stats.verdict import judge

CAMPAIGNS = 2000


def lognormal(random: np.random.Generator, shape: tuple[int, ...], noise: float) -> np.ndarray:
    return np.exp(noise * random.standard_normal(shape))


@pytest.mark.parametrize("pairs", [5, 7, 8, 10])
def test_the_lower_bound_of_a_slowdown_is_rarely_above_the_truth(pairs: int) -> None:
    random = np.random.default_rng(1)
    missed = 0
    for _ in range(CAMPAIGNS):
        alone = lognormal(random, (pairs, 2), 0.1)
        at_once = 1.05 * lognormal(random, (pairs, 2), 0.1)
        found = slowdown(alone, at_once)
        assert found is not None
        missed += found.low > 1.05
    exceptions = int(pairs >= 8)
    chance = sum(math.comb(pairs, count) for count in range(exceptions + 1)) / 2**pairs
    assert chance <= 1 / 28
    assert missed / CAMPAIGNS <= chance + 3.0 * math.sqrt(chance / CAMPAIGNS)


def test_a_large_slowdown_is_found_beside_disturbed_pairs() -> None:
    random = np.random.default_rng(2)
    alone, at_once = lognormal(random, (10, 2), 0.05), 1.4 * lognormal(random, (10, 2), 0.05)
    alone[3] *= 9.0
    found = slowdown(alone, at_once)
    assert found is not None
    assert found.low > 1.2
    assert found.factor == pytest.approx(1.4, rel=0.1)


def test_a_slower_cpu_is_no_slowdown_of_both_conditions() -> None:
    random = np.random.default_rng(3)
    cpu = np.array([1.0, 1.5])
    swapped = [cpu[::-1] if random.random() < 0.5 else cpu for _ in range(10)]
    swapped_again = [cpu[::-1] if random.random() < 0.5 else cpu for _ in range(10)]
    found = slowdown(np.array(swapped), np.array(swapped_again))
    assert found is not None
    assert (found.factor, found.low) == pytest.approx((1.0, 1.0))


def test_unknown_times_leave_a_pair_out() -> None:
    alone, at_once = np.ones((MIN_PAIRS, 2)), 2.0 * np.ones((MIN_PAIRS, 2))
    assert slowdown(alone, at_once) is not None
    alone[0, 0] = np.nan
    assert slowdown(alone, at_once) is None


@pytest.mark.parametrize("tails", [False, True])
def test_the_interval_of_the_gain_contains_the_truth(tails: bool) -> None:
    random = np.random.default_rng(4)
    covered = 0
    for _ in range(CAMPAIGNS):
        # The laws of both log ratios are equal up to a factor of 3, so the gain is 9 · 2.
        turns, both = (
            random.standard_t(5, 10) if tails else random.standard_normal(10) for _ in range(2)
        )
        found = gain(3.0 * turns, both, 2.0, 1.0)
        assert found is not None
        low, high = found.interval
        assert low is not None
        assert high is not None
        covered += low <= 18.0 <= high
    # The jackknife of ten pairs is approximate.
    assert covered / CAMPAIGNS >= 0.90


def test_constant_log_ratios_have_no_gain() -> None:
    assert gain(np.zeros(10), np.zeros(10), 2.0, 1.0) is None
    assert gain(np.arange(3.0), np.arange(3.0), 2.0, 1.0) is None


@pytest.mark.parametrize("slower_cpu", [0.0, 0.02, 0.5])
def test_equal_programs_on_unequal_cpus_are_rarely_called_different(slower_cpu: float) -> None:
    campaigns, alpha = 300, 0.05
    random = np.random.default_rng([7, int(100 * slower_cpu)])
    false = 0
    for _ in range(campaigns):
        shared = 0.2 * random.standard_normal(60)
        times = np.exp(shared[:, None] + 0.02 * random.standard_normal((60, 2)))
        times[:, 1] *= math.exp(slower_cpu)
        growing = PairedBlocks()
        for number, (first, second) in enumerate(times, start=1):
            # The coin decides which program gets the first CPU.
            is_baseline_first = random.random() < 0.5
            costs = (first, second) if is_baseline_first else (second, first)
            growing.append(*costs, BASELINE_FIRST if is_baseline_first else CANDIDATE_FIRST)
            if number < 7 or number % 4:
                continue
            verdict = judge([growing], min_effect=1.0, alpha=alpha)[0].verdict
            if verdict in ("faster", "slower", "mixed"):
                false += 1
                break
    assert false / campaigns <= alpha + 3.0 * math.sqrt(alpha * (1.0 - alpha) / campaigns)
