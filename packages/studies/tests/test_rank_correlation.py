"""Spearman's correlation, its interval, and what chance shows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from equipoise_studies.rank_correlation import chance_level, rank_correlation

CAMPAIGNS = 1000


def test_equals_scipy_with_ties_too() -> None:
    generator = np.random.default_rng(1)
    for points in (5, 12, 40):
        first = generator.integers(0, 6, points).astype(float)
        second = first + generator.normal(0.0, 3.0, points).round()
        found = rank_correlation(first, second)
        assert found is not None
        assert found.value == pytest.approx(float(spearmanr(first, second).statistic))
        assert found.points == points


def test_interval_contains_the_true_value_at_its_nominal_rate() -> None:
    generator = np.random.default_rng(2)
    correlation, points = 0.6, 16
    # Of a bivariate normal (Pearson 1907).
    truth = 6.0 / math.pi * math.asin(correlation / 2.0)
    held = 0
    for _ in range(CAMPAIGNS):
        first, own = generator.normal(size=(2, points))
        second = correlation * first + math.sqrt(1 - correlation**2) * own
        found = rank_correlation(first, second)
        assert found is not None
        low, high = found.interval
        assert low is not None
        assert high is not None
        held += low <= truth <= high
    # 0.95, give or take four Monte Carlo errors of 0.007.
    assert 0.92 <= held / CAMPAIGNS <= 0.98


def test_too_few_points_and_constants_have_no_correlation() -> None:
    short, flat = np.arange(4.0), np.ones(9)
    assert rank_correlation(short, short) is None
    assert rank_correlation(flat, np.arange(9.0)) is None


def test_points_in_perfect_order_have_no_interval() -> None:
    found = rank_correlation(np.arange(6.0), -np.arange(6.0))
    assert found is not None
    assert (found.value, found.interval) == (-1.0, (None, None))


def test_the_largest_of_several_is_beyond_the_level_as_often_as_alpha() -> None:
    generator = np.random.default_rng(3)
    points, tried = 12, 8
    level = chance_level(points, tried, alpha=0.1)
    assert level > chance_level(points, 1, alpha=0.1)
    beyond = 0
    for _ in range(CAMPAIGNS):
        shared = generator.normal(size=points)
        others = generator.normal(size=(tried, points))
        found = [rank_correlation(other, shared) for other in others]
        beyond += (
            max(abs(correlation.value) for correlation in found if correlation is not None) > level
        )
    # 0.1, give or take four Monte Carlo errors of 0.01.
    assert 0.06 <= beyond / CAMPAIGNS <= 0.14
