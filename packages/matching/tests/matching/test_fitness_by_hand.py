"""Fitness of small cases, computed by hand or by counting."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from equipoise_matching.matching.fitness import match_fitness

# Two treated units at 1 and 5, three controls at 0, 6 and 6.5, of which 0 and 6 are matched:
# differences 1 and -1. The distribution functions differ by 1/2 at 0 and 5, by 0 at 1 and 6.
HAND: dict[str, Any] = {"treat": [1, 1, 0, 0, 0], "X": [1, 5, 0, 6, 6.5]}
# The mean of the differences is 0: p = 1. All of the 6 orders of 4 rows reach 1/2.
BY_HAND = {
    "pvals": [1.0, 1.0],
    "qqmean.mean": [1 / 4],
    "qqmean.max": [1 / 4],
    "qqmedian.median": [1 / 4],
    "qqmedian.max": [1 / 4],
    "qqmax.mean": [1 / 2],
    "qqmax.max": [1 / 2],
}


@pytest.mark.parametrize("fitness", BY_HAND)
def test_five_units_by_hand(fitness: str) -> None:
    assert match_fitness(**HAND, fitness=fitness).tolist() == pytest.approx(BY_HAND[fitness])


def test_a_shift_by_hand() -> None:
    # Differences 1 and 3: mean 2, variance 2 / 4, one degree of freedom, so t = 2 sqrt(2) and
    # p = 1 - 2 atan(t) / pi. Sorted, the controls come first: 2 of the 6 orders do as much.
    treat, x = [1, 1, 0, 0], [21.0, 43.0, 20.0, 40.0]
    balance = [11.0, 13.0, 10.0, 10.0]
    p = 1 - 2 * np.arctan(2 * np.sqrt(2)) / np.pi
    assert match_fitness(treat, x, balance, ks=False)[0] == pytest.approx(p, rel=1e-13)
    assert match_fitness(treat, x, balance, loss=2)[0] == pytest.approx(min(p, 2 / 6), rel=1e-13)
    both = match_fitness(treat, x, np.column_stack([balance, x]), fitness="qqmax.max")
    assert both.tolist() == [1.0, 0.5]


def test_a_single_pair_has_no_p_value_and_counts_two() -> None:
    criteria = match_fitness([1, 0, 0], [1.0, 2.0, 9.0], loss=lambda values: values)
    assert criteria.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(("fitness", "worst"), [("pvals", -9999.0), ("qqmax.max", 9999.0)])
def test_a_candidate_without_a_match_is_the_worst(fitness: str, worst: float) -> None:
    units: dict[str, Any] = {"treat": [1, 1, 0], "X": [1.0, 2.0, 9.0]}
    criteria = match_fitness(**units, caliper=0.1, fitness=fitness)
    assert set(criteria) == {worst}


def test_a_candidate_without_a_match_is_the_worst_of_a_function_too() -> None:
    units: dict[str, Any] = {"treat": [1, 1, 0], "X": [1.0, 2.0, 9.0], "caliper": 0.1}
    assert match_fitness(**units, fitness=lambda matches, balance: 1.0).tolist() == [9999.0]
    assert match_fitness(**units, loss=lambda values: 1.0).tolist() == [-9999.0]


def test_the_bootstrap_of_a_small_case_is_near_its_true_value() -> None:
    # Two samples of 3 out of 6 distinct rows, with replacement: all 6^6 draws counted.
    treat, x = [1, 1, 1, 0, 0, 0], [1.0, 21.0, 41.0, 2.0, 22.0, 42.0]
    balance = np.array([1.0, 2.0, 4.0, 3.0, 5.0, 6.0])
    observed, rows = 2, np.indices((6,) * 6).reshape(6, -1)
    values = balance[rows]
    apart = np.array(
        [(values[:3] <= at).sum(axis=0) - (values[3:] <= at).sum(axis=0) for at in balance]
    )
    share = np.mean(np.abs(apart).max(axis=0) >= observed)
    criteria = match_fitness(treat, x, balance, boot=4000, loss=lambda values: values[1:])
    assert criteria[0] == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 4000))


def test_all_splits_have_the_exact_p_value_of_their_share() -> None:
    # Four pairs far apart in X; the candidates differ only in the treated unit of each pair.
    balance = np.array([1.0, 2.0, 2.0, 3.0, 5.0, 5.0, 7.0, 9.0])
    reaches = []
    for chosen in combinations(range(8), 4):
        rows = np.isin(np.arange(8), chosen)
        reaches.append(
            max(abs((balance[rows] <= at).sum() - (balance[~rows] <= at).sum()) for at in balance)
        )
    treat = np.array([1, 0] * 4)
    observed = max(
        abs((balance[treat == 1] <= at).sum() - (balance[treat == 0] <= at).sum()) for at in balance
    )
    criteria = match_fitness(
        treat, np.repeat(np.arange(4) * 10.0, 2), balance, loss=lambda v: v[1:]
    )
    assert criteria[0] == pytest.approx(
        np.mean([reach >= observed for reach in reaches]), rel=1e-13
    )


@pytest.mark.parametrize(
    ("shift", "r_compatible", "expected"), [(0.0, False, 1.0), (0.1, False, 0.0), (0.1, True, 2.0)]
)
def test_unpaired_means_of_arms_that_do_not_vary(
    shift: float, r_compatible: bool, expected: float
) -> None:
    treat = np.repeat([1, 0], 7)
    criteria = match_fitness(
        treat,
        np.tile(np.arange(7.0), 2),
        0.3 + shift * treat,
        paired=False,
        ks=False,
        r_compatible=r_compatible,
    )
    assert criteria.tolist() == [expected]
