"""Rosenbaum's bounds: exact where it can be enumerated, Wilcoxon's test at 1."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from equipoise_matching.effects.signed_rank import EXACT_PAIRS, gamma_to_change, interval_at
from equipoise_matching.observation.effects import PairSubset
from equipoise_matching.observation.hidden_factor import cluster_differences

DRAW = np.random.default_rng(3)


TAIL_CHANCE = 0.025


def chance_of_all_signs(values: tuple[float, ...], gamma: float) -> float:
    """The chance of a rank sum of at least this size, by enumeration of all signs."""
    ranks = stats.rankdata(np.abs(values))
    observed = sum(rank for rank, value in zip(ranks, values, strict=True) if value > 0)
    likely = gamma / (1.0 + gamma)
    chance = 0.0
    for signs in itertools.product((0, 1), repeat=len(values)):
        if sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign) >= observed:
            chance += float(np.prod([likely if sign else 1.0 - likely for sign in signs]))
    return chance


@pytest.mark.parametrize(
    "values",
    [(1, 2, -3, 4, 5, 6, 7, 8), (1, 1, -1, 2, 2, 3, 3, 3), (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)],
    ids=["distinct", "ties", "all positive"],
)
def test_the_factor_that_changes_the_answer_is_that_of_all_signs_enumerated(
    values: tuple[float, ...],
) -> None:
    gamma = gamma_to_change(np.array(values, dtype=float))
    assert gamma is not None
    assert chance_of_all_signs(values, gamma) == pytest.approx(TAIL_CHANCE)


@pytest.mark.parametrize("count", [20, 59, 400])
def test_without_a_hidden_factor_the_interval_is_that_of_wilcoxon_s_test(count: int) -> None:
    differences = DRAW.normal(0.2, 1.0, count)
    method = "exact" if count < EXACT_PAIRS else "asymptotic"
    low, _ = interval_at(differences, 1.0)
    assert low is not None
    outside, inside = (
        stats.wilcoxon(
            differences - effect, alternative="greater", method=method, correction=False
        ).pvalue
        for effect in (low - 1e-6, low + 1e-6)
    )
    assert outside <= TAIL_CHANCE < inside


def test_the_interval_holds_the_effects_that_are_not_rejected_and_widens_with_the_factor() -> None:
    differences = DRAW.normal(1.0, 1.0, 40)
    low, high = interval_at(differences, 1.5)
    assert low is not None
    assert high is not None
    outside, inside = (gamma_to_change(differences - low + move) for move in (1e-6, -1e-6))
    assert (inside or 1.0) < 1.5 <= (outside or 1.0)
    wider = interval_at(differences, 2.0)
    assert wider[0] is not None
    assert wider[1] is not None
    assert wider[0] < low < high < wider[1]


def test_at_the_factor_that_changes_the_answer_the_interval_reaches_zero() -> None:
    differences = DRAW.normal(-1.0, 1.0, 40)
    gamma = gamma_to_change(differences)
    assert gamma is not None
    below, above = (interval_at(differences, gamma * share)[1] for share in (0.999, 1.001))
    assert below is not None
    assert above is not None
    assert below < 0.0 <= above
    assert gamma_to_change(-differences) == pytest.approx(gamma)


def test_an_effect_that_is_not_shown_needs_no_factor() -> None:
    assert gamma_to_change(np.array([1.0, -1.1, 0.9, -0.8])) is None


def test_five_pairs_cannot_give_an_interval() -> None:
    assert interval_at(np.arange(1.0, 6.0), 1.0) == (None, None)


def test_each_cluster_counts_once_against_another_one() -> None:
    pairs = PairSubset(np.array([0, 1, 2, 3]), np.array([4, 5, 6, 7]), np.ones(4))
    code = np.array([0, 0, 0, 1, 2, 2, 3, 2])
    residual = np.array([1.0, 3.0, 9.0, 5.0, 0.0, 0.0, 0.0, 0.0])
    # Cluster 0 has two pairs with cluster 2 and keeps to it; cluster 1 had only that one.
    assert cluster_differences(pairs, residual, code).tolist() == [2.0]
