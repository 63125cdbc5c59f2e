"""Pooling covers the mean over campaigns as often as it says, and counts a boot once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from equipoise._native import student_quantile
from equipoise.model.errors import UnusableInput
from equipoise.stats.two_samples import pool


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 10, 31, 100, 400])
@pytest.mark.parametrize("probability", [0.6, 0.95, 0.975, 0.995])
def test_the_quantile_is_that_of_students_t(probability: float, freedom: int) -> None:
    expected = stats.t.ppf(probability, freedom)
    assert student_quantile(probability, freedom) == pytest.approx(expected, rel=1e-12)


def test_the_mean_over_campaigns_is_covered_as_often_as_said() -> None:
    generator = np.random.default_rng(5)
    covered, repeats, count = 0, 2000, 5
    for _ in range(repeats):
        errors = np.full(count, 0.01)
        effects = 0.3 + generator.normal(0, 0.05, count) + generator.normal(0, errors)
        low, high = pool(effects, errors, [str(i) for i in range(count)]).ratio_ci
        assert low is not None and high is not None
        covered += low <= math.exp(0.3) <= high
    assert covered / repeats == pytest.approx(0.95, abs=3 * math.sqrt(0.05 * 0.95 / repeats))


def test_boots_that_differ_are_the_replicates_however_many_campaigns_each_had() -> None:
    generator = np.random.default_rng(6)
    covered, repeats = 0, 1000
    boots = [str(boot) for boot in range(4) for _ in range(10)]
    for _ in range(repeats):
        of_boot = generator.normal(0, 0.05, 4)
        effects = np.repeat(of_boot, 10) + generator.normal(0, 0.01, 40)
        low, high = pool(effects, np.full(40, 0.01), boots).ratio_ci
        assert low is not None and high is not None
        covered += low <= 1.0 <= high
    assert covered / repeats == pytest.approx(0.95, abs=3 * math.sqrt(0.05 * 0.95 / repeats))


def test_the_variance_between_campaigns_is_freed_of_what_varies_within() -> None:
    generator = np.random.default_rng(7)
    count = 4000
    for true in (0.0, 0.03, 0.1):
        effects = generator.normal(0, true, count) + generator.normal(0, 0.05, count)
        found = pool(effects, np.full(count, 0.05), ["one"] * count).between_sd
        # The error of a variance of 4000: 2.2 % of the whole, three times over.
        assert found**2 == pytest.approx(true**2, abs=3 * 0.0224 * (true**2 + 0.05**2))


def test_one_campaign_has_no_interval_over_campaigns() -> None:
    found = pool(np.array([0.7]), np.array([0.1]), ["boot"])
    assert found.ratio == pytest.approx(math.exp(0.7))
    assert found.ratio_ci == (None, None)
    assert found.between_sd == 0.0


def test_no_campaign_is_refused() -> None:
    with pytest.raises(UnusableInput, match="no campaign"):
        pool(np.array([]), np.array([]), [])
