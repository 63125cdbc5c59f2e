"""Coarse clocks: a difference that may be a tie counts for neither condition."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.stats.resolution import PastValues, Resolution
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import judge
from packages.equipoise.tests.stats.simulated import at_most

ALPHA = 0.05
CAMPAIGNS = 200
BLOCKS = 200


def coarse_campaign(
    seed: int, ticks: float, sd: float, ratio: float, quantum: float | None
) -> PairedBlocks:
    """Costs in ticks, each rounded up or down by the random phase of the clock."""
    generator = np.random.default_rng(seed)
    times = ticks * np.exp(generator.normal(0.0, sd, (BLOCKS, 2))) * [1.0, ratio]
    counted = np.floor(times + generator.random((BLOCKS, 2)))
    orders = generator.choice(np.array([-1, 1], dtype=np.int8), BLOCKS)
    return PairedBlocks(counted[:, 0], counted[:, 1], orders, resolution=Resolution(quantum))


def count_misses(ticks: float, sd: float) -> int:
    """Number of campaigns in which an interval leaves out the true ratio, 2."""
    excluded = (
        coarse_campaign(seed, ticks, sd, 2.0, 1.0).engine.blocks_to_exclude(math.log(2.0), ALPHA)
        for seed in range(CAMPAIGNS)
    )
    return sum(after is not None for after in excluded)


@pytest.mark.parametrize(("ticks", "sd"), [(10.0, 0.1), (5.0, 0.3), (3.0, 0.3)])
def test_a_ratio_of_two_in_a_few_ticks_is_left_out_in_at_most_alpha(
    ticks: float, sd: float
) -> None:
    assert count_misses(ticks, sd) <= at_most(CAMPAIGNS, ALPHA)


@pytest.mark.parametrize("quantum", [0.0, None])
@pytest.mark.parametrize(
    ("values", "ratio"), [((1.0, 1.1), 1.03), ((0.1, 0.11), 1.03), ((10.0, 11.0), 1.5)]
)
def test_the_ratio_of_times_with_two_values_is_left_out_in_at_most_alpha(
    values: tuple[float, float], ratio: float, quantum: float | None
) -> None:
    # Half of the differences are equal except for the rounding of floats.
    missed = 0
    for seed in range(CAMPAIGNS):
        generator = np.random.default_rng([seed, 7])
        times = generator.choice(values, (BLOCKS, 2)) * [1.0, ratio]
        orders = generator.choice(np.array([-1, 1], dtype=np.int8), BLOCKS)
        pairs = PairedBlocks(times[:, 0], times[:, 1], orders, resolution=Resolution(quantum))
        missed += pairs.engine.blocks_to_exclude(math.log(ratio), ALPHA) is not None
    assert missed <= at_most(CAMPAIGNS, ALPHA)


def test_unreported_ticks_are_inferred_and_make_nothing_equivalent() -> None:
    # The candidate takes 20 % longer, which a clock hardly shows if a trial takes three ticks.
    verdicts = [
        judge([coarse_campaign(seed, 3.0, 0.02, 1.2, None)], min_effect=1.0, alpha=ALPHA)[0].verdict
        for seed in range(60)
    ]
    assert verdicts.count("equivalent") <= at_most(60, ALPHA)
    assert verdicts.count("faster") <= at_most(60, ALPHA)


@pytest.mark.parametrize(
    ("costs", "quantum"),
    [
        ([0.012, 0.013, 0.02], 1e-3),
        ([3.0, 4.0], 1.0),
        ([8192.0, 4096.0, 12288.0, 8192.0, 4096.0, 4096.0], 4096.0),
        ([1 / 60, 2 / 60, 3 / 60, 2 / 60, 1 / 60, 1 / 60], 1 / 60),
    ],
)
def test_all_costs_are_whole_multiples_of_the_resolution(
    costs: list[float], quantum: float
) -> None:
    past = PastValues(Resolution(None))
    past.add(costs, costs)
    assert past.quantum == pytest.approx(quantum)


def test_costs_of_a_fine_clock_show_no_resolution() -> None:
    past = PastValues(Resolution(None))
    past.add(*np.random.default_rng(1).normal(1.0, 0.1, (2, 25)).tolist())
    assert past.tolerance() < 1e-12


def test_counts_that_never_vary_differ_by_an_effect_and_not_by_a_tick() -> None:
    orders = [1, -1] * (BLOCKS // 2)
    pairs = PairedBlocks([100.0] * BLOCKS, [110.0] * BLOCKS, orders, resolution=Resolution(None))
    assert judge([pairs], min_effect=1.0, alpha=ALPHA)[0].verdict == "slower"


def test_a_resolution_that_is_known_is_not_inferred() -> None:
    past = PastValues(Resolution(0.004))
    past.add([0.02, 0.04], [math.inf, 0.0])
    assert past.quantum == 0.004
    assert past.tolerance() == pytest.approx(1.5 * 0.004 / 0.02)


def test_the_steps_of_a_metric_of_which_more_is_better_are_steps_of_its_value() -> None:
    past = PastValues(Resolution(None, more_is_better=True))
    past.add([1 / 49], [1 / 3, 1 / 7])
    assert past.quantum == 1.0
    assert past.tolerance() == 0.5
    past.add([math.inf], [0.0])
    assert past.tolerance() == 0.5


@pytest.mark.parametrize("more_is_better", [False, True])
def test_a_resolution_beyond_all_values_makes_everything_a_tie(more_is_better: bool) -> None:
    pairs = PairedBlocks(
        [1e-300] * 60, [2e-300] * 60, [1] * 60, resolution=Resolution(1.7e308, more_is_better)
    )
    (judged,) = judge([pairs], min_effect=1.0, alpha=ALPHA)
    assert judged.verdict == "undecided"


def rates(
    seed: int, ticks: float, sd: float, ratio: float, quantum: float | None, *, more_is_better: bool
) -> PairedBlocks:
    """Rates over this number of ticks: the candidate does 1/ratio as much work."""
    counted = coarse_campaign(seed, ticks, sd, 1.0 / ratio, quantum)
    with np.errstate(divide="ignore"):
        costs = 1.0 / counted.baseline, 1.0 / counted.candidate
    orders = np.random.default_rng(seed + 10_000).choice(np.array([-1, 1], dtype=np.int8), BLOCKS)
    return PairedBlocks(*costs, orders, resolution=Resolution(quantum, more_is_better))


@pytest.mark.parametrize("quantum", [1.0, None])
@pytest.mark.parametrize(("ticks", "sd"), [(20.0, 0.1), (10.0, 0.3)])
def test_the_true_ratio_of_coarse_rates_is_left_out_in_at_most_alpha(
    quantum: float | None, ticks: float, sd: float
) -> None:
    excluded = (
        rates(seed, ticks, sd, 2.0, quantum, more_is_better=True).engine.blocks_to_exclude(
            math.log(2.0), ALPHA
        )
        for seed in range(CAMPAIGNS)
    )
    assert sum(after is not None for after in excluded) <= at_most(CAMPAIGNS, ALPHA)


def test_coarse_rates_that_differ_by_a_fifth_are_not_called_equivalent() -> None:
    judged = (
        judge(
            [rates(seed, 3.0, 0.02, 1.2, None, more_is_better=True)], min_effect=1.0, alpha=ALPHA
        )[0]
        for seed in range(60)
    )
    wrong = sum(
        judgement.verdict == "equivalent" or judgement.means_forbid_equivalence
        for judgement in judged
    )
    assert wrong <= at_most(60, ALPHA)


def test_a_reported_resolution_may_be_coarser_than_the_digits() -> None:
    # A clock of 10 ms; a small offset makes its readings have six decimals.
    coarse = [coarse_campaign(seed, 3.0, 0.02, 1.2, None) for seed in range(40)]

    def misses_of_the_truth(quantum: float | None) -> int:
        campaigns = (
            PairedBlocks(
                1e-2 * pair.baseline + 1.37e-4,
                1e-2 * pair.candidate + 1.37e-4 + 1e-6 * (np.arange(len(pair)) % 7),
                [1, -1] * (BLOCKS // 2),
                resolution=Resolution(quantum),
            )
            for pair in coarse
        )
        excluded = (pairs.engine.blocks_to_exclude(math.log(1.2), ALPHA) for pairs in campaigns)
        return sum(after is not None for after in excluded)

    assert misses_of_the_truth(0.01) <= at_most(40, ALPHA)
    assert misses_of_the_truth(None) > at_most(40, ALPHA)


def test_the_tolerance_is_compared_with_the_tenth_percentile_of_all_values_in_any_order() -> None:
    generator = np.random.default_rng(5)
    values = generator.integers(1, 400, 1_000) / 8.0
    past = PastValues(Resolution(0.125))
    for count, (cost, other) in enumerate(values.reshape(-1, 2), start=1):
        past.add([cost], [other])
        low = sorted(values[: 2 * count])[int(0.1 * (2 * count - 1))]
        assert past.tolerance() == min(1.5 * 0.125 / low, 1e6)
